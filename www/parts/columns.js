// The grid with plain columns: no states between them, but a line above that says which columns belong together.

import { html } from "./dom.js";
import { Grid } from "./grid.js";

/** @typedef {{ text: string, count: number }} Span a heading over `count` columns */

export class Columns extends Grid {
  /**
   * @param {HTMLElement} container
   * @param {import("./grid.js").Handlers} handlers
   * @param {string} label of the part that scrolls
   */
  constructor(container, handlers, label) {
    super(container, handlers);
    this.scroller.classList.add("columns");
    this.scroller.setAttribute("role", "region");
    this.scroller.setAttribute("aria-label", label);
    /** @type {Span[]} */
    this.spans = [];
    this.corner = "";
    /** @type {Map<string, string>} what each result showed at the last drawing */
    this.last = new Map();
    /** @type {Map<string, string>} and at the last one that was no trial */
    this.settled = new Map();
  }

  /**
   * @param {import("./grid.js").Table} table
   * @param {{ spans?: Span[], corner?: string, trial?: boolean }} [options] `corner`: what the spans are; `trial`: a number is still being typed
   */
  draw(table, { spans = [], corner = "", trial = false } = {}) {
    if (JSON.stringify([spans, corner]) !== JSON.stringify([this.spans, this.corner])) this.shape = "";
    this.spans = spans;
    this.corner = corner;
    this.scroller.setAttribute("aria-label", table.label);
    const before = this.shape;
    super.draw(table);
    this.tell(table, before === this.shape, trial);
  }

  /**
   * Which results an edit has changed; another table is no change.
   * @param {import("./grid.js").Table} table
   * @param {boolean} same
   * @param {boolean} trial
   */
  tell(table, same, trial) {
    const results = new Map(table.rows.flatMap((row) => row.cells.flatMap((cell, i) => (cell.kind === "result" ? [[`${row.key}.${i}`, cell.text]] : []))));
    const order = new Map(table.rows.map((row, place) => [row.key, place]));
    const changed = (/** @type {Map<string, string>} */ since) => [...results].filter(([id, text]) => same && since.get(id) !== text).map(([id]) => id);
    const place = (/** @type {string} */ id) => (order.get(id.slice(0, id.lastIndexOf("."))) ?? 0) / 4;
    // marked: what the edit changes in all; moving: what its last keystroke did
    this.pulse(new Set(changed(this.settled)), new Map(changed(this.last).map((id) => [id, place(id)])));
    this.last = results;
    if (!trial) this.settled = results;
  }

  /** @param {import("./grid.js").Table} table */
  build(table) {
    const held = this.scroller.contains(document.activeElement) ? this.place : null;
    // the grid makes a heading for each state and for the token after it; here only tokens stay
    super.build({ ...table, states: table.tokens.map(() => "") });
    for (const mark of this.scroller.querySelectorAll(".mark")) mark.remove();
    const grid = /** @type {HTMLElement} */ (this.scroller.firstElementChild);
    grid.style.setProperty("--halves", String(table.tokens.length));
    grid.setAttribute("aria-colcount", String(table.tokens.length + 1));
    for (const token of grid.querySelectorAll(".token")) token.removeAttribute("lang");
    if (this.spans.length > 0) grid.prepend(this.heading());
    // a table that was built anew under the reader's hands keeps the focus
    if (held) this.elements.get(`${this.place?.row}.${this.place?.index}`)?.focus();
  }

  heading() {
    const line = html("div", { role: "row", class: "row spans" }, html("div", { role: "columnheader", class: "name" }, this.corner));
    let first = 2;
    for (const { text, count } of this.spans) {
      const head = html("div", { role: "columnheader", class: "span", "aria-colspan": count }, text);
      head.style.gridColumn = `${first} / span ${count}`;
      head.setAttribute("aria-colindex", String(first));
      line.append(head);
      first += count;
    }
    return line;
  }

  /**
   * @param {HTMLElement} element
   * @param {"action" | "state"} _align
   * @param {number} index
   */
  placed(element, _align, index) {
    element.style.gridColumn = String(2 + index);
    element.setAttribute("aria-colindex", String(2 + index));
    return element;
  }
}
