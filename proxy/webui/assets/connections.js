// The connections of clients with the reasons for pauses, and the brokers.

import { named, size, whole } from "./format.js";
import { html } from "./html.js";
import { Choice, ClientLink, Search, Section, Table, When, figure, matches } from "./parts.js";
import { keyOfConnection } from "./store.js";

const PAUSED = "paused";

const none = html`<span class="quiet">none</span>`;

export const connectionColumns = (store) => [
  { title: "Client", show: (row) => html`<${ClientLink} id=${row.client_id} />`, className: "id", value: (row) => row.client_id },
  { title: "Address", show: (row) => row.client_address, className: "address", value: (row) => row.client_address },
  { title: "Software", show: (row) => row.software ?? html`<span class="quiet">unknown</span>`, className: "word", value: (row) => row.software },
  { title: "Principal", show: (row) => row.principal ?? none, className: "word", value: (row) => row.principal },
  { title: "Broker", show: (row) => row.broker, className: "nowrap", value: (row) => row.broker },
  { title: "State", show: (row) => (row.pause_reasons.length > 0 ? `${row.state}, paused: ${row.pause_reasons.join(", ")}` : row.state), value: (row) => row.state },
  { title: "In flight", show: (row) => whole(row.in_flight), className: "number", value: (row) => row.in_flight },
  { title: "Received", show: (row) => size(row.received), className: "number", value: (row) => row.received },
  { title: "Received/s", show: (row) => figure(store.receivedRate([row]), size), className: "number", value: (row) => store.receivedRate([row]) },
];

export function Connections({ store, route }) {
  const { count, by_state: byState, listed } = store.state.connections;
  const wanted = route.params.get("state");
  const rows = listed.filter((row) => matches(route, named(row.client_id), row.client_address, row.software, row.principal, row.broker))
    .filter((row) => !wanted || row.state === wanted || (wanted === PAUSED && row.pause_reasons.length > 0));
  return html`<${Section} id="connections-section" title="Connections">
    <${Search} route=${route} label="Search" placeholder="client, address, software, principal or broker"><${Choice} route=${route} name="state" label="State" options=${[...Object.keys(byState), PAUSED]} /><//>
    <p id="connections-text" class="quiet">${count > listed.length ? `${whole(listed.length)} of ${whole(count)} listed` : `${whole(count)} connections`}</p>
    <${Table} id="connections" caption="Paused connections first" columns=${connectionColumns(store)} rows=${rows} keyOf=${keyOfConnection} none=${count === 0 ? "No clients connected." : "No connection matches."} route=${route} />
  <//>`;
}

// Shows the errors that brokers sent to clients, most responses first.
export function BrokerErrors({ store, client, route }) {
  const columns = [
    ...(client === undefined ? [{ title: "Client", show: (row) => html`<${ClientLink} id=${row.client_id} />`, className: "id", value: (row) => row.client_id }] : []),
    { title: "Request", show: (row) => row.api, value: (row) => row.api },
    { title: "Error", show: (row) => row.error, className: "text", value: (row) => row.error },
    { title: "Responses", show: (row) => whole(row.responses), className: "number", value: (row) => row.responses },
    { title: "Last seen", show: (row) => html`<${When} ms=${row.last_ms} now=${store.state.time_ms} />`, value: (row) => row.last_ms },
  ];
  const rows = store.state.broker_errors.filter((row) => client === undefined || row.client_id === (client ?? ""));
  return html`<${Table} id="broker-errors" caption="Responses with an error since start, most first" columns=${columns} rows=${rows} keyOf=${(row) => `${row.client_id} ${row.api} ${row.error}`} none="No errors from brokers." route=${route} />`;
}

const BROKER_STATES = { reachable: "good", unreachable: "bad" };

export const State = ({ kind, text }) => html`<span class="state" data-state=${kind}><span class="dot" aria-hidden="true"></span> ${text}</span>`;

export function Brokers({ store, route }) {
  const columns = [
    { title: "Broker", show: (row) => row.name, className: "nowrap", value: (row) => row.name },
    { title: "Address", show: (row) => row.upstream, className: "address", value: (row) => row.upstream },
    { title: "State", show: (row) => html`<${State} kind=${BROKER_STATES[row.state] ?? "waiting"} text=${row.state} />`, value: (row) => row.state },
    { title: "Advertised as", show: (row) => row.listener ?? "(bootstrap listener)", value: (row) => row.listener },
    { title: "Connections", show: (row) => whole(row.connections), className: "number", value: (row) => row.connections },
  ];
  return html`<${Section} id="brokers-section" title="Upstream brokers">
    <${Table} id="brokers" caption="Known brokers" columns=${columns} rows=${store.state.brokers} keyOf=${(row) => `${row.name} ${row.upstream}`} none="No brokers known." />
  <//>
  <${Section} id="broker-errors-section" title="Errors from brokers"><${BrokerErrors} store=${store} route=${route} /><//>`;
}
