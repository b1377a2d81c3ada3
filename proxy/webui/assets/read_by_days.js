// Views of the last days, which the proxy reads from a topic on request.

import { Component, html } from "./html.js";
import { setParams } from "./route.js";
import { ask } from "./stream.js";

const RANGES = [["", "not read"], ["1", "1 day"], ["7", "7 days"], ["30", "30 days"]];

// The URL contains `days`, and the topic is read once for each choice. A subclass has the static `path` of the API.
export class ReadByDays extends Component {
  state = { found: null, error: null };

  componentDidMount() {
    this.#read();
  }

  componentDidUpdate() {
    if (this.#days() !== this.days) this.#read();
  }

  #days() {
    return this.props.route.params.get("days") ?? "";
  }

  async #read() {
    const days = this.#days();
    this.days = days;
    this.setState({ found: null, error: null });
    if (days === "") return;
    try {
      const response = await ask(`${this.constructor.path}?days=${encodeURIComponent(days)}`);
      const next = response.ok ? { found: await response.json() } : { error: (await response.text()).trim() };
      if (days === this.days) this.setState(next);
    } catch {
      if (days === this.days) this.setState({ error: "The proxy does not respond." });
    }
  }

  // Shows the choice of days, and the reason if there is nothing to show. `what` is unknown if the topic cannot be
  // read.
  choice(topic, what) {
    const { found, error } = this.state;
    const days = this.#days();
    return html`
      <form class="filters" onSubmit=${(event) => event.preventDefault()}>
        <label>Read from ${topic} <select id="days" value=${days} onChange=${(event) => setParams({ days: event.target.value })}>
          ${RANGES.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}
        </select></label>
      </form>
      ${days !== "" && found === null && html`<p class="quiet">${error ?? "Loading …"}</p>`}
      ${found?.problem && html`<p>${what} are not known: ${found.problem}</p><p class="quiet">${found.advice}</p>`}`;
  }
}
