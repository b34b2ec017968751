// Each result as a formula, written once and read twice: with symbols, and with the numbers in their place.

import { short } from "../parts/format.js";
import { brackets, group, math, name, number, op, over, root, sup, symbol, upright } from "../parts/math.js";
import { weightRow } from "./rows.js";
import { nextKept } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */
/** @typedef {import("../parts/dom.js").Child} Child */

/**
 * @typedef {object} Writer
 * @property {State} state
 * @property {number} t index from 0
 * @property {number} next index of the next kept token, or the number of tokens
 * @property {(row: string, index: number) => Element} cell
 * @property {(parameter: string) => Element} parameter
 * @property {(name: string, sign: Element) => Element} total a number over the whole batch
 */

/** @type {Record<string, (w: Writer) => Child[]>} */
const formulas = {
  kl: (w) => klFormulas[w.state.choices.kl]?.(w) ?? [],
  reward: (w) => [w.cell("score", w.t), op("−"), w.parameter("beta"), op("·"), w.cell("kl", w.t)],
  delta: (w) => [
    w.cell("reward", w.t), op("+"), w.parameter("gamma"), op("·"), w.cell("value", w.next), op("−"), w.cell("value", w.t),
  ],
  advantage: (w) => [
    w.cell("delta", w.t), op("+"), w.parameter("gamma"), op("·"), w.parameter("lambda"), op("·"), laterOrZero(w, "advantage"),
  ],
  return: (w) => [w.cell("advantage", w.t), op("+"), w.cell("value", w.t)],
  discountedReturn: (w) => {
    const later = w.next < w.state.tokens.length ? w.cell("discountedReturn", w.next) : w.cell("value", w.next);
    return [w.cell("reward", w.t), op("+"), w.parameter("gamma"), op("·"), later];
  },
  whitened: (w) => [
    over(
      group(w.cell("advantage", w.t), op("−"), w.total("mean", name("μ"))),
      root(w.total("variance", sup(name("σ"), number("2"))), op("+"), sup(number("10"), group(op("−"), number("8")))),
    ),
  ],
  ratio: (w) => [upright("exp"), brackets(w.cell("logProb", w.t), op("−"), w.cell("oldLogProb", w.t))],
  lossTerm: (w) => {
    const weight = () => w.cell(weightRow(w.state), w.t);
    return [
      op("−"), upright("min"), op("("), w.cell("ratio", w.t), op("·"), weight(), op(","), upright("clip"),
      brackets(
        w.cell("ratio", w.t), op(","), number("1"), op("−"), w.parameter("clipLow"), op(","), number("1"), op("+"),
        w.parameter("clipHigh"),
      ),
      op("·"), weight(), op(")"),
    ];
  },
  gradient: (w) => [
    op("−"), over(number("1"), w.total("kept", name("N"))), op("·"), w.cell("ratio", w.t), op("·"), w.cell(weightRow(w.state), w.t),
  ],
  probability: (w) => [upright("exp"), brackets(w.cell("oldLogProb", w.t))],
  entropy: (w) => [op("−"), w.cell("probability", w.t), op("·"), w.cell("oldLogProb", w.t)],
  weightedEntropy: (w) => [
    w.cell("probability", w.t), op("·"), brackets(number("1"), op("−"), w.cell("probability", w.t)), op("·"),
    op("|"), w.cell(weightRow(w.state), w.t), op("|"), op("·"), w.cell("entropy", w.t),
  ],
};

/** @type {Record<string, (w: Writer) => Child[]>} */
const klFormulas = {
  k1: (w) => difference(w),
  abs: (w) => [op("|"), ...difference(w), op("|")],
  k2: (w) => [over(number("1"), number("2")), sup(brackets(...difference(w)), number("2"))],
  k3: (w) => [
    upright("exp"), brackets(w.cell("refLogProb", w.t), op("−"), w.cell("oldLogProb", w.t)), op("−"), number("1"), op("+"),
    brackets(...difference(w)),
  ],
};

/** @param {Writer} w */
const difference = (w) => [w.cell("oldLogProb", w.t), op("−"), w.cell("refLogProb", w.t)];

/**
 * @param {Writer} w
 * @param {string} row
 */
const laterOrZero = (w, row) => (w.next < w.state.tokens.length ? w.cell(row, w.next) : number("0"));

/**
 * @param {State} state
 * @param {string} row
 * @param {number} index
 * @returns {Element | null} `A₁ = δ₁ + γ·λ·A₂`, or null for a row that is given
 */
export function withSymbols(state, row, index) {
  const parts = formulas[row]?.({
    state, t: index, next: nextKept(state, index),
    cell: symbol,
    parameter: (parameter) => symbol(parameter),
    total: (_, sign) => sign,
  });
  return parts?.length ? math("block", symbol(row, index), op("="), ...parts) : null;
}

/**
 * @param {State} state
 * @param {Result} result
 * @param {string} row
 * @param {number} index
 * @returns {Element | null} `= 0.04 + 1·0.95·0.611664`
 */
export function withNumbers(state, result, row, index) {
  /** @type {Record<string, number | undefined>} */
  const totals = { ...result.summary, kept: state.mask.filter(Boolean).length };
  const shown = (/** @type {number | undefined} */ value) => (value === undefined ? upright("?") : number(short(value)));
  const parts = formulas[row]?.({
    state, t: index, next: nextKept(state, index),
    cell: (key, j) => shown(result.rows[key]?.[j]),
    parameter: (parameter) => shown(state.parameters[/** @type {import("./state.js").Parameter} */ (parameter)]),
    total: (key) => shown(totals[key]),
  });
  return parts?.length ? math("block", op("="), ...parts) : null;
}
