// Creates elements. Texts are set as text only, so names from clients cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function create(name, { text, className, ...attributes } = {}, ...children) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function createSvg(name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Writes only changes, so that the reader's position and selection stay.
export function setText(element, text) {
  if (element.textContent === text) return;
  element.textContent = text;
}

// For texts that may be cut: the title has the whole text.
export function setLongText(element, text) {
  if (element.textContent === text) return;
  element.textContent = text;
  element.title = text;
}
