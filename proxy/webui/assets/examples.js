// Shows one violation in detail, and lists violations by client, topic and reason.

import { diagnosisOf, moment, named, outcome, ownerText, rate, softwareOf, whole } from "./format.js";
import { html } from "./html.js";
import { ClientLink, Facts, TopicLink, When, figure } from "./parts.js";

// `other` is the column in which the rows differ, either "client" or "topic".
export function groupColumns(store, other) {
  const now = store.state.time_ms;
  const rateOf = (group) => store.violationRate((one) => one.client_id === group.client_id && one.topic === group.topic && outcome(one) === outcome(group) && one.mode === group.mode && one.reason === group.reason);
  return [
    other === "client" ? { title: "Client", show: (row) => html`<${ClientLink} id=${row.client_id} />`, className: "id" } : { title: "Topic", show: (row) => html`<${TopicLink} name=${row.topic} />`, className: "id" },
    { title: "Reason", show: (row) => row.reason, className: "text" },
    { title: "Outcome", show: (row) => outcome(row), className: "nowrap" },
    { title: "Batches", show: (row) => whole(row.batches), className: "number" },
    { title: "Batches/s", show: (row) => figure(rateOf(row), rate), className: "number" },
    { title: "Bad records", show: (row) => whole(row.bad_records), className: "number" },
    { title: "First seen", show: (row) => html`<${When} ms=${row.first_ms} now=${now} />` },
    { title: "Last seen", show: (row) => html`<${When} ms=${row.last_ms} now=${now} />` },
  ];
}

const shownPart = (part) => (part === null ? "null" : html`<code>${part.text}</code>${part.size > part.text.length ? ` (${whole(part.size)} bytes)` : ""}`);

// Shows the newest event of a violation group. It contains the key and value only if the topic's policy has samples:
// true.
export function Example({ group }) {
  const event = group.example;
  const sample = (event.samples ?? [])[0];
  const hasContents = sample !== undefined && "value" in sample;
  return html`<${Facts} items=${[
    ["Time", moment(Date.parse(event.time))],
    ["Diagnosis", diagnosisOf(event)],
    ["Client", html`<${ClientLink} id=${event.client_id} />${` from ${event.client_address}`}`],
    ["Software", softwareOf(event)],
    ["Topic and partition", html`<${TopicLink} name=${event.topic} />${`, partition ${event.partition}`}`],
    ["Owner of the topic", ownerText(event.owner)],
    ["Error to the client", `${event.error} (${event.code})`],
    ["Message", event.message],
    ["Bad records", `${whole(event.bad_records)} of ${whole(event.records)}`],
    ...(hasContents ? [["Key", shownPart(sample.key)], ["Value", shownPart(sample.value)]] : [["Key and value", html`<span class="quiet">not shown: the policy of ${named(event.topic)} has no <code>samples: true</code></span>`]]),
  ]} />`;
}
