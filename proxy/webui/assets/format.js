// Formats numbers and times.

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

export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });

export const batches = (number) => (number === 1 ? "1 batch" : `${whole(number)} batches`);

export const share = (part, all) => (all === 0 ? "0 %" : `${small.format((100 * part) / all)} %`);

export const named = (name) => (name === null ? "(none)" : name === "" ? "(empty)" : name);
