// All proxies with the same state topic, which the proxy reads from the presence topic.

import { State } from "./connections.js";
import { STATE_KINDS } from "./fleet.js";
import { counted, whole } from "./format.js";
import { Component, html } from "./html.js";
import { figure, Section, Table, When } from "./parts.js";
import { ask } from "./stream.js";

const READ_EVERY_MS = 5000;

const columns = (now) => [
  { title: "Proxy", show: (row) => row.name, className: "id" },
  { title: "State", show: (row) => html`<${State} kind=${row.is_stale ? "bad" : STATE_KINDS[row.state] ?? "bad"} text=${row.is_stale ? "stale" : row.state} />`, className: "nowrap" },
  { title: "Conditions", show: (row) => row.conditions.join(", "), className: "text" },
  { title: "Last seen", show: (row) => html`<${When} ms=${row.seen_ms} now=${now} />` },
  { title: "Admin endpoint", show: (row) => figure(row.admin || null, String), className: "id" },
  { title: "Version", show: (row) => row.sluicegate },
  { title: "Policies", show: (row) => row.policies, className: "id" },
  { title: "Connections", show: (row) => figure(row.counters.connections ?? null, whole), className: "number" },
  { title: "Violations", show: (row) => figure(row.counters.violations ?? null, whole), className: "number" },
];

const hasNoStateTopic = (fleet) => fleet.proxies === null && !fleet.problem;

// Reads the fleet from the proxy while the view is shown. Without a state topic nothing is shown.
export class SharedFleet extends Component {
  state = { fleet: null, error: null };

  componentDidMount() {
    this.#read();
  }

  // `now` does not advance while the page is paused.
  componentDidUpdate() {
    const isShared = this.state.fleet === null || !hasNoStateTopic(this.state.fleet);
    if (isShared && this.props.now - this.readAt >= READ_EVERY_MS) this.#read();
  }

  async #read() {
    this.readAt = this.props.now;
    try {
      const response = await ask("api/fleet");
      this.setState(response.ok ? { fleet: await response.json(), error: null } : { error: (await response.text()).trim() });
    } catch {
      this.setState({ error: "The proxy does not respond." });
    }
  }

  render({ now }, { fleet, error }) {
    if (error === null && (fleet === null || hasNoStateTopic(fleet))) return null;
    const isKnown = fleet !== null && fleet.proxies !== null;
    const { proxies, findings } = isKnown ? fleet : { proxies: [], findings: [] };
    const caption = `${counted(proxies.length, "proxy", "proxies")} with the same state topic`;
    return html`
      <${Section} id="shared-fleet-section" title="All proxies">
        ${error && html`<p class="quiet">${error}</p>`}
        ${fleet?.problem && html`<p>The proxies are not known: ${fleet.problem}</p><p class="quiet">${fleet.advice}</p>`}
        ${findings.length > 0 && html`<ul>${findings.map((one) => html`<li key=${one.text}>${one.text}</li>`)}</ul>`}
        ${isKnown && html`<${Table} id="shared-fleet" caption=${caption} columns=${columns(now)} rows=${proxies} keyOf=${(row) => row.instance} none="No proxy has announced itself." />`}
      <//>`;
  }
}
