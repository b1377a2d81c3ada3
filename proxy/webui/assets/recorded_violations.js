// The violations of the last days of all proxies, which the proxy reads from violations.topic when somebody asks.

import { moment, named, outcome, ownerText, whole } from "./format.js";
import { Component, html } from "./html.js";
import { ClientLink, Section, Table, TopicLink, When, matches } from "./parts.js";
import { setParams } from "./route.js";
import { ask } from "./stream.js";

const RANGES = [["", "not read"], ["1", "1 day"], ["7", "7 days"], ["30", "30 days"]];

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

// `days` is in the URL; the topic is read once for each choice.
export class RecordedViolations extends Component {
  state = { found: null, error: null };

  componentDidMount() {
    this.#read();
  }

  componentDidUpdate() {
    if (this.#days() !== this.days) this.#read();
  }

  #days() {
    return this.props.route.params.get("days") ?? "";
  }

  async #read() {
    const days = this.#days();
    this.days = days;
    this.setState({ found: null, error: null });
    if (days === "") return;
    try {
      const response = await ask(`api/violations?days=${encodeURIComponent(days)}`);
      const next = response.ok ? { found: await response.json() } : { error: (await response.text()).trim() };
      if (days === this.days) this.setState(next);
    } catch {
      if (days === this.days) this.setState({ error: "The proxy does not respond." });
    }
  }

  render({ route, now }, { found, error }) {
    const days = this.#days();
    const groups = (found?.groups ?? []).filter((row) => matches(route, named(row.client_id), named(row.topic), ownersOf(row), row.reason, row.rule));
    return html`
      <${Section} id="recorded-section" title="Violations of the last days">
        <form class="filters" onSubmit=${(event) => event.preventDefault()}>
          <label>Read from violations.topic <select id="days" value=${days} onChange=${(event) => setParams({ days: event.target.value })}>
            ${RANGES.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}
          </select></label>
        </form>
        ${days !== "" && found === null && html`<p class="quiet">${error ?? "Loading …"}</p>`}
        ${found?.problem && html`<p>The violations are not known: ${found.problem}</p><p class="quiet">${found.advice}</p>`}
        ${found?.groups && html`<${Table} id="recorded" caption=${`${rangeOf(found)} Most batches first.`} columns=${columns(now)} rows=${groups} keyOf=${(row) => JSON.stringify([row.client_id, row.topic, row.reason, row.rule, row.outcome, row.mode, row.changes, row.copies, ownersOf(row)])} none="No violations." />`}
        ${found?.other > 0 && html`<p class="quiet">${whole(found.other)} more batches are of groups that are not listed.</p>`}
      <//>`;
  }
}
