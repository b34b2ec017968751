// MathML in small pieces: symbols with their index, numbers, fractions.

import { mathml } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

/** @param {string} text */
export const op = (text) => mathml("mo", {}, text);

/** @param {string} text */
export const name = (text) => mathml("mi", {}, text);

/** @param {string} text */
export const upright = (text) => mathml("mi", { mathvariant: "normal" }, text);

/** @param {string} text a number as shown */
export function number(text) {
  if (!text.startsWith("−")) return mathml("mn", {}, text);
  // a negative number inside a formula is bracketed, so that two signs never meet
  return mathml("mrow", {}, op("("), op("−"), mathml("mn", {}, text.slice(1)), op(")"));
}

/** @param {Child[]} parts */
export const group = (...parts) => mathml("mrow", {}, ...parts);

/** @param {Child[]} parts */
export const brackets = (...parts) => group(op("("), ...parts, op(")"));

/**
 * [condition]: 1 where it holds, else 0.
 * @param {Child[]} parts
 */
export const when = (...parts) => group(op("["), ...parts, op("]"));

/**
 * A function of what is in the brackets.
 * @param {string} what
 * @param {Child[]} parts
 */
export const call = (what, ...parts) => group(upright(what), brackets(...parts));

/**
 * @param {Element} base
 * @param {Element | string} index
 */
export const sub = (base, index) =>
  mathml("msub", {}, base, typeof index === "string" ? mathml("mn", {}, index) : index);

/**
 * @param {Element} base
 * @param {Element} exponent
 */
export const sup = (base, exponent) => mathml("msup", {}, base, exponent);

/**
 * @param {Element} above
 * @param {Element} below
 */
export const over = (above, below) => mathml("mfrac", {}, above, below);

/** @param {Child[]} parts */
export const root = (...parts) => mathml("msqrt", {}, ...parts);

/**
 * @param {number} value 1e-6 as a power, as people write it
 * @returns {Element | null} null where it is no power of ten below 1
 */
export function powerOfTen(value) {
  const exponent = Math.round(Math.log10(value));
  return value < 1 && Number(`1e${exponent}`) === value
    ? sup(number("10"), group(op("−"), number(String(-exponent))))
    : null;
}

/**
 * @param {"inline" | "block"} display
 * @param {Child[]} parts
 */
export const math = (display, ...parts) => mathml("math", { display }, ...parts);

/** @type {Record<string, (index?: string) => Element>} */
const symbols = {
  mask: (t) => indexed(name("m"), t),
  score: (t) => indexed(upright("score"), t),
  sequenceScore: (t) => indexed(name("S"), t),
  groupAdvantage: (t) => indexed(mathml("mover", { accent: "true" }, name("A"), op("^")), t),
  attention: (t) => indexed(name("u"), t),
  oldLogProb: (t) => group(upright("log"), sub(name("π"), indices(upright("old"), t))),
  refLogProb: (t) => group(upright("log"), sub(name("π"), indices(upright("ref"), t))),
  logProb: (t) => group(upright("log"), indexed(name("π"), t)),
  kl: (t) => indexed(upright("KL"), t),
  reward: (t) => indexed(name("r"), t),
  value: (t) => indexed(name("V"), t),
  delta: (t) => indexed(name("δ"), t),
  advantage: (t) => indexed(name("A"), t),
  return: (t) => indexed(name("R"), t),
  discountedReturn: (t) => indexed(name("G"), t),
  whitened: (t) => indexed(mathml("mover", { accent: "true" }, name("A"), op("~")), t),
  ratio: (t) => indexed(name("ρ"), t),
  sequenceRatio: (t) => indexed(mathml("mover", { accent: "true" }, name("ρ"), op("¯")), t),
  lossTerm: (t) => indexed(name("ℓ"), t),
  tokenWeight: (t) => indexed(name("W"), t),
  klTerm: (t) => group(name("β"), indexed(upright("KL"), t)),
  klGradient: (t) => group(op("∂"), name("β"), upright("KL"), op("/"), op("∂"), symbols.logProb(t)),
  gradient: (t) => group(op("∂"), name("L"), op("/"), op("∂"), symbols.logProb(t)),
  probability: (t) => indexed(name("p"), t),
  entropy: (t) => indexed(name("H"), t),
  entropyWeight: (t) => indexed(name("w"), t),
  weightedEntropy: (t) => group(indexed(name("w"), t), indexed(name("H"), t)),
  gamma: () => name("γ"),
  lambda: () => name("λ"),
  beta: () => name("β"),
  clipLow: () => sup(name("ε"), op("−")),
  clipHigh: () => sup(name("ε"), op("+")),
  dualClip: () => name("c"),
  lastK: () => name("k"),
  scale: () => name("L"),
};

/**
 * @param {Element} base
 * @param {string} [t]
 */
const indexed = (base, t) => (t === undefined ? base : sub(base, t));

/**
 * @param {Element} first
 * @param {string} [t]
 */
const indices = (first, t) => (t === undefined ? first : group(first, op(","), mathml("mn", {}, t)));

/**
 * The sign of a row or parameter, with the token's number if there is one.
 * @param {string} key
 * @param {number} [index] from 0
 * @param {number} [sequence] from 0, where there are several
 * @returns {Element}
 */
export const symbol = (key, index, sequence) => {
  const place =
    index === undefined ? undefined : sequence === undefined ? `${index + 1}` : `${sequence + 1},${index + 1}`;
  return symbols[key](place);
};
