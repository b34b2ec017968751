// The formulas of the KL laboratory in MathML.

import { brackets, group, math, name, number, op, over, sub, sup, upright } from "../../parts/math.js";
import { mathml } from "../../parts/dom.js";

/** @typedef {import("../../parts/dom.js").Child} Child */
/** @typedef {import("./estimates.js").Row} Row */

const d = () => name("d");
const exp = (/** @type {Element[]} */ ...parts) => sup(name("e"), group(...parts));
const rho = () => name("ρ");
export const policy = () => name("π");
export const reference = () => sub(name("π"), upright("ref"));
const log = (/** @type {Child[]} */ ...parts) => group(upright("log"), ...parts);
const sum = (/** @type {Element} */ index) => mathml("munder", {}, op("Σ"), index);
const expectation = () => sub(upright("E"), group(name("a"), op("∼"), policy()));

/** @type {Record<string, () => Child[]>} */
const values = {
  k1: () => [d()],
  abs: () => [op("|"), d(), op("|")],
  k2: () => [over(number("1"), number("2")), sup(d(), number("2"))],
  k3: () => [exp(op("−"), d()), op("−"), number("1"), op("+"), d()],
};

/** @type {Record<string, () => Child[]>} */
const slopes = {
  k1: () => [number("1")],
  abs: () => [upright("sign"), d()],
  k2: () => [d()],
  k3: () => [number("1"), op("−"), exp(op("−"), d())],
};

/** The sign of an estimate: k₁, |d|, … @param {Row} row */
export function sign({ estimator = "k1", weight }) {
  const base = estimator === "abs" ? group(op("|"), d(), op("|")) : sub(name("k"), estimator.slice(1));
  if (weight === "token") return group(rho(), op("·"), base);
  if (weight === "score-function")
    return group(over(policy(), group(upright("sg"), brackets(policy()))), op("·"), base);
  return base;
}

export const logRatio = () =>
  math("block", d(), op("="), log(policy(), brackets(name("a"))), op("−"), log(reference(), brackets(name("a"))));

/** Value and slope of an estimate. @param {Row} row @returns {Element[]} */
export function definition(row) {
  if (row.place === "truth") return truth(row.other ?? false);
  const { estimator = "k1", weight, straight } = row;
  const base = sub(name("k"), estimator === "abs" ? upright("abs") : number(estimator.slice(1)));
  const weighed = weight === "token";
  const value = weighed
    ? [
        rho(),
        op("·"),
        brackets(...values[estimator]()),
        op(","),
        name("ρ"),
        op("="),
        over(policy(), sub(name("π"), upright("old"))),
      ]
    : values[estimator]();
  const own = slopes[estimator]();
  const slope = straight
    ? [d(), upright(" "), brackets(upright("straight-through"))]
    : weight
      ? [...(weighed ? [rho()] : []), brackets(...own, op("+"), ...values[estimator]())]
      : own;
  return [
    math(
      "block",
      sign(row),
      op("="),
      ...(weight === "score-function" ? [number("1"), op("·"), brackets(...values[estimator]())] : value),
    ),
    math(
      "block",
      over(group(op("∂"), weight ? brackets(sign(row)) : straight ? base : sign(row)), group(op("∂"), log(policy()))),
      op("="),
      ...slope,
    ),
  ];
}

/** @param {boolean} other */
function truth(other) {
  const [first, second] = other ? [reference, policy] : [policy, reference];
  const at = (/** @type {() => Element} */ which) => group(which(), brackets(name("a")));
  const kl = () => group(upright("KL"), brackets(first(), op("‖"), second()));
  const z = group(op("∂"), sub(name("z"), name("a")));
  const slope = other
    ? [at(policy), op("−"), at(reference)]
    : [at(policy), brackets(log(over(at(policy), at(reference))), op("−"), kl())];
  return [
    math("block", kl(), op("="), sum(name("a")), at(first), log(over(at(first), at(second)))),
    math("block", over(group(op("∂"), kl()), z), op("="), ...slope),
  ];
}

/** What a trainer's gradient is on average. @param {Row} row */
export function expected(row) {
  if (row.place === "truth") return null;
  const inner = row.place === "loss" ? over(group(op("∂"), name("k")), group(op("∂"), log(policy()))) : name("k");
  const grad = () => group(op("∇"), log(policy(), brackets(name("a"))));
  return math(
    "block",
    expectation(),
    op("["),
    inner,
    op("·"),
    grad(),
    op("]"),
    op("="),
    sum(name("a")),
    policy(),
    brackets(name("a")),
    op("·"),
    inner.cloneNode(true),
    op("·"),
    grad(),
  );
}

/**
 * Σ p·k with its numbers.
 * @param {string[]} p
 * @param {string[]} k
 * @param {string} total
 */
export const withNumbers = (p, k, total) =>
  math(
    "block",
    upright("E"),
    op("="),
    ...p.flatMap((share, i) => [i > 0 && op("+"), number(share), op("·"), number(k[i])]),
    op("="),
    number(total),
  );
