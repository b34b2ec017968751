// The formulas of the loss: terms, the weight of a token in the mean, gradients.

import { brackets, group, name, number, op, over, sub, upright } from "../../parts/math.js";
import { short } from "../../parts/format.js";
import { weightRow } from "../rows.js";

/** @typedef {import("./formulas.js").Writer} Writer */
/** @typedef {import("../../parts/dom.js").Child} Child */

/** @param {Writer} w */
const advantage = (w) => w.cell(weightRow(w.state));

/** @param {Writer} w */
const ratio = (w) => w.cell(w.state.choices.loss === "gspo" ? "sequenceRatio" : "ratio");

/** @param {Writer} w */
const clipped = (w) =>
  group(
    upright("clip"),
    brackets(
      ratio(w),
      op(","),
      number("1"),
      op("−"),
      w.parameter("clipLow"),
      op(","),
      number("1"),
      op("+"),
      w.parameter("clipHigh"),
    ),
  );

/** @param {Writer} w */
function surrogate(w) {
  const { dual, dualClip } = w.settings;
  const second = w.state.choices.loss === "ppo" ? dual : "off";
  const bound = () => (w.state.choices.dual === "profile" ? number(short(dualClip)) : w.parameter("dualClip"));
  // with a bound for both signs the ratio itself is bounded; with one for negative advantages, the loss is,
  // and the bound is written only where it can take effect
  const held = second === "both" ? group(upright("min"), brackets(ratio(w), op(","), bound())) : ratio(w);
  const inner = [
    op("−"),
    upright("min"),
    op("("),
    held,
    op("·"),
    advantage(w),
    op(","),
    clipped(w),
    op("·"),
    advantage(w),
    op(")"),
  ];
  if (second !== "negative" || !(w.weight !== undefined && w.weight < 0)) return inner;
  return [upright("min"), op("("), ...inner, op(","), op("−"), bound(), op("·"), advantage(w), op(")")];
}

/** @param {Writer} w */
function bounded(w) {
  const { cispo } = w.settings;
  return cispo.kind === "relative"
    ? clipped(w)
    : group(upright("min"), brackets(ratio(w), op(","), number(short(cispo.high))));
}

/** @type {Record<string, (w: Writer) => Child[]>} */
const terms = {
  ppo: surrogate,
  gspo: surrogate,
  cispo: (w) => [op("−"), bounded(w), op("·"), advantage(w), op("·"), w.cell("logProb")],
  surrogate: (w) => [op("−"), ratio(w), op("·"), advantage(w)],
  reinforce: (w) => [op("−"), advantage(w), op("·"), w.cell("logProb")],
};

/** @type {Record<string, (w: Writer) => Child[]>} */
const weights = {
  "token-mean": (w) => [over(number("1"), w.total("kept", name("N")))],
  "token-sum": () => [number("1")],
  "seq-mean-token-sum": (w) => [over(number("1"), w.total("sequences", name("B")))],
  "seq-mean-token-mean": (w) => [
    over(number("1"), group(w.total("sequences", name("B")), op("·"), w.total("keptHere", name("n")))),
  ],
  "seq-mean-token-sum-norm": (w) => [
    over(number("1"), group(w.total("sequences", name("B")), op("·"), w.parameter("scale"))),
  ],
  "token-sum-norm": (w) => [over(number("1"), w.parameter("scale"))],
  "prompt-mean": (w) => [
    over(
      number("1"),
      group(w.total("prompts", name("P")), op("·"), w.total("keptGroup", sub(name("N"), upright("group")))),
    ),
  ],
};

/** @param {Writer} w */
function policyGradient(w) {
  const { loss } = w.state.choices;
  if (loss === "gspo" && w.settings.gspo.form === "sequence") {
    return [
      op("−"),
      over(ratio(w), w.total("keptHere", name("n"))),
      op("·"),
      w.total("pull", group(op("Σ"), name("W"), op("·"), name("A"))),
    ];
  }
  const factor = loss === "reinforce" ? [] : [loss === "cispo" ? bounded(w) : ratio(w), op("·")];
  return [op("−"), w.cell("tokenWeight"), op("·"), ...factor, advantage(w)];
}

/** @type {Record<string, (w: Writer) => Child[]>} the derivative of each estimate by log π */
const slopes = {
  k1: () => [number("1")],
  abs: (w) => [upright("sign"), brackets(...distance(w))],
  k2: (w) => [brackets(...distance(w))],
  k3: (w) => [
    brackets(number("1"), op("−"), upright("exp"), brackets(w.cell("refLogProb"), op("−"), w.cell("logProb"))),
  ],
};

/** @param {Writer} w */
const distance = (w) => [w.cell("logProb"), op("−"), w.cell("refLogProb")];

/** @type {Record<string, (w: Writer) => Child[]>} */
export const lossFormulas = {
  sequenceRatio: (w) => [
    upright("exp"),
    brackets(
      over(number("1"), w.total("keptHere", name("n"))),
      op("·"),
      w.total(
        "logRatio",
        group(op("Σ"), brackets(upright("log"), name("π"), op("−"), upright("log"), sub(name("π"), upright("old")))),
      ),
    ),
  ],
  lossTerm: (w) => terms[w.state.choices.loss](w),
  tokenWeight: (w) => weights[w.state.choices.aggregate](w),
  klTerm: (w) => [w.parameter("beta"), op("·"), w.cell("kl")],
  klGradient: (w) => {
    const slope = slopes[w.state.choices.kl]?.(w) ?? [];
    const inner =
      w.state.choices.placement === "loss-weighted"
        ? [brackets(w.cell("ratio"), op("·"), ...slope, op("+"), w.cell("kl"))]
        : slope;
    return [w.cell("tokenWeight"), op("·"), w.parameter("beta"), op("·"), ...inner];
  },
  gradient: (w) => {
    const kl = ["loss", "loss-weighted"].includes(w.state.choices.placement) && w.state.choices.kl !== "given";
    return [...policyGradient(w), ...(kl ? [op("+"), w.cell("klGradient")] : [])];
  },
};
