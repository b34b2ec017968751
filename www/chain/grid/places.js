// Which cell is focused first, which are visible, and which an edit changed.

import { findPreset } from "../examples/presets.js";
import { cellCount, rowByKey, rows, visibleRows } from "../rows.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {import("../edit/edits.js").Place} Place */

/**
 * The advantage of the first token is what the page is about; a trap is about the row in which it shows.
 * @param {State} state
 * @returns {Place}
 */
export function firstPlace(state) {
  const shown = visibleRows(state).map((row) => row.key);
  const preset = findPreset(state.preset);
  const told = preset && "shows" in preset ? (preset.shows.row ?? "tokenWeight") : "";
  return {
    row: [told, "groupAdvantage", "advantage", "klGradient"].find((row) => shown.includes(row)) ?? "mask",
    sequence: 0,
    index: 0,
  };
}

/**
 * @param {State} state
 * @param {Place} place
 */
export function isShown(state, place) {
  const sequence = state.sequences[place.sequence];
  if (!sequence) return false;
  if (place.row === "token") return place.index < sequence.tokens.length;
  const row = rowByKey.get(place.row);
  return row !== undefined && visibleRows(state).includes(row) && place.index < cellCount(row, state, place.sequence);
}

/**
 * Which cells differ, and how many rows after the first of them.
 * @param {Result} before
 * @param {Result} after
 * @returns {Map<string, number>}
 */
export function changes(before, after) {
  /** @type {Map<string, number>} */
  const found = new Map();
  if (before === after) return found;
  let first = -1;
  for (const [order, row] of rows.entries()) {
    for (const [s, values] of (after.rows[row.key] ?? []).entries()) {
      const old = before.rows[row.key]?.[s];
      for (let i = 0; i < values.length; i += 1) {
        if (Object.is(old?.[i], values[i])) continue;
        if (first < 0) first = order;
        found.set(`${row.key}.${s}.${i}`, order - first);
      }
    }
  }
  return found;
}
