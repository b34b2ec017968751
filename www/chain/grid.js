// Numbers over tokens, one block a sequence, walked like a spreadsheet. It knows nothing of formulas: it draws what it is given, and only
// what changed. Token columns are two half columns wide; cells that belong to a state stand half a column to the left, between tokens.

import { Bubble } from "../parts/bubble.js";
import { html } from "../parts/dom.js";
import { buildBlock, placeOf, setText } from "./grid-blocks.js";
import { editCell } from "./grid-editing.js";
import { pressed } from "./grid-keys.js";
import { Sight } from "./grid-sight.js";

/** @typedef {import("./grid-types.js").Cell} Cell */
/** @typedef {import("./grid-types.js").TableRow} TableRow */
/** @typedef {import("./grid-types.js").Table} Table */
/** @typedef {import("./grid-types.js").Drawn} Drawn */
/** @typedef {import("./grid-types.js").Handlers} Handlers */
/** @typedef {import("./edits.js").Place} Place */

/** @param {Place} place */
export const idOf = (place) => `${place.row}.${place.sequence}.${place.index}`;

/** No cell has these flags. */
const UNDRAWN = 255;

const EVERYWHERE = [0, Infinity];

/** Depths of the tint. */
const TINTS = 8;

const still = window.matchMedia("(prefers-reduced-motion: reduce)");

