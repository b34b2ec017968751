// The losses in MathML, with symbols or with the current numbers: one template for both.

import { mathml } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { group, math, name, number, op, sub, sup, upright } from "../../parts/math.js";
import { lossOf } from "./losses.js";
import { valuesOf } from "./compute.js";

/** @typedef {import("./state.js").State} State */

/** A sign such as "ε^−" or "w_+". @param {string} text */
export function signOf(text) {
  const [base, mark, index] = /^(.+?)([\^_])(.+)$/.exec(text)?.slice(1) ?? [text, "", ""];
  if (mark === "^") return sup(name(base), op(index));
  return mark === "_" ? sub(name(base), /[a-z]/.test(index) ? upright(index) : op(index)) : name(base);
}

const SIGNS = /** @type {Record<string, () => Element>} */ ({
  rho: () => name("ρ"),
  A: () => name("A"),
  s: () => name("s"),
  d: () => name("d"),
  n: () => name("n"),
  o: () => sub(name("d"), upright("other")),
  logp: () => group(upright("log"), name("π")),
  p: () => name("π"),
  q: () => sub(name("π"), upright("old")),
  w: () => name("w"),
  R: () => name("R"),
});

/**
 * @param {State} state
 * @param {string} id
 * @param {{ loss: number, gradient: number }} result
 * @param {Record<string, number>} numbers what the signs stand for
 * @returns {{ symbols: Element[], numbers: Element[] }}
 */
export function formulasOf(state, id, result, numbers) {
  const bad = state.advantage < 0;
  const { parameters, formula } = lossOf(id);
  const value = valuesOf(state, id);
  // a parameter may have a key of its own for each sign of the advantage
  const parameterOf = (/** @type {string} */ what) =>
    parameters.find(({ key }) => key === what || key === `${what}${bad ? "Negative" : "Positive"}`);
  const sign = (/** @type {string} */ what) => {
    const parameter = parameterOf(what);
    return parameter ? signOf(parameter.sign) : (SIGNS[what] ?? (() => name(what)))();
  };
  const shown = (/** @type {string} */ what) => {
    const parameter = parameterOf(what);
    const number_ = parameter ? value(parameter.key) : numbers[what];
    return number_ === undefined ? sign(what) : number(short(number_));
  };
  const left = () => group(op("∂"), name("L"), op("/"), op("∂"), upright("log"), name("π"));
  const [symbols, filled] = [formula(sign, bad), formula(shown, bad)];
  const total = (/** @type {number} */ one) => [op("="), mathml("mn", { class: "clip-total" }, short(one))];
  return {
    symbols: [
      math("block", name("L"), op("="), ...symbols.loss),
      ...(symbols.with ?? []).map((line) => math("block", ...line)),
      math("block", left(), op("="), ...symbols.slope),
    ],
    numbers: [
      math("block", name("L"), op("="), ...filled.loss, ...total(result.loss)),
      ...(filled.with ?? []).map((line) => math("block", ...line)),
      math("block", left(), op("="), ...filled.slope, ...total(result.gradient)),
    ],
  };
}
