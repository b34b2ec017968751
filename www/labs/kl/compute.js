// All numbers of the laboratory, from the library. Expectations are sums over the actions, weighed by their
// probability: the library's summed surrogate with an old log-probability of 0 is exactly Σ p·x, its gradient each p·x.

import { rows } from "./estimates.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./estimates.js").Row} Row */

/**
 * @typedef {object} Enumeration of one row
 * @property {Row} row
 * @property {number} value its expectation
 * @property {number} bias against the KL itself
 * @property {Float64Array} gradient expected, to the policy's logits
 * @property {Float64Array} [values] of each action
 * @property {Float64Array} [slopes] of each action, to its log-probability
 * @property {Verdict} verdict
 */

/**
 * @typedef {{ kind: "truth" | "zero" | "right" | "other" | "longer" | "against" | "tilted", cosine: number,
 *   factor: number }} Verdict
 */

/**
 * @typedef {object} Result
 * @property {number} count
 * @property {Float64Array} p
 * @property {Float64Array} q
 * @property {Float64Array} logP
 * @property {Float64Array} logQ
 * @property {Float64Array} d log p − log q
 * @property {number} kl KL(p‖q)
 * @property {number} otherKl KL(q‖p)
 * @property {Enumeration[]} rows
 */

/**
 * @param {import("../../engine.js").Library} library
 * @param {import("./state.js").Distribution} distribution
 * @returns {Float64Array} logits; the logarithm of what is proportional to a probability is one
 */
export const logitsOf = (library, { form, values }) =>
  Float64Array.from(values, (value) => (form === "logits" ? value : library.lnF64(value)));

/** @param {Row} row @param {State} state @returns {import("../../engine.js").KlConfig} */
const klConfig = (row, { bounds }) => ({
  estimator: row.estimator,
  gradient: row.straight ? "straight-through" : "own",
  bounds,
});

/**
 * The value of an estimate for each token, and its derivative by the token's log-probability.
 * @param {import("../../engine.js").Library} library
 * @param {import("../../engine.js").Batch} batch
 * @param {{ logProbs: Float64Array, refLogProbs: Float64Array, oldLogProbs: Float64Array }} input
 * @param {Row} row
 * @param {State} state
 * @returns {{ values: Float64Array, slopes: Float64Array }}
 */
