// What was typed into a cell, as a new state or a reason why not.

import { withInput, withToken } from "./edits.js";
import { full, parse } from "../../parts/format.js";
import { t } from "../../i18n/index.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("./edits.js").Place} Place */

/**
 * @param {State} state
 * @param {Place} place
 * @param {string} text
 * @param {number | undefined} before the number that stands there
 * @returns {{ state: State } | { problem: string }}
 */
export function readCell(state, place, text, before) {
  if (place.row === "token") return { state: withToken(state, place, text) };
  if (text.trim() === "" && place.row === "logProb") return { state: withInput(state, place, null) };
  const parsed = parse(text);
  if ("value" in parsed) return { state: withInput(state, place, parsed.value) };
  return { problem: t(`bad.${parsed.problem}`, { text, old: before === undefined ? "—" : full(before) }) };
}

/**
 * @param {State} state
 * @param {Place} place
 * @returns {string | number | null}
 */
export function storedAt({ sequences }, { row, sequence, index }) {
  const { tokens, inputs } = sequences[sequence];
  return row === "token" ? tokens[index] : /** @type {any} */ (inputs)[row][index];
}
