// The distance of timestamps from now, the bounds in force, and what other bounds would reject.

import { Component, createRef, html } from "./html.js";
import { batches, share, span, whole } from "./format.js";

const LAST_STEP = 247;
const WIDTH = 900;
const HEIGHT = 240;
const MIDDLE = 150;
const EDGE = 26;
const TICK_PIXELS = 42;
const DAY = 86400e3;
const TICKS = [[1e3, "1 s"], [60e3, "1 min"], [3600e3, "1 h"], [DAY, "1 d"], [30 * DAY, "30 d"], [365.25 * DAY, "1 y"], [36525 * DAY, "100 y"], [365.25e6 * DAY, "1 M y"]];
const LEAST = 10;
const NO_BOUND = 2 ** 62;
const BEHIND = -1;
const AHEAD = 1;

// Uses the same steps as validation/units.py, which are four from one power of two to the next.
export function beginningOf(step) {
  if (step < 4) return step;
  return (4 + (step % 4)) * 2 ** (Math.floor(step / 4) - 1);
}

export function stepOf(ms) {
  let step = 0;
  while (step < LAST_STEP && beginningOf(step + 1) <= ms) step += 1;
  return step;
}

const rows = (counts) => Object.entries(counts).map(([step, count]) => [Number(step), count]);
const sum = (counts) => rows(counts).reduce((total, [, count]) => total + count, 0);
const beyond = (counts, limit) => rows(counts).reduce((total, [step, count]) => total + (step > limit ? count : 0), 0);

export class Distances extends Component {
  // `tried` is the step of the tried bound on each side. If it is null, the bound in force applies.
  state = { name: "defaults", tried: null };
  #place = createRef();
  #dragged = null;

  render({ state }, { name, tried }) {
    const bounds = state.bounds.find((one) => one.name === name) ?? state.bounds[0] ?? { name, before_ms: 2 ** 63, after_ms: 2 ** 63 };
    const steps = tried ?? { [BEHIND]: stepOf(bounds.before_ms), [AHEAD]: stepOf(bounds.after_ms) };
    const most = mostOf(state.distances, bounds, steps);
    const inMs = (side) => (tried === null ? (side === BEHIND ? bounds.before_ms : bounds.after_ms) : steps[side] >= LAST_STEP ? 2 ** 63 : beginningOf(steps[side] + 1));
    this.drag = { steps, most };
    return html`
      <figure>
        <figcaption class="quiet">Left: age of each batch's oldest record. Right: how far its newest record is ahead. Above the line: valid batches. Below: batches with bad timestamps. Logarithmic scales; all batches since start.</figcaption>
        <div id="distance" class="chart tall" ref=${this.#place} onPointerDown=${this.#begin} onPointerMove=${this.#move} onPointerUp=${() => { this.#dragged = null; }}>
          ${drawing(state.distances, bounds, inMs, most)}${labels(most, this.#place.current?.clientWidth ?? WIDTH)}
        </div>
        <p id="distance-text" class="quiet">${describe(state.distances)}</p>
      </figure>
      <div class="controls">
        <p><label for="bounds-of">Bounds of</label> <select id="bounds-of" value=${bounds.name} onChange=${(event) => this.setState({ name: event.target.value, tried: null })}>${state.bounds.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select> <span id="bounds-of-text" class="quiet">${`${span(bounds.before_ms)} behind, ${span(bounds.after_ms)} ahead (dashed)`}</span></p>
        ${this.#slider("try-before", "Try a bound behind", BEHIND, steps, tried !== null, inMs, state.distances)}
        ${this.#slider("try-after", "Try a bound ahead", AHEAD, steps, tried !== null, inMs, state.distances)}
      </div>`;
  }

