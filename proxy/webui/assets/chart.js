// A chart of the last 15 minutes (uPlot), with its content as text. Seconds without data are hatched.

import { Component, createRef, html } from "./html.js";
import { clock, rate, span } from "./format.js";
import uPlot from "./vendor/uplot.js";

const HEIGHT = 150;
const HATCH_PIXELS = 7;

export function Figure({ id, title, series, isBad }) {
  return html`<figure>
    <figcaption>${title}</figcaption>
    <${Chart} id=${id} series=${series} isBad=${isBad} />
    <p id=${`${id}-text`} class="quiet">${describe(series)}</p>
  </figure>`;
}

function describe([seconds, values]) {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return "No data in the last 15 minutes.";
  const most = Math.max(...known);
  const peak = most === 0 ? "0/s throughout" : `Peak ${rate(most)}/s at ${clock(seconds[values.indexOf(most)] * 1000)}`;
  const missing = values.length - known.length;
  return missing === 0 ? `${peak}.` : `${peak}. No data for ${span(missing * seriesBin([seconds]) * 1000)} (hatched).`;
}

const dark = matchMedia("(prefers-color-scheme: dark)");

class Chart extends Component {
  #place = createRef();
  #plot = null;
  #resized = new ResizeObserver(() => this.#plot?.setSize({ width: this.#place.current.clientWidth, height: HEIGHT }));
  #recoloured = () => { this.#plot?.destroy(); this.#draw(this.props); };

  // uPlot draws on its own canvas, for which Preact only provides the element.
  shouldComponentUpdate(next) {
    this.#plot?.setData(next.series);
    return false;
  }

  componentDidMount() {
    this.#draw(this.props);
    this.#resized.observe(this.#place.current);
    dark.addEventListener("change", this.#recoloured);
  }

  componentWillUnmount() {
    this.#resized.disconnect();
    dark.removeEventListener("change", this.#recoloured);
    this.#plot?.destroy();
    this.#plot = null;
  }

  render() {
    return html`<div id=${this.props.id} class="chart" ref=${this.#place} aria-hidden="true"></div>`;
  }

  #draw({ series, isBad }) {
    const place = this.#place.current;
    const colour = (name) => getComputedStyle(place).getPropertyValue(name).trim();
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const paths = isBad ? uPlot.paths.bars({ size: [0.8], align: 1 }) : undefined;
    const line = isBad ? { fill: colour("--bad"), stroke: colour("--bad"), width: 0 } : { fill: colour("--good-soft"), stroke: colour("--good"), width: 2 };
    this.#plot = new uPlot(
      {
        width: place.clientWidth,
        height: HEIGHT,
        tzDate: (second) => uPlot.tzDate(new Date(second * 1000), "Etc/UTC"),
        legend: { show: false },
        cursor: { show: false },
        padding: [8, 24, 0, 0],
        scales: { x: { range: (_, least, most) => [least, most + seriesBin(series)] }, y: { range: (_, _least, most) => [0, Math.max(1, (most ?? 0) * 1.1)] } },
        axes: [
          { ...axis, space: 70, size: 26, values: (_, ticks) => ticks.map((second) => `${clock(second * 1000).slice(0, 5)}Z`) },
          { ...axis, size: 72, values: (_, ticks) => ticks.map((value) => `${rate(value)}/s`) },
        ],
        series: [{}, { ...line, paths, points: { show: false }, spanGaps: false }],
        hooks: { drawClear: [(plot) => hatch(plot, colour("--quiet"))] },
      },
      series,
      place,
    );
  }
}

const seriesBin = ([seconds]) => seconds[1] - seconds[0];

// Hatches the bins without data.
function hatch(plot, colour) {
  const { ctx, bbox } = plot;
  const [seconds, values] = plot.data;
  const bin = seriesBin(plot.data);
  ctx.save();
  ctx.beginPath();
  values.forEach((value, i) => {
    if (value !== null) return;
    const [left, right] = [plot.valToPos(seconds[i], "x", true), plot.valToPos(seconds[i] + bin, "x", true)];
    ctx.rect(left, bbox.top, right - left, bbox.height);
  });
  ctx.clip();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.beginPath();
  const step = HATCH_PIXELS * devicePixelRatio;
  for (let x = bbox.left - bbox.height; x < bbox.left + bbox.width; x += step) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.strokeStyle = colour;
  ctx.globalAlpha = 0.35;
  ctx.stroke();
  ctx.restore();
}
