// The policy in force for one topic, with the source of each value.

import { Component, html } from "./html.js";
import { span, whole } from "./format.js";
import { Table } from "./parts.js";
import { ask } from "./stream.js";

const NO_BOUND = 2 ** 62;

function shown(key, value) {
  if (value === null || value === undefined) return html`<span class="quiet">none</span>`;
  if (typeof value === "number" && key.endsWith(".ms")) return value >= NO_BOUND ? "no bound" : `${span(value)} (${whole(value)} ms)`;
  return typeof value === "string" ? value : JSON.stringify(value);
}

const COLUMNS = [
  { title: "Key", show: (row) => row.key, className: "key" },
  { title: "Value in force", show: (row) => shown(row.key, row.value), className: "text" },
  { title: "Source", show: (row) => row.source, className: "nowrap" },
  { title: "File and line", show: (row) => [row.place, row.path].filter((text) => text).join(", "), className: "text" },
  { title: "Configured", show: (row) => ("configured" in row ? shown(row.key, row.configured) : "") },
];

// Reads the policy of `topic` from the proxy when it is first shown, and when the topic changes.
export class PolicyOf extends Component {
  state = { of: null, policy: null, error: null };

  componentDidMount() {
    this.#read();
  }

  componentDidUpdate(before) {
    if (before.topic !== this.props.topic) this.#read();
  }

  async #read() {
    const { topic } = this.props;
    if (topic === "") return;
    let found;
    try {
      const response = await ask(`api/policy?topic=${encodeURIComponent(topic)}`);
      found = response.ok ? { policy: await response.json(), error: null } : { policy: null, error: (await response.text()).trim() };
    } catch {
      found = { policy: null, error: "The proxy does not respond." };
    }
    if (topic === this.props.topic) this.setState({ of: topic, ...found });
  }

  render({ topic }, { of, policy, error }) {
    if (topic === "") return null;
    if (of !== topic) return html`<p class="quiet">Loading …</p>`;
    if (error !== null) return html`<p>${error}</p>`;
    const { effective = [], source } = policy;
    const settings = source && source.cluster_settings === "not read" ? `The cluster's settings are not read: ${source.reason}. The configuration alone applies.` : null;
    return html`
      ${settings && html`<p>${settings}</p>`}
      ${effective.length > 0 && html`<${Table} id="effective" caption="Values in force" columns=${COLUMNS} rows=${effective} keyOf=${(row) => `${row.key} ${row.path}`} none="" most=${200} />`}
      <details open=${effective.length === 0}><summary>Output of <code>sluicegate explain</code></summary><pre tabindex="0" role="region" aria-label="Policy with its sources">${policy.lines.join("\n")}</pre></details>`;
  }
}
