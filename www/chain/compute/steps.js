// The steps of the chain that take more than one call of the library.

import { negativeProducts, sums } from "./arithmetic.js";

/** @typedef {import("./compute.js").Whole} Whole */

/**
 * The KL as a part of the loss: β·KL of each token, and its own gradient added to the policy's.
 * @param {Whole} work
 * @param {(key: string) => Float64Array} row
 * @param {(found: Record<string, Float64Array>) => void} put
 */
export function klInLoss({ library, state, batch, settings, flat, result }, row, put) {
  const { choices, parameters } = state;
  const zeros = new Float64Array(flat.score.length);
  const klTerm = sums(library, batch, zeros, row("kl"), parameters.beta);
  const price = library.aggregateF64(batch, klTerm, settings.aggregate).loss;
  result.summary.klLoss = price;
  put({ klTerm });
  // a KL typed in is a constant: it has no gradient
  if (choices.kl === "given") return;
  const input = { logProbs: flat.logProb, refLogProbs: flat.refLogProb };
  const kl = { estimator: choices.kl, bounds: settings.klBounds };
  const pulled = sums(library, batch, zeros, row("tokenWeight"), parameters.beta);
  const slope =
    choices.placement === "loss-weighted"
      ? library.klImportanceWeightedGradientF64(
          batch,
          { ...input, oldLogProbs: flat.oldLogProb, gradKl: pulled },
          { kl },
        )
      : negativeProducts(
          library,
          batch,
          library.klGradientF64(batch, input, kl).map((/** @type {number} */ x) => -x),
          pulled,
        );
  put({ klGradient: slope, gradient: sums(library, batch, row("gradient"), slope) });
}

/**
 * The scores, clipped where a framework does so; those of dropped slots are left as they are.
 * @param {Whole} work
 */
export function clippedScores({ library, settings, flat, mask }) {
  const bound = settings.rewardClip;
  if (!flat.score.some((score, i) => mask[i] === 1 && Math.abs(score) > bound)) return flat.score;
  const looked = flat.score.map((score, i) => (mask[i] === 1 ? score : 0));
  const { scores } = library.rewardScaleClipF64(looked, { kind: "clip", low: -bound, high: bound });
  return scores.map((/** @type {number} */ score, /** @type {number} */ i) => (mask[i] === 1 ? score : flat.score[i]));
}

/**
 * The score of each sequence: the sum of its token rewards, over the kept slots or, as some frameworks do,
 * over all of them.
 * @param {Whole} work
 * @param {{ scores: Float64Array, kl: Float64Array }} input
 * @param {number} beta
 * @param {Float64Array} rewards
 * @returns {Float64Array}
 */
export function sequenceScores({ library, batch, settings, offsets, mask }, input, beta, rewards) {
  if (settings.scoreSlots === "kept" || mask.every((keep) => keep === 1))
    return library.sequenceSumsF64(batch, rewards);
  const everything = library.Batch.packed(
    offsets,
    mask.map(() => 1),
  );
  try {
    return library.sequenceSumsF64(everything, library.shapeRewardsF64(everything, input, { beta }));
  } finally {
    everything.free();
  }
}

/**
 * What the recursion holds at dropped tokens, if these are steps of reward 0 and value 0.
 * @param {Whole} work
 * @param {{ rewards: Float64Array, values: Float64Array, bootstrap: Float64Array }} critic
 * @param {(row: Float64Array) => Float64Array[]} split
 */
export function carriedOver({ library, state, offsets, mask }, critic, split) {
  const walked = mask.slice();
  for (const [s, { roles }] of state.sequences.entries())
    walked.fill(1, offsets[s] + Math.max(0, roles.indexOf("policy")), offsets[s] + roles.lastIndexOf("policy") + 1);
  const zeroed = (/** @type {Float64Array} */ row) => row.map((x, i) => (mask[i] === 1 ? x : 0));
  const batch = library.Batch.packed(offsets, walked);
  try {
    const input = { rewards: zeroed(critic.rewards), values: zeroed(critic.values), bootstrap: critic.bootstrap };
    const { gamma, lambda } = state.parameters;
    const discountedReturn = split(library.discountedReturnsF64(batch, input, { gamma }));
    if (state.choices.advantage !== "gae") return { discountedReturn };
    return { discountedReturn, advantage: split(library.gaeF64(batch, input, { gamma, lambda }).advantages) };
  } finally {
    batch.free();
  }
}

/**
 * How entropy and covariance are spread over the kept tokens: the correlation of advantage and log-probability, and
 * medians and ninth deciles.
 * @param {Whole} work
 * @param {Float64Array} advantages
 * @param {Float64Array} entropy
 */
export function spreadOf({ library, batch, flat, mask }, advantages, entropy) {
  const { moments } = library.analysisSumsF64(batch, { oldLogProbs: flat.oldLogProb, advantages, rewards: advantages });
  const { meanX, meanY, m2X, m2Y, coMoment } = moments;
  const centred = (/** @type {Float64Array} */ row, /** @type {number} */ mean) => row.map((x) => x - mean);
  // X is the advantage, Y the log-probability; which is which changes nothing here
  const [first, second] = [centred(advantages, meanX), centred(flat.oldLogProb, meanY)];
  const covariance = negativeProducts(library, batch, first, second).map((x) => -x);
  const kept = (/** @type {Float64Array} */ row) => row.filter((_, i) => mask[i] === 1).sort();
  const [entropies, covariances] = [kept(entropy), kept(covariance)];
  return {
    correlation: coMoment / library.sqrtF64(m2X * m2Y),
    entropyP50: quantile(entropies, 0.5),
    entropyP90: quantile(entropies, 0.9),
    covarianceP50: quantile(covariances, 0.5),
    covarianceP90: quantile(covariances, 0.9),
  };
}

/**
 * Linear between neighbours, as NumPy and torch do it.
 * @param {Float64Array} sorted
 * @param {number} level
 */
function quantile(sorted, level) {
  if (sorted.length === 0) return undefined;
  const at = level * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (at - Math.floor(at)) * (high - low);
}
