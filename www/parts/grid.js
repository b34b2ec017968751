// A table of numbers over tokens, walked like a spreadsheet. It knows nothing of formulas: it draws what it is given.
// Token columns are two half columns wide; cells that belong to a state stand half a column to the left, between tokens.

import { Bubble } from "./bubble.js";
import { html } from "./dom.js";
import { openEditor } from "./editor.js";

/**
 * @typedef {object} Cell
 * @property {string} text as shown
 * @property {string} label for a screen reader
 * @property {"mask" | "input" | "result"} kind
 * @property {"plus" | "minus" | ""} tone
 * @property {number} strength 0 to 1, how deep the tint is
 * @property {boolean} dropped
 * @property {boolean} faint shown, but not the cell's own
 * @property {string} editText what the editor starts with
 */

/** @typedef {{ key: string, name: string, symbol: Element, align: "action" | "state", first: boolean, cells: Cell[] }} TableRow */
/** @typedef {{ label: string, corner: string, tokens: { text: string, dropped: boolean }[], states: string[], rows: TableRow[] }} Table */
/** @typedef {{ row: string, index: number }} Place */

/**
 * @typedef {object} Handlers
 * @property {(place: Place) => void} focus
 * @property {(place: Place) => void} toggle
 * @property {(place: Place, text: string) => string | null} commit takes the text, or says why not
 * @property {(place: Place, text: string) => void} preview
 * @property {() => void} cancel gives back what stood before the previews
 * @property {(place: Place) => void} copy
 */

/** @param {Place} place */
const idOf = (place) => `${place.row}.${place.index}`;

const still = window.matchMedia("(prefers-reduced-motion: reduce)");

export class Grid {
  /**
   * @param {HTMLElement} container
   * @param {Handlers} handlers
   */
  constructor(container, handlers) {
    this.handlers = handlers;
    this.scroller = html("div", { class: "scroller" });
    this.bubble = new Bubble();
    container.append(this.scroller, this.bubble.element);
    /** @type {Map<string, HTMLElement>} */
    this.elements = new Map();
    /** @type {Table | null} */
    this.table = null;
    /** @type {Place | null} */
    this.place = null;
    this.wanted = 0;
    this.clicked = "";
    this.shape = "";
    /** @type {HTMLElement | null} */
    this.editing = null;
    this.scroller.addEventListener("keydown", (event) => this.keydown(event));
    this.scroller.addEventListener("click", (event) => this.click(event));
    this.scroller.addEventListener("focusin", (event) => this.focusin(event));
  }

  /** @param {Table} table */
  draw(table) {
    this.table = table;
    const shape = JSON.stringify([table.label, table.tokens.map((token) => token.text), table.rows.map((row) => [row.key, row.name, row.cells.length])]);
    if (shape !== this.shape) this.build(table);
    this.shape = shape;
    for (const [index, token] of table.tokens.entries()) {
      this.elements.get(`token.${index}`)?.classList.toggle("dropped", token.dropped);
    }
    for (const row of table.rows) {
      for (const [index, cell] of row.cells.entries()) this.drawCell(`${row.key}.${index}`, cell);
    }
  }

  /**
   * @param {string} id
   * @param {Cell} cell
   */
  drawCell(id, cell) {
    const element = this.elements.get(id);
    if (!element) return;
    const lasting = ["changed", "depends"].filter((name) => element.classList.contains(name));
    element.className = ["cell", cell.kind, cell.tone, cell.dropped && "dropped", cell.faint && "faint", ...lasting].filter(Boolean).join(" ");
    element.setAttribute("aria-label", cell.label);
    element.setAttribute("aria-readonly", String(cell.kind === "result"));
    element.style.setProperty("--strength", cell.strength.toFixed(3));
    // the editor lives inside the cell while it is open
    if (element !== this.editing && element.textContent !== cell.text) element.textContent = cell.text;
    if (element === this.editing) element.classList.add("editing");
  }

  /** @param {Table} table */
  build(table) {
    this.elements.clear();
    this.editing = null;
    const halves = table.tokens.length * 2 + 2;
    const grid = html("div", { role: "grid", class: "grid", "aria-label": table.label, "aria-colcount": halves });
    grid.style.setProperty("--halves", String(halves));
    const head = html("div", { role: "row", class: "row head" }, html("div", { role: "columnheader", class: "name" }, table.corner));
    for (const [index, state] of table.states.entries()) {
      head.append(this.placed(html("div", { role: "columnheader", class: "mark" }, state), "state", index));
      const token = table.tokens[index];
      if (!token) continue;
      const column = this.placed(html("div", { role: "columnheader", class: "token", lang: "zh" }, token.text), "action", index);
      this.elements.set(`token.${index}`, column);
      head.append(column);
    }
    grid.append(head);
    for (const row of table.rows) grid.append(this.buildRow(row));
    this.scroller.replaceChildren(grid);
    const kept = this.place && this.elements.has(idOf(this.place)) ? this.place : { row: table.rows[0].key, index: 0 };
    this.setPlace(kept);
  }

  /** @param {TableRow} row */
  buildRow(row) {
    const same = row.symbol.textContent === row.name;
    const symbol = same ? null : html("span", { class: "symbol", "aria-hidden": "true" }, row.symbol);
    const name = html("div", { role: "rowheader", class: "name" }, html("span", {}, row.name), symbol);
    const line = html("div", { role: "row", class: `row ${row.align}${row.first ? " first" : ""}`, "data-row": row.key }, name);
    for (const index of row.cells.keys()) {
      const cell = html("div", { role: "gridcell", tabindex: -1, "data-row": row.key, "data-index": index });
      this.elements.set(`${row.key}.${index}`, cell);
      line.append(this.placed(cell, row.align, index));
    }
    return line;
  }

