// Assembles the web UI.

import { Distances } from "./distances.js";
import { byId, create, setText } from "./elements.js";
import { Flow } from "./flow.js";
import { setUpPolicy, showPolicyOf } from "./policy.js";
import { follow, token } from "./stream.js";
import { Table } from "./tables.js";
import { ago, batches, clock, named, size, span, whole } from "./format.js";

const MOST_VIOLATIONS = 200;
const SHOWN_VIOLATIONS = 50;
const WORST = 10;
const SUMMARY_EVERY_MS = 15000;

const flow = new Flow();
const distances = new Distances();
const violations = new Map();
let now = 0;
let pause = false;
let summaryAt = 0;
let stop = new AbortController();

const number = "number";
const topicCell = { title: "Topic", show: (row) => named(row.topic), click: (row) => showPolicyOf(row.topic ?? "") };

const tables = {
  clients: new Table(byId("clients"), "Clients, most batches first", [
    { title: "Client", show: (row) => named(row.name) },
    { title: "Batches", show: (row) => whole(row.batches), className: number },
    { title: "Last seen", show: (row) => ago(row.last_ms, now), className: "nowrap" },
    { title: "Main reason", show: (row) => row.what, className: "text" },
  ], "No violations."),
  topics: new Table(byId("topics"), "Topics, most batches first", [
    { ...topicCell, show: (row) => named(row.name), click: (row) => showPolicyOf(row.name ?? "") },
    { title: "Batches", show: (row) => whole(row.batches), className: number },
    { title: "Last seen", show: (row) => ago(row.last_ms, now), className: "nowrap" },
    { title: "Main reason", show: (row) => row.what, className: "text" },
  ], "No violations."),
  violations: new Table(byId("violations"), "Newest first; record contents are not shown", [
    { title: "Time", show: (row) => clock(Date.parse(row.time)), className: "nowrap" },
    { title: "Client", show: (row) => clientOf(row) },
    { ...topicCell, show: (row) => `${named(row.topic)}-${row.partition}` },
    { title: "Outcome", show: (row) => MODES[row.mode] ?? row.mode, className: "nowrap" },
    { title: "Bad records", show: (row) => `${whole(row.bad_records)} of ${whole(row.records)}`, className: number },
    { title: "Diagnosis", show: diagnosisOf, className: "text" },
  ], "No violations."),
  connections: new Table(byId("connections"), "Paused connections first", [
    { title: "Client", show: (row) => named(row.client_id) },
    { title: "Address", show: (row) => row.peer },
    { title: "Software", show: (row) => named(row.software) },
    { title: "Principal", show: (row) => named(row.principal) },
    { title: "Broker", show: (row) => row.broker, className: "nowrap" },
    { title: "State", show: (row) => (row.pause_reasons.length > 0 ? `${row.state}, paused: ${row.pause_reasons.join(", ")}` : row.state) },
    { title: "In flight", show: (row) => whole(row.in_flight), className: number },
    { title: "Received", show: (row) => size(row.received), className: number },
  ], "No clients connected."),
  brokers: new Table(byId("brokers"), "Known brokers", [
    { title: "Broker", show: (row) => row.name },
    { title: "Address", show: (row) => row.upstream },
    { title: "State", show: (row) => row.state, className: "nowrap" },
    { title: "Advertised as", show: (row) => row.listener ?? "(bootstrap listener)" },
    { title: "Connections", show: (row) => whole(row.connections), className: number },
  ], "No brokers known."),
};
const MODES = { reject: "rejected", observe: "forwarded", fix: "fixed", quarantine: "quarantined", rehearse: "forwarded" };

function clientOf(row) {
  const software = [row.software_name, row.software_version].filter((text) => text !== null).join(" ");
  const more = [row.principal, row.peer, software].filter((text) => text).join(", ");
  return `${named(row.client_id)} (${more})`;
}

function diagnosisOf(row) {
  const sample = row.samples[0];
  const trial = (row.rehearsed ?? []).map((bound) => `${bound.key} of ${span(bound.max_ms)} would reject ${whole(bound.bad_records)}`);
  if (trial.length > 0) return trial.join("; ");
  if (sample === undefined) return row.message ? `${row.reason}: ${row.message}` : row.reason;
  const time = "diagnosis" in sample && !("rule" in sample) ? `timestamp ${sample.timestamp} ` : "";
  const why = sample.diagnosis ?? (sample.reason === row.reason ? "" : sample.reason);
  return `${row.reason}: record ${whole(sample.index)}${why && ", "}${time}${why}`;
}

