// Assembles the web UI. Follows the stream, and draws the view that the URL names.

import { ClientPage, Clients } from "./clients.js";
import { Brokers, Connections } from "./connections.js";
import { Fixes } from "./fixes.js";
import { Proxies, STATE_KINDS } from "./fleet.js";
import { counted, moment, named } from "./format.js";
import { html, render } from "./html.js";
import { Overview, summaryOf } from "./overview.js";
import { Prose } from "./parts.js";
import { Policy } from "./policy.js";
import { currentRoute, href } from "./route.js";
import { Store } from "./store.js";
import { follow, token } from "./stream.js";
import { TopicPage, Topics } from "./topics.js";
import { Violations } from "./violations.js";

const SUMMARY_EVERY_MS = 15000;

let Letters = null;

// Loads the view when it is first opened, which keeps the page itself small.
function LettersOnDemand(props) {
  if (Letters !== null) return html`<${Letters} ...${props} />`;
  import("./letters.js").then((module) => { ({ Letters } = module); draw(); }, () => null); // drawing again tries again
  return html`<p class="quiet">Loading …</p>`;
}

const VIEWS = {
  overview: { title: () => "Overview", show: Overview },
  proxies: { title: () => "Proxies", show: Proxies, isShown: (state) => (state?.fleet.length ?? 0) > 0 },
  clients: { title: () => "Clients", show: Clients },
  client: { title: (params) => `Client ${named(params.get("id"))}`, show: ClientPage, under: "clients" },
  topics: { title: () => "Topics", show: Topics },
  topic: { title: (params) => `Topic ${named(params.get("name"))}`, show: TopicPage, under: "topics" },
  violations: { title: () => "Violations", show: Violations },
  letters: { title: () => "Dead letters", show: LettersOnDemand },
  connections: { title: () => "Connections", show: Connections },
  brokers: { title: () => "Brokers", show: Brokers },
  policy: { title: () => "Policy", show: Policy },
  fixes: { title: () => "Fixes", show: Fixes },
};

const store = new Store();
let pausedAt = null; // the time (ms) of the data that are shown while paused
let trouble = null; // the reason why there are no new data
let rejection = null; // has { status, text } while access is denied
let summary = "";
let summaryAt = 0;
let summarized = null; // the state that the summary describes
let isDue = false;
let stop = new AbortController();

function stateText(state) {
  if (rejection !== null) return ["bad", rejection.status === 401 ? "token required" : "access denied"];
  if (pausedAt !== null) return ["waiting", "paused"];
  if (trouble !== null) return ["bad", trouble];
  return state === null ? ["waiting", "connecting"] : [STATE_KINDS[state.state] ?? "bad", state.state];
}

function Header({ state }) {
  const [kind, text] = stateText(state);
  return html`<header>
    <p class="brand"><a href="#/">sluicegate</a></p>
    <p id="state" class="state" data-state=${kind}><span class="dot" aria-hidden="true"></span> <span id="state-text">${text}</span></p>
    <p id="about" class="quiet">${state && about(state)}</p>
    <button id="pause" type="button" aria-pressed=${String(pausedAt !== null)} onClick=${togglePause}>${pausedAt === null ? "Pause" : "Resume"}</button>
  </header>`;
}

const proxyOf = (state) => (state.fleet.length > 0 ? `fleet of ${counted(state.fleet.length, "proxy", "proxies")}` : `proxy ${state.name}`);
const clusterOf = (state) => `cluster ${state.cluster_id ?? state.brokers[0]?.upstream ?? "unknown"}`;

function about(state) {
  const parts = [proxyOf(state), clusterOf(state), `version ${state.version}`, counted(state.proxies, "process", "processes"), `since ${moment(state.since_ms)}`];
  return parts.map((part, i) => html`<span key=${i}>${part}${i < parts.length - 1 && ","}</span> `);
}

function Navigation({ view, state }) {
  const shown = Object.entries(VIEWS).filter(([, one]) => !one.under && (one.isShown?.(state) ?? true));
  return html`<nav aria-label="Views"><ul>${shown.map(([name, one]) => html`<li key=${name}><a href=${href(name)} aria-current=${(VIEWS[view]?.under ?? view) === name ? "page" : null}>${one.title()}</a></li>`)}</ul></nav>`;
}

