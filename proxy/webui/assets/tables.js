// Tables that stay where they are while their figures change.

import { made, sayLong } from "./elements.js";

export class Table {
  #rows = new Map();
  #columns;
  #body;
  #none;

  // `columns`: each with its title, how a row's cell is shown (a text), a class, and where it is one, what a click does.
  constructor(place, caption, columns, none) {
    this.#columns = columns;
    this.#body = made("tbody", { role: "rowgroup" });
    const head = made("tr", { role: "row" }, ...columns.map((column) => made("th", { text: column.title, scope: "col", role: "columnheader", className: column.className })));
    place.replaceChildren(made("table", { role: "table" }, made("caption", { text: caption }), made("thead", { role: "rowgroup" }, head), this.#body));
    this.#none = made("tr", { className: "none", role: "row" }, made("td", { text: none, colspan: columns.length, role: "cell" }));
  }

  show(rows, keyOf) {
    const before = this.#rows;
    this.#rows = new Map();
    const shown = rows.map((row) => {
      const key = keyOf(row);
      const kept = before.get(key) ?? this.#made();
      this.#rows.set(key, kept);
      kept.row = row;
      this.#columns.forEach((column, i) => sayLong(kept.texts[i], column.show(row)));
      return kept.element;
    });
    this.#place(shown.length > 0 ? shown : [this.#none]);
  }

  // Only those that are elsewhere are moved, so that who has come to one with the keyboard stays there.
  #place(elements) {
    const wanted = new Set(elements);
    for (const element of [...this.#body.children]) if (!wanted.has(element)) element.remove();
    elements.forEach((element, i) => {
      if (this.#body.children[i] !== element) this.#body.insertBefore(element, this.#body.children[i] ?? null);
    });
  }

  #made() {
    const kept = { texts: [] };
    const cells = this.#columns.map((column) => {
      const text = column.click ? made("button", { type: "button", className: "name" }) : made("span");
      if (column.click) text.addEventListener("click", () => column.click(kept.row));
      kept.texts.push(text);
      return made("td", { className: column.className, "data-label": column.title, role: "cell" }, text);
    });
    kept.element = made("tr", { role: "row" }, ...cells);
    return kept;
  }
}
