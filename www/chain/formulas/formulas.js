// Each result as a formula, written once and read twice: with symbols, and with the numbers in their place.

import { short } from "../../parts/format.js";
import { brackets, group, math, name, number, op, over, root, sub, sup, symbol, upright } from "../../parts/math.js";
import { factsOf } from "./facts.js";
import { groupFormulas } from "./groups.js";
import { lossFormulas } from "./loss.js";
import { weightRow, stepsOnDropped } from "../rows.js";
import { nextKept } from "../state.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {import("../../parts/dom.js").Child} Child */
/** @typedef {import("../edit/edits.js").Place} Place */

/**
 * @typedef {object} Writer
 * @property {State} state
 * @property {import("../compute/conventions.js").Settings} settings
 * @property {number} s the sequence
 * @property {number} t index from 0
 * @property {number} next index of the next kept token, or the number of tokens
 * @property {boolean} stepping whether the next slot is a dropped one that is stepped on
 * @property {(row: string, index?: number) => Element} cell of the same sequence, by default at the same index
 * @property {(parameter: string) => Element} parameter
 * @property {(name: string, sign: Element) => Element} total a number over many tokens
 * @property {() => Child[]} sum the rewards of the sequence, added up
 * @property {number} [weight] what the loss reads for an advantage here
 */

/** @param {Writer} w */
const atEnd = (w) => w.next >= w.state.sequences[w.s].tokens.length;

/** @param {Writer} w */
const advantageFormula = (w) => {
  const formula = advantageFormulas[w.state.choices.advantage];
  // a group's number is the same on every token of a sequence
  return formula ? formula(w) : [w.cell("groupAdvantage", 0), op("="), ...groupFormulas[w.state.choices.advantage](w)];
};

/** @type {Record<string, (w: Writer) => Child[]>} */
const advantageFormulas = {
  gae: (w) => [
    w.cell("delta"),
    op("+"),
    w.parameter("gamma"),
    op("·"),
    w.parameter("lambda"),
    op("·"),
    carried(w, "advantage", name("A")),
  ],
  "monte-carlo": (w) => [w.cell("discountedReturn"), op("−"), w.cell("value")],
  "reinforce-plus-plus": (w) => [w.cell("discountedReturn")],
  uniform: (w) => [over(w.cell("sequenceScore", 0), w.total("keptHere", name("n")))],
  "last-k": (w) => [
    over(
      w.cell("sequenceScore", 0),
      group(upright("min"), brackets(w.parameter("lastK"), op(","), w.total("keptHere", name("n")))),
    ),
  ],
  attention: (w) => [
    w.cell("sequenceScore", 0),
    op("·"),
    over(w.cell("attention"), w.total("attention", group(op("Σ"), name("u")))),
  ],
};

/**
 * What comes after: the next kept token's number, nothing after the last, or what a dropped slot passes on.
 * @param {Writer} w
 * @param {string} row
 * @param {Element} sign
 */
function carried(w, row, sign) {
  if (atEnd(w)) return number("0");
  return w.stepping ? w.total(`${row}Carried`, sub(sup(sign, op("′")), String(w.t + 2))) : w.cell(row, w.next);
}

/** @param {Writer} w */
function whiteningDivisor(w) {
  const variance = w.total("variance", sup(name("σ"), number("2")));
  const epsilon = sup(number("10"), group(op("−"), number("8")));
  if (w.settings.whiten.place === "floor-variance") return root(upright("max"), brackets(variance, op(","), epsilon));
  return root(variance, op("+"), epsilon);
}

/** @type {Record<string, (w: Writer) => Child[]>} */
const formulas = {
  sequenceScore: (w) => w.sum(),
  groupAdvantage: (w) => groupFormulas[w.state.choices.advantage](w),
  kl: (w) => {
    const estimate = klFormulas[w.state.choices.kl]?.(w) ?? [];
    return w.state.choices.placement === "loss-weighted" ? [w.cell("ratio"), op("·"), brackets(...estimate)] : estimate;
  },
  reward: (w) =>
    w.state.choices.placement === "reward"
      ? [w.cell("score"), op("−"), w.parameter("beta"), op("·"), w.cell("kl")]
      : [w.cell("score")],
  delta: (w) => [
    w.cell("reward"),
    op("+"),
    w.parameter("gamma"),
    op("·"),
    w.stepping ? number("0") : w.cell("value", w.next),
    op("−"),
    w.cell("value"),
  ],
  advantage: advantageFormula,
  return: (w) => [w.cell("advantage"), op("+"), w.cell("value")],
  discountedReturn: (w) => [
    w.cell("reward"),
    op("+"),
    w.parameter("gamma"),
    op("·"),
    atEnd(w) ? w.cell("value", w.next) : carried(w, "discountedReturn", name("G")),
  ],
  whitened: (w) => [over(group(w.cell("advantage"), op("−"), w.total("mean", name("μ"))), whiteningDivisor(w))],
  ratio: (w) => [upright("exp"), brackets(w.cell("logProb"), op("−"), w.cell("oldLogProb"))],
  ...lossFormulas,
  probability: (w) => [upright("exp"), brackets(w.cell("oldLogProb"))],
  entropy: (w) => [op("−"), w.cell("probability"), op("·"), w.cell("oldLogProb")],
  entropyWeight: (w) => [
    w.cell("probability"),
    op("·"),
    brackets(number("1"), op("−"), w.cell("probability")),
    op("·"),
    op("|"),
    w.cell(weightRow(w.state)),
    op("|"),
  ],
  weightedEntropy: (w) => [w.cell("entropyWeight"), op("·"), w.cell("entropy")],
};

