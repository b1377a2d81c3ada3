// The letters of a group by hour, as bars with their content as text.

import { moment, whole } from "./format.js";
import { html } from "./html.js";

const HOUR_MS = 3_600_000;
const WIDTH = 600;
const HEIGHT = 40;
const LEAST_WIDTH = 4;

// Returns [ms, count] of each hour in order. Counts of hours that are not listed have no number.
const hoursOf = (group) => Object.entries(group.hours_ms).map(([ms, count]) => [Number(ms), count]).filter(([ms]) => !Number.isNaN(ms)).sort((a, b) => a[0] - b[0]);

export function LetterHours({ group }) {
  const hours = hoursOf(group);
  if (hours.length < 2) return null;
  const [first, end] = [hours[0][0], hours.at(-1)[0] + HOUR_MS];
  const most = hours.reduce((a, b) => (b[1] > a[1] ? b : a));
  const width = Math.max(LEAST_WIDTH, (WIDTH * HOUR_MS) / (end - first) - 1);
  const text = `Letters by hour: most ${whole(most[1])} from ${moment(most[0])}`;
  return html`<svg class="hours" role="img" aria-label=${text} viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none">
      ${hours.map(([ms, count]) => html`<rect key=${ms} class="bad-bar" x=${((WIDTH - width) * (ms - first)) / Math.max(HOUR_MS, end - first - HOUR_MS)} y=${HEIGHT - (HEIGHT * count) / most[1]} width=${width} height=${(HEIGHT * count) / most[1]} />`)}
    </svg>
    <p class="quiet">${text}.</p>`;
}
