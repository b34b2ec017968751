// Cells in lines, walked and edited like a spreadsheet. It knows nothing of formulas and builds nothing: who extends it
// says which cells there are (`elements`, `lines`, `cellAt`), and calls `drawCell` for each of them.

import { Bubble } from "./bubble.js";
import { html, setText } from "./dom.js";
import { openEditor } from "./editor.js";
import { digitsWide } from "./format.js";

/**
 * @typedef {object} Cell
 * @property {string} text as shown
 * @property {() => string} label for a screen reader
 * @property {"mask" | "input" | "result" | "text"} kind
 * @property {"plus" | "minus" | ""} tone
 * @property {number} strength 0 to 1, how deep the tint is
 * @property {boolean} dropped
 * @property {boolean} faint shown, but not the cell's own
 * @property {"differs" | "slightly" | ""} [differs] from the number under other conventions
 * @property {string} editText what the editor starts with
 * @property {string} [role] of the token
 */

/** @typedef {{ row: string, sequence?: number, index: number }} Place `sequence` in a table that has several */

/**
 * @template {Place} P
 * @typedef {object} Handlers
 * @property {(place: P) => void} focus
 * @property {(place: P) => void} toggle
 * @property {(place: P, text: string) => string | null} commit takes the text, or says why not
 * @property {(place: P, text: string) => void} preview
 * @property {() => void} cancel gives back what stood before the previews
 * @property {(place: P) => void} copy
 */

/**
 * @typedef {"depends" | "comes" | "changed" | "here"} Mark what depends on the focused cell, what it comes from, what
 *   an edit changed, where a tour stands
 */

/** @param {Place} place */
export const idOf = ({ row, sequence, index }) =>
  sequence === undefined ? `${row}.${index}` : `${row}.${sequence}.${index}`;

/** Depths of the tint. */
const TINTS = 8;

const still = window.matchMedia("(prefers-reduced-motion: reduce)");

/** Above this number of cells nothing is animated: nobody could follow it, and the frame would be late. */
const MOVING = 160;

/** @template {Place} P */
export class Grid {
  /**
   * @param {HTMLElement} container
   * @param {Handlers<P>} handlers
   */
  constructor(container, handlers) {
    this.handlers = handlers;
    this.scroller = html("div", { class: "scroller" });
    this.bubble = new Bubble();
    container.append(this.scroller, this.bubble.element);
    /** @type {Map<string, HTMLElement>} */
    this.elements = new Map();
    /** @type {P[][]} the cells, line by line */
    this.lines = [];
    /** @type {P | null} */
    this.place = null;
    this.wanted = 0;
    this.clicked = "";
    /** @type {HTMLElement | null} */
    this.editing = null;
    /** how wide the widest number is, in digits: columns are made to fit it */
    this.widest = 0;
    /** @type {WeakMap<HTMLElement, string>} the classes a cell has beside its marks */
    this.looks = new WeakMap();
    /** @type {Record<Mark, Set<string>>} */
    this.marked = { depends: new Set(), comes: new Set(), changed: new Set(), here: new Set() };
    this.scroller.addEventListener("keydown", (event) => this.keydown(event));
    this.scroller.addEventListener("click", (event) => this.click(event));
    this.scroller.addEventListener("focusin", (event) => this.focusin(event));
  }

  /**
   * @param {P} _place
   * @returns {Cell | undefined}
   */
  cellAt(_place) {
    return undefined;
  }

  /**
   * Whether a press on the cell switches it.
   * @param {P} place
   */
  toggles(place) {
    return this.cellAt(place)?.kind === "mask";
  }

  /**
   * Keys beside those of every grid.
   * @param {P} _place
   * @param {KeyboardEvent} _event
   * @returns {Record<string, () => void>}
   */
  moreKeys(_place, _event) {
    return {};
  }

  /**
   * @param {HTMLElement} element
   * @param {Cell} cell
   * @param {string} id
   */
  drawCell(element, cell, id) {
    const tint = cell.strength === 0 ? "" : `tint-${Math.ceil(cell.strength * TINTS)}`;
    const role = cell.role !== undefined && `role-${cell.role}`;
    const look = [
      "cell",
      cell.kind,
      cell.tone,
      tint,
      cell.dropped && "dropped",
      cell.faint && "faint",
      cell.differs,
      role,
    ]
      .filter(Boolean)
      .join(" ");
    // styling is the most expensive part of an edit: a class that stays is not set again
    if (this.looks.get(element) !== look) {
      this.looks.set(element, look);
      const marks = Object.entries(this.marked)
        .filter(([, ids]) => ids.has(id))
        .map(([mark]) => mark);
      element.className = [look, ...marks].join(" ");
      if (cell.kind !== "text") element.setAttribute("aria-readonly", String(cell.kind === "result"));
    }
    this.label(element, cell.label);
    if (cell.kind !== "text") this.widen(cell.text);
    // the editor lives inside the cell while it is open
    if (element === this.editing) element.classList.add("editing");
    else setText(element, cell.text);
  }

