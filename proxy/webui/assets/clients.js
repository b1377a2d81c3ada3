// The list of all clients, and the page of one client.

import { BrokerErrors, connectionColumns } from "./connections.js";
import { Example, groupColumns } from "./examples.js";
import { Fix, libraryOf } from "./fixes.js";
import { mainReason, named, outcome, ownerText, rate, size, softwareOf, whole } from "./format.js";
import { History } from "./history.js";
import { html } from "./html.js";
import { Choice, ClientLink, Facts, Search, Section, Table, When, figure, matches } from "./parts.js";
import { href } from "./route.js";
import { keyOfConnection } from "./store.js";
import { eventColumns } from "./violations.js";

const CONNECTED = "connected";
const VIOLATIONS = "with violations";

// Returns the clients that are connected or have violations, most batches first.
export function clientRows(store) {
  const found = new Map();
  const rowOf = (id) => {
    if (!found.has(id)) found.set(id, { id, batches: 0, first_ms: null, last_ms: null, reason: "", groups: [], connections: [], software: "", principals: new Set(), owner: "", rates: null });
    return found.get(id);
  };
  for (const group of store.groups) {
    const row = rowOf(group.client_id);
    row.batches += group.batches;
    row.first_ms = Math.min(row.first_ms ?? Infinity, group.first_ms);
    row.last_ms = Math.max(row.last_ms ?? 0, group.last_ms);
    row.software ||= softwareOf(group.example);
    if (group.example.principal) row.principals.add(group.example.principal);
    row.owner ||= ownerText(group.example.client_owner);
    row.groups.push(group);
  }
  for (const one of store.state.connections.listed) {
    const row = rowOf(one.client_id);
    row.connections.push(one);
    row.software = one.software ?? row.software;
    if (one.principal) row.principals.add(one.principal);
    row.owner = ownerText(one.owner) || row.owner;
  }
  for (const row of found.values()) Object.assign(row, { rates: store.ratesOfClient(row.id, row.connections), reason: mainReason(row.groups, store.state.time_ms) });
  return [...found.values()].sort((a, b) => b.batches - a.batches || (named(a.id) < named(b.id) ? -1 : 1));
}

const OWNER = { title: "Owner", show: (row) => row.owner || html`<span class="quiet">none</span>`, className: "owner", value: (row) => row.owner };

export const clientColumns = (store) => [
  { title: "Client", show: (row) => html`<${ClientLink} id=${row.id} />`, className: "id", value: (row) => row.id },
  { title: "Software", show: (row) => row.software || html`<span class="quiet">unknown</span>`, className: "word", value: (row) => row.software },
  { title: "Principal", show: (row) => [...row.principals].join(", ") || html`<span class="quiet">none</span>`, className: "word" },
  OWNER,
  { title: "Connections", show: (row) => whole(row.connections.length), className: "number", value: (row) => row.connections.length },
  { title: "Batches/s", show: (row) => figure(row.rates?.batches, rate), className: "number", value: (row) => row.rates?.batches ?? null },
  { title: "Received/s", show: (row) => figure(store.receivedRate(row.connections), size), className: "number", value: (row) => store.receivedRate(row.connections) },
  { title: "Bad batches", show: (row) => whole(row.batches), className: "number", value: (row) => row.batches },
  { title: "Last violation", show: (row) => (row.last_ms === null ? html`<span class="quiet">none</span>` : html`<${When} ms=${row.last_ms} now=${store.state.time_ms} />`), value: (row) => row.last_ms },
  { title: "Main reason", show: (row) => row.reason, className: "text", value: (row) => row.reason },
];

