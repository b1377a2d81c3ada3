// The newest violations of all clients and topics.

import { diagnosisOf, moment, named, outcome, ownerText, softwareOf, whole } from "./format.js";
import { html } from "./html.js";
import { Choice, ClientLink, Search, Section, Table, TopicLink, matches } from "./parts.js";
import { RecordedViolations } from "./recorded_violations.js";

function clientDetails(row) {
  return [row.principal, row.client_address, softwareOf(row)].filter((text) => text).join(", ");
}

export const eventColumns = () => [
  { title: "Time", show: (row) => html`<time datetime=${row.time}>${moment(Date.parse(row.time))}</time>`, className: "nowrap", value: (row) => row.time },
  { title: "Client", show: (row) => html`<${ClientLink} id=${row.client_id} /> <small class="quiet">${clientDetails(row)}</small>`, className: "id", value: (row) => row.client_id },
  { title: "Topic", show: (row) => html`<${TopicLink} name=${row.topic} />${`, partition ${row.partition}`}`, className: "id", value: (row) => row.topic },
  { title: "Outcome", show: outcome, className: "nowrap", value: outcome },
  { title: "Bad records", show: (row) => `${whole(row.bad_records)} of ${whole(row.records)}`, className: "number", value: (row) => row.bad_records },
  { title: "Diagnosis", show: diagnosisOf, className: "text" },
];

export function Violations({ store, route }) {
  const all = store.violations;
  const [wanted, reason] = [route.params.get("outcome"), route.params.get("reason")];
  const rows = all.filter((row) => matches(route, named(row.client_id), named(row.topic), row.principal, row.client_address, ownerText(row.owner), diagnosisOf(row)))
    .filter((row) => (!wanted || outcome(row) === wanted) && (!reason || row.reason === reason));
  const values = (valueOf) => [...new Set(all.map(valueOf))].sort();
  return html`<${Section} id="violations-section" title="Latest violations">
    <${Search} route=${route} label="Search" placeholder="client, topic, owner, address or diagnosis">
      <${Choice} route=${route} name="outcome" label="Outcome" options=${values(outcome)} />
      <${Choice} route=${route} name="reason" label="Reason" options=${values((row) => row.reason)} />
    <//>
    <${Table} id="violations" caption=${`${whole(rows.length)} of the newest ${whole(all.length)} violations. Of equal violations at most one in 100 ms is listed; event files have all of them. In memory since ${moment(store.state.since_ms)}.`} columns=${eventColumns(store)} rows=${rows} keyOf=${(row) => row.id} none="No violations." route=${route} />
  <//>
  <${RecordedViolations} route=${route} now=${store.state.time_ms} />`;
}
