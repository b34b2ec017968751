// A table of any length: only the rows in view exist. Arrow keys walk it, headings sort it.

import { html } from "../parts/dom.js";

/** @typedef {import("./cells.js").Cell} Cell */

/** @typedef {{ key: string, name: string, title: string, wide?: boolean, narrow?: boolean }} Column */

/**
 * @typedef {object} Table
 * @property {string} label
 * @property {Column[]} columns
 * @property {number} count
 * @property {{ key: string, descending: boolean }} sort
 * @property {(row: number, key: string) => Cell} cell
 * @property {(row: number) => string} dropped "dropped" for a row that takes no part
 * @property {number} chosen the row looked at, -1 for none
 */

const HEIGHT = 28;
const MARGIN = 5;

export class Rows {
  /**
   * @param {HTMLElement} container
   * @param {{ sort: (key: string) => void, choose: (row: number) => void }} handlers
   */
  constructor(container, handlers) {
    this.handlers = handlers;
    this.head = html("div", { role: "rowgroup", class: "rows-head" });
    this.body = html("div", { role: "rowgroup", class: "rows-body" });
    this.element = html("div", { class: "rows", role: "grid", tabindex: 0, id: "data-rows" }, this.head, this.body);
    container.append(this.element);
    /** @type {Table | null} */
    this.table = null;
    this.active = 0;
    /** @type {Map<number, HTMLElement>} */
    this.shown = new Map();
    this.waiting = false;
    this.headings = "";
    this.brush = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    this.element.addEventListener("scroll", () => this.later());
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => {
      const row = /** @type {HTMLElement} */ (event.target).closest("[data-row]");
      if (row) this.choose(Number(/** @type {HTMLElement} */ (row).dataset.row));
    });
    new ResizeObserver(() => this.later()).observe(this.element);
  }

  /** @param {Table} table */
  draw(table) {
    this.table = table;
    this.element.setAttribute("aria-label", table.label);
    this.element.setAttribute("aria-rowcount", String(table.count + 1));
    this.element.setAttribute("aria-colcount", String(table.columns.length));
    this.body.style.setProperty("height", `${table.count * HEIGHT}px`);
    this.active = Math.max(0, Math.min(table.chosen >= 0 ? table.chosen : this.active, table.count - 1));
    this.drawHead(table);
    for (const row of this.shown.values()) row.remove();
    this.shown.clear();
    this.render();
  }

  /** @param {Table} table */
  drawHead(table) {
    const headings = JSON.stringify([table.columns, table.sort]);
    if (headings === this.headings) return;
    const focused = this.head.contains(document.activeElement)
      ? /** @type {HTMLElement} */ (document.activeElement).dataset.key
      : undefined;
    this.headings = headings;
    const cells = table.columns.map(({ key, name, title, wide }, index) => {
      const sorted = key === table.sort.key;
      const arrow = sorted ? (table.sort.descending ? " ↓" : " ↑") : "";
      const button = html(
        "button",
        { type: "button", class: "sorter", title, "data-key": key, onclick: () => this.handlers.sort(key) },
        name,
        html("span", { "aria-hidden": "true" }, arrow),
      );
      return html(
        "div",
        {
          role: "columnheader",
          class: wide ? "wide" : null,
          "aria-colindex": index + 1,
          "aria-sort": sorted ? (table.sort.descending ? "descending" : "ascending") : "none",
        },
        button,
      );
    });
    this.head.replaceChildren(html("div", { role: "row", class: "rows-row", "aria-rowindex": 1 }, ...cells));
    const sorter = this.head.querySelector(".sorter");
    if (sorter) {
      // the short form is empty where figures have a width of their own
      const { fontWeight, fontSize, fontFamily } = getComputedStyle(sorter);
      this.brush.font = `${fontWeight} ${fontSize} ${fontFamily}`;
    }
    this.element.style.setProperty("--columns", table.columns.map((column) => this.widthOf(column)).join(" "));
    if (focused)
      /** @type {HTMLElement | null} */ (this.head.querySelector(`[data-key="${CSS.escape(focused)}"]`))?.focus();
  }

  /** As wide as its name with an arrow, whether it has one or not, and as its numbers. @param {Column} column */
  widthOf({ name, wide, narrow }) {
    const letters = Math.ceil(this.brush.measureText(`${name} ↓`).width) + 1;
    return `max(${wide ? 6.6 : narrow ? 3.2 : 6.2}rem, calc(1rem + ${letters}px))`;
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.render();
    });
  }

  render() {
    const { table } = this;
    if (!table) return;
    const first = Math.max(0, Math.floor(this.element.scrollTop / HEIGHT) - MARGIN);
    const last = Math.min(
      table.count,
      Math.ceil((this.element.scrollTop + this.element.clientHeight) / HEIGHT) + MARGIN,
    );
    for (const [index, row] of this.shown) {
      if (index >= first && index < last) continue;
      row.remove();
      this.shown.delete(index);
    }
    for (let index = first; index < last; index += 1) {
      if (!this.shown.has(index)) this.shown.set(index, this.body.appendChild(this.row(table, index)));
    }
    const active = this.shown.get(this.active);
    for (const row of this.body.querySelectorAll(".active")) row.classList.remove("active");
    active?.classList.add("active");
    if (active) this.element.setAttribute("aria-activedescendant", active.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** @param {Table} table @param {number} index */
  row(table, index) {
    const cells = table.columns.map(({ key, wide }, column) => {
      const { text, tone, strength, title } = table.cell(index, key);
      const cell = html(
        "div",
        {
          role: "gridcell",
          class: ["data-cell", wide && "wide", tone].filter(Boolean).join(" "),
          "aria-colindex": column + 1,
          "data-key": key,
          title,
        },
        text,
      );
      if (tone !== "") cell.style.setProperty("--strength", strength.toFixed(3));
      return cell;
    });
    const classes = ["rows-row", table.dropped(index)].filter(Boolean).join(" ");
    const row = html(
      "div",
      {
        role: "row",
        class: classes,
        id: `data-row-${index}`,
        "data-row": index,
        "aria-rowindex": index + 2,
        "aria-selected": String(index === table.chosen),
      },
      ...cells,
    );
    row.style.setProperty("top", `${index * HEIGHT}px`);
    return row;
  }

  /** Brings a row into view. @param {number} index */
  show(index) {
    this.active = index;
    const height = this.element.clientHeight - this.head.clientHeight;
    const top = index * HEIGHT;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + HEIGHT > this.element.scrollTop + height) this.element.scrollTop = top + HEIGHT - height;
    this.render();
  }

  /** @param {number} index */
  choose(index) {
    this.active = index;
    this.handlers.choose(index);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { table } = this;
    if (!table || event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey || table.count === 0)
      return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / HEIGHT) - 2);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -table.count, End: table.count };
    if (event.key === "Enter" || event.key === " ") this.choose(this.active);
    else if (event.key in steps) this.show(Math.max(0, Math.min(table.count - 1, this.active + steps[event.key])));
    else return;
    event.preventDefault();
  }
}
