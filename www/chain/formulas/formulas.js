// Each result as a formula, written once and read twice: with symbols, and with the numbers in their place.

import { short } from "../../parts/format.js";
import { brackets, call, group, math, name, number, op, over, powerOfTen, root } from "../../parts/math.js";
import { sub, sup, symbol, upright, when } from "../../parts/math.js";
import { factsOf } from "./facts.js";
import { groupFormula } from "./groups.js";
import { klFormula } from "./kl.js";
import { lossFormulas } from "./loss.js";
import { rowByKey, weightRow, stepsOnDropped } from "../rows.js";
import { isKept, nextKept } from "../state.js";

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
 * @property {(row: string, index?: number) => number} at the number in a cell of the same sequence, by which a formula
 *   chooses its case; NaN where there is none
 * @property {(name: string) => number | undefined} fact a number over many tokens, likewise
 */

/** @param {Writer} w */
const atEnd = (w) => w.next >= w.state.sequences[w.s].tokens.length;

/** @param {Writer} w */
const advantageFormula = (w) => {
  const formula = advantageFormulas[w.state.choices.advantage];
  // a group's number is the same on every token of a sequence
  return formula ? formula(w) : [w.cell("groupAdvantage", 0), op("="), ...groupFormula(w)];
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
  // the last k of n tokens share it: those whose place j among the kept ones is above n − k
  "last-k": (w) => [
    over(w.cell("sequenceScore", 0), call("min", w.parameter("lastK"), op(","), w.total("keptHere", name("n")))),
    op("·"),
    when(w.total("placeHere", name("j")), op(">"), w.total("keptHere", name("n")), op("−"), w.parameter("lastK")),
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
  const { place, epsilon: value } = w.settings.whiten;
  const epsilon = powerOfTen(value) ?? number(short(value));
  if (place === "floor-variance") return root(call("max", variance, op(","), epsilon));
  return place === "outside" ? group(root(variance), op("+"), epsilon) : root(variance, op("+"), epsilon);
}

/** The score, between bounds where the framework has some. @param {Writer} w */
function score(w) {
  const bound = w.settings.rewardClip;
  if (!Number.isFinite(bound)) return w.cell("score");
  return call("clip", w.cell("score"), op(","), op("−"), number(short(bound)), op(","), number(short(bound)));
}

/** @type {Record<string, (w: Writer) => Child[]>} */
const formulas = {
  sequenceScore: (w) => w.sum(),
  groupAdvantage: groupFormula,
  kl: (w) => {
    const estimate = klFormula(w);
    return w.state.choices.placement === "loss-weighted" ? [w.cell("ratio"), op("·"), brackets(...estimate)] : estimate;
  },
  reward: (w) =>
    w.state.choices.placement === "reward"
      ? [score(w), op("−"), w.parameter("beta"), op("·"), w.cell("kl")]
      : [score(w)],
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

/**
 * Whether a cell has a formula: a result, of a token that is kept.
 * @param {State} state
 * @param {Place} place
 */
function isWorkedOut(state, { row: key, sequence: s, index }) {
  const row = rowByKey.get(key);
  if (row?.kind(state) !== "result") return false;
  return row.align === "sequence" || isKept(state.sequences[s], index);
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 */
function frame(library, state, result, place) {
  const { sequence: s, index: t } = place;
  const { settings, rows } = result;
  return {
    state,
    settings,
    s,
    t,
    next: nextKept(state.sequences[s], t),
    stepping: stepsOnDropped({ state, settings, s, i: t }),
    at: (/** @type {string} */ row, index = t) => rows[row]?.[s]?.[index] ?? NaN,
    fact: factsOf(library, state, result, place),
  };
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 * @returns {Element | null} `A₁ = δ₁ + γ·λ·A₂`, or null for a cell that is given or dropped
 */
export function withSymbols(library, state, result, place) {
  if (!isWorkedOut(state, place)) return null;
  const { row, sequence, index } = place;
  const sign = (/** @type {string} */ key, /** @type {number} */ j) => cellSymbol(state, key, sequence, j);
  const parts = formulas[row]?.({
    ...frame(library, state, result, place),
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
  if (!isWorkedOut(state, place)) return null;
  const { row, sequence, index } = place;
  const all = frame(library, state, result, place);
  const shown = (/** @type {number | undefined} */ value) =>
    value === undefined ? upright("?") : number(short(value));
  const parts = formulas[row]?.({
    ...all,
    cell: (key, j = index) => shown(result.rows[key]?.[sequence]?.[j]),
    parameter: (parameter) => shown(state.parameters[/** @type {import("../state.js").Parameter} */ (parameter)]),
    total: (key) => shown(all.fact(key)),
    sum: () =>
      addends(state, result, sequence).flatMap((addend, at) => (at === 0 ? [] : [op("+")]).concat(addend.map(written))),
  });
  return parts?.length ? math("block", op("="), ...parts) : null;

  /** @param {number | string | undefined} part */
  function written(part) {
    return typeof part === "string" ? op(part) : shown(part);
  }
}

/** More numbers than this are not written out. */
const MANY = 12;

/**
 * What a sequence's score adds up: token rewards, and `score − β·KL` of dropped tokens where a framework adds these
 * too. Only the sum where there are too many to read.
 * @param {State} state
 * @param {Result} result
 * @param {number} s
 * @returns {(number | string | undefined)[][]}
 */
function addends(state, result, s) {
  const { roles, inputs } = state.sequences[s];
  const rewards = result.rows.reward?.[s] ?? [];
  const ofDropped = (/** @type {number} */ i) => {
    const kl = result.rows.kl?.[s]?.[i] ?? 0;
    const priced = state.choices.placement === "reward" && kl !== 0;
    return priced ? [inputs.score[i], "−", state.parameters.beta, "·", kl] : [inputs.score[i]];
  };
  const found = roles.flatMap((role, i) =>
    role === "policy" ? [[rewards[i]]] : result.settings.scoreSlots === "all" ? [ofDropped(i)] : [],
  );
  return found.length > MANY || found.length === 0 ? [[result.rows.sequenceScore?.[s]?.[0]]] : found;
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
