// What a formula with rounded numbers can stand for: every printed number is within half a unit of its last digit, and
// the result is a range. A cell's full number has to lie in it.

import { flat, textOf } from "./mathml.js";

/** @typedef {[number, number]} Range */

/** @param {number[]} values @returns {Range} */
const hull = (...values) => (values.some(Number.isNaN) ? [NaN, NaN] : [Math.min(...values), Math.max(...values)]);

/** @param {Range} a @param {Range} b @param {(x: number, y: number) => number} of */
const corners = ([a, b], [c, d], of) => hull(of(a, c), of(a, d), of(b, c), of(b, d));

/** 0·∞ is the limit of a range here, not undefined. */
const multiplied = (x, y) => ((x === 0 || y === 0) && !Number.isNaN(x + y) ? 0 : x * y);

/** @param {(x: number) => number} rising @returns {(range: Range) => Range} */
const each =
  (rising) =>
  ([low, high]) =>
    hull(rising(low), rising(high));

const absolute = ([low, high]) =>
  low <= 0 && high >= 0 ? hull(0, Math.max(-low, high)) : hull(Math.abs(low), Math.abs(high));

const FUNCTIONS = {
  exp: each(Math.exp),
  sign: each(Math.sign),
  min: (...all) => hull(Math.min(...all.map(([low]) => low)), Math.min(...all.map(([, high]) => high))),
  max: (...all) => hull(Math.max(...all.map(([low]) => low)), Math.max(...all.map(([, high]) => high))),
  clip: (x, low, high) => hull(...[0, 1].map((end) => Math.min(high[end], Math.max(low[end], x[end])))),
};

/** Whether it certainly holds, certainly does not, or the digits do not tell. */
const COMPARISONS = {
  "≤": (a, b) => (a[1] <= b[0] ? 1 : a[0] > b[1] ? 0 : null),
  "≥": (a, b) => (a[0] >= b[1] ? 1 : a[1] < b[0] ? 0 : null),
  ">": (a, b) => (a[0] > b[1] ? 1 : a[1] <= b[0] ? 0 : null),
  "<": (a, b) => (a[1] < b[0] ? 1 : a[0] >= b[1] ? 0 : null),
};

/** The page prints six significant digits and leaves zeros at the end out: how many were meant is not told. */
function printed(text) {
  if (text === "∞") return [Infinity, Infinity];
  const value = Number(text.replaceAll("−", "-"));
  if (!Number.isFinite(value) || value === 0) return [value, value];
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 5);
  return [value - 0.5 * unit, value + 0.5 * unit];
}

/** Exponents are counts: 2, −8. */
const exponentOf = (tree) => Number(tree.text.replaceAll("−", "-"));

/**
 * @param {object[]} tokens of a formula with numbers in the place of symbols
 * @returns {Range}
 */
export function rangeOf(tokens) {
  let at = 0;
  const next = () => tokens[at]?.text;
  const isOperator = () => tokens[at]?.tag === "mo";
  const take = (text) => {
    if (next() !== text) throw new Error(`${text} expected at ${at} of ${textOf(tokens)}`);
    at += 1;
  };
  const sum = () => {
    let value = [0, 0];
    do {
      const negative = next() === "−";
      if (negative || next() === "+") at += 1;
      const [low, high] = product();
      value = negative ? [value[0] - high, value[1] - low] : [value[0] + low, value[1] + high];
    } while (next() === "+" || next() === "−");
    return value;
  };
  const product = () => {
    let value = factor();
    for (;;) {
      if (next() === "·") at += 1;
      else if (at >= tokens.length || (isOperator() && !"([".includes(next()))) return value;
      value = corners(value, factor(), multiplied);
    }
  };
  const list = () => {
    take("(");
    const values = [sum()];
    while (next() === ",") {
      at += 1;
      values.push(sum());
    }
    take(")");
    return values;
  };
  const condition = () => {
    take("[");
    let left = sum();
    let [low, high] = [1, 1];
    while (next() in COMPARISONS) {
      const compare = COMPARISONS[next()];
      at += 1;
      const right = sum();
      const holds = compare(left, right);
      if (holds !== 1) low = 0;
      if (holds === 0) high = 0;
      left = right;
    }
    take("]");
    return [low, high];
  };
  const factor = () => {
    const { tag, text, children } = tokens[at] ?? {};
    if (text === "(") return list()[0];
    if (text === "[") return condition();
    at += 1;
    if (text === "|") {
      const value = absolute(sum());
      take("|");
      return value;
    }
    if (tag === "mn") return printed(text);
    if (text in FUNCTIONS) return FUNCTIONS[text](...list());
    if (tag === "mfrac") return corners(rangeOf(flat(children[0])), rangeOf(flat(children[1])), (x, y) => x / y);
    // powers are squares, and powers of ten
    if (tag === "msup") {
      const power = exponentOf(children[1]);
      const [low, high] = absolute(children[0].text === "10" ? [10, 10] : rangeOf(flat(children[0])));
      return hull(low ** power, high ** power);
    }
    if (tag === "msqrt") return each(Math.sqrt)(rangeOf(children.flatMap(flat)));
    throw new Error(`${text} is unknown in ${textOf(tokens)}`);
  };
  const value = sum();
  if (at !== tokens.length) throw new Error(`${next()} is left over in ${textOf(tokens)}`);
  return value;
}
