// Pieces of MathML that several losses share.

import { brackets, call, number, op, when } from "../../../parts/math.js";

export { call, when };

/** @typedef {import("./description.js").Writer} Writer */

export const one = () => number("1");
export const comma = () => op(",");
export const times = () => op("·");
export const minus = () => op("−");

/** clip(x, 1 − ε, 1 + ε) @param {Element} x @param {Element} low @param {Element} high */
export const clip = (x, low, high) => call("clip", x, comma(), one(), minus(), low, comma(), one(), op("+"), high);

/** −x·A @param {Writer} w @param {string} x */
export const plain = (w, x) => [minus(), w(x), times(), w("A")];

/** −min(x·A, clip(x)·A) @param {Writer} w @param {string} x @param {string} low @param {string} high */
export const clipped = (w, x, low, high) => [
  minus(),
  call("min", w(x), times(), w("A"), comma(), clip(w(x), w(low), w(high)), times(), w("A")),
];

/** sg(weight): a constant for the gradient. @param {Element} weight */
export const held = (weight) => call("sg", weight);

/**
 * [x is within the bound on the side the advantage pushes to]
 * @param {Writer} w @param {boolean} bad @param {string} x @param {string} low @param {string} high
 */
export const inside = (w, bad, x, low, high) =>
  bad ? when(w(x), op("≥"), one(), minus(), w(low)) : when(w(x), op("≤"), one(), op("+"), w(high));

/**
 * The sum over the sequence of what the token and each other have. @param {Writer} w @param {Element} own
 * @param {Element} other
 */
export const summed = (w, own, other) => [own, op("+"), brackets(w("n"), minus(), one()), times(), other];

/**
 * −sg(weight)·A·log π, and its gradient.
 * @param {Writer} w
 * @param {() => Element} weight
 */
export const weighted = (w, weight) => ({
  loss: [minus(), held(weight()), times(), w("A"), times(), w("logp")],
  slope: [minus(), weight(), times(), w("A")],
});
