// How the group estimators compare a sequence's score with those of the same prompt.

import { brackets, group, name, number, op, over, powerOfTen, sub, symbol, upright, when } from "../../parts/math.js";
import { short } from "../../parts/format.js";

/** @typedef {import("./formulas.js").Writer} Writer */
/** @typedef {import("../../parts/dom.js").Child} Child */

/** @param {Writer} w */
const score = (w) => w.cell("sequenceScore", 0);

/** @param {Writer} w */
const mean = (w) => w.total("groupMean", bar());

const bar = () => sub(name("μ"), upright("group"));

/** @param {Writer} w */
const deviation = (w) => w.total("groupDeviation", sub(name("σ"), upright("group")));

/** @param {Writer} w */
function epsilon(w) {
  const value = w.settings.group.epsilon;
  return value === 0 ? [] : [op("+"), powerOfTen(value) ?? number(short(value))];
}

/** @param {Writer} w */
const centred = (w) => group(score(w), op("−"), mean(w));

/** @type {Record<string, (w: Writer) => Child[]>} */
const groupFormulas = {
  grpo: (w) => [over(centred(w), group(deviation(w), ...epsilon(w)))],
  "dr-grpo": (w) => [score(w), op("−"), mean(w)],
  "reinforce-baseline": (w) => [score(w), op("−"), mean(w)],
  rloo: (w) => [score(w), op("−"), w.total("othersMean", sub(name("μ"), upright("others")))],
  opo: (w) => [
    score(w),
    op("−"),
    w.total("lengthMean", over(group(op("Σ"), name("n"), symbol("sequenceScore")), group(op("Σ"), name("n")))),
  ],
  "max-rl": (w) => [over(centred(w), group(mean(w), ...epsilon(w)))],
  "best-of-group": (w) => [
    over(
      brackets(score(w), op("−"), w.total("second", sub(name("S"), upright("second")))),
      group(deviation(w), ...epsilon(w)),
    ),
    op("·"),
    when(score(w), op("≥"), w.total("best", sub(name("S"), upright("best")))),
  ],
};

/** Estimators with a baseline of their own for a group of one. */
const BASELINES = ["reinforce-baseline", "opo"];

/**
 * What a framework gives the only sample of a prompt.
 * @param {import("../state.js").State} state
 * @param {import("../compute/conventions.js").Settings} settings
 */
export const singletonOf = ({ choices }, settings) =>
  BASELINES.includes(choices.advantage) ? settings.baselineSingleton : settings.group.singleton;

/**
 * A sample without others to compare it with.
 * @param {Writer} w
 * @returns {Child[]}
 */
function aloneFormula(w) {
  const singleton = singletonOf(w.state, w.settings);
  if (singleton === "zero") return [number("0")];
  if (singleton === "undefined") return [number("NaN")];
  return w.state.choices.advantage === "grpo" && w.settings.group.epsilon > 0
    ? [over(score(w), group(number("1"), ...epsilon(w)))]
    : [score(w)];
}

/**
 * Equal scores where nothing keeps the divisor from 0: the library answers 0, not 0/0.
 * @param {Writer} w
 */
function isTied(w) {
  const divisor = { grpo: "groupDeviation", "best-of-group": "groupDeviation", "max-rl": "groupMean" }[
    /** @type {string} */ (w.state.choices.advantage)
  ];
  return (
    divisor !== undefined && w.settings.group.epsilon === 0 && w.fact(divisor) === 0 && w.at("groupAdvantage", 0) === 0
  );
}

/** @param {Writer} w @returns {Child[]} */
export function groupFormula(w) {
  if (w.fact("groupSize") === 1) return aloneFormula(w);
  return isTied(w) ? [number("0")] : groupFormulas[w.state.choices.advantage](w);
}
