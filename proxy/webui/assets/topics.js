// Topics with violations, and the page of one topic.

import { Figure } from "./chart.js";
import { newest } from "./clients.js";
import { Example, groupColumns } from "./examples.js";
import { Fix, libraryOf } from "./fixes.js";
import { named, ownerText, rate, softwareOf, whole } from "./format.js";
import { html } from "./html.js";
import { Choice, Facts, Search, Section, Table, TopicLink, When, figure, matches } from "./parts.js";
import { PolicyOf } from "./topic_policy.js";
import { eventColumns } from "./violations.js";

// Topics with violations since start, most batches first.
export function topicRows(store) {
  const found = new Map();
  for (const group of store.groups) {
    const row = found.get(group.topic) ?? { name: group.topic, batches: 0, bad_records: 0, first_ms: Infinity, last_ms: 0, reason: "", most: 0, owner: "", clients: new Set(), reasons: new Set() };
    row.batches += group.batches;
    row.bad_records += group.bad_records;
    row.first_ms = Math.min(row.first_ms, group.first_ms);
    row.last_ms = Math.max(row.last_ms, group.last_ms);
    row.clients.add(group.client_id);
    row.reasons.add(group.reason);
    row.owner ||= ownerText(group.example.owner);
    if (group.batches > row.most) Object.assign(row, { most: group.batches, reason: group.reason });
    found.set(group.topic, row);
  }
  return [...found.values()].sort((a, b) => b.batches - a.batches || (named(a.name) < named(b.name) ? -1 : 1));
}

export const topicColumns = (store) => [
  { title: "Topic", show: (row) => html`<${TopicLink} name=${row.name} />`, className: "id", value: (row) => row.name },
  { title: "Owner", show: (row) => row.owner || html`<span class="quiet">none</span>`, className: "word", value: (row) => row.owner },
  { title: "Clients", show: (row) => whole(row.clients.size), className: "number", value: (row) => row.clients.size },
  { title: "Batches", show: (row) => whole(row.batches), className: "number", value: (row) => row.batches },
  { title: "Bad records", show: (row) => whole(row.bad_records), className: "number", value: (row) => row.bad_records },
  { title: "First violation", show: (row) => html`<${When} ms=${row.first_ms} now=${store.state.time_ms} />`, value: (row) => row.first_ms },
  { title: "Last violation", show: (row) => html`<${When} ms=${row.last_ms} now=${store.state.time_ms} />`, value: (row) => row.last_ms },
  { title: "Main reason", show: (row) => row.reason, className: "text", value: (row) => row.reason },
];

export function Topics({ store, route }) {
  const all = topicRows(store);
  const reason = route.params.get("reason");
  const rows = all.filter((row) => matches(route, named(row.name), row.reason, row.owner, ...[...row.clients].map(named))).filter((row) => !reason || row.reasons.has(reason));
  const reasons = [...new Set(all.flatMap((row) => [...row.reasons]))].sort();
  return html`<${Section} id="topics-section" title="Topics">
    <${Search} route=${route} label="Search" placeholder="topic, owner, client or reason"><${Choice} route=${route} name="reason" label="Reason" options=${reasons} /><//>
    <${Table} id="topics" caption=${`${whole(rows.length)} topics with violations since start`} columns=${topicColumns(store)} rows=${rows} keyOf=${(row) => JSON.stringify(row.name)} none="No violations." route=${route} />
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
        ["Clients with violations", row ? whole(row.clients.size) : "none since start"],
        ["First violation", row ? html`<${When} ms=${row.first_ms} now=${now} />` : "none since start"],
        ["Last violation", row ? html`<${When} ms=${row.last_ms} now=${now} />` : "none since start"],
        ["Batches with violations", whole(row?.batches ?? 0)],
        ["Bad records", whole(row?.bad_records ?? 0)],
        ["Batches with violations/s", figure(store.violationRate(isOurs), rate)],
      ]} />
    <//>
    <${Section} id="topic-violations" title="Violations by client and reason">
      <${Table} id="groups" caption="Most batches first, since start" columns=${groupColumns(store, "client")} rows=${groups} keyOf=${(one) => JSON.stringify([one.client_id, one.mode, one.reason])} none="No violations." />
      ${row && html`<${Figure} id="topic-rate" title="Batches with violations/s, since this page was opened" series=${store.violationSeries(isOurs)} isBad=${true} />`}
    <//>
    ${example && html`<${Section} id="topic-example" title="Example"><${Example} group=${example} /><${Fix} library=${libraryOf(softwareOf(example.example), example.client_id)} reasons=${groups.map((one) => one.reason)} /><//>`}
    <${Section} id="topic-policy" title="Policy"><${PolicyOf} topic=${name ?? ""} /><//>
    <${Section} id="topic-events" title="Latest violations">
      <${Table} id="violations" caption="Newest first" columns=${eventColumns(store)} rows=${store.violations.filter(isOurs)} keyOf=${(one) => one.id} none="None among the newest 200 violations of all topics." most=${20} />
    <//>`;
}
