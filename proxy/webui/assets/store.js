// Stores the data that the stream has sent, which are traffic by second, violation groups, the newest violations, and
// rates.

const SECONDS = 900;
const MOST_VIOLATIONS = 200;
const MOST_TOPICS = 1000;
const MOST_CLIENTS = 500;
const QUIET_MS = 20_000;
const RATE_SECONDS = 60;
const NOW_SECONDS = 5;
const NO_TRAFFIC = { batches: 0, records: 0, size: 0, violations: 0 };
const FLOWS = ["requests", "records", "size", "rejected", "rejected_records", "observed"];

const keyOfGroup = (group) => JSON.stringify([group.outcome, group.mode, group.changes, group.copies, group.client_id, group.topic, group.reason]);
export const keyOfConnection = (one) => `${one.client_address} ${one.broker}`;

export class Store {
  state = null;
  isPaused = false;
  #seconds = new Map(); // second to its counts; kept when the proxy restarts
  #groups = new Map(); // key to { group, counts: [second, batches] of the last 15 minutes }
  #violations = new Map();
  #topics = new Map(); // name to { name, first_ms, last_ms, rates }; the topic with the latest traffic is last
  #clients = new Map(); // the same by client id
  #received = []; // the [ms, Map of connection to bytes] of the last seconds
  #beganAt = 0; // the first second for which this page knows the violation groups

  take(state) {
    const now = Math.floor(state.time_ms / 1000);
    if (state.complete) this.#restart(state, now);
    this.state = state;
    const { history } = state;
    history.requests.forEach((_, i) => this.#seconds.set(history.begin + i, Object.fromEntries(FLOWS.map((name) => [name, history[name][i]]))));
    for (const second of this.#seconds.keys()) if (second <= this.end - SECONDS - 10) this.#seconds.delete(second);
    for (const group of state.violation_groups) this.#takeGroup(group, now);
    takeNewest(this.#topics, state.topics, MOST_TOPICS);
    takeNewest(this.#clients, state.clients, MOST_CLIENTS);
    for (const violation of state.violations) this.#violations.set(violation.id, violation);
    for (const id of [...this.#violations.keys()].slice(0, Math.max(0, this.#violations.size - MOST_VIOLATIONS))) this.#violations.delete(id);
    this.#received.push([state.time_ms, new Map(state.connections.listed.map((one) => [keyOfConnection(one), one.received]))]);
    this.#received = this.#received.slice(-NOW_SECONDS - 1);
  }

  // A complete message replaces all data of the page, because the proxy may have been restarted.
  #restart(state, now) {
    const isSame = this.state !== null && this.state.since_ms === state.since_ms;
    const sent = new Set(state.violation_groups.map(keyOfGroup));
    for (const key of this.#groups.keys()) if (!isSame || !sent.has(key)) this.#groups.delete(key);
    if (!isSame) {
      this.#violations.clear();
      this.#topics.clear();
      this.#clients.clear();
      this.#beganAt = now;
    }
    this.#received = [];
  }

  #takeGroup(group, now) {
    const known = this.#groups.get(keyOfGroup(group));
    const counts = known?.counts ?? [[now - 1, this.#beganAt < now ? 0 : group.batches]];
    if (counts.at(-1)[1] !== group.batches) counts.push([now, group.batches]);
    while (counts.length > 1 && counts[1][0] <= now - SECONDS) counts.shift();
    this.#groups.set(keyOfGroup(group), { group, counts });
  }

  // Returns the newest second, which is incomplete.
  get end() {
    return this.#seconds.size > 0 ? Math.max(...this.#seconds.keys()) : Math.floor(this.state.time_ms / 1000);
  }

  get groups() {
    return [...this.#groups.values()].map((one) => one.group);
  }

  get topics() {
    return [...this.#topics.values()];
  }

  topic(name) {
    return this.#topics.get(name);
  }

  client(id) {
    return this.#clients.get(id);
  }

  // Returns the rates of a topic or a client in the last 10 s, or null if they are unknown. A quiet one is not sent
  // again.
  ratesOf(traffic) {
    if (!traffic || traffic.rates === null) return null;
    return this.state.time_ms - traffic.last_ms > QUIET_MS ? NO_TRAFFIC : traffic.rates;
  }

  // Returns the rates of a client, which are zero without a connection.
  ratesOfClient(id, connections) {
    return this.ratesOf(this.client(id)) ?? (this.#isDisconnected(connections) ? NO_TRAFFIC : null);
  }

  // Returns whether a client without listed connections has no other connections either.
  #isDisconnected(connections) {
    const { count, listed } = this.state.connections;
    return connections.length === 0 && count === listed.length;
  }

  // Returns the violations, newest first.
  get violations() {
    return [...this.#violations.values()].sort((a, b) => (a.time < b.time ? 1 : -1));
  }

  // Returns the average of the last complete seconds, or null without data.
  get rates() {
    return this.#average(this.end - NOW_SECONDS, NOW_SECONDS);
  }

  #average(begin, seconds) {
    const rows = [];
    for (let second = begin; second < begin + seconds; second += 1) if (this.#seconds.has(second)) rows.push(this.#seconds.get(second));
    if (rows.length === 0) return null;
    return Object.fromEntries(FLOWS.map((name) => [name, rows.reduce((total, row) => total + row[name], 0) / rows.length]));
  }

  // Returns the last 15 minutes of one flow as [seconds], [rates] in bins of `bin` seconds. A rate is null without
  // data.
  series(name, bin = 10) {
    return this.#binned(bin, (begin) => this.#average(begin, bin)?.[name] ?? null);
  }

  #binned(bin, valueOf) {
    const last = Math.floor(this.end / bin) * bin;
    const begins = [];
    for (let begin = last - SECONDS + bin; begin < last; begin += bin) begins.push(begin);
    return [begins, begins.map(valueOf)];
  }

  // Returns batches/s in the last minute, or since this page was opened. Returns null if it has only just been opened.
  violationRate(isWanted) {
    const now = Math.floor(this.state.time_ms / 1000);
    const seconds = Math.min(RATE_SECONDS, now - this.#beganAt);
    if (seconds < NOW_SECONDS) return null;
    const chosen = [...this.#groups.values()].filter((one) => isWanted(one.group));
    return chosen.reduce((total, one) => total + countAt(one.counts, now) - countAt(one.counts, now - seconds), 0) / seconds;
  }

  // Returns the received bytes/s of a client's listed connections. The result is zero without a connection, and null if
  // this page does not have two counts for one of them.
  receivedRate(connections) {
    if (this.#isDisconnected(connections)) return 0;
    if (this.#received.length < 2) return null;
    const [[before, was], [after, is]] = [this.#received[0], this.#received.at(-1)];
    const known = connections.map(keyOfConnection).filter((key) => was.has(key) && is.has(key));
    if (known.length === 0 || after <= before) return null;
    return known.reduce((total, key) => total + Math.max(0, is.get(key) - was.get(key)), 0) / ((after - before) / 1000);
  }
}

function takeNewest(known, changed, most) {
  for (const one of changed) {
    known.delete(one.name);
    known.set(one.name, one);
  }
  for (const name of [...known.keys()].slice(0, Math.max(0, known.size - most))) known.delete(name);
}

function countAt(counts, second) {
  let found = counts[0][1];
  for (const [at, batches] of counts) if (at <= second) found = batches;
  return found;
}