export function estimate(library, batch, input, row, state) {
  const kl = klConfig(row, state);
  if (!row.weight)
    return { values: library.klEstimateF64(batch, input, kl), slopes: library.klGradientF64(batch, input, kl) };
  const config = { weight: row.weight, kl };
  const gradKl = new Float64Array(input.logProbs.length).fill(1);
  return {
    values: library.klImportanceWeightedF64(batch, input, config),
    slopes: library.klImportanceWeightedGradientF64(batch, { ...input, gradKl }, config),
  };
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @returns {Result}
 */
export function compute(library, state) {
  const count = state.policy.values.length;
  const ones = new Uint8Array(count * count).fill(1);
  const batch = library.Batch.padded(count, 1, ones.slice(0, count));
  const square = library.Batch.padded(count, count, ones);
  const tokens = Uint32Array.from({ length: count }, (_, i) => i);
  // one token for every action, each before the same logits
  const repeated = (/** @type {Float64Array} */ logits) =>
    Float64Array.from({ length: count * count }, (_, i) => logits[i % count]);
  const logits = repeated(logitsOf(library, state.policy));
  const refLogits = repeated(logitsOf(library, state.reference));
  const logP = library.tokenLogProbsF64(batch, { logits, tokens, vocab: count });
  const logQ = library.tokenLogProbsF64(batch, { logits: refLogits, tokens, vocab: count });
  const zeros = new Float64Array(count);

  /** Σ weight·x and each weight·x. @param {Float64Array} logWeights @param {Float64Array} x */
  const weighed = (logWeights, x) => {
    const { loss, grad } = library.surrogateF64(
      batch,
      { logProbs: logWeights, oldLogProbs: zeros, advantages: x.map((one) => -one) },
      { aggregate: { mode: "token-sum" } },
    );
    return { sum: loss, each: grad };
  };
  /**
   * The gradient to the logits, from those to each action's log-probability.
   * @param {Float64Array} gradLogProbs
   * @returns {Float64Array}
   */
  const toLogits = (gradLogProbs) => {
    const each = library.logitsGradientF64(batch, { logits, tokens, vocab: count, gradLogProbs, gradEntropy: zeros });
    return library.sequenceSumsF64(
      square,
      Float64Array.from({ length: count * count }, (_, i) => each[(i % count) * count + Math.floor(i / count)]),
    );
  };
  const ofOne = (/** @type {ArrayLike<number>} */ all) => all[0];
  const kl = ofOne(library.klExactF64(batch, { logits, refLogits, vocab: count }));
  const otherKl = ofOne(library.klExactF64(batch, { logits: refLogits, refLogits: logits, vocab: count }));
  const gradKl = zeros.map((_, i) => Number(i === 0));
  const truth = library.klExactGradientF64(batch, { logits, refLogits, vocab: count, gradKl }).slice(0, count);
  // ∇KL(q‖p) = −Σ q ∇log p
  const other = toLogits(weighed(logQ, new Float64Array(count).fill(-1)).each);

  const input = { logProbs: logP, refLogProbs: logQ, oldLogProbs: logP };
  const enumerated = rows.map((row) => {
    if (row.place === "truth") {
      const gradient = row.other ? other : truth;
      return {
        row,
        value: row.other ? otherKl : kl,
        bias: 0,
        gradient,
        verdict: { kind: /** @type {const} */ ("truth"), cosine: 1, factor: 1 },
      };
    }
    const { values, slopes } = estimate(library, batch, input, row, state);
    const value = weighed(logP, values).sum;
    // in the loss the estimate itself is differentiated; in the reward it multiplies ∇log p, as every reward does
    const gradient = toLogits(weighed(logP, row.place === "loss" ? slopes : values).each);
    // the difference to the truth is the only subtraction made here
    return { row, value, bias: value - kl, gradient, values, slopes, verdict: judge(library, gradient, truth, other) };
  });
  const p = logP.map((/** @type {number} */ one) => library.expF64(one));
  const q = logQ.map((/** @type {number} */ one) => library.expF64(one));
  const d = library.klEstimateF64(batch, input, { estimator: "k1" });
  batch.free();
  square.free();
  return { count, p, q, logP, logQ, d, kl, otherKl, rows: enumerated };
}

/**
 * Which of the two gradients it equals, if any; otherwise its angle to the true one. Only compares what the library
 * computed; gradients to logits add up to 0, so the library's correlation is their cosine.
 * @param {import("../../engine.js").Library} library
 * @param {Float64Array} gradient
 * @param {Float64Array} truth
 * @param {Float64Array} other
 * @returns {Verdict}
 */
function judge(library, gradient, truth, other) {
  const most = (/** @type {Float64Array} */ values) =>
    values.reduce((size, value) => Math.max(size, Math.abs(value)), 0);
  const near = (/** @type {Float64Array} */ wanted) =>
    gradient.every((value, i) => Math.abs(value - wanted[i]) <= 1e-9 * Math.max(1e-3, most(wanted)));
  if (most(gradient) <= 1e-9 * Math.max(1e-3, most(truth)) && !near(truth))
    return { kind: "zero", cosine: NaN, factor: 0 };
  if (near(truth)) return { kind: "right", cosine: 1, factor: 1 };
  // where policy and reference are the same there is no direction to compare with
  if (most(truth) <= 1e-12) return { kind: "against", cosine: NaN, factor: Infinity };
  const batch = library.Batch.padded(1, gradient.length, new Uint8Array(gradient.length).fill(1));
  const cosine = library.correlationF64(batch, { x: gradient, y: truth });
  batch.free();
  const factor = most(gradient) / most(truth);
  if (near(other)) return { kind: "other", cosine, factor };
  if (cosine > 1 - 1e-9) return { kind: "longer", cosine, factor };
  return { kind: cosine < 0 ? "against" : "tilted", cosine, factor };
}

/**
 * Value and slope of every estimate over the log-ratio.
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Row[]} wanted
 * @param {ArrayLike<number>} seen log-ratios that should be in the picture
 * @returns {{ reach: number, d: Float64Array, curves: { row: Row, values: Float64Array, slopes: Float64Array }[] }}
 */
export function curvesOf(library, state, wanted, seen) {
  const count = 321;
  const reach = Math.min(
    24,
    Array.from(seen).reduce((most, d) => Math.max(most, Math.ceil(Math.abs(d) + 0.3)), 3),
  );
  // a little off the middle: never on the step of a slope at 0, nor on a round bound
  const d = Float64Array.from({ length: count }, (_, i) => ((2 * i) / (count - 1) - 1) * reach * 1.0007 + 0.00031);
  const batch = library.Batch.padded(count, 1, new Uint8Array(count).fill(1));
  const ratio = library.lnF64(state.ratio);
  const input = { logProbs: d, refLogProbs: new Float64Array(count), oldLogProbs: d.map((value) => value - ratio) };
  const curves = wanted.map((row) => ({ row, ...estimate(library, batch, input, row, state) }));
  batch.free();
  return { reach, d, curves };
}
