// Where a number that is not finite comes from: the first cell on the way that is not, though everything before it is.

import { ancestors } from "./dependents.js";
import { rowByKey, rows } from "../rows.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */

const order = new Map(rows.map(({ key }, at) => [key, at]));

/**
 * The number of a cell or a parameter; masks and sums have none of their own.
 * @param {State} state
 * @param {Result} result
 * @param {string} id
 */
function numberOf(state, result, id) {
  const [key, s, i] = id.split(".");
  return s === undefined
    ? /** @type {Record<string, number>} */ (state.parameters)[key]
    : result.rows[key]?.[Number(s)]?.[Number(i)];
}

/**
 * Parameters first, then in the order in which a value travels, sequence by sequence, token by token.
 * @param {string} a
 * @param {string} b
 */
function inChainOrder(a, b) {
  const [one, other] = [a, b]
    .map((id) => id.split("."))
    .map(([key, s = "0", i = "0"]) => [order.get(key) ?? -1, Number(s), Number(i)]);
  return one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
}

/**
 * @param {State} state
 * @param {Result} result
 * @param {string} id a computed cell
 * @returns {{ id: string, value: number, given: boolean } | null} null where the cell is finite; `given`:
 *   it was typed in, not computed
 */
export function firstNotFinite(state, result, id) {
  const bad = (/** @type {string} */ one) => {
    const value = numberOf(state, result, one);
    return value !== undefined && !Number.isFinite(value);
  };
  if (!bad(id)) return null;
  const on = [...ancestors(state, result.settings, id)].filter(bad);
  const all = [...on, id].sort(inChainOrder);
  const first = all.find((one) => ![...ancestors(state, result.settings, one)].some(bad)) ?? id;
  const row = rowByKey.get(first.split(".")[0]);
  return {
    id: first,
    value: /** @type {number} */ (numberOf(state, result, first)),
    given: row === undefined || row.kind(state) === "input",
  };
}
