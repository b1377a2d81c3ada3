// The proxies of a fleet with their state, version and conditions.

import { State } from "./connections.js";
import { figure, Section, Table, When } from "./parts.js";
import { html } from "./html.js";
import { rate, size, whole } from "./format.js";

export const STATE_KINDS = { serving: "good", "needs attention": "attention", "not serving": "bad", unreachable: "bad" };

export const rateText = (row, name, show = rate) => figure(row.rates === null ? null : row.rates[name], (value) => `${show(value)}/s`);

// If `route` is given, all columns are shown.
export function fleetTable(store, route) {
  const columns = [
    { title: "Proxy", show: (row) => html`${row.address}${row.name && row.name !== row.address && html` <small class="quiet">${row.name}</small>`}`, className: "id", value: (row) => row.address },
    { title: "State", show: (row) => html`<${State} kind=${STATE_KINDS[row.state] ?? "bad"} text=${row.state} />`, className: "nowrap", value: (row) => row.state },
    { title: "Reason", show: (row) => row.reason ?? row.conditions.map((one) => `${one.condition}: ${one.detail}`).join("; "), className: "text" },
    { title: "Version", show: (row) => figure(row.version, String), value: (row) => row.version },
    { title: "Cluster", show: (row) => figure(row.cluster_id, String), className: "word", value: (row) => row.cluster_id },
    { title: "Started", show: (row) => html`<${When} ms=${row.since_ms} now=${store.state.time_ms} />`, value: (row) => row.since_ms },
    { title: "Last data", show: (row) => html`<${When} ms=${row.seen_ms} now=${store.state.time_ms} />`, value: (row) => row.seen_ms },
    { title: "Records", show: (row) => rateText(row, "records"), className: "number" },
    { title: "Produced", show: (row) => rateText(row, "size", size), className: "number" },
    { title: "Rejected", show: (row) => rateText(row, "rejected"), className: "number" },
    { title: "Connections", show: (row) => figure(row.connections, whole), className: "number", value: (row) => row.connections },
  ];
  const shown = route ? columns : columns.filter((column) => !["Cluster", "Started", "Last data"].includes(column.title));
  return html`<${Table} id="fleet" caption="The figures of an unreachable proxy are not in the sums" columns=${shown} rows=${store.state.fleet} keyOf=${(row) => row.address} none="No proxies." route=${route} />`;
}

export function Proxies({ store, route }) {
  return html`<${Section} id="proxies-section" title="Proxies">${fleetTable(store, route)}<//>`;
}