/** @param {Writer} w */
const policy = (w) =>
  ["loss", "loss-weighted"].includes(w.state.choices.placement) ? w.cell("logProb") : w.cell("oldLogProb");

/** @param {Writer} w */
const difference = (w) => [policy(w), op("−"), w.cell("refLogProb")];

/** @type {Record<string, (w: Writer) => Child[]>} */
const klFormulas = {
  k1: difference,
  abs: (w) => [op("|"), ...difference(w), op("|")],
  k2: (w) => [over(number("1"), number("2")), sup(brackets(...difference(w)), number("2"))],
  k3: (w) => [
    upright("exp"),
    brackets(w.cell("refLogProb"), op("−"), policy(w)),
    op("−"),
    number("1"),
    op("+"),
    brackets(...difference(w)),
  ],
};

/**
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 */
function frame(state, result, { sequence: s, index: t }) {
  const { settings, rows } = result;
  const where = { state, settings, s, i: t };
  return {
    state,
    settings,
    s,
    t,
    next: nextKept(state.sequences[s], t),
    stepping: stepsOnDropped(where),
    weight: rows[weightRow(state)]?.[s]?.[t],
  };
}

/**
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 * @returns {Element | null} `A₁ = δ₁ + γ·λ·A₂`, or null for a row that is given
 */
export function withSymbols(state, result, place) {
  const { row, sequence, index } = place;
  const sign = (/** @type {string} */ key, /** @type {number} */ j) => cellSymbol(state, key, sequence, j);
  const parts = formulas[row]?.({
    ...frame(state, result, place),
    cell: (key, j = index) => sign(key, j),
    parameter: (parameter) => symbol(parameter),
    total: (_, total) => total,
    sum: () => [
      sub(op("Σ"), name("t")),
      sub(name("r"), state.sequences.length > 1 ? group(number(String(sequence + 1)), op(","), name("t")) : name("t")),
    ],
  });
  return parts?.length ? math("block", sign(row, index), op("="), ...parts) : null;
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 * @returns {Element | null} `= 0.04 + 1·0.95·0.611664`
 */
export function withNumbers(library, state, result, place) {
  const { row, sequence, index } = place;
  const facts = factsOf(library, state, result, place);
  const shown = (/** @type {number | undefined} */ value) =>
    value === undefined ? upright("?") : number(short(value));
  const parts = formulas[row]?.({
    ...frame(state, result, place),
    cell: (key, j = index) => shown(result.rows[key]?.[sequence]?.[j]),
    parameter: (parameter) => shown(state.parameters[/** @type {import("../state.js").Parameter} */ (parameter)]),
    total: (key) => shown(facts(key)),
    sum: () =>
      addends(state, result, sequence).flatMap((value, at) => (at === 0 ? [shown(value)] : [op("+"), shown(value)])),
  });
  return parts?.length ? math("block", op("="), ...parts) : null;
}

/** More numbers than this are not written out. */
const MANY = 12;

/**
 * The numbers that a sequence's score adds up, or their sum where there are too many to read.
 * @param {State} state
 * @param {Result} result
 * @param {number} s
 * @returns {(number | undefined)[]}
 */
function addends(state, result, s) {
  const { roles, inputs } = state.sequences[s];
  const everything = result.settings.scoreSlots === "all" && state.choices.placement !== "reward";
  const rewards = everything
    ? inputs.score
    : [...(result.rows.reward?.[s] ?? [])].filter((_, i) => roles[i] === "policy");
  return rewards.length > MANY || rewards.length === 0 ? [result.rows.sequenceScore?.[s]?.[0]] : rewards;
}

/**
 * The sign of a cell: with the token's number, with that of its sequence too where there are several.
 * @param {State} state
 * @param {string} key
 * @param {number} sequence
 * @param {number} index
 */
export function cellSymbol(state, key, sequence, index) {
  if (key === "sequenceScore" || key === "groupAdvantage") return symbol(key, sequence);
  return symbol(key, index, state.sequences.length > 1 ? sequence : undefined);
}
