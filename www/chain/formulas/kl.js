// The KL to the reference by each estimate, its bound and its derivative.

import { brackets, call, number, op, over, sup, upright, when } from "../../parts/math.js";
import { short } from "../../parts/format.js";

/** @typedef {import("./formulas.js").Writer} Writer */
/** @typedef {import("../../parts/dom.js").Child} Child */

/** Estimates beyond this are cut off by the frameworks that have a bound. */
const BOUND = 10;

/** @param {Writer} w */
const inLoss = (w) => ["loss", "loss-weighted"].includes(w.state.choices.placement);

/** @param {Writer} w */
const policyRow = (w) => (inLoss(w) ? "logProb" : "oldLogProb");

/** @param {Writer} w */
const policy = (w) => w.cell(policyRow(w));

/** @param {Writer} w */
const difference = (w) => [policy(w), op("−"), w.cell("refLogProb")];

/** @type {Record<string, (w: Writer) => Child[]>} */
const estimates = {
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

/** @type {Record<string, (w: Writer) => Child[]>} the derivative of each estimate by log π */
const slopes = {
  k1: () => [number("1")],
  abs: (w) => [call("sign", ...difference(w))],
  k2: (w) => [brackets(...difference(w))],
  k3: (w) => [brackets(number("1"), op("−"), call("exp", w.cell("refLogProb"), op("−"), policy(w)))],
};

/**
 * Whether a framework's bound cuts the estimate off here. K3 is never negative, and the bound that frameworks put on
 * its exponent is beyond the one on its value.
 * @param {Writer} w
 */
function isBeyond(w) {
  const { kl } = w.state.choices;
  const { klBounds } = w.settings;
  if (klBounds === "unbounded" || (klBounds === "k3-only" && kl !== "k3")) return false;
  const d = w.at(policyRow(w)) - w.at("refLogProb");
  // decides which case is written, the numbers are the library's
  const value = kl === "k3" ? Math.exp(-d) - 1 + d : kl === "k2" ? (d * d) / 2 : d;
  return Math.abs(value) > BOUND;
}

/** @param {Writer} w @returns {Child[]} nothing where it is given */
export function klFormula(w) {
  const estimate = estimates[w.state.choices.kl]?.(w) ?? [];
  const bound = () => number(short(BOUND));
  return isBeyond(w) ? [call("clip", ...estimate, op(","), op("−"), bound(), op(","), bound())] : estimate;
}

/** @param {Writer} w @returns {Child[]} the derivative of the estimate, 0 beyond the bound */
export function klSlope(w) {
  const { kl } = w.state.choices;
  const slope = slopes[kl]?.(w) ?? [];
  if (!isBeyond(w)) return slope;
  const size = kl === "k1" || kl === "abs" ? [op("|"), ...difference(w), op("|")] : estimates[kl](w);
  return [...slope, op("·"), when(...size, op("≤"), number(short(BOUND)))];
}
