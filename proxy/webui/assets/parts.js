// Parts that several views share, such as tables, search fields, figures, links and times.

import { html } from "./html.js";
import { ago, moment, named, rate, whole } from "./format.js";
import { href, setParams } from "./route.js";

const MOST_ROWS = 50;

export const NoData = () => html`<span class="no-data">no data</span>`;

// Shows a number formatted by `show`, or "no data" for null, which means that the number was not measured.
export function figure(value, show = rate) {
  return value === null || value === undefined ? html`<${NoData} />` : show(value);
}

export function When({ ms, now }) {
  if (ms === null || ms === undefined) return html`<${NoData} />`;
  return html`<span class="when"><time datetime=${moment(ms)}>${moment(ms)}</time> <small>${ago(ms, now)}</small></span>`;
}

const UNITS = /(\d) (?=(?:h|min|s|ms|days?|[kMGT]?B)\b)/g;

// Shows a sentence from the proxy, with text between backticks as code and no line break between a number and its unit.
export function Prose({ text }) {
  const parts = text.replace(UNITS, "$1\u00a0").split("`");
  if (parts.length % 2 === 0) return text; // a backtick has no partner
  return parts.map((part, i) => (i % 2 === 1 ? html`<code key=${i}>${part}</code>` : part));
}

export const ClientLink = ({ id }) => html`<a class="name" href=${href("client", { id })}>${named(id)}</a>`;
export const TopicLink = ({ name }) => html`<a class="name" href=${href("topic", { name })}>${named(name)}</a>`;

export function Section({ id, title, children }) {
  return html`<section id=${id} aria-labelledby=${`${id}-title`}><h2 id=${`${id}-title`}>${title}</h2>${children}</section>`;
}

export function Figures({ id, items }) {
  return html`<dl id=${id} class="figures">
    ${items.map(([title, value, more, isBad]) => html`<div key=${title} class=${isBad ? "bad" : ""}><dt>${title}</dt><dd><span>${value}</span>${more && html`<small>${more}</small>`}</dd></div>`)}
  </dl>`;
}

// Shows a list of facts about one object. A fact without a value is shown as such.
export function Facts({ items }) {
  return html`<dl class="facts">${items.map(([title, value]) => html`<div key=${title}><dt>${title}</dt><dd>${value === null || value === "" ? html`<span class="quiet">none</span>` : value}</dd></div>`)}</dl>`;
}

export function Search({ route, label, placeholder, children }) {
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <label class="grows">${label} <input id="search" type="search" spellcheck="false" autocomplete="off" placeholder=${placeholder}
      value=${route.params.get("q") ?? ""} onInput=${(event) => setParams({ q: event.target.value, rows: null })} /></label>
    ${children}
  </form>`;
}

export function Choice({ route, name, label, options }) {
  const chosen = route.params.get(name) ?? "";
  const all = chosen && !options.includes(chosen) ? [...options, chosen] : options;
  return html`<label>${label} <select id=${name} value=${chosen} onChange=${(event) => setParams({ [name]: event.target.value, rows: null })}>
    <option value="">all</option>${all.map((option) => html`<option key=${option} value=${option}>${option}</option>`)}
  </select></label>`;
}

// Returns whether one of the texts contains the text in the search field.
export function matches(route, ...texts) {
  const wanted = (route.params.get("q") ?? "").trim().toLowerCase();
  return wanted === "" || texts.some((text) => text && text.toLowerCase().includes(wanted));
}

// Each of `columns` has a title and `show` (row to text or element), and optionally className and value (to sort by).
// If `route` is given, the URL contains the order and the number of rows.
export function Table({ id, caption, columns, rows, keyOf, none, route, most = MOST_ROWS }) {
  const sorted = route ? sortedBy(columns, rows, route) : rows;
  const limit = route && route.params.get("rows") === "all" ? Infinity : most;
  const left = sorted.length - limit;
  return html`<div id=${id} class="scrolls">
    <table role="table">
      <caption>${caption}</caption>
      <thead role="rowgroup"><tr role="row">${columns.map((column) => html`<${Head} key=${column.title} column=${column} route=${route} />`)}</tr></thead>
      <tbody role="rowgroup">
        ${sorted.length === 0 && html`<tr class="none" role="row"><td role="cell" colspan=${columns.length}>${none}</td></tr>`}
        ${sorted.slice(0, limit).map((row) => html`<tr key=${keyOf(row)} role="row">
          ${columns.map((column) => html`<td key=${column.title} role="cell" class=${column.className} data-label=${column.title}><div>${column.show(row)}</div></td>`)}
        </tr>`)}
      </tbody>
    </table>
    ${left > 0 && (route ? html`<p><button type="button" class="more" onClick=${() => setParams({ rows: "all" })}>Show all ${whole(sorted.length)}</button></p>` : html`<p class="quiet">${whole(left)} more</p>`)}
  </div>`;
}

function Head({ column, route }) {
  if (!route || !column.value) return html`<th scope="col" role="columnheader" class=${column.className}>${column.title}</th>`;
  const [title, direction] = (route.params.get("sort") ?? "").split(".");
  const isSorted = title === column.title;
  const next = isSorted && direction === "down" ? "up" : "down";
  return html`<th scope="col" role="columnheader" class=${column.className} aria-sort=${isSorted ? (direction === "down" ? "descending" : "ascending") : null}>
    <button type="button" class="sort" onClick=${() => setParams({ sort: `${column.title}.${next}` })}>${column.title}<span aria-hidden="true">${isSorted ? (direction === "down" ? " ▾" : " ▴") : ""}</span></button>
  </th>`;
}

function sortedBy(columns, rows, route) {
  const [title, direction] = (route.params.get("sort") ?? "").split(".");
  const value = columns.find((column) => column.title === title)?.value;
  if (value === undefined) return rows;
  const sign = direction === "down" ? -1 : 1;
  const compared = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -sign : sign);
  return [...rows].sort((a, b) => compared(value(a), value(b)));
}