export function Clients({ store, route }) {
  const which = route.params.get("only");
  const all = clientRows(store);
  const rows = all.filter((row) => matches(route, named(row.id), row.software, row.reason, row.owner, ...row.principals))
    .filter((row) => (which === CONNECTED ? row.connections.length > 0 : which === VIOLATIONS ? row.batches > 0 : true));
  const columns = clientColumns(store).filter((column) => column !== OWNER || all.some((row) => row.owner));
  const { count, listed } = store.state.connections;
  return html`<${Section} id="clients-section" title="Clients">
    <${Search} route=${route} label="Search" placeholder="client, owner, software, principal or reason"><${Choice} route=${route} name="only" label="Show" options=${[CONNECTED, VIOLATIONS]} /><//>
    <${Table} id="clients" caption=${`${whole(rows.length)} clients. Bad batches are those with violations since start.`} columns=${columns} rows=${rows} keyOf=${(row) => JSON.stringify(row.id)} none="No clients." route=${route} />
    ${count > listed.length && html`<p class="quiet">Only ${whole(listed.length)} of ${whole(count)} connections are listed, so clients without violations may be missing.</p>`}
  <//>`;
}

export function ClientPage({ store, route }) {
  const id = route.params.get("id");
  const isOurs = (group) => group.client_id === id;
  const row = clientRows(store).find((one) => one.id === id);
  const groups = store.groups.filter(isOurs).sort((a, b) => b.batches - a.batches);
  const now = store.state.time_ms;
  if (row === undefined) return html`<${Section} id="client" title=${`Client ${named(id)}`}><p>Not connected, and no violations recorded since start.</p><//>`;
  return html`
    <${Section} id="client" title=${`Client ${named(id)}`}>
      <${Facts} items=${[
        ["Software", row.software || "unknown: the client does not report it"],
        ["Principal", [...row.principals].join(", ")],
        ["Owner", row.owner],
        ["Addresses", [...new Set(row.connections.map((one) => one.client_address))].join(", ")],
        ["Connections", whole(row.connections.length)],
        ["Received", row.connections.length === 0 ? "not connected" : html`${figure(store.receivedRate(row.connections), size)}/s`],
        ["First seen", html`<${When} ms=${store.client(id)?.first_ms} now=${now} />`],
        ["Last batch", html`<${When} ms=${store.client(id)?.last_ms} now=${now} />`],
        ["Validated batches/s", figure(row.rates?.batches, rate)],
        ["Records/s", figure(row.rates?.records, rate)],
        ["First violation", row.first_ms === null ? "none since start" : html`<${When} ms=${row.first_ms} now=${now} />`],
        ["Last violation", row.last_ms === null ? "none since start" : html`<${When} ms=${row.last_ms} now=${now} />`],
        ["Batches with violations", whole(row.batches)],
        ["Batches with violations/s", figure(store.violationRate(isOurs), rate)],
      ]} />
    <//>
    <${Section} id="client-history" title="Traffic"><${History} kind="client" name=${id} isPaused=${() => store.isPaused} /><//>
    <${Section} id="client-violations" title="Violations by topic and reason">
      <${Table} id="groups" caption="Most batches first, since start" columns=${groupColumns(store, "topic")} rows=${groups} keyOf=${(one) => JSON.stringify([one.topic, outcome(one), one.mode, one.reason])} none="No violations." />
      <p class="quiet"><a href=${href("letters", { client: id ?? "" })}>Dead letters of this client</a></p>
    <//>
    ${groups.length > 0 && html`<${Section} id="client-example" title="Example"><${Example} group=${newest(groups)} /><${Fix} library=${libraryOf(row.software, id)} reasons=${groups.map((one) => one.reason)} topic=${newest(groups).topic} /><//>`}
    <${Section} id="client-events" title="Latest violations">
      <${Table} id="violations" caption="Newest first" columns=${eventColumns(store)} rows=${store.violations.filter(isOurs)} keyOf=${(one) => one.id} none="None among the newest 200 violations of all clients." most=${20} />
    <//>
    <${Section} id="client-errors" title="Errors from brokers"><${BrokerErrors} store=${store} client=${id} /><//>
    <${Section} id="client-connections" title="Connections">
      <${Table} id="connections" caption="Paused connections first" columns=${connectionColumns(store)} rows=${row.connections} keyOf=${keyOfConnection} none="Not connected." />
    <//>`;
}

export const newest = (groups) => groups.reduce((a, b) => (a.last_ms >= b.last_ms ? a : b));
