// Tables that keep their rows in place while values change.

import { create, setLongText } from "./elements.js";

export class Table {
  #rows = new Map();
  #columns;
  #body;
  #none;

  // `columns`: title, function from row to text, and optionally a class and a click handler.
  constructor(place, caption, columns, none) {
    this.#columns = columns;
    this.#body = create("tbody", { role: "rowgroup" });
    const head = create("tr", { role: "row" }, ...columns.map((column) => create("th", { text: column.title, scope: "col", role: "columnheader", className: column.className })));
    place.replaceChildren(create("table", { role: "table" }, create("caption", { text: caption }), create("thead", { role: "rowgroup" }, head), this.#body));
    this.#none = create("tr", { className: "none", role: "row" }, create("td", { text: none, colspan: columns.length, role: "cell" }));
  }

  show(rows, keyOf) {
    const before = this.#rows;
    this.#rows = new Map();
    const shown = rows.map((row) => {
      const key = keyOf(row);
      const kept = before.get(key) ?? this.#made();
      this.#rows.set(key, kept);
      kept.row = row;
      this.#columns.forEach((column, i) => setLongText(kept.texts[i], column.show(row)));
      return kept.element;
    });
    this.#place(shown.length > 0 ? shown : [this.#none]);
  }

  // Moves only rows with a new position, so that keyboard focus stays.
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
      const text = column.click ? create("button", { type: "button", className: "name" }) : create("span");
      if (column.click) text.addEventListener("click", () => column.click(kept.row));
      kept.texts.push(text);
      return create("td", { className: column.className, "data-label": column.title, role: "cell" }, text);
    });
    kept.element = create("tr", { role: "row" }, ...cells);
    return kept;
  }
}
