// The quantities of one distribution as formulas, and the same with its numbers.

import { mathml } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { brackets, group, math, name, number, op, over, sub, sup, upright } from "../../parts/math.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */

const TERMS = 4;
const four = (/** @type {number} */ value) =>
  short(Number.isFinite(value) && value !== 0 ? Number(value.toPrecision(4)) : value);
const num = (/** @type {number} */ value) => number(four(value));
const sum = (/** @type {string} */ index) => mathml("munder", {}, op("∑"), name(index));
const p = (/** @type {string} */ index) => sub(name("p"), name(index));
const z = (/** @type {string} */ index) => sub(name("z"), name(index));
const log = (/** @type {Element} */ of) => group(upright("log"), of);
const scaled = (/** @type {string} */ index) => group(z(index), op("/"), name("τ"));

/** @type {Record<string, () => Element[]>} */
const symbols = {
  entropy: () => [name("H"), op("="), op("−"), sum("v"), p("v"), log(p("v"))],
  logProb: () => [log(p("a")), op("="), scaled("a"), op("−"), upright("log"), sum("v"), sup(name("e"), scaled("v"))],
  surprise: () => [op("−"), log(p("a"))],
  proxy: () => [op("−"), p("a"), log(p("a"))],
  squares: () => [sum("v"), sup(p("v"), number("2"))],
  choices: () => [sup(name("e"), name("H"))],
  gradLogProb: () => [
    over(group(op("∂"), log(p("a"))), group(op("∂"), z("v"))),
    op("="),
    over(brackets(upright("1"), op("["), name("v"), op("="), name("a"), op("]"), op("−"), p("v")), name("τ")),
  ],
  gradEntropy: () => [
    over(group(op("∂"), name("H")), group(op("∂"), z("v"))),
    op("="),
    op("−"),
    over(group(p("v"), brackets(log(p("v")), op("+"), name("H"))), name("τ")),
  ],
};

export const quantities = Object.keys(symbols);

/** @param {string} quantity */
export const formula = (quantity) => math("block", ...symbols[quantity]());

/**
 * Terms added up, the first few of them; entries that cannot be drawn have none.
 * @param {Result} result
 * @param {(i: number) => Element} term
 */
function added({ probs, counts }, term) {
  const drawn = counts.map((_, i) => i).filter((i) => probs[i] > 0);
  const parts = drawn
    .slice(0, TERMS)
    .flatMap((i, k) => [k > 0 && op("+"), counts[i] > 1 && num(counts[i]), counts[i] > 1 && op("·"), term(i)]);
  return [...parts, ...(drawn.length > TERMS ? [op("+"), op("…")] : [])];
}

/**
 * @param {string} quantity
 * @param {State} state
 * @param {Result} result
 */
export function withNumbers(quantity, { chosen: a, temperature }, result) {
  const { probs, logProbs, logits, entropy, squares, choices, terms, gradLogProb, gradEntropy } = result;
  const value = (/** @type {number} */ x) => [op("="), mathml("mn", {}, short(x))];
  const normaliser = logits[a] / temperature - logProbs[a];
  /** @type {Record<string, () => (Element | false)[]>} */
  const forms = {
    entropy: () => [...added(result, (i) => group(num(probs[i]), op("·"), num(0 - logProbs[i]))), ...value(entropy)],
    logProb: () => [num(logits[a]), op("/"), num(temperature), op("−"), num(normaliser), ...value(logProbs[a])],
    surprise: () => [op("−"), num(logProbs[a]), ...value(0 - logProbs[a])],
    proxy: () => [op("−"), num(probs[a]), op("·"), num(logProbs[a]), ...value(terms[a])],
    squares: () => [...added(result, (i) => sup(num(probs[i]), number("2"))), ...value(squares)],
    choices: () => [sup(name("e"), num(entropy)), ...value(choices)],
    gradLogProb: () => [
      over(brackets(number("1"), op("−"), num(probs[a])), num(temperature)),
      ...value(gradLogProb[a]),
    ],
    gradEntropy: () => [
      op("−"),
      over(group(num(probs[a]), brackets(num(logProbs[a]), op("+"), num(entropy))), num(temperature)),
      ...value(gradEntropy[a]),
    ],
  };
  return math("block", op("="), ...forms[quantity]());
}

/**
 * The quantity itself.
 * @param {string} quantity
 * @param {State} state
 * @param {Result} result
 */
export function valueOf(
  quantity,
  { chosen },
  { entropy, logProbs, terms, squares, choices, gradLogProb, gradEntropy },
) {
  /** @type {Record<string, number>} */
  const values = {
    entropy,
    logProb: logProbs[chosen],
    surprise: 0 - logProbs[chosen],
    proxy: terms[chosen],
    squares,
    choices,
    gradLogProb: gradLogProb[chosen],
    gradEntropy: gradEntropy[chosen],
  };
  return values[quantity];
}