function Notices({ state }) {
  return html`
    ${pausedAt !== null && html`<p id="paused" class="notice" role="status">Paused. These are the data of ${moment(pausedAt)}; nothing is updated until you resume.</p>`}
    ${trouble !== null && state !== null && html`<p id="stale" class="notice" role="status">No new data: ${trouble}. These are the data of ${moment(state.time_ms)}.</p>`}
    ${rejection !== null && rejection.status !== 401 && html`<p class="notice" role="status">${rejection.text}</p>`}
    ${state !== null && state.conditions.length > 0 && html`<ul id="conditions" class=${state.state === "not serving" ? "notice bad" : "notice"} aria-label="Conditions">${state.conditions.map((one) => html`<li key=${`${one.condition} ${one.subject} ${one.detail}`}><strong>${one.condition}</strong>: <${Prose} text=${ended(one.detail)} /> Since ${moment(one.since_ms)}. <${Prose} text=${one.advice} /></li>`)}</ul>`}`;
}

const ended = (text) => (/[.?!]$/.test(text) ? text : `${text}.`);

function TokenForm() {
  if (rejection?.status !== 401) return null;
  const send = (event) => {
    event.preventDefault();
    token.set(event.target.elements.token.value);
    event.target.reset();
    begin();
  };
  return html`<form id="token-form" class="notice" onSubmit=${send}>
    <label for="token">The web UI needs a token (<code>admin.token</code>, <code>admin.token_file</code>, or <code>--token-file</code> of a fleet):</label>
    <span class="row"><input id="token" name="token" type="password" autocomplete="off" spellcheck="false" required ref=${focusOnce} /> <button type="submit">Show</button></span>
    <p id="token-text" role="status">${token.get() === null ? "" : "Wrong token."}</p>
  </form>`;
}

const focused = new WeakSet();

function focusOnce(input) {
  if (input === null || focused.has(input)) return;
  focused.add(input);
  input.focus();
}

// The fragment of the URL belongs to the view.
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function App() {
  const { state } = store;
  const route = currentRoute();
  const view = VIEWS[route.view];
  const title = view?.title(route.params) ?? "No such view";
  document.title = [title, ...(state === null ? [] : [proxyOf(state), clusterOf(state)]), "sluicegate"].join(" - ");
  return html`
    <a class="skip" id="skip" href="#main" onClick=${skip}>Skip to content</a>
    <${Header} state=${state} />
    <${Navigation} view=${route.view} state=${state} />
    <main id="main" tabindex="-1">
      <h1 class="unseen">${title}</h1>
      <p id="summary" class="unseen" role="status" aria-live="polite">${summary}</p>
      <${TokenForm} /><${Notices} state=${state} />
      ${view === undefined ? html`<p>This view does not exist. <a href="#/">Overview</a></p>` : state !== null && rejection === null && html`<${view.show} key=${route.view} store=${store} route=${route} />`}
    </main>
    <footer class="quiet"><p>Read-only. Times are in UTC. Same data: <a href="api/live">/api/live</a>, <a href="metrics">/metrics</a>, <code>sluicegate top</code></p></footer>`;
}

// Announces a changed state at once, like the header, and new figures only from time to time.
function summarize() {
  const [, text] = stateText(store.state);
  if (text === summarized && Date.now() - summaryAt <= SUMMARY_EVERY_MS) return;
  const hasFigures = text === store.state?.state;
  [summarized, summaryAt, summary] = [text, Date.now(), hasFigures ? summaryOf(store) : text];
}

// Draws at most once in a frame.
function draw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    summarize();
    render(html`<${App} />`, document.getElementById("app"));
  });
}

function begin() {
  stop.abort();
  stop = new AbortController();
  follow(
    {
      live: (state) => {
        store.take(state);
        trouble = rejection = null;
        draw();
      },
      problem: (problem) => { trouble = problem.text; draw(); },
      lost: (reason) => { trouble = `${reason}; retrying`; draw(); },
      rejected: (status, text) => { rejection = { status, text: text.trim() }; draw(); },
    },
    stop.signal,
  );
}

// While the page is paused there is no stream. Resuming begins with the full state.
function togglePause() {
  if (pausedAt === null && store.state !== null) {
    pausedAt = store.state.time_ms;
    store.isPaused = true;
    stop.abort();
  } else {
    pausedAt = null;
    store.isPaused = false;
    begin();
  }
  draw();
}

let shownPath = location.hash.split("?")[0];
window.addEventListener("hashchange", () => {
  const path = location.hash.split("?")[0];
  if (path !== shownPath || currentRoute().view === "client" || currentRoute().view === "topic") window.scrollTo(0, 0);
  if (path !== shownPath) document.getElementById("main").focus({ preventScroll: true });
  shownPath = path;
  draw();
});
draw();
begin();
