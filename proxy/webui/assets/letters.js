// Dead letters of the topics in admin.dead_letters, which the proxy reads when this view is opened.

import { clientRows } from "./clients.js";
import { libraryOf } from "./fixes.js";
import { counted, moment, whole } from "./format.js";
import { Component, html } from "./html.js";
import { LetterHours } from "./letter_hours.js";
import { ClientLink, Facts, Search, Section, Table, TopicLink, matches } from "./parts.js";
import { href } from "./route.js";
import { ask } from "./stream.js";

const MOST_NAMED = 10;
const AGAIN_MS = 500;
const OTHERS = "(others)"; // all names beyond the first 50 of a group

const byCount = (counts) => Object.entries(counts).filter(([name]) => name !== "").sort((a, b) => b[1] - a[1]);

// Lists names with their counts, the largest first. `show` returns the text or the link of a name.
function Counts({ counts, show }) {
  const ordered = byCount(counts);
  if (ordered.length === 0) return html`<span class="quiet">unknown</span>`;
  const left = ordered.length - MOST_NAMED;
  return html`${ordered.slice(0, MOST_NAMED).map(([name, count], i) => html`<span key=${name}>${i > 0 && ", "}${name === OTHERS ? name : show(name)} ${whole(count)}</span>`)}${left > 0 && ` and ${whole(left)} more`}`;
}

const Time = ({ ms }) => html`<time datetime=${moment(ms)}>${moment(ms)}</time>`;

const topicColumns = (client) => [
  { title: "Topic", show: (row) => html`<a class="name" href=${href("letters", { topic: row.topic, client })}>${row.topic}</a>`, className: "id" },
  { title: "Records", show: (row) => (row.problem === null ? whole(row.records) : ""), className: "number" },
  { title: "Letters read", show: (row) => (row.problem ?? (row.letters === undefined ? "no records" : `${whole(row.letters)} of ${whole(row.read)}`)), className: "text" },
  { title: "Formats", show: (row) => (row.formats ?? []).join(", "), className: "word" },
  { title: "Oldest", show: (row) => row.letters > 0 && html`<${Time} ms=${row.oldest_ms} />` },
  { title: "Newest", show: (row) => row.letters > 0 && html`<${Time} ms=${row.newest_ms} />` },
  { title: "From topics", show: (row) => row.letters > 0 && html`<${Counts} counts=${row.from_topics} show=${(name) => html`<${TopicLink} name=${name} />`} />`, className: "id" },
];

const kindOf = (verdict) => (verdict.rules.length > 0 ? `${verdict.code} (${verdict.rules.join(", ")})` : verdict.code);

function afterText(verdict) {
  const helps = byCount(verdict.valid_after).map(([name, count]) => `${name} ${whole(count)}`);
  return helps.length === 0 ? "" : `, valid after ${helps.join(", ")}`;
}

function Verdicts({ group }) {
  if (group.verdicts === null) return html`<span class="quiet">not validated</span>`;
  const lines = group.verdicts.map((one) => `${whole(one.letters)} ${one.is_accepted && one.code !== "valid" ? "accepted in spite of " : ""}${kindOf(one)}${afterText(one)}`);
  const obstacles = byCount(group.obstacles).map(([code, count]) => `${whole(count)} cannot be validated: ${code}`);
  return html`<ul>${[...lines, ...obstacles].map((line) => html`<li key=${line}>${line}</li>`)}</ul>`;
}

const contentOf = (part) => (part === null ? "null" : html`<code>${part.text}</code> (${whole(part.size)} bytes)`);

// Returns links to a client's violations and to the fix for its library. Only our own format names the producer.
function clientLinks(group, store) {
  if (!("sluicegate" in group.formats)) return html`<${Counts} counts=${group.clients} show=${(name) => html`<bdi>${name}</bdi>`} />`;
  const rows = clientRows(store);
  const linked = (id) => {
    const library = libraryOf(rows.find((one) => one.id === id)?.software, id);
    return html`<${ClientLink} id=${id} /> (<a href=${href("violations", { q: id })}>violations</a>, <a href=${href("fixes", { library: library?.name })}>${library === null ? "all fixes" : `fix for ${library.name}`}</a>)`;
  };
  return html`<${Counts} counts=${group.clients} show=${linked} />`;
}

