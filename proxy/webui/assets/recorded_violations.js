// The violations of the last days of all proxies, which the proxy reads from violations.topic on request.

import { moment, named, outcome, ownerText, whole } from "./format.js";
import { html } from "./html.js";
import { ClientLink, Section, Table, TopicLink, When, matches } from "./parts.js";
import { ReadByDays } from "./read_by_days.js";

const ownersOf = (row) => [...new Set([ownerText(row.example.owner), ownerText(row.example.client_owner)])].filter((text) => text).join(", ");

const columns = (now) => [
  { title: "Client", show: (row) => html`<${ClientLink} id=${row.client_id} />`, className: "id" },
  { title: "Topic", show: (row) => html`<${TopicLink} name=${row.topic} />`, className: "id" },
  { title: "Owner", show: ownersOf, className: "owner" },
  { title: "Reason", show: (row) => row.reason, className: "text" },
  { title: "Rule", show: (row) => row.rule ?? "", className: "text" },
  { title: "Outcome", show: outcome, className: "nowrap" },
  { title: "Batches", show: (row) => whole(row.batches), className: "number" },
  { title: "Bad records", show: (row) => whole(row.bad_records), className: "number" },
  { title: "First seen", show: (row) => html`<${When} ms=${row.first_ms} now=${now} />` },
  { title: "Last seen", show: (row) => html`<${When} ms=${row.last_ms} now=${now} />` },
];

function rangeOf(found) {
  if (found.complete_since_ms === null) return `Not all events from ${moment(found.since_ms)} to ${moment(found.until_ms)} could be read.`;
  const only = found.complete_since_ms > found.since_ms ? ` Only the newest ${whole(found.events)} events were read.` : "";
  return `From ${moment(found.complete_since_ms)} to ${moment(found.until_ms)}, topic ${found.topic}.${only}`;
}

export class RecordedViolations extends ReadByDays {
  static path = "api/violations";

  render({ route, now }, { found }) {
    const groups = (found?.groups ?? []).filter((row) => matches(route, named(row.client_id), named(row.topic), ownersOf(row), row.reason, row.rule));
    return html`
      <${Section} id="recorded-section" title="Violations of the last days">
        ${this.choice("violations.topic", "The violations")}
        ${found?.groups && html`<${Table} id="recorded" caption=${`${rangeOf(found)} Most batches first.`} columns=${columns(now)} rows=${groups} keyOf=${(row) => JSON.stringify([row.client_id, row.topic, row.reason, row.rule, row.outcome, row.mode, row.changes, row.copies, ownersOf(row)])} none="No violations." />`}
        ${found?.other > 0 && html`<p class="quiet">${whole(found.other)} more batches belong to groups that are not listed.</p>`}
      <//>`;
  }
}
