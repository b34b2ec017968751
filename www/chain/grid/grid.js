// Numbers over tokens, one block per sequence. It knows nothing of formulas: it draws what it is given, and only what
// changed. Token columns are two half columns wide; cells that belong to a state stand half a column to the left,
// between tokens.

import { find, html } from "../../parts/dom.js";
import { Grid, idOf } from "../../parts/grid.js";
import { buildBlock } from "./blocks.js";
import { Idle } from "../../parts/idle.js";
import { Heads } from "./heads.js";
import { Sight } from "./sight.js";

/** @typedef {import("./types.js").TableRow} TableRow */
/** @typedef {import("./types.js").Table} Table */
/** @typedef {import("./types.js").Drawn} Drawn */
/** @typedef {import("./types.js").Handlers} Handlers */
/** @typedef {import("../edit/edits.js").Place} Place */

/** No cell has these flags. */
const UNDRAWN = 255;

/** So many sentences are made at a time. */
const SENTENCES = 20;

/** @param {import("./types.js").Block} block */
const rowsOf = (block) => (block.open ? [...block.numbers, block.tokens, ...block.rows] : block.numbers);

/** @extends {Grid<Place>} */
export class ChainGrid extends Grid {
  /**
   * @param {HTMLElement} container
   * @param {Handlers} handlers
   */
  constructor(container, handlers) {
    super(container, handlers);
    this.reshape = handlers.shape;
    /** @type {Map<HTMLElement, () => string>} */
    this.unlabelled = new Map();
    /** @type {Map<string, Drawn>} by row and sequence */
    this.drawn = new Map();
    this.shape = "";
    /** @type {Table | null} */
    this.table = null;
    this.idle = new Idle((busy) => this.scroller.toggleAttribute("data-behind", busy));
    this.sight = new Sight(this.scroller, () => this.drawCells());
    this.heads = new Heads(this.scroller, () => {
      const tour = document.getElementById("tour");
      return tour ? Math.max(0, tour.getBoundingClientRect().bottom) : 0;
    });
  }

  /** @param {Table} table */
  draw(table) {
    const shape = JSON.stringify([
      table.label,
      table.halves,
      table.blocks.map((block) => [
        block.open,
        block.head,
        block.states.length,
        [...block.numbers, ...block.rows].map((row) => [row.key, row.name, row.first]),
      ]),
    ]);
    if (shape !== this.shape) this.build(table);
    this.shape = shape;
    this.table = table;
    this.drawCells();
  }

  /** Draws what is in sight; the rest follows while nothing else is to be done, or when it is scrolled into view. */
  drawCells() {
    let skipped = false;
    for (const block of this.table?.blocks ?? []) {
      const [first, last] = this.sight.columns(block.sequence);
      if (first === Infinity) {
        skipped = true;
        continue;
      }
      for (const row of rowsOf(block)) {
        if (this.drawRow(row, block.sequence, first, last)) skipped = true;
      }
    }
    this.idle.stop();
    if (skipped || this.unlabelled.size > 0) this.idle.run(this.remaining());
  }

  /** Cells out of sight and sentences for screen readers, a little at a time. */
  *remaining() {
    for (const block of this.table?.blocks ?? []) {
      for (const row of rowsOf(block)) {
        this.drawRow(row, block.sequence, 0, Infinity);
        yield;
      }
    }
    let count = 0;
    for (const element of this.unlabelled.keys()) {
      this.tell(element);
      count += 1;
      if (count % SENTENCES === 0) yield;
    }
  }

  /**
   * The sentences for screen readers come after the numbers: they are not needed within the same frame.
   * @param {HTMLElement} element
   * @param {() => string} label
   */
  label(element, label) {
    if (element === document.activeElement) element.setAttribute("aria-label", label());
    else this.unlabelled.set(element, label);
  }

  /** @param {HTMLElement} element */
  tell(element) {
    const label = this.unlabelled.get(element);
    if (!label) return;
    this.unlabelled.delete(element);
    element.setAttribute("aria-label", label());
  }

  /** @param {FocusEvent} event */
  focusin(event) {
    // whoever listens hears the number of now
    if (event.target instanceof HTMLElement) this.tell(event.target);
    super.focusin(event);
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

  /** @param {Table} table */
  build(table) {
    const focused = this.scroller.contains(document.activeElement);
    this.elements.clear();
    this.drawn.clear();
    this.lines = [];
    this.editing = null;
    this.widest = 0;
    const grid = html("div", { role: "grid", class: "grid", "aria-label": table.label, "aria-colcount": table.halves });
    grid.style.setProperty("--halves", String(table.halves));
    for (const block of table.blocks) {
      const { element, rows, lines } = buildBlock(block, table.corner);
      grid.append(element);
      this.lines.push(...lines);
      for (const { row, cells } of rows) {
        const stamp = "\u0000";
        this.drawn.set(`${row.key}.${block.sequence}`, {
          elements: cells,
          values: new Float64Array(row.count),
          flags: new Uint8Array(row.count),
          stamp,
          row,
        });
        for (const [i, cell] of cells.entries()) this.elements.set(`${row.key}.${block.sequence}.${i}`, cell);
      }
      if (block.head?.folds) this.elements.set(`sequence.${block.sequence}.0`, find(element, "[data-row=sequence]"));
    }
    this.scroller.replaceChildren(grid);
    this.sight.watch(grid);
    this.heads.later();
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
  toggles(place) {
    return place.row === "mask" || place.row === "sequence";
  }

  /**
   * @param {Place} place
   * @param {KeyboardEvent} event
   * @returns {Record<string, () => void>}
   */
  moreKeys(place, event) {
    return {
      Insert: () => this.reshape(event.shiftKey ? "before" : "after", place),
      Delete: () => place.row === "token" && this.reshape("remove", place),
    };
  }

  /** @param {Place} place */
  cellAt(place) {
    const row = this.drawn.get(`${place.row}.${place.sequence}`)?.row;
    return row && place.index < row.count
      ? row.cell(place.index, row.value(place.index), row.flags(place.index))
      : undefined;
  }
}
