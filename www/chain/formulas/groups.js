// How the group estimators compare a sequence's score with those of the same prompt.

import { brackets, group, name, number, op, over, sub, symbol, upright, sup } from "../../parts/math.js";
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

/** @param {number} value 1e-6 as a power, as people write it */
function powerOfTen(value) {
  const exponent = Math.round(Math.log10(value));
  return Number(`1e${exponent}`) === value ? sup(number("10"), group(op("−"), number(String(-exponent)))) : null;
}

/** @param {Writer} w */
const centred = (w) => group(score(w), op("−"), mean(w));

/** @type {Record<string, (w: Writer) => Child[]>} */
export const groupFormulas = {
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
  ],
};
