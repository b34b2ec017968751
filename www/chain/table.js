// The chain as a table for the grid: numbers to text, sign and size to a tint, cells to sentences.

import { full, short, signed, subscript } from "../parts/format.js";
import { t } from "../i18n/index.js";
import { symbol } from "../parts/math.js";
import { cellCount, visibleRows } from "./rows.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */

/**
 * @param {State} state
 * @param {Result} result
 * @returns {import("../parts/grid.js").Table}
 */
export function tableOf(state, result) {
  let stage = "";
  const table = {
    label: t("grid.label"),
    corner: t("grid.tokens"),
    tokens: state.tokens.map((text, index) => ({ text, dropped: !state.mask[index] })),
    states: Array.from({ length: state.tokens.length + 1 }, (_, index) => `s${subscript(index + 1)}`),
    rows: visibleRows(state).map((row) => {
      const first = stage !== "" && stage !== row.stage;
      stage = row.stage;
      const cells = Array.from({ length: cellCount(row, state) }, (_, index) => cellOf(state, result, row, index));
      return { key: row.key, name: t(`row.${row.key}`), symbol: mathOf(row.key), align: row.align, first, cells };
    }),
  };
  return table;
}

/** @param {string} key */
function mathOf(key) {
  const math = document.createElementNS("http://www.w3.org/1998/Math/MathML", "math");
  math.append(symbol(key));
  return math;
}

/**
 * @param {State} state
 * @param {Result} result
 * @param {import("./rows.js").Row} row
 * @param {number} index
 * @returns {import("../parts/grid.js").Cell}
 */
function cellOf(state, result, row, index) {
  const kind = row.kind(state);
  const dropped = index < state.mask.length && !state.mask[index];
  if (kind === "mask") {
    const word = t(dropped ? "grid.dropped" : "grid.kept");
    return { text: dropped ? "○" : "●", label: labelOf(state, row, index, word), kind, tone: "", strength: 0, dropped, faint: false, editText: "" };
  }
  const values = result.rows[row.key];
  const value = values?.[index];
  const tinted = kind === "result" && row.signed && value !== undefined && !dropped;
  const follows = row.key === "logProb" && state.inputs.logProb[index] === null;
  const text = value === undefined ? "—" : tinted ? signed(value) : short(value);
  const notes = [value === undefined ? t("grid.missing") : text];
  if (follows) notes.push(t("grid.follows"));
  if (dropped) notes.push(t("grid.dropped"));
  if (kind === "input") notes.push(t("grid.editable"));
  return {
    text,
    label: labelOf(state, row, index, notes.join(", ")),
    kind,
    tone: tinted && value > 0 ? "plus" : tinted && value < 0 ? "minus" : "",
    strength: tinted ? strengthOf(/** @type {ArrayLike<number>} */ (values), value) : 0,
    dropped,
    faint: follows,
    editText: value === undefined ? "" : full(value),
  };
}

/**
 * Size against the largest of the row.
 * @param {ArrayLike<number>} values
 * @param {number} value
 */
function strengthOf(values, value) {
  const largest = Math.max(...Array.from(values, Math.abs).filter(Number.isFinite));
  if (!(largest > 0)) return 0;
  return Number.isFinite(value) ? Math.abs(value) / largest : 1;
}

/**
 * @param {State} state
 * @param {import("./rows.js").Row} row
 * @param {number} index
 * @param {string} value
 */
function labelOf(state, row, index, value) {
  const words = { row: t(`row.${row.key}`), number: index + 1, token: state.tokens[index] ?? "", value };
  if (row.align === "action") return t("grid.cell.action", words);
  return t(index < state.tokens.length ? "grid.cell.state" : "grid.cell.end", words);
}
