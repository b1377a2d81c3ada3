// Traffic: current rates, and two charts of the last 15 minutes.

import { byId, createSvg, create, setText } from "./elements.js";
import { batches, clock, rate, size, whole } from "./format.js";

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
    this.#tile("requests", "Requests/s", rate(now.requests), `${whole(state.totals.requests)} total`);
    this.#tile("records", "Records/s", rate(now.records), `${whole(state.totals.records)} total`);
    this.#tile("size", "Produced bytes/s", size(now.size), `${size(state.totals.size)} total`);
    this.#tile("rejected", "Rejected batches/s", rate(now.rejected), `${batches(state.totals.rejected)} total`, now.rejected > 0);
    this.#tile("observed", "Observed batches/s", rate(now.observed), `${batches(state.totals.observed)} total`);
    this.#tile("connections", "Connections", whole(state.connections.count), Object.entries(state.connections.by_state).map(([name, count]) => `${whole(count)} ${name}`).join(", ") || "none");
    this.#curve("flow-records", "records", end, "area");
    this.#curve("flow-rejected", "rejected", end, "bars");
    return `${rate(now.records)} records per second; ${rate(now.rejected)} rejected batches per second; ${whole(state.connections.count)} connections`;
  }

  // Average of `seconds` whole seconds from `begin`; the newest second is incomplete.
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
      const parts = { box: create("div"), value: create("span"), more: create("small") };
      parts.box.append(create("dt", { text: title }), create("dd", {}, parts.value, parts.more));
      byId("figures").append(parts.box);
      this.#tiles.set(key, parts);
    }
    const parts = this.#tiles.get(key);
    setText(parts.value, value);
    setText(parts.more, more);
    parts.box.classList.toggle("bad", isBad);
  }

  #curve(id, name, end, kind) {
    const last = Math.floor(end / BIN) * BIN;
    const bins = [];
    for (let begin = last - SECONDS; begin < last; begin += BIN) bins.push({ begin, value: this.#average(begin, BIN)[name] });
    const most = Math.max(...bins.map((bin) => bin.value));
    const at = (i, value) => `${i},${(HEIGHT - (most > 0 ? (value / most) * (HEIGHT - 12) : 0)).toFixed(2)}`;
    const svg = createSvg("svg", { viewBox: `0 0 ${bins.length} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    if (kind === "area") {
      const line = bins.map((bin, i) => at(i + 0.5, bin.value)).join(" L");
      svg.append(createSvg("path", { class: "area", d: `M0.5,${HEIGHT} L${line} L${bins.length - 0.5},${HEIGHT} Z` }), createSvg("path", { class: "edge", d: `M${line}` }));
    } else {
      const bars = bins.map((bin, i) => (bin.value > 0 ? `M${i + 0.1},${HEIGHT} L${at(i + 0.1, bin.value)} L${at(i + 0.9, bin.value)} L${i + 0.9},${HEIGHT} Z` : "")).join("");
      svg.append(createSvg("path", { class: "bars", d: bars }));
    }
    byId(id).replaceChildren(svg, create("span", { className: "most", text: rate(most) }));
    const peak = bins.find((bin) => bin.value === most);
    const words = most > 0 ? `Peak ${rate(most)}/s at ${clock(peak.begin * 1000)}` : "No data in the last 15 minutes.";
    setText(byId(`${id}-text`), words);
  }
}
