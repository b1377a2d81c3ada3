// Distance of timestamps from now, the bounds in force, and what other bounds would reject.

import { byId, createSvg, create, setText } from "./elements.js";
import { batches, share, span, whole } from "./format.js";

const LAST_STEP = 247;
const WIDTH = 900;
const HEIGHT = 240;
const MIDDLE = 150;
const EDGE = 26;
const DAY = 86400e3;
const TICKS = [[1e3, "1 s"], [60e3, "1 min"], [3600e3, "1 h"], [DAY, "1 d"], [30 * DAY, "30 d"], [365.25 * DAY, "1 y"], [36525 * DAY, "100 y"], [365.25e6 * DAY, "1 M y"]];
const LEAST = 10;

// As validation/units.py: four steps from one power of two to the next.
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

export class Distances {
  #state;
  #isTouched = false;
  #dragged = null;
  #before = byId("try-before");
  #after = byId("try-after");
  #boundsOf = byId("bounds-of");

  constructor() {
    for (const slider of [this.#before, this.#after]) slider.addEventListener("input", () => { this.#isTouched = true; this.#draw(); });
    this.#boundsOf.addEventListener("change", () => { this.#isTouched = false; this.#follow(); this.#draw(); });
    const place = byId("distance");
    place.addEventListener("pointerdown", (event) => { this.#dragged = this.#sliderAt(event); place.setPointerCapture(event.pointerId); this.#drag(event); });
    place.addEventListener("pointermove", (event) => this.#drag(event));
    place.addEventListener("pointerup", () => { this.#dragged = null; });
  }

  show(state) {
    this.#state = state;
    this.#name();
    if (!this.#isTouched) this.#follow();
    this.#draw();
  }

  #name() {
    const names = this.#state.bounds.map((bounds) => bounds.name);
    const known = [...this.#boundsOf.options].map((option) => option.value);
    if (names.join("\n") === known.join("\n")) return;
    const chosen = this.#boundsOf.value;
    this.#boundsOf.replaceChildren(...names.map((name) => create("option", { text: name, value: name })));
    if (names.includes(chosen)) this.#boundsOf.value = chosen;
  }

  #bounds() {
    return this.#state.bounds.find((bounds) => bounds.name === this.#boundsOf.value) ?? { before_ms: 2 ** 63, after_ms: 2 ** 63 };
  }

  // The tried bounds start as the bounds in force.
  #follow() {
    const { before_ms: before, after_ms: after } = this.#bounds();
    this.#before.value = String(stepOf(before));
    this.#after.value = String(stepOf(after));
  }

  #most() {
    const { distances } = this.#state;
    const steps = Object.values(distances).flatMap((counts) => rows(counts).map(([step]) => step));
    const { before_ms: before, after_ms: after } = this.#bounds();
    const finite = [before, after, beginningOf(Number(this.#before.value)), beginningOf(Number(this.#after.value))].filter((ms) => ms < 2 ** 62);
    return Math.max(10 * DAY, ...finite.map((ms) => 4 * ms), 4 * beginningOf(Math.max(0, ...steps)));
  }

  #x(ms, side, most) {
    const part = Math.min(1, Math.max(0, Math.log(Math.max(ms, LEAST) / LEAST) / Math.log(most / LEAST)));
    return WIDTH / 2 + side * (6 + part * (WIDTH / 2 - EDGE));
  }

  #sliderAt(event) {
    const box = byId("distance").getBoundingClientRect();
    return event.clientX < box.left + box.width / 2 ? this.#before : this.#after;
  }

  #drag(event) {
    if (this.#dragged === null || this.#state === undefined) return;
    const box = byId("distance").getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const away = (this.#dragged === this.#before ? WIDTH / 2 - x : x - WIDTH / 2) - 6;
    const part = Math.min(1, Math.max(0, away / (WIDTH / 2 - EDGE)));
    this.#isTouched = true;
    this.#dragged.value = String(stepOf(LEAST * (this.#most() / LEAST) ** part));
    this.#draw();
  }

  #draw() {
    if (this.#state === undefined) return;
    const { distances } = this.#state;
    const most = this.#most();
    const svg = createSvg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    this.#shadeBeyond(svg, most);
    const highest = Math.max(1, ...Object.values(distances).flatMap((counts) => rows(counts).map(([, count]) => count)));
    for (const [ms] of TICKS) if (ms <= most) for (const side of [-1, 1]) svg.append(createSvg("line", { class: "grid", x1: this.#x(ms, side, most), x2: this.#x(ms, side, most), y1: 8, y2: HEIGHT - 8 }));
    this.#bars(svg, distances.behind, -1, most, highest, "good", MIDDLE, MIDDLE - 14);
    this.#bars(svg, distances.ahead, 1, most, highest, "good", MIDDLE, MIDDLE - 14);
    this.#bars(svg, distances.rejected_behind, -1, most, highest, "bad-bar", MIDDLE, MIDDLE - HEIGHT + 14);
    this.#bars(svg, distances.rejected_ahead, 1, most, highest, "bad-bar", MIDDLE, MIDDLE - HEIGHT + 14);
    svg.append(createSvg("line", { class: "axis", x1: 0, x2: WIDTH, y1: MIDDLE, y2: MIDDLE }), createSvg("line", { class: "axis", x1: WIDTH / 2, x2: WIDTH / 2, y1: 8, y2: HEIGHT - 8 }));
    this.#lines(svg, most);
    byId("distance").replaceChildren(svg, ...this.#labels(most));
    this.#describe();
  }

  #bars(svg, counts, side, most, highest, className, base, height) {
    for (const [step, count] of rows(counts)) {
      if (step === 0) continue;  // no distance on this side of now
      const ends = [this.#x(beginningOf(step), side, most), this.#x(beginningOf(step + 1), side, most)];
      const [left, right] = [Math.min(...ends), Math.max(...ends)];
      const high = (height * Math.log(1 + count)) / Math.log(1 + highest);
      svg.append(createSvg("rect", { class: className, x: left, width: Math.max(2, right - left - 0.5), y: Math.min(base, base - high), height: Math.max(1, Math.abs(high)) }));
    }
  }

  #lines(svg, most) {
    const { before_ms: before, after_ms: after } = this.#bounds();
    for (const [ms, side] of [[before, -1], [after, 1]]) if (ms < 2 ** 62) svg.append(createSvg("line", { class: "held", x1: this.#x(ms, side, most), x2: this.#x(ms, side, most), y1: 0, y2: HEIGHT }));
    for (const [slider, side] of [[this.#before, -1], [this.#after, 1]]) {
      const x = this.#x(this.#tried(slider), side, most);
      svg.append(createSvg("line", { class: "tried", x1: x, x2: x, y1: 0, y2: HEIGHT }));
    }
  }

  #shadeBeyond(svg, most) {
    const left = this.#x(this.#tried(this.#before), -1, most);
    const right = this.#x(this.#tried(this.#after), 1, most);
    svg.append(createSvg("rect", { class: "beyond", x: 0, width: Math.max(0, left), y: 0, height: HEIGHT }), createSvg("rect", { class: "beyond", x: right, width: Math.max(0, WIDTH - right), y: 0, height: HEIGHT }));
  }

  // In ms; the bound in force until the user tries another.
  #tried(slider) {
    if (!this.#isTouched) return slider === this.#before ? this.#bounds().before_ms : this.#bounds().after_ms;
    return Number(slider.value) >= LAST_STEP ? 2 ** 63 : beginningOf(Number(slider.value) + 1);
  }

  // HTML, because SVG text would be stretched with the drawing.
  #labels(most) {
    const labels = create("span", { className: "ticks", "aria-hidden": "true" });
    const wide = byId("distance").clientWidth / WIDTH;
    const taken = [];
    const put = (text, x) => {
      if (taken.some((other) => Math.abs(other - x) * wide < 42)) return;
      taken.push(x);
      const label = create("span", { text, className: "tick" });
      label.style.insetInlineStart = `${(100 * x) / WIDTH}%`;
      labels.append(label);
    };
    put("now", WIDTH / 2);
    for (const [ms, text] of TICKS) if (ms <= most) for (const side of [-1, 1]) put(side < 0 ? `−${text}` : `+${text}`, this.#x(ms, side, most));
    return [labels];
  }

  #describe() {
    const { distances } = this.#state;
    const rejected = Math.max(sum(distances.rejected_behind), sum(distances.rejected_ahead));
    const all = sum(distances.behind) + rejected;
    const { before_ms: before, after_ms: after } = this.#bounds();
    setText(byId("bounds-of-text"), `${span(before)} behind, ${span(after)} ahead (dashed)`);
    this.#describeTried(this.#before, "try-before-text", distances.behind, distances.rejected_behind, all);
    this.#describeTried(this.#after, "try-after-text", distances.ahead, distances.rejected_ahead, all);
    setText(byId("distance-text"), all === 0 ? "No batches with timestamps yet." : `${batches(all)}: valid and more than 1 d behind: ${whole(beyond(distances.behind, stepOf(DAY)))}, more than 1 h ahead: ${whole(beyond(distances.ahead, stepOf(3600e3)))}; bad timestamps: ${whole(rejected)}.`);
  }

  #describeTried(slider, id, good, bad, all) {
    const limit = Number(slider.value);
    const bound = `${this.#isTouched && limit < LAST_STEP ? "about " : ""}${span(this.#tried(slider))}`;
    const found = limit >= LAST_STEP ? 0 : beyond(good, limit) + beyond(bad, limit);
    const words = `${bound}: would reject ${whole(found)} of ${batches(all)} (${share(found, all)})`;
    setText(byId(id), words);
    slider.setAttribute("aria-valuetext", words);
  }
}
