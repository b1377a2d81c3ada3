// The last changes of policies while the proxy runs, with the time, the files, and what became stricter or looser.

import { Component, html } from "./html.js";
import { counted, whole } from "./format.js";
import { Table, When } from "./parts.js";
import { ask } from "./stream.js";

const READ_EVERY_MS = 5000;
const EFFECTS = ["stricter", "looser", "changed"];

function counts(change) {
  if (!change.compared) return "not compared";
  return EFFECTS.filter((effect) => change[effect].length > 0).map((effect) => `${whole(change[effect].length)} ${effect}`).join(", ");
}

function Lines({ change }) {
  const lines = EFFECTS.flatMap((effect) => change[effect]);
  const left = change.count - lines.length;
  return html`<ul>${lines.map((line) => html`<li key=${line}>${line}</li>`)}${left > 0 && html`<li>${whole(left)} more; the command sluicegate diff lists all</li>`}</ul>`;
}

function Files({ change }) {
  const { files } = change;
  return html`<ul>${files.map((one) => html`<li key=${one.file}>${one.file} <small>${one.sha256 === null ? "removed" : one.commit ?? `SHA-256 ${one.sha256}`}</small></li>`)}${change.other_files > 0 && html`<li>${counted(change.other_files, "more file", "more files")}</li>`}</ul>`;
}

const columns = (now) => [
  { title: "In force since", show: (row) => html`<${When} ms=${row.time_ms} now=${now} />` },
  { title: "Effect", show: counts },
  { title: "Changes", show: (row) => html`<${Lines} change=${row} />`, className: "text" },
  { title: "Files", show: (row) => html`<${Files} change=${row} />`, className: "text" },
];
const PROXIES = { title: "Proxies", show: (row) => row.proxies.join(", "), className: "text" };

// Reads the changes from the proxy while the view is shown.
export class PolicyChanges extends Component {
  state = { changes: null, error: null };

  componentDidMount() {
    this.#read();
  }

  // `now` does not advance while the page is paused.
  componentDidUpdate() {
    if (this.props.now - this.readAt >= READ_EVERY_MS) this.#read();
  }

  async #read() {
    this.readAt = this.props.now;
    try {
      const response = await ask("api/policy-changes");
      this.setState(response.ok ? { changes: (await response.json()).changes, error: null } : { error: (await response.text()).trim() });
    } catch {
      this.setState({ error: "The proxy does not respond." });
    }
  }

  render({ now }, { changes, error }) {
    if (changes === null) return html`<p class="quiet">${error ?? "Loading …"}</p>`;
    const shown = changes.some((change) => change.proxies) ? [...columns(now), PROXIES] : columns(now);
    const caption = `${counted(changes.length, "reload", "reloads")} with changed policies`;
    return html`<${Table} id="policy-changes" caption=${caption} columns=${shown} rows=${changes} keyOf=${(row) => `${row.time_ms} ${row.files.map((one) => one.sha256)}`} none="No policy has changed since the start of the proxy." />`;
  }
}
