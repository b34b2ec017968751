// What a mode does, as a formula, and the same with the numbers of the batch.

import { mathml } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { brackets, group, math, name, number, op, over, sub } from "../../parts/math.js";
import { promptsOf } from "./compute.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Whole} Whole */

const TERMS = 5;
const sum = (/** @type {string} */ index) => mathml("munder", {}, op("∑"), name(index));
const loss = () => sub(name("ℓ"), group(name("i"), op(","), name("t")));
const n = (/** @type {string} */ index) => sub(name("n"), name(index));
const size = () => group(op("|"), name("S"), op("|"));
const one = () => number("1");
const num = (/** @type {number} */ value) => number(short(value));

/** @type {Record<string, () => Element[]>} */
const symbols = {
  "token-mean": () => [over(one(), name("N")), sum("i"), sum("t"), loss()],
  "seq-mean-token-mean": () => [over(one(), size()), sum("i"), over(one(), n("i")), sum("t"), loss()],
  "seq-mean-token-sum": () => [over(one(), size()), sum("i"), sum("t"), loss()],
  "seq-mean-token-sum-norm": () => [over(one(), group(size(), op("·"), name("F"))), sum("i"), sum("t"), loss()],
  "sum-norm-without-mean": () => [over(one(), name("F")), sum("i"), sum("t"), loss()],
  "token-sum": () => [sum("i"), sum("t"), loss()],
  "prompt-mean": () => [
    over(one(), name("P")),
    sum("p"),
    over(one(), sub(name("N"), name("p"))),
    mathml("munder", {}, op("∑"), group(name("i"), op("∈"), name("p"))),
    sum("t"),
    loss(),
  ],
};

/** @param {string} mode */
export const formula = (mode) => math("block", name("L"), op("="), ...symbols[mode]());

/**
 * Quotients added up, the first few of them.
 * @param {[number, number][]} quotients
 */
function added(quotients) {
  const shown = quotients
    .slice(0, TERMS)
    .flatMap(([above, below], i) => [i > 0 && op("+"), over(num(above), num(below))]);
  return brackets(...shown, ...(quotients.length > TERMS ? [op("+"), op("…")] : []));
}

/**
 * @param {State} state
 * @param {Whole} whole
 * @param {string} mode
 */
export function withNumbers(state, { totals, lengths, sums, sum: total, modes }, mode) {
  const outcome = modes[mode];
  const kept = lengths
    .map((count, i) => /** @type {[number, number]} */ ([sums[i], count]))
    .filter(([, count]) => count > 0);
  const prompts = totals.prompts.map((count, p) => {
    // the losses of a prompt added up, for display only
    const above = promptsOf(state).reduce((all, prompt, i) => (prompt === p ? all + sums[i] : all), 0);
    return /** @type {[number, number]} */ ([above, Math.max(count, 1)]);
  });
  /** @type {Record<string, () => (Element | false)[]>} */
  const forms = {
    "token-mean": () => [over(num(total), num(totals.tokens))],
    "seq-mean-token-mean": () => [over(one(), num(totals.sequences)), added(kept)],
    "seq-mean-token-sum": () => [over(num(total), num(totals.sequences))],
    "seq-mean-token-sum-norm": () => [over(num(total), group(num(totals.sequences), op("·"), num(state.scale)))],
    "sum-norm-without-mean": () => [over(num(total), num(state.scale))],
    "token-sum": () => [num(total)],
    "prompt-mean": () => [over(one(), num(totals.prompts.length)), added(prompts)],
  };
  const value = "loss" in outcome ? [op("="), mathml("mn", {}, short(outcome.loss))] : [];
  return math("block", op("="), ...forms[mode](), ...value);
}

/** @type {Record<string, () => Element>} */
const weights = {
  "token-mean": () => over(one(), name("N")),
  "seq-mean-token-mean": () => over(one(), group(size(), op("·"), n("i"))),
  "seq-mean-token-sum": () => over(one(), size()),
  "seq-mean-token-sum-norm": () => over(one(), group(size(), op("·"), name("F"))),
  "sum-norm-without-mean": () => over(one(), name("F")),
  "token-sum": one,
  "prompt-mean": () =>
    over(one(), group(name("P"), op("·"), sub(name("N"), group(name("p"), op("("), name("i"), op(")"))))),
};

/** The weight of a token of answer i. @param {string} mode */
export const weightFormula = (mode) =>
  math(
    "block",
    sub(name("w"), group(name("i"), op(","), name("t"))),
    op("="),
    over(group(op("∂"), name("L")), group(op("∂"), loss())),
    op("="),
    weights[mode](),
  );
