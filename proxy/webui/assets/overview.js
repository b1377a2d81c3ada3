// The first view, with current rates, the last 15 minutes, and the clients, topics and violations to check first.

import { Figure } from "./chart.js";
import { clientRows, clientColumns } from "./clients.js";
import { batches, counted, rate, size, whole } from "./format.js";
import { fleetTable } from "./fleet.js";
import { SharedFleet } from "./shared_fleet.js";
import { html } from "./html.js";
import { Figures, NoData, Section, Table } from "./parts.js";
import { href } from "./route.js";
import { topicColumns, topicRows } from "./topics.js";
import { eventColumns } from "./violations.js";

const WORST = 10;

export function Overview({ store }) {
  const { state } = store;
  const worst = (rows) => rows.filter((row) => row.batches > 0).sort((a, b) => b.batches - a.batches).slice(0, WORST);
  const shown = (columns) => columns(store).filter((column) => ["Client", "Topic", "Bad batches", "Last violation", "Main reason"].includes(column.title));
  return html`
    <${Section} id="now" title="Current rates"><${CurrentRates} store=${store} /><//>
    ${state.fleet.length > 0 && html`<${Section} id="fleet-section" title="Proxies">${fleetTable(store)}<p class="quiet"><a href=${href("proxies")}>All figures of each proxy</a></p><//>`}
    ${state.fleet.length === 0 && html`<${SharedFleet} now=${state.time_ms} />`}
    <${Section} id="flow" title="Last 15 minutes">
      <div class="pair">
        <${Figure} id="flow-records" title="Records/s" series=${store.series("records")} />
        <${Figure} id="flow-rejected" title="Rejected batches/s" series=${store.series("rejected")} isBad=${true} />
      </div>
    <//>
    <${Section} id="worst" title="Clients and topics with violations">
      <div class="pair">
        <${Table} id="clients" caption="Clients, most batches first" columns=${shown(clientColumns)} rows=${worst(clientRows(store))} keyOf=${(row) => JSON.stringify(row.id)} none="No violations." />
        <${Table} id="topics" caption="Topics, most batches first" columns=${shown(topicColumns)} rows=${worst(topicRows(store))} keyOf=${(row) => JSON.stringify(row.name)} none="No violations." />
      </div>
      <p class="quiet">Counted since start${state.other_violations > 0 ? `; plus ${batches(state.other_violations)} of clients and topics that are no longer listed` : ""}. <a href=${href("clients")}>All clients</a>, <a href=${href("topics")}>all topics</a></p>
    <//>
    <${Section} id="last" title="Latest violations">
      <${Table} id="violations" caption="Newest first" columns=${eventColumns(store)} rows=${store.violations.slice(0, WORST)} keyOf=${(row) => row.id} none="No violations." />
      <p class="quiet"><a href=${href("violations")}>All recent violations</a></p>
    <//>`;
}

function CurrentRates({ store }) {
  const { totals, connections } = store.state;
  const rates = store.rates;
  const rateOf = (name, show = rate) => (rates === null ? html`<${NoData} />` : `${show(rates[name])}/s`);
  const states = Object.entries(connections.by_state).map(([name, count]) => `${whole(count)} ${name}`).join(", ");
  return html`<${Figures} id="figures" items=${[
    ["Requests", rateOf("requests"), `${whole(totals.requests)} total`],
    ["Records", rateOf("records"), `${whole(totals.records)} total`],
    ["Produced bytes", rateOf("size", size), `${size(totals.size)} total`],
    ["Rejected batches", rateOf("rejected"), `${whole(totals.rejected)} total`, rates !== null && rates.rejected > 0],
    ["Observed batches", rateOf("observed"), `${whole(totals.observed)} total`],
    ["Connections", whole(connections.count), states || "none"],
  ]} />`;
}

function paced(number, one, many) {
  const shown = rate(number);
  return `${shown} ${shown === "1" ? one : many} per second`;
}

// Returns a sentence for screen readers.
export function summaryOf(store) {
  const rates = store.rates;
  const flow = rates === null ? "no data on traffic" : `${paced(rates.records, "record", "records")}; ${paced(rates.rejected, "rejected batch", "rejected batches")}`;
  return `${store.state.state}; ${flow}; ${counted(store.state.connections.count, "connection", "connections")}`;
}