  /**
   * @param {HTMLElement} element
   * @param {"action" | "state"} align
   * @param {number} index
   */
  placed(element, align, index) {
    // column 1 is the name; state 1 takes halves 1 and 2, token 1 halves 2 and 3, state 2 halves 3 and 4, …
    const first = 2 + index * 2 + (align === "action" ? 1 : 0);
    element.style.gridColumn = `${first} / span 2`;
    element.setAttribute("aria-colindex", String(first));
    return element;
  }

  /** @param {Place} place */
  setPlace(place) {
    const before = this.place && this.elements.get(idOf(this.place));
    if (before) before.tabIndex = -1;
    this.place = place;
    const element = this.elements.get(idOf(place));
    if (element) element.tabIndex = 0;
  }

  /** @param {Place} place */
  focus(place) {
    this.setPlace(place);
    this.wanted = place.index;
    this.elements.get(idOf(place))?.focus();
  }

  /** @param {FocusEvent} event */
  focusin(event) {
    const place = placeOf(event.target);
    if (!place || event.target === this.editing) return;
    this.bubble.hide();
    this.setPlace(place);
    this.handlers.focus(place);
  }

  /** @param {MouseEvent} event */
  click(event) {
    const place = placeOf(event.target);
    if (!place || !this.table || this.editing?.contains(/** @type {Node} */ (event.target))) return;
    this.wanted = place.index;
    const cell = this.cellAt(place);
    if (cell?.kind === "mask") this.handlers.toggle(place);
    // the first click chooses, the second edits: a finger has no Enter
    else if (event.detail > 1 || this.clicked === idOf(place)) this.edit(place);
    this.clicked = idOf(place);
  }

  /** @param {KeyboardEvent} event */
  keydown(event) {
    const place = this.place;
    if (!place || !this.table || this.editing) return;
    const cell = this.cellAt(place);
    const rows = this.table.rows;
    const line = rows.findIndex((row) => row.key === place.row);
    const last = rows[line].cells.length - 1;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.walk(line, place.index - 1, true),
      ArrowRight: () => this.walk(line, place.index + 1, true),
      ArrowUp: () => this.walk(line - 1, this.wanted, false),
      ArrowDown: () => this.walk(line + 1, this.wanted, false),
      Home: () => this.walk(event.ctrlKey ? 0 : line, 0, true),
      End: () => this.walk(event.ctrlKey ? rows.length - 1 : line, last, true),
      Enter: () => (cell?.kind === "mask" ? this.handlers.toggle(place) : this.edit(place)),
      F2: () => this.edit(place),
      " ": () => cell?.kind === "mask" && this.handlers.toggle(place),
    };
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if ((event.ctrlKey || event.metaKey) && event.key === "c") this.handlers.copy(place);
    else if (keys[event.key] && !event.altKey && !event.metaKey) {
      event.preventDefault();
      keys[event.key]();
    } else if (plain && cell?.kind === "input" && /^[\d.+\-−]$/.test(event.key)) {
      event.preventDefault();
      this.edit(place, event.key);
    }
  }

  /**
   * @param {number} line
   * @param {number} index
   * @param {boolean} sideways
   */
  walk(line, index, sideways) {
    const row = this.table?.rows[line];
    if (!row) return;
    const clamped = Math.max(0, Math.min(index, row.cells.length - 1));
    const wanted = sideways ? clamped : this.wanted;
    this.clicked = "";
    this.focus({ row: row.key, index: clamped });
    this.wanted = wanted;
  }

  /**
   * @param {Place} place
   * @param {string} [typed] replaces the number instead of changing it
   */
  edit(place, typed) {
    const cell = this.cellAt(place);
    const element = this.elements.get(idOf(place));
    if (!element || cell?.kind !== "input") return;
    this.bubble.hide();
    this.editing = element;
    openEditor(element, {
      text: typed ?? cell.editText,
      selected: typed === undefined,
      label: cell.label,
      preview: (text) => this.handlers.preview(place, text),
      finish: (text, refocus) => {
        this.editing = null;
        const problem = text === null ? null : this.handlers.commit(place, text);
        if (text === null || problem) this.handlers.cancel();
        const current = this.cellAt(place);
        element.replaceChildren();
        if (current) this.drawCell(idOf(place), current);
        if (refocus) element.focus();
        if (problem) this.bubble.show(problem, element);
      },
    });
    element.classList.add("editing");
  }

  /** @param {Place} place */
  cellAt(place) {
    return this.table?.rows.find((row) => row.key === place.row)?.cells[place.index];
  }

  /**
   * Marks what depends on the focused cell.
   * @param {Set<string>} ids
   */
  mark(ids) {
    for (const [id, element] of this.elements) element.classList.toggle("depends", ids.has(id));
  }

  /**
   * Shows which cells have changed: a mark on all, a movement once, the nearest first.
   * @param {Set<string>} marked
   * @param {Map<string, number>} changed id to place in the order
   */
  pulse(marked, changed) {
    for (const [id, element] of this.elements) element.classList.toggle("changed", marked.has(id));
    if (still.matches) return;
    for (const [id, order] of changed) {
      const color = "var(--pulse)";
      this.elements.get(id)?.animate([{ boxShadow: `inset 0 0 0 2px ${color}` }, { boxShadow: "inset 0 0 0 2px transparent" }], {
        duration: 700, delay: order * 45, easing: "ease-out",
      });
    }
  }
}

/**
 * @param {EventTarget | null} target
 * @returns {Place | null}
 */
function placeOf(target) {
  const cell = target instanceof Element ? target.closest("[role=gridcell]") : null;
  if (!(cell instanceof HTMLElement)) return null;
  return { row: String(cell.dataset.row), index: Number(cell.dataset.index) };
}
