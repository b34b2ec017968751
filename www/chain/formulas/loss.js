// The formulas of the loss: terms, the weight of a token in the mean, gradients.

import { brackets, call, group, name, number, op, over, sub, upright, when } from "../../parts/math.js";
import { short } from "../../parts/format.js";
import { klSlope } from "./kl.js";
import { weightRow } from "../rows.js";

/** @typedef {import("./formulas.js").Writer} Writer */
/** @typedef {import("../../parts/dom.js").Child} Child */

/** @param {Writer} w */
const advantage = (w) => w.cell(weightRow(w.state));

/** @param {Writer} w */
const logRatio = (w) => [w.cell("logProb"), op("−"), w.cell("oldLogProb")];

/** Losses that read the token's ratio under the framework's bound on log-ratios. */
const BOUNDED = ["ppo", "cispo"];

/**
 * Whether that bound changes the ratio of this token.
 * @param {Writer} w
 */
const isBounded = (w) =>
  BOUNDED.includes(w.state.choices.loss) &&
  w.settings.logRatioBound !== null &&
  Math.abs(w.at("logProb") - w.at("oldLogProb")) > w.settings.logRatioBound;

/** @param {Writer} w */
function ratio(w) {
  if (!isBounded(w)) return w.cell(w.state.choices.loss === "gspo" ? "sequenceRatio" : "ratio");
  const bound = () => number(short(/** @type {number} */ (w.settings.logRatioBound)));
  return call("exp", call("clip", ...logRatio(w), op(","), op("−"), bound(), op(","), bound()));
}

/** @param {Writer} w */
const lowest = (w) => [number("1"), op("−"), w.parameter("clipLow")];

/** @param {Writer} w */
const highest = (w) => [number("1"), op("+"), w.parameter("clipHigh")];

/** @param {Writer} w */
const clipped = (w) => call("clip", ratio(w), op(","), ...lowest(w), op(","), ...highest(w));

/** @param {Writer} w */
const secondBound = (w) =>
  w.state.choices.dual === "profile" ? number(short(w.settings.dualClip)) : w.parameter("dualClip");

/** @param {Writer} w */
const secondClip = (w) => (w.state.choices.loss === "ppo" ? w.settings.dual : "off");

/** @param {Writer} w */
const isBad = (w) => w.at(weightRow(w.state)) < 0;

/** @param {Writer} w */
function surrogate(w) {
  const second = secondClip(w);
  // with a bound for both signs the ratio itself is bounded; with one for negative advantages, the loss is,
  // and the bound is written only where it can take effect
  const held = second === "both" ? call("min", ratio(w), op(","), secondBound(w)) : ratio(w);
  const inner = [op("−"), call("min", held, op("·"), advantage(w), op(","), clipped(w), op("·"), advantage(w))];
  if (second !== "negative" || !isBad(w)) return inner;
  return [call("min", ...inner, op(","), op("−"), secondBound(w), op("·"), advantage(w))];
}

/**
 * [the loss still depends on the ratio]: within the clip on the side that the advantage pushes to, within the second
 * clip, and within the bound on log-ratios.
 * @param {Writer} w
 * @returns {Child[]}
 */
function unclipped(w) {
  const second = secondClip(w);
  const both = second === "both";
  // inside the first clip, the second one for both signs decides before it
  const inner = both && w.settings.dualClip < 1 + w.state.parameters.clipHigh;
  const upper = isBad(w)
    ? second === "off"
      ? null
      : inner
        ? highest(w)
        : [secondBound(w)]
    : inner
      ? [secondBound(w)]
      : highest(w);
  const low = isBad(w) ? [...lowest(w), op("≤")] : [];
  const found = [op("·"), when(...low, ratio(w), ...(upper ? [op("≤"), ...upper] : []))];
  if (!isBounded(w)) return found;
  const bound = number(short(/** @type {number} */ (w.settings.logRatioBound)));
  return [...found, op("·"), when(op("|"), ...logRatio(w), op("|"), op("≤"), bound)];
}

/** @param {Writer} w */
function bounded(w) {
  const { cispo } = w.settings;
  return cispo.kind === "relative" ? clipped(w) : call("min", ratio(w), op(","), number(short(cispo.high)));
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
  if (loss === "gspo") return sequenceGradient(w);
  const factor = loss === "reinforce" ? [] : [loss === "cispo" ? bounded(w) : ratio(w), op("·")];
  const clip = loss === "ppo" ? unclipped(w) : [];
  return [op("−"), w.cell("tokenWeight"), op("·"), ...factor, advantage(w), ...clip];
}

/**
 * Through the token's own log-probability or through those of the whole sequence.
 * @param {Writer} w
 */
function sequenceGradient(w) {
  const capped = isCapped(w) ? [op("·"), when(...meanLogRatio(w), op("≤"), number(short(capOf(w))))] : [];
  if (w.settings.gspo.form === "token")
    return [op("−"), w.cell("tokenWeight"), op("·"), ratio(w), op("·"), advantage(w), ...unclipped(w), ...capped];
  const held = (w.fact("heldTokens") ?? 0) > 0 ? [op("·"), when(upright("unclipped"))] : [];
  return [
    op("−"),
    over(ratio(w), w.total("keptHere", name("n"))),
    op("·"),
    w.total("pull", brackets(op("Σ"), name("W"), op("·"), name("A"), ...held)),
    ...capped,
  ];
}

/** @param {Writer} w */
const capOf = (w) => w.settings.gspo.logRatioCap ?? Infinity;

/** @param {Writer} w */
const isCapped = (w) => (w.fact("logRatio") ?? NaN) / (w.fact("keptHere") ?? NaN) > capOf(w);

/** @param {Writer} w */
const meanLogRatio = (w) => [
  over(number("1"), w.total("keptHere", name("n"))),
  op("·"),
  w.total(
    "logRatio",
    group(op("Σ"), brackets(upright("log"), name("π"), op("−"), upright("log"), sub(name("π"), upright("old")))),
  ),
];

/** @type {Record<string, (w: Writer) => Child[]>} */
export const lossFormulas = {
  sequenceRatio: (w) => [
    isCapped(w)
      ? call("exp", call("min", ...meanLogRatio(w), op(","), number(short(capOf(w)))))
      : call("exp", ...meanLogRatio(w)),
  ],
  lossTerm: (w) => terms[w.state.choices.loss](w),
  tokenWeight: (w) => weights[w.state.choices.aggregate](w),
  klTerm: (w) => [w.parameter("beta"), op("·"), w.cell("kl")],
  klGradient: (w) => {
    const slope = klSlope(w);
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
