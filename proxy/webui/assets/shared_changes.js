// The changes of policies and suspensions in the last days with their authors, for all proxies with the same state
// topic.

import { counted, moment } from "./format.js";
import { html } from "./html.js";
import { Section, Table, When } from "./parts.js";
import { ReadByDays } from "./read_by_days.js";

const PROXIES_SHOWN = 10;

function Taken({ change }) {
  const shown = change.taken.slice(0, PROXIES_SHOWN);
  const left = change.taken.length - shown.length;
  const after = (one) => `+${(Math.max(one.time_ms - change.time_ms, 0) / 1000).toFixed(1)}\u00a0s`;
  return html`<ul>${shown.map((one) => html`<li key=${one.proxy}>${one.proxy} <small>${after(one)}</small></li>`)}${left > 0 && html`<li>${counted(left, "more proxy", "more proxies")}</li>`}</ul>`;
}

const columns = (now) => [
  { title: "Time", show: (row) => html`<${When} ms=${row.time_ms} now=${now} />` },
  { title: "Change", show: (row) => row.what, className: "text" },
  { title: "By", show: (row) => html`${row.actor.name} <small>${row.actor.address}</small>`, className: "text" },
  { title: "Effect", show: (row) => html`<ul>${row.changes.map((one, i) => html`<li key=${i}>${one.effect}: ${one.text}</li>`)}</ul>`, className: "text" },
  { title: "Taken by", show: (row) => html`<${Taken} change=${row} />`, className: "text" },
];

export class SharedChanges extends ReadByDays {
  static path = "api/changes";

  render({ now }, { found }) {
    const since = found?.changes ? `Since ${moment(found.since_ms)}, the newest first.${found.is_complete ? "" : " Not all could be read in time."}` : "";
    return html`
      <${Section} id="shared-changes-section" title="Changes in all proxies">
        ${this.choice("state.history_topic", "The changes")}
        ${found && !found.changes && !found.problem && html`<p class="quiet">The proxy has no state.topic: its own changes are above.</p>`}
        ${found?.changes && html`<${Table} id="shared-changes" caption=${since} columns=${columns(now)} rows=${found.changes} keyOf=${(row) => row.id} none="No changes." />`}
      <//>`;
  }
}
