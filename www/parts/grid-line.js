// The elements of one line of a grid.

import { html } from "./dom.js";

/**
 * Its name, its sign, its cells.
 * @param {{ key: string, name: string, align: string, first: boolean, count: number, sequence?: number }} row
 * @param {Element | null} sign
 * @param {(cell: HTMLElement, index: number) => void} put says where a cell stands
 */
export function lineOf({ key, name, align, first, count, sequence }, sign, put) {
  const symbol =
    sign && sign.textContent !== name ? html("span", { class: "symbol", "aria-hidden": "true" }, sign) : null;
  const header = html("div", { role: "rowheader", class: "name" }, html("span", {}, name), symbol);
  const line = html("div", { role: "row", class: `row ${align}${first ? " first" : ""}`, "data-line": key }, header);
  const cells = Array.from({ length: count }, (_, index) => {
    const cell = html("div", {
      role: "gridcell",
      tabindex: -1,
      "data-row": key,
      "data-sequence": sequence,
      "data-index": index,
    });
    put(cell, index);
    line.append(cell);
    return cell;
  });
  return { line, cells };
}
