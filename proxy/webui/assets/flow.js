// What flows: the figures of now, and two curves of the last quarter of an hour.

import { byId, drawn, made, say } from "./elements.js";
import { batches, clock, rate, size, whole } from "./words.js";

const SECONDS = 900;
const BIN = 10;
const NOW_SECONDS = 5;
const NAMES = ["requests", "records", "size", "rejected", "rejected_records", "observed"];
const HEIGHT = 100;

export class Flow {
  #seconds = new Map();
  #tiles = new Map();

  show(state) {
    const history = state.history;
    history.requests.forEach((_, i) => {
      this.#seconds.set(history.begin + i, Object.fromEntries(NAMES.map((name) => [name, history[name][i]])));
    });
    const end = this.#seconds.size > 0 ? Math.max(...this.#seconds.keys()) : Math.floor(state.time_ms / 1000);
    for (const second of this.#seconds.keys()) if (second <= end - SECONDS) this.#seconds.delete(second);
    const now = this.#average(end - NOW_SECONDS, NOW_SECONDS);
    this.#tile("requests", "Requests a second", rate(now.requests), `${whole(state.totals.requests)} in all`);
    this.#tile("records", "Records a second", rate(now.records), `${whole(state.totals.records)} in all`);
    this.#tile("size", "Produced a second", size(now.size), `${size(state.totals.size)} in all`);
    this.#tile("rejected", "Rejected a second", rate(now.rejected), `${batches(state.totals.rejected)} in all`, now.rejected > 0);
    this.#tile("observed", "Forwarded and told of", rate(now.observed), `${batches(state.totals.observed)} in all`);
    this.#tile("connections", "Connections", whole(state.connections.count), Object.entries(state.connections.by_state).map(([name, count]) => `${whole(count)} ${name}`).join(", ") || "none");
    this.#curve("flow-records", "records", end, "area");
    this.#curve("flow-rejected", "rejected", end, "bars");
    return `${rate(now.records)} records a second; ${rate(now.rejected)} rejected batches a second; ${whole(state.connections.count)} connections`;
  }

  // Whole seconds up to `before`; the newest is not over yet.
  #average(begin, seconds) {
    const total = Object.fromEntries(NAMES.map((name) => [name, 0]));
    let found = 0;
    for (let second = begin; second < begin + seconds; second += 1) {
      const row = this.#seconds.get(second);
      if (row === undefined) continue;
      found += 1;
      for (const name of NAMES) total[name] += row[name];
    }
    for (const name of NAMES) total[name] /= Math.max(1, found);
    return total;
  }

  #tile(key, title, value, more, isBad = false) {
    if (!this.#tiles.has(key)) {
      const parts = { box: made("div"), value: made("span"), more: made("small") };
      parts.box.append(made("dt", { text: title }), made("dd", {}, parts.value, parts.more));
      byId("figures").append(parts.box);
      this.#tiles.set(key, parts);
    }
    const parts = this.#tiles.get(key);
    say(parts.value, value);
    say(parts.more, more);
    parts.box.classList.toggle("bad", isBad);
  }

  #curve(id, name, end, kind) {
    const last = Math.floor(end / BIN) * BIN;
    const bins = [];
    for (let begin = last - SECONDS; begin < last; begin += BIN) bins.push({ begin, value: this.#average(begin, BIN)[name] });
    const most = Math.max(...bins.map((bin) => bin.value));
    const at = (i, value) => `${i},${(HEIGHT - (most > 0 ? (value / most) * (HEIGHT - 12) : 0)).toFixed(2)}`;
    const svg = drawn("svg", { viewBox: `0 0 ${bins.length} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    if (kind === "area") {
      const line = bins.map((bin, i) => at(i + 0.5, bin.value)).join(" L");
      svg.append(drawn("path", { class: "area", d: `M0.5,${HEIGHT} L${line} L${bins.length - 0.5},${HEIGHT} Z` }), drawn("path", { class: "edge", d: `M${line}` }));
    } else {
      const bars = bins.map((bin, i) => (bin.value > 0 ? `M${i + 0.1},${HEIGHT} L${at(i + 0.1, bin.value)} L${at(i + 0.9, bin.value)} L${i + 0.9},${HEIGHT} Z` : "")).join("");
      svg.append(drawn("path", { class: "bars", d: bars }));
    }
    byId(id).replaceChildren(svg, made("span", { className: "most", text: rate(most) }));
    const peak = bins.find((bin) => bin.value === most);
    const words = most > 0 ? `At most ${rate(most)}, at ${clock(peak.begin * 1000)}. From 15 minutes ago on the left to now on the right.` : "None in 15 minutes.";
    say(byId(`${id}-said`), words);
  }
}
