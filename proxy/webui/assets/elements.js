// Elements, whose text is always text: nothing that a client calls itself can become anything else.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function made(name, { text, className, ...attributes } = {}, ...children) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function drawn(name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Only what is different is written, so that a reader's place and selection stay.
export function say(element, text) {
  if (element.textContent === text) return;
  element.textContent = text;
}

// A text that may be shown in part; all of it is in the title.
export function sayLong(element, text) {
  if (element.textContent === text) return;
  element.textContent = text;
  element.title = text;
}
