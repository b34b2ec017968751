// A grid of plain columns, with a line above that says which of them belong together.

import { html } from "./dom.js";
import { lineOf } from "./grid-line.js";
import { Grid, idOf } from "./grid.js";

/** @typedef {import("./grid.js").Place} Place */
/** @typedef {{ text: string, count: number }} Span a heading over `count` columns */
/**
 * @typedef {{ key: string, name: string, symbol: Element | null, first: boolean,
 *   cells: import("./grid.js").Cell[] }} Row
 */
/** @typedef {{ label: string, corner: string, heads: string[], rows: Row[] }} Table */

/** @extends {Grid<Place>} */
export class Columns extends Grid {
  /**
   * @param {HTMLElement} container
   * @param {import("./grid.js").Handlers<Place>} handlers
   */
  constructor(container, handlers) {
    super(container, handlers);
    this.scroller.classList.add("columns");
    this.scroller.setAttribute("role", "region");
    /** @type {Table | null} */
    this.table = null;
    this.shape = "";
    /** @type {Map<string, string>} what each result showed at the last drawing */
    this.last = new Map();
    /** @type {Map<string, string>} and at the last one that was no trial */
    this.settled = new Map();
  }

  /**
   * @param {Table} table
   * @param {{ spans?: Span[], corner?: string, trial?: boolean }} [options] `corner`: what the spans are; `trial`: a
   *   number is still being typed
   */
  draw(table, { spans = [], corner = "", trial = false } = {}) {
    this.table = table;
    this.scroller.setAttribute("aria-label", table.label);
    const shape = JSON.stringify([
      table.label,
      table.heads,
      spans,
      corner,
      table.rows.map((row) => [row.key, row.name, row.cells.length]),
    ]);
    const same = shape === this.shape;
    if (!same) this.build(table, spans.length > 0 ? heading(spans, corner) : null);
    this.shape = shape;
    for (const { key, cells } of table.rows) {
      for (const [index, cell] of cells.entries()) {
        const id = idOf({ row: key, index });
        this.drawCell(/** @type {HTMLElement} */ (this.elements.get(id)), cell, id);
      }
    }
    this.tell(table, same, trial);
  }

  /**
   * Which results an edit has changed; another table is no change.
   * @param {Table} table
   * @param {boolean} same
   * @param {boolean} trial
   */
  tell(table, same, trial) {
    const results = new Map(
      table.rows.flatMap((row) =>
        row.cells.flatMap((cell, i) => (cell.kind === "result" ? [[`${row.key}.${i}`, cell.text]] : [])),
      ),
    );
    const order = new Map(table.rows.map((row, place) => [row.key, place]));
    const changed = (/** @type {Map<string, string>} */ since) =>
      [...results].filter(([id, text]) => same && since.get(id) !== text).map(([id]) => id);
    const place = (/** @type {string} */ id) => (order.get(id.slice(0, id.lastIndexOf("."))) ?? 0) / 4;
    // marked: what the edit changes in all; moving: what its last keystroke did
    this.pulse(new Set(changed(this.settled)), new Map(changed(this.last).map((id) => [id, place(id)])));
    this.last = results;
    if (!trial) this.settled = results;
  }

  /**
   * @param {Table} table
   * @param {HTMLElement | null} above
   */
  build(table, above) {
    const held = this.scroller.contains(document.activeElement);
    this.elements.clear();
    this.lines = [];
    this.editing = null;
    this.widest = 0;
    const columns = table.heads.length;
    const head = html(
      "div",
      { role: "row", class: "row head" },
      html("div", { role: "columnheader", class: "name" }, table.corner),
    );
    for (const [index, text] of table.heads.entries()) {
      const column = html("div", { role: "columnheader", class: "token" }, text);
      put(column, index);
      head.append(column);
    }
    const grid = html(
      "div",
      { role: "grid", class: "grid", "aria-label": table.label, "aria-colcount": columns + 1 },
      above,
      head,
    );
    grid.style.setProperty("--halves", String(columns));
    for (const row of table.rows) {
      const { line, cells } = lineOf({ ...row, align: "action", count: row.cells.length }, row.symbol, put);
      grid.append(line);
      const places = cells.map((_, index) => ({ row: row.key, index }));
      this.lines.push(places);
      for (const place of places) this.elements.set(idOf(place), cells[place.index]);
    }
    this.scroller.replaceChildren(grid);
    this.setPlace(this.place && this.elements.has(idOf(this.place)) ? this.place : this.lines[0][0]);
    // a table rebuilt while it is being edited keeps the focus
    if (held && this.place) this.elements.get(idOf(this.place))?.focus();
  }

  /** @param {Place} place */
  cellAt(place) {
    return this.table?.rows.find((row) => row.key === place.row)?.cells[place.index];
  }
}

/**
 * @param {Span[]} spans
 * @param {string} corner
 */
function heading(spans, corner) {
  const line = html(
    "div",
    { role: "row", class: "row spans" },
    html("div", { role: "columnheader", class: "name" }, corner),
  );
  let first = 2;
  for (const { text, count } of spans) {
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
 * @param {number} index
 */
function put(element, index) {
  element.style.gridColumn = String(2 + index);
  element.setAttribute("aria-colindex", String(2 + index));
}