function worst(violation_groups, nameOf) {
  const found = new Map();
  for (const group of violation_groups) {
    const name = nameOf(group);
    const one = found.get(name) ?? { name, batches: 0, last_ms: 0, what: "", most: 0 };
    one.batches += group.batches;
    one.last_ms = Math.max(one.last_ms, group.last_ms);
    if (group.batches > one.most) Object.assign(one, { most: group.batches, what: group.reason });
    found.set(name, one);
  }
  return [...found.values()].sort((a, b) => b.batches - a.batches).slice(0, WORST);
}

const STATE_KINDS = { serving: "good", "needs attention": "attention", "not serving": "bad" };

function conditionText(one) {
  return `${one.condition}: ${one.detail}. Since ${new Date(one.since_ms).toISOString()}. ${one.advice}`;
}

function showConditions(texts) {
  const list = byId("conditions");
  list.hidden = texts.length === 0;
  if ([...list.children].map((item) => item.textContent).join("\n") !== texts.join("\n")) list.replaceChildren(...texts.map((text) => create("li", { text })));
}

function showState(kind, text) {
  byId("state").dataset.state = kind;
  setText(byId("state-text"), text);
}

function showLive(state) {
  byId("token-form").hidden = true;
  if (pause) return;
  now = state.time_ms;
  showState(STATE_KINDS[state.state] ?? "bad", state.state);
  showConditions(state.conditions.map(conditionText));
  setText(byId("about"), `version ${state.version}, ${state.proxies === 1 ? "1 process" : `${state.proxies} processes`}, since ${new Date(state.since_ms).toISOString()}`);
  const summary = flow.show(state);
  tables.clients.show(worst(state.violation_groups, (group) => group.client_id), (row) => row.name);
  tables.topics.show(worst(state.violation_groups, (group) => group.topic), (row) => row.name);
  setText(byId("other-violation_groups"), state.other_violations > 0 ? `plus ${batches(state.other_violations)} of other clients and topics` : "Counted since start.");
  for (const violation of state.violations) violations.set(violation.id, violation);
  for (const id of [...violations.keys()].slice(0, Math.max(0, violations.size - MOST_VIOLATIONS))) violations.delete(id);
  const newest = [...violations.values()].sort((a, b) => (a.time < b.time ? 1 : -1)).slice(0, SHOWN_VIOLATIONS);
  tables.violations.show(newest, (row) => row.id);
  distances.show(state);
  showKnownTopics(state.bounds);
  const { count, listed } = state.connections;
  setText(byId("connections-text"), count > listed.length ? `${whole(listed.length)} of ${whole(count)} shown` : "");
  tables.connections.show(listed, (row) => `${row.peer} ${row.broker}`);
  tables.brokers.show(state.brokers, (row) => `${row.name} ${row.upstream}`);
  if (Date.now() - summaryAt > SUMMARY_EVERY_MS) {
    summaryAt = Date.now();
    setText(byId("summary"), summary);
  }
}

function showKnownTopics(bounds) {
  const names = bounds.map((one) => one.name).filter((name) => !/[*?[/ ]/.test(name) && name !== "defaults");
  const list = byId("known-topics");
  if ([...list.children].map((option) => option.value).join("\n") !== names.join("\n")) list.replaceChildren(...names.map((name) => create("option", { value: name })));
}

function rejected(status, text) {
  showState("bad", status === 401 ? "token required" : "access denied");
  showConditions(status === 401 ? [] : [text.trim()]);
  byId("token-form").hidden = status !== 401;
  if (status === 401) {
    setText(byId("token-text"), token.get() === null ? "" : "Wrong token.");
    byId("token").focus();
  }
}

function begin() {
  stop.abort();
  stop = new AbortController();
  const handlers = { live: showLive, problem: (problem) => showState("bad", problem.text), rejected, lost: (reason) => showState("bad", `${reason}; retrying`) };
  follow(handlers, stop.signal);
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(byId("token").value);
  byId("token").value = "";
  begin();
});
byId("pause").addEventListener("click", () => {
  pause = !pause;
  byId("pause").setAttribute("aria-pressed", String(pause));
  if (pause) showState("waiting", "paused");
});
setUpPolicy();
begin();
