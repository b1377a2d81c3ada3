// Charts of the last 15 minutes of one topic or client, including the time before the page was opened.

import { Figure } from "./chart.js";
import { Component, html } from "./html.js";
import { ask } from "./stream.js";

const AGAIN_MS = 10_000;
const BINS = 90;

// Returns the bins of the last 15 minutes as [seconds], [rates]. A rate is null before the first count.
export function seriesOf(history, column) {
  const { begin, bin_seconds: bin } = history;
  const counts = history[column].slice(-BINS);
  const end = begin + history[column].length * bin;
  const seconds = Array.from({ length: BINS }, (_, i) => end + (i - BINS) * bin);
  return [seconds, seconds.map((_, i) => (i < BINS - counts.length ? null : counts[i - BINS + counts.length] / bin))];
}

// Reads the history of the topic or client `name` at once and every 10 s, except while the page is paused.
export class History extends Component {
  state = { of: null, history: null, error: null };
  #timer = null;

  componentDidMount() {
    this.#read();
    this.#timer = setInterval(() => this.props.isPaused() || this.#read(), AGAIN_MS);
  }

  componentDidUpdate(before) {
    if (before.name !== this.props.name) this.#read();
  }

  componentWillUnmount() {
    clearInterval(this.#timer);
  }

  async #read() {
    const { kind, name } = this.props;
    let found;
    try {
      const response = await ask(`api/history?${kind}${name === null ? "" : `=${encodeURIComponent(name)}`}`);
      found = response.ok ? { history: (await response.json()).traffic, error: null } : { error: (await response.text()).trim() };
    } catch {
      found = { error: "The proxy does not respond." };
    }
    if (name === this.props.name) this.setState({ of: name, ...found });
  }

  render({ name }, { of, history, error }) {
    if (of !== name && error === null) return html`<p class="quiet">Loading …</p>`;
    if (error !== null && history === null) return html`<p>${error}</p>`;
    if (history === null || history.batches.length === 0) return html`<p class="quiet">No data in the last 15 minutes.</p>`;
    return html`
      <${Figure} id="history-batches" title="Validated batches/s, last 15 minutes" series=${seriesOf(history, "batches")} isBad=${false} />
      <${Figure} id="history-records" title="Records/s, last 15 minutes" series=${seriesOf(history, "records")} isBad=${false} />
      <${Figure} id="history-violations" title="Batches with violations/s, last 15 minutes" series=${seriesOf(history, "violations")} isBad=${true} />`;
  }
}
