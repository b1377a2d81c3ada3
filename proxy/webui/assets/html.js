// Preact with htm, so that html`<p>${text}</p>` creates elements. Texts stay texts, so names from clients cannot become
// markup.

import { Component, createRef, h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export { Component, createRef, render };