  #slider(id, label, side, steps, isTried, inMs, distances) {
    const [good, bad] = side === BEHIND ? [distances.behind, distances.rejected_behind] : [distances.ahead, distances.rejected_ahead];
    const limit = steps[side];
    const all = countOf(distances);
    const found = limit >= LAST_STEP ? 0 : beyond(good, limit) + beyond(bad, limit);
    const words = `${isTried && limit < LAST_STEP ? "about " : ""}${span(inMs(side))}: would reject ${whole(found)} of ${batches(all)} (${share(found, all)})`;
    const change = (event) => this.setState({ tried: { ...steps, [side]: Number(event.target.value) } });
    return html`<p><label for=${id}>${label}</label> <input id=${id} type="range" min="0" max=${LAST_STEP} step="1" value=${limit} aria-valuetext=${words} onInput=${change} /> <output id=${`${id}-text`} for=${id}>${words}</output></p>`;
  }

  #begin = (event) => {
    const box = this.#place.current.getBoundingClientRect();
    this.#dragged = event.clientX < box.left + box.width / 2 ? BEHIND : AHEAD;
    this.#place.current.setPointerCapture(event.pointerId);
    this.#move(event);
  };

  #move = (event) => {
    if (this.#dragged === null) return;
    const { steps, most } = this.drag;
    const box = this.#place.current.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const part = Math.min(1, Math.max(0, (this.#dragged * (x - WIDTH / 2) - 6) / (WIDTH / 2 - EDGE)));
    this.setState({ tried: { ...steps, [this.#dragged]: stepOf(LEAST * (most / LEAST) ** part) } });
  };
}

const countOf = (distances) => sum(distances.behind) + Math.max(sum(distances.rejected_behind), sum(distances.rejected_ahead));

// Returns the distance at both ends of the drawing, in ms.
function mostOf(distances, bounds, steps) {
  const found = Object.values(distances).flatMap((counts) => rows(counts).map(([step]) => step));
  const finite = [bounds.before_ms, bounds.after_ms, beginningOf(steps[BEHIND]), beginningOf(steps[AHEAD])].filter((ms) => ms < NO_BOUND);
  return Math.max(10 * DAY, ...finite.map((ms) => 4 * ms), 4 * beginningOf(Math.max(0, ...found)));
}

function xOf(ms, side, most) {
  const part = Math.min(1, Math.max(0, Math.log(Math.max(ms, LEAST) / LEAST) / Math.log(most / LEAST)));
  return WIDTH / 2 + side * (6 + part * (WIDTH / 2 - EDGE));
}

function drawing(distances, bounds, inMs, most) {
  const highest = Math.max(1, ...Object.values(distances).flatMap((counts) => rows(counts).map(([, count]) => count)));
  const bars = (counts, side, className, height) => rows(counts).filter(([step]) => step > 0).map(([step, count]) => {
    const ends = [xOf(beginningOf(step), side, most), xOf(beginningOf(step + 1), side, most)];
    const [left, right] = [Math.min(...ends), Math.max(...ends)];
    const high = (height * Math.log(1 + count)) / Math.log(1 + highest);
    return html`<rect class=${className} x=${left} width=${Math.max(2, right - left - 0.5)} y=${Math.min(MIDDLE, MIDDLE - high)} height=${Math.max(1, Math.abs(high))} />`;
  });
  const vertical = (className, x, from = 0) => html`<line class=${className} x1=${x} x2=${x} y1=${from} y2=${HEIGHT - from} />`;
  const [left, right] = [xOf(inMs(BEHIND), BEHIND, most), xOf(inMs(AHEAD), AHEAD, most)];
  return html`<svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
    <rect class="beyond" x="0" width=${Math.max(0, left)} y="0" height=${HEIGHT} /><rect class="beyond" x=${right} width=${Math.max(0, WIDTH - right)} y="0" height=${HEIGHT} />
    ${TICKS.filter(([ms]) => ms <= most).flatMap(([ms]) => [vertical("grid", xOf(ms, BEHIND, most), 8), vertical("grid", xOf(ms, AHEAD, most), 8)])}
    ${bars(distances.behind, BEHIND, "good", MIDDLE - 14)}${bars(distances.ahead, AHEAD, "good", MIDDLE - 14)}
    ${bars(distances.rejected_behind, BEHIND, "bad-bar", MIDDLE - HEIGHT + 14)}${bars(distances.rejected_ahead, AHEAD, "bad-bar", MIDDLE - HEIGHT + 14)}
    <line class="axis" x1="0" x2=${WIDTH} y1=${MIDDLE} y2=${MIDDLE} />${vertical("axis", WIDTH / 2, 8)}
    ${bounds.before_ms < NO_BOUND && vertical("held", xOf(bounds.before_ms, BEHIND, most))}${bounds.after_ms < NO_BOUND && vertical("held", xOf(bounds.after_ms, AHEAD, most))}
    ${vertical("tried", left)}${vertical("tried", right)}
  </svg>`;
}

// The labels are HTML, because SVG text would be stretched with the drawing. Labels that would overlap are left out.
function labels(most, pixels) {
  const taken = [];
  const label = (text, x) => {
    if (taken.some((other) => (Math.abs(other - x) * pixels) / WIDTH < TICK_PIXELS)) return null;
    taken.push(x);
    return html`<span class="tick" key=${text} style=${{ insetInlineStart: `${(100 * x) / WIDTH}%` }}>${text}</span>`;
  };
  return html`<span class="ticks" aria-hidden="true">${label("now", WIDTH / 2)}${TICKS.filter(([ms]) => ms <= most).flatMap(([ms, text]) => [label(`−${text}`, xOf(ms, BEHIND, most)), label(`+${text}`, xOf(ms, AHEAD, most))])}</span>`;
}

function describe(distances) {
  const all = countOf(distances);
  if (all === 0) return "No batches with timestamps yet.";
  const bad = Math.max(sum(distances.rejected_behind), sum(distances.rejected_ahead));
  return `${batches(all)}: valid and more than 1 d behind: ${whole(beyond(distances.behind, stepOf(DAY)))}, more than 1 h ahead: ${whole(beyond(distances.ahead, stepOf(3600e3)))}; bad timestamps: ${whole(bad)}.`;
}
