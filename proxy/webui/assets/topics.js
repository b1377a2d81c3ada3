// The list of topics that producers write to, and the page of one topic.

import { newest } from "./clients.js";
import { Example, groupColumns } from "./examples.js";
import { Fix, libraryOf } from "./fixes.js";
import { mainReason, named, outcome, ownerText, rate, size, softwareOf, whole } from "./format.js";
import { History } from "./history.js";
import { html } from "./html.js";
import { Choice, Facts, Search, Section, Table, TopicLink, When, figure, matches } from "./parts.js";
import { PolicyOf } from "./topic_policy.js";
import { eventColumns } from "./violations.js";

const VIOLATIONS = "with violations";

// Returns topics with recent traffic or with violations since the start, most batches with violations first.
export function topicRows(store) {
  const found = new Map();
  const rowOf = (name) => {
    if (!found.has(name)) found.set(name, { name, batches: 0, bad_records: 0, first_ms: null, last_ms: null, written_ms: null, rates: null, reason: "", groups: [], owner: "", clients: new Set(), reasons: new Set() });
    return found.get(name);
  };
  for (const topic of store.topics) Object.assign(rowOf(topic.name), { written_ms: topic.last_ms, rates: store.ratesOf(topic) });
  for (const group of store.groups) {
    const row = rowOf(group.topic);
    row.batches += group.batches;
    row.bad_records += group.bad_records;
    row.first_ms = Math.min(row.first_ms ?? Infinity, group.first_ms);
    row.last_ms = Math.max(row.last_ms ?? 0, group.last_ms);
    row.clients.add(group.client_id);
    row.reasons.add(group.reason);
    row.owner ||= ownerText(group.example.owner);
    row.groups.push(group);
  }
  for (const row of found.values()) row.reason = mainReason(row.groups, store.state.time_ms);
  return [...found.values()].sort((a, b) => b.batches - a.batches || (named(a.name) < named(b.name) ? -1 : 1));
}

const since = (ms, now, none) => (ms === null ? html`<span class="quiet">${none}</span>` : html`<${When} ms=${ms} now=${now} />`);

const rateColumn = (title, name, show) => ({ title, show: (row) => figure(row.rates?.[name], show), className: "number", value: (row) => row.rates?.[name] ?? null });
const rateColumns = [rateColumn("Batches/s", "batches", rate), rateColumn("Bytes/s", "size", size)];

export const topicColumns = (store) => [
  { title: "Topic", show: (row) => html`<${TopicLink} name=${row.name} />`, className: "id", value: (row) => row.name },
  { title: "Owner", show: (row) => row.owner || html`<span class="quiet">${row.batches > 0 ? "none" : "unknown"}</span>`, className: "word", value: (row) => row.owner },
  { title: "Last batch", show: (row) => since(row.written_ms, store.state.time_ms, "no data"), value: (row) => row.written_ms },
  ...rateColumns,
  { title: "Bad batches", show: (row) => whole(row.batches), className: "number", value: (row) => row.batches },
  { title: "Last violation", show: (row) => since(row.last_ms, store.state.time_ms, "none"), value: (row) => row.last_ms },
  { title: "Main reason", show: (row) => row.reason, className: "text", value: (row) => row.reason },
];

export function Topics({ store, route }) {
  const all = topicRows(store);
  const reason = route.params.get("reason");
  const which = route.params.get("only");
  const rows = all.filter((row) => which !== VIOLATIONS || row.batches > 0).filter((row) => matches(route, named(row.name), row.reason, row.owner, ...[...row.clients].map(named))).filter((row) => !reason || row.reasons.has(reason));
  const reasons = [...new Set(all.flatMap((row) => [...row.reasons]))].sort();
  return html`<${Section} id="topics-section" title="Topics">
    <${Search} route=${route} label="Search" placeholder="topic, owner, client or reason"><${Choice} route=${route} name="only" label="Show" options=${[VIOLATIONS]} /><${Choice} route=${route} name="reason" label="Reason" options=${reasons} /><//>
    <${Table} id="topics" caption=${`${whole(rows.length)} topics. Bad batches are those with violations since start.`} columns=${topicColumns(store)} rows=${rows} keyOf=${(row) => JSON.stringify(row.name)} none="No topics." route=${route} />
  <//>`;
}

export function TopicPage({ store, route }) {
  const name = route.params.get("name");
  const isOurs = (group) => group.topic === name;
  const row = topicRows(store).find((one) => one.name === name);
  const groups = store.groups.filter(isOurs).sort((a, b) => b.batches - a.batches);
  const now = store.state.time_ms;
  const example = groups.length > 0 ? newest(groups) : null;
  return html`
    <${Section} id="topic" title=${`Topic ${named(name)}`}>
      <${Facts} items=${[
        ["Owner", row?.owner ?? ""],
        ["Last batch", since(row?.written_ms ?? null, now, "no data")],
        ["First batch", since(store.topic(name)?.first_ms ?? null, now, "no data")],
        ["Validated batches/s", figure(row?.rates?.batches, rate)],
        ["Records/s", figure(row?.rates?.records, rate)],
        ["Bytes/s", figure(row?.rates?.size, size)],
        ["Clients with violations", row?.batches ? whole(row.clients.size) : "none since start"],
        ["First violation", since(row?.first_ms ?? null, now, "none since start")],
        ["Last violation", since(row?.last_ms ?? null, now, "none since start")],
        ["Batches with violations", whole(row?.batches ?? 0)],
        ["Bad records", whole(row?.bad_records ?? 0)],
        ["Batches with violations/s", figure(store.violationRate(isOurs), rate)],
      ]} />
    <//>
    <${Section} id="topic-history" title="Traffic"><${History} kind="topic" name=${name} isPaused=${() => store.isPaused} /><//>
    <${Section} id="topic-violations" title="Violations by client and reason">
      <${Table} id="groups" caption="Most batches first, since start" columns=${groupColumns(store, "client")} rows=${groups} keyOf=${(one) => JSON.stringify([one.client_id, outcome(one), one.mode, one.reason])} none="No violations." />
    <//>
    ${example && html`<${Section} id="topic-example" title="Example"><${Example} group=${example} /><${Fix} library=${libraryOf(softwareOf(example.example), example.client_id)} reasons=${groups.map((one) => one.reason)} topic=${name} /><//>`}
    <${Section} id="topic-policy" title="Policy"><${PolicyOf} topic=${name ?? ""} /><//>
    <${Section} id="topic-events" title="Latest violations">
      <${Table} id="violations" caption="Newest first" columns=${eventColumns(store)} rows=${store.violations.filter(isOurs)} keyOf=${(one) => one.id} none="None among the newest 200 violations of all topics." most=${20} />
    <//>`;
}