/** More than this does not move: nobody could follow it, and it would cost the frame. */
const MOVING = 160;

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
    /** @type {WeakMap<HTMLElement, string>} the classes a cell has beside its marks */
    this.looks = new WeakMap();
    /** @type {Map<HTMLElement, () => string>} */
    this.unlabelled = new Map();
    /** @type {Map<string, Drawn>} by row and sequence */
    this.drawn = new Map();
    /** @type {Place[][]} the cells, line by line */
    this.lines = [];
    /** @type {Place | null} */
    this.place = null;
    this.wanted = 0;
    this.clicked = "";
    this.shape = "";
    /** @type {HTMLElement | null} */
    this.editing = null;
    /** @type {Record<"depends" | "comes" | "changed" | "here", Set<string>>} */
    this.marked = { depends: new Set(), comes: new Set(), changed: new Set(), here: new Set() };
    /** @type {Table | null} */
    this.table = null;
    this.waiting = 0;
    this.sight = new Sight(this.scroller, () => this.drawCells(false));
    this.scroller.addEventListener("keydown", (event) => pressed(this, event));
    this.scroller.addEventListener("click", (event) => this.click(event));
    this.scroller.addEventListener("focusin", (event) => this.focusin(event));
  }

  /** @param {Table} table */
  draw(table) {
    const shape = JSON.stringify([
      table.label, table.halves,
      table.blocks.map((block) => [block.open, block.head, block.states.length, [...block.numbers, ...block.rows].map((row) => [row.key, row.name, row.first])]),
    ]);
    if (shape !== this.shape) this.build(table);
    this.shape = shape;
    this.table = table;
    this.drawCells(false);
  }

  /**
   * First what is in sight; the rest has time until the next task, or until it scrolls into sight.
   * @param {boolean} everything
   */
  drawCells(everything) {
    clearTimeout(this.waiting);
    let skipped = false;
    for (const block of this.table?.blocks ?? []) {
      const [first, last] = everything ? EVERYWHERE : this.sight.columns(block.sequence);
      if (first === Infinity) {
        skipped = true;
        continue;
      }
      for (const row of [...block.numbers, block.tokens, ...block.rows]) {
        if (this.drawRow(row, block.sequence, first, last)) skipped = true;
      }
    }
    if (everything) this.label();
    else if (skipped || this.unlabelled.size > 0) this.waiting = window.setTimeout(() => this.drawCells(true));
  }

  /** The sentences for screen readers come after the numbers: nobody hears them within a frame. */
  label() {
    for (const [element, label] of this.unlabelled) element.setAttribute("aria-label", label());
    this.unlabelled.clear();
  }

  /**
   * @param {TableRow} row
   * @param {number} sequence
   * @param {number} first column in sight
   * @param {number} last
   * @returns {boolean} whether a cell out of sight is left to be drawn
   */
  drawRow(row, sequence, first, last) {
    const drawn = this.drawn.get(`${row.key}.${sequence}`);
    if (!drawn) return false;
    if (drawn.stamp !== row.stamp) drawn.flags.fill(UNDRAWN);
    drawn.stamp = row.stamp;
    drawn.row = row;
    let left = false;
    for (let i = 0; i < row.count; i += 1) {
      const [value, flags] = [row.value(i), row.flags(i)];
      if (Object.is(value, drawn.values[i]) && flags === drawn.flags[i]) continue;
      if (i < first || i > last) {
        left = true;
        continue;
      }
      drawn.values[i] = value;
      drawn.flags[i] = flags;
      this.drawCell(drawn.elements[i], row.cell(i, value, flags), `${row.key}.${sequence}.${i}`);
    }
    return left;
  }

  /**
   * @param {HTMLElement} element
   * @param {Cell} cell
   * @param {string} id
   */
  drawCell(element, cell, id) {
    const tint = cell.strength === 0 ? "" : `tint-${Math.ceil(cell.strength * TINTS)}`;
    const look = ["cell", cell.kind, cell.tone, tint, cell.dropped && "dropped", cell.faint && "faint", cell.differs, `role-${cell.role}`].filter(Boolean).join(" ");
    // style is the dearest part of an edit: a class that stays is not set again
    if (this.looks.get(element) !== look) {
      this.looks.set(element, look);
      const marks = Object.entries(this.marked).filter(([, ids]) => ids.has(id)).map(([mark]) => mark);
      element.className = [look, ...marks].join(" ");
      if (cell.kind !== "text") element.setAttribute("aria-readonly", String(cell.kind === "result"));
    }
    this.unlabelled.set(element, cell.label);
    // the editor lives inside the cell while it is open
    if (element !== this.editing) setText(element, cell.text);
    if (element === this.editing) element.classList.add("editing");
  }

  /** @param {Table} table */
  build(table) {
    const focused = this.scroller.contains(document.activeElement);
    this.elements.clear();
    this.drawn.clear();
    this.lines = [];
    this.editing = null;
    const grid = html("div", { role: "grid", class: "grid", "aria-label": table.label, "aria-colcount": table.halves });
    grid.style.setProperty("--halves", String(table.halves));
    for (const block of table.blocks) {
      const { element, rows, lines } = buildBlock(block, table.corner);
      grid.append(element);
      this.lines.push(...lines);
      for (const { row, cells } of rows) {
        const stamp = "\u0000";
        this.drawn.set(`${row.key}.${block.sequence}`, { elements: cells, values: new Float64Array(row.count), flags: new Uint8Array(row.count), stamp, row });
        for (const [i, cell] of cells.entries()) this.elements.set(`${row.key}.${block.sequence}.${i}`, cell);
      }
      if (block.head?.folds) this.elements.set(`sequence.${block.sequence}.0`, /** @type {HTMLElement} */ (element.querySelector("[data-row=sequence]")));
    }
    this.scroller.replaceChildren(grid);
    this.sight.watch(grid);
    const kept = this.place && this.nearest(this.place);
    this.setPlace(kept ?? this.lines[0][0]);
    if (focused && this.place) this.elements.get(idOf(this.place))?.focus();
  }

  /**
   * The cell itself, or the one closest to where it stood.
   * @param {Place} place
   * @returns {Place | null}
   */
  nearest(place) {
    for (const sequence of [place.sequence, place.sequence - 1, 0]) {
      const count = this.drawn.get(`${place.row}.${sequence}`)?.row.count;
      if (count) return { row: place.row, sequence, index: Math.min(place.index, count - 1) };
    }
    return null;
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
    if (!place || this.editing?.contains(/** @type {Node} */ (event.target))) return;
    this.wanted = place.index;
    if (this.toggles(place)) this.handlers.toggle(place);
    // the first click chooses, the second edits: a finger has no Enter
    else if (event.detail > 1 || this.clicked === idOf(place)) this.edit(place);
    this.clicked = idOf(place);
  }

  /** @param {Place} place */
  toggles(place) {
    return place.row === "mask" || place.row === "sequence";
  }

  /**
   * @param {number} line
   * @param {number} at
   * @param {boolean} sideways
   */
  walk(line, at, sideways) {
    const places = this.lines[line];
    if (!places) return;
    const clamped = Math.max(0, Math.min(at, places.length - 1));
    const wanted = sideways ? clamped : this.wanted;
    this.clicked = "";
    this.focus(places[clamped]);
    this.wanted = wanted;
  }

  /**
   * @param {Place} place
   * @param {string} [typed] replaces the number instead of changing it
   */
  edit(place, typed) {
    editCell(this, place, typed);
  }

  /** @param {Place} place */
  cellAt(place) {
    const row = this.drawn.get(`${place.row}.${place.sequence}`)?.row;
    return row && place.index < row.count ? row.cell(place.index, row.value(place.index), row.flags(place.index)) : undefined;
  }

  /**
   * Marks cells: what depends on the focused one, what it comes from, what an edit changed, where a tour stands.
   * @param {"depends" | "comes" | "changed" | "here"} mark
   * @param {Set<string>} ids
   */
  mark(mark, ids) {
    const before = this.marked[mark];
    this.marked[mark] = ids;
    for (const id of before) if (!ids.has(id)) this.elements.get(id)?.classList.remove(mark);
    for (const id of ids) if (!before.has(id)) this.elements.get(id)?.classList.add(mark);
  }

  /**
   * Shows which cells have changed: a mark on all, a movement once, the nearest first.
   * @param {Set<string>} marked
   * @param {Map<string, number>} changed id to place in the order
   */
  pulse(marked, changed) {
    this.mark("changed", marked);
    if (still.matches || changed.size > MOVING) return;
    for (const [id, order] of changed) {
      this.elements.get(id)?.animate([{ boxShadow: "inset 0 0 0 2px var(--pulse)" }, { boxShadow: "inset 0 0 0 2px transparent" }], {
        duration: 700, delay: order * 45, easing: "ease-out",
      });
    }
  }
}
