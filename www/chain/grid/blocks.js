// The elements of the grid: one block per sequence, with its line of numbers, its tokens and its rows.

import { html } from "../../parts/dom.js";
import { lineOf } from "../../parts/grid-line.js";

/** @typedef {import("./types.js").Block} Block */
/** @typedef {import("./types.js").TableRow} TableRow */
/** @typedef {import("../edit/edits.js").Place} Place */

/**
 * @param {Block} block
 * @param {string} corner what stands over the names
 */
export function buildBlock(block, corner) {
  const { sequence: s } = block;
  const element = html("div", { role: "rowgroup", class: "block", "data-sequence": s });
  /** @type {{ row: TableRow, cells: HTMLElement[] }[]} */
  const rows = [];
  /** @type {Place[][]} */
  const lines = [];
  if (block.head) {
    const head = headOf(block);
    element.append(head.line);
    rows.push(...head.rows);
    if (head.places.length > 0) lines.push(head.places);
  }
  if (!block.open) return { element, rows, lines };
  const tokens = tokenLine(block, corner);
  element.append(tokens.line);
  rows.push({ row: block.tokens, cells: tokens.cells });
  lines.push(tokens.cells.map((_, index) => ({ row: "token", sequence: s, index })));
  for (const row of block.rows) {
    const { line, cells } = lineOf({ ...row, sequence: s }, row.symbol(), (cell, index) =>
      placed(cell, row.align, index),
    );
    element.append(line);
    rows.push({ row, cells });
    lines.push(cells.map((_, index) => ({ row: row.key, sequence: s, index })));
  }
  return { element, rows, lines };
}

/** @param {Block} block */
function headOf({ sequence: s, head, open, numbers }) {
  const line = html("div", { role: "row", class: "row sequence" });
  /** @type {Place[]} */
  const places = [];
  if (head?.folds) {
    line.append(
      html(
        "div",
        {
          role: "gridcell",
          class: "cell fold",
          tabindex: -1,
          "data-row": "sequence",
          "data-sequence": s,
          "data-index": 0,
          "aria-expanded": String(open),
        },
        html("span", { class: "arrow", "aria-hidden": "true" }, open ? "▾" : "▸"),
        ` ${head.title}`,
        html("span", { class: "group" }, head.group),
      ),
    );
    places.push({ row: "sequence", sequence: s, index: 0 });
  }
  const rows = numbers.map((row) => {
    const cell = html("div", {
      role: "gridcell",
      tabindex: -1,
      "data-row": row.key,
      "data-sequence": s,
      "data-index": 0,
    });
    line.append(cell);
    places.push({ row: row.key, sequence: s, index: 0 });
    return { row, cells: [cell] };
  });
  // one sequence is already written out above the grid
  if (head?.folds) line.append(html("div", { role: "gridcell", class: "said", lang: "zh" }, head.text));
  return { line, rows, places };
}

/**
 * @param {Block} block
 * @param {string} corner
 */
function tokenLine({ sequence: s, states, tokens }, corner) {
  const line = html(
    "div",
    { role: "row", class: "row head" },
    html("div", { role: "columnheader", class: "name" }, corner),
  );
  /** @type {HTMLElement[]} */
  const cells = [];
  for (const [index, state] of states.entries()) {
    line.append(placed(html("div", { role: "columnheader", class: "mark" }, state), "state", index));
    if (index >= tokens.count) continue;
    const cell = html("div", {
      role: "columnheader",
      lang: "zh",
      tabindex: -1,
      "data-row": "token",
      "data-sequence": s,
      "data-index": index,
    });
    line.append(placed(cell, "action", index));
    cells.push(cell);
  }
  return { line, cells };
}

/**
 * @param {HTMLElement} element
 * @param {"action" | "state" | "sequence"} align
 * @param {number} index
 */
function placed(element, align, index) {
  // in half columns: state 1 takes the first two, token 1 the second and third, state 2 the third and fourth, …
  const first = index * 2 + (align === "action" ? 1 : 0);
  element.style.setProperty("--at", String(first));
  element.setAttribute("aria-colindex", String(first + 2));
  return element;
}