  /**
   * Makes room for a number. Columns never become narrower again while the table stays the same: an edit would move
   * everything.
   * @param {string} text
   */
  widen(text) {
    // a number with its name stands in a line of its own
    const width = text.length <= this.widest / 2 || text.includes("=") ? 0 : Math.ceil(digitsWide(text));
    if (width <= this.widest) return;
    this.widest = width;
    this.scroller.style.setProperty("--digits", String(width));
  }

  /**
   * @param {HTMLElement} element
   * @param {() => string} label
   */
  label(element, label) {
    element.setAttribute("aria-label", label());
  }

  /** @param {P} place */
  setPlace(place) {
    const before = this.place && this.elements.get(idOf(this.place));
    if (before) before.tabIndex = -1;
    this.place = place;
    const element = this.elements.get(idOf(place));
    if (element) element.tabIndex = 0;
  }

  /** @param {P} place */
  focus(place) {
    this.setPlace(place);
    this.wanted = place.index;
    this.elements.get(idOf(place))?.focus();
  }

  /**
   * @param {EventTarget | null} target
   * @returns {P | null}
   */
  placeOf(target) {
    const cell = target instanceof Element ? target.closest("[data-index]") : null;
    if (!(cell instanceof HTMLElement)) return null;
    const { row, sequence, index } = cell.dataset;
    return /** @type {P} */ ({
      row: String(row),
      ...(sequence !== undefined && { sequence: Number(sequence) }),
      index: Number(index),
    });
  }

  /** @param {FocusEvent} event */
  focusin(event) {
    const place = this.placeOf(event.target);
    if (!place || event.target === this.editing) return;
    this.bubble.hide();
    this.setPlace(place);
    this.handlers.focus(place);
  }

  /** @param {MouseEvent} event */
  click(event) {
    const place = this.placeOf(event.target);
    if (!place || this.editing?.contains(/** @type {Node} */ (event.target))) return;
    this.wanted = place.index;
    if (this.toggles(place)) this.handlers.toggle(place);
    // the first click chooses, the second edits: a finger has no Enter
    else if (event.detail > 1 || this.clicked === idOf(place)) this.edit(place);
    this.clicked = idOf(place);
  }

  /** @param {KeyboardEvent} event */
  keydown(event) {
    const { place } = this;
    if (!place || this.editing) return;
    const line = this.lines.findIndex((places) => places.some((one) => idOf(one) === idOf(place)));
    if (line < 0) return;
    const at = this.lines[line].findIndex((one) => idOf(one) === idOf(place));
    const command = event.ctrlKey || event.metaKey;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.walk(line, at - 1, true),
      ArrowRight: () => this.walk(line, at + 1, true),
      ArrowUp: () => this.walk(line - 1, this.wanted, false),
      ArrowDown: () => this.walk(line + 1, this.wanted, false),
      Home: () => this.walk(command ? 0 : line, 0, true),
      End: () => this.walk(command ? this.lines.length - 1 : line, Infinity, true),
      Enter: () => (this.toggles(place) ? this.handlers.toggle(place) : this.edit(place)),
      F2: () => this.edit(place),
      " ": () => this.toggles(place) && this.handlers.toggle(place),
      ...this.moreKeys(place, event),
    };
    if (command && event.key === "c") this.handlers.copy(place);
    else if (keys[event.key] && !event.altKey && !event.metaKey) {
      event.preventDefault();
      keys[event.key]();
    } else if (!command && !event.altKey && this.cellAt(place)?.kind === "input" && /^[\d.+\-−]$/.test(event.key)) {
      event.preventDefault();
      this.edit(place, event.key);
    }
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
   * @param {P} place
   * @param {string} [typed] replaces what stands there instead of changing it
   */
  edit(place, typed) {
    const cell = this.cellAt(place);
    const element = this.elements.get(idOf(place));
    if (!element || (cell?.kind !== "input" && cell?.kind !== "text")) return;
    this.bubble.hide();
    this.editing = element;
    openEditor(element, {
      text: typed ?? cell.editText,
      selected: typed === undefined,
      label: cell.label(),
      mode: cell.kind === "text" ? "text" : "decimal",
      preview: (text) => this.handlers.preview(place, text),
      finish: (text, refocus) => {
        this.editing = null;
        const problem = text === null ? null : this.handlers.commit(place, text);
        if (text === null || problem) this.handlers.cancel();
        // an edit may have rebuilt the grid: then the cell is another element
        const now = this.elements.get(idOf(place)) ?? element;
        const current = this.cellAt(place);
        element.replaceChildren();
        element.classList.remove("editing");
        if (current) this.drawCell(now, current, idOf(place));
        if (refocus) now.focus();
        if (problem) this.bubble.show(problem, now);
      },
    });
    element.classList.add("editing");
  }

  /**
   * @param {Mark} mark
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
      this.elements
        .get(id)
        ?.animate([{ boxShadow: "inset 0 0 0 2px var(--pulse)" }, { boxShadow: "inset 0 0 0 2px transparent" }], {
          duration: 700,
          delay: order * 45,
          easing: "ease-out",
        });
    }
  }
}