function Group({ group, store }) {
  const { example } = group;
  const { contents } = example;
  const rules = group.rules.length > 0 ? ` (rule ${group.rules.join(", ")})` : "";
  return html`<article class="letters" aria-label=${`Group ${group.id}`}>
    <h3>${`${counted(group.letters, "letter", "letters")}: ${group.error || "no error"}${rules}`}</h3>
    ${group.text && html`<p>${group.text}</p>`}
    <${LetterHours} group=${group} />
    <${Facts} items=${[
      ["Time", html`<${Time} ms=${group.first_ms} /> to <${Time} ms=${group.last_ms} />`],
      ["Format and stage", `${byCount(group.formats).map(([name]) => name).join(", ")}${group.stage ? `, ${group.stage}` : ""}`],
      ["From topics", html`<${Counts} counts=${group.from_topics} show=${(name) => html`<${TopicLink} name=${name} />`} />`],
      ["Clients", clientLinks(group, store)],
      ["Verdict now", html`<${Verdicts} group=${group} />`],
      ["Example", `partition ${example.partition}, offset ${whole(example.offset)}`],
      ...(contents === null ? [["Key and value", html`<span class="quiet">not shown: the policy of ${example.from_topic} has neither <code>samples: true</code> nor <code>sensitive</code></span>`]] : [["Key", contentOf(contents.key)], ["Value", contentOf(contents.value)]]),
      ["Redrive", html`<code>${group.command}</code>`],
    ]} />
  </article>`;
}

function readText(found) {
  const all = found.read < found.records ? `The newest ${whole(found.read)} of ${whole(found.records)} records` : `All ${whole(found.read)} records`;
  return `${all} were read${found.not_letters > 0 ? `; ${whole(found.not_letters)} are no dead letters` : ""}. The command prints a plan and writes nothing.`;
}

function Groups({ found, route, store }) {
  const client = route.params.get("client");
  const shown = found.groups.filter((group) => client === null || client in group.clients)
    .filter((group) => matches(route, group.id, group.error, group.text, ...group.rules, ...Object.keys(group.clients), ...Object.keys(group.from_topics)));
  return html`
    <${Search} route=${route} label="Search" placeholder="error, rule, text, client or original topic" />
    <p class="quiet">${readText(found)}</p>
    ${client !== null && html`<p>Only groups with letters of <${ClientLink} id=${client} />. <a href=${href("letters", { topic: found.topic })}>All groups</a></p>`}
    ${found.verdict_problem && html`<p class="notice">The letters cannot be validated: ${found.verdict_problem}</p>`}
    ${shown.length === 0 && html`<p class="quiet">No dead letters.</p>`}
    ${shown.map((group) => html`<${Group} key=${group.id} group=${group} store=${store} />`)}
    ${found.other_groups > 0 && html`<p class="quiet">${counted(found.other_groups, "smaller group is", "smaller groups are")} not listed; the command <code>sluicegate dead-letters show</code> lists all.</p>`}`;
}

// Asks until the proxy has read the topic, or until the result is not wanted any more.
async function result(topic, isWanted) {
  try {
    for (;;) {
      const response = await ask(topic === null ? "api/dead-letters" : `api/dead-letters?topic=${encodeURIComponent(topic)}`);
      if (!response.ok) return { error: (await response.text()).trim() };
      const found = await response.json();
      if (!found.reading || !isWanted()) return { found };
      await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
  } catch {
    return { error: "The proxy does not respond." };
  }
}

export class Letters extends Component {
  state = { found: null, error: null };

  componentDidMount() {
    this.#read();
  }

  componentDidUpdate() {
    if (this.#topic() !== this.topic) this.#read();
  }

  #topic() {
    return this.props.route.params.get("topic");
  }

  async #read() {
    const topic = (this.topic = this.#topic());
    this.setState({ found: null, error: null });
    const next = await result(topic, () => topic === this.topic);
    if (topic === this.topic) this.setState(next);
  }

  componentWillUnmount() {
    this.topic = undefined;
  }

  render({ route, store }, { found, error }) {
    const topic = this.#topic();
    const client = route.params.get("client");
    return html`<${Section} id="letters-section" title=${topic === null ? "Topics of dead letters" : `Dead letters in ${topic}`}>
      ${topic !== null && html`<p><a href=${href("letters", { client })}>All topics of dead letters</a></p>`}
      ${found === null && html`<p class="quiet" role="status">${error ?? "Loading …"}</p>`}
      ${found?.problem && html`<p>Dead letters are not known: ${found.problem}.</p><p class="quiet">${found.advice}</p>`}
      ${found?.topics && html`<${Table} id="letter-topics" caption="The newest 100 records of each topic in admin.dead_letters" columns=${topicColumns(client)} rows=${found.topics} keyOf=${(row) => row.topic} none="No topics." />`}
      ${found?.groups && html`<${Groups} found=${found} route=${route} store=${store} />`}
    <//>`;
  }
}
