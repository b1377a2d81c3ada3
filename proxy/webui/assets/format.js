// Formats numbers and times. Times are in UTC, as in logs and events.

const count = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const SIZES = ["B", "kB", "MB", "GB", "TB"];
const STEPS = [[1000 * 365.25 * 86400e3, "thousand years"], [365.25 * 86400e3, "years"], [86400e3, "days"], [3600e3, "h"], [60e3, "min"], [1e3, "s"], [1, "ms"]];

const ONE = { years: "year", days: "day" };

export const whole = (number) => count.format(number);

export function rate(number) {
  return number >= 100 ? count.format(number) : number >= 10 || number === 0 ? short.format(number) : small.format(number);
}

export function size(bytes) {
  let unit = 0;
  while (bytes >= 1000 && unit < SIZES.length - 1) { bytes /= 1000; unit += 1; }
  return `${rate(bytes)} ${SIZES[unit]}`;
}

export function span(ms) {
  if (ms >= 2 ** 62) return "no bound";
  const [unit, name] = STEPS.find(([unit]) => ms >= unit) ?? [1, "ms"];
  const shown = rate(ms / unit);
  return `${shown} ${shown === "1" ? ONE[name] ?? name : name}`;
}

export function ago(ms, now) {
  return now - ms < 1000 ? "just now" : `${span(now - ms)} ago`;
}

const LAST_MS = 8.64e15; // the end of the calendar of ECMAScript

// Returns 2026-11-27T15:19:40Z (moment) or 15:19:40Z (clock). Records may have a time outside the calendar.
export const moment = (ms) => (Math.abs(ms) <= LAST_MS ? new Date(ms).toISOString().replace(/\.\d+Z$/, "Z") : `${ms} ms`);
export const clock = (ms) => moment(ms).slice(11);

export const counted = (number, one, many) => (number === 1 ? `1 ${one}` : `${whole(number)} ${many}`);
export const batches = (number) => counted(number, "batch", "batches");

export const share = (part, all) => (all === 0 ? "0 %" : `${small.format((100 * part) / all)} %`);

export const named = (name) => (name === null || name === undefined ? "(none)" : name === "" ? "(empty)" : name);

// Returns the team that owns a topic or a client with its contact, or an empty text without an owner.
export const ownerText = (owner) => (!owner ? "" : owner.contact ? `${owner.team} (${owner.contact})` : owner.team);

const NOT_STORED = "cannot be stored, retrying";
const FORWARDED = { accepted: "accepted", unknown: "forwarded, outcome unknown" };

// Returns the outcome of the batches of an event or a group, in a few words.
export function outcome({ outcome: what, changes, copies }) {
  if (what === "resend") return copies === "not_stored" ? NOT_STORED : "to be sent again";
  if (what === "rejected") return copies === "quarantined" ? "quarantined" : "rejected";
  return [FORWARDED[what] ?? what, ...changes, ...(copies === "copied" ? ["copied"] : [])].join(", ");
}

// A client that has not retried for this time has given up or makes progress again.
const RETRYING_MS = 60e3;

// Returns the most frequent reason. If clients are retrying batches that cannot be stored now, only those batches
// count.
export function mainReason(groups, now) {
  const retried = groups.filter((one) => outcome(one) === NOT_STORED && now - one.last_ms <= RETRYING_MS);
  const most = (retried.length > 0 ? retried : groups).reduce((a, b) => (a === null || b.batches > a.batches ? b : a), null);
  if (most === null) return "";
  return retried.length > 0 ? `${most.reason} (${NOT_STORED})` : most.reason;
}

export function softwareOf(event) {
  return [event.software_name, event.software_version].filter((text) => text).join(" ");
}

// Returns the diagnosis of a violation event (docs/violations.md).
export function diagnosisOf(event) {
  const sample = (event.samples ?? [])[0];
  const trial = (event.rehearsed ?? []).map((bound) => `${bound.key} of ${span(bound.max_ms)} would reject ${whole(bound.bad_records)}`);
  if (trial.length > 0) return trial.join("; ");
  if (sample === undefined || outcome(event) === NOT_STORED) return event.message ? `${event.reason}: ${event.message}` : event.reason;
  const time = "diagnosis" in sample && !("rule" in sample) ? `timestamp ${sample.timestamp} ` : "";
  const why = sample.diagnosis ?? (sample.reason === event.reason ? "" : sample.reason);
  return `${event.reason}: record ${whole(sample.index)}${why && ", "}${time}${why}`;
}
