// The policy loss: one term and one gradient per token, and the number they add up to.

import { exponentials, negativeProducts, sums } from "./arithmetic.js";

/** @typedef {import("./compute.js").Work} Work */
/** @typedef {{ logProbs: Float64Array, oldLogProbs: Float64Array, advantages: Float64Array }} Input */
/**
 * @typedef {{ loss: number, clipFraction?: number, grad: Float64Array, terms: Float64Array,
 *   sequenceRatio?: Float64Array }} Outcome
 */

const SUM = { mode: /** @type {const} */ ("token-sum") };

/**
 * @param {Work} work
 * @param {Input} input
 * @returns {Outcome}
 */
export function policyLoss(work, input) {
  return losses[work.state.choices.loss](work, input);
}

/** @type {Record<string, (work: Work, input: Input) => Outcome>} */
const losses = {
  ppo: (work, input) => {
    const config = clipConfig(work);
    const { loss, clipFraction, grad } = work.library.ppoClipF64(work.batch, input, {
      ...config,
      aggregate: work.settings.aggregate,
    });
    return { loss, clipFraction, grad, terms: clippedTerms(work, input, config) };
  },
  gspo: (work, input) => {
    const { library, batch, settings, state } = work;
    const { clipLow, clipHigh } = state.parameters;
    const { loss, clipFraction, grad } = library.gspoF64(batch, input, {
      clipLow,
      clipHigh,
      ...settings.gspo,
      aggregate: settings.aggregate,
    });
    // a token's term is that of the clipped surrogate where every ratio is the sequence's
    const differences = library.klEstimateF64(
      batch,
      { logProbs: input.logProbs, refLogProbs: input.oldLogProbs },
      { estimator: "k1" },
    );
    const means = library.rowMeansF64(batch, differences);
    const capped =
      settings.gspo.logRatioCap === null
        ? means
        : means.map((/** @type {number} */ mean) => Math.min(mean, /** @type {number} */ (settings.gspo.logRatioCap)));
    const shared = library.broadcastF64(batch, capped);
    const logProbs = sums(library, batch, input.oldLogProbs, shared);
    const sequenceRatio = exponentials(library, batch, shared, new Float64Array(shared.length));
    const terms = clippedTerms(
      work,
      { ...input, logProbs },
      { clipLow, clipHigh, dualClip: "off", logRatioBound: null },
    );
    return { loss, clipFraction, grad, terms, sequenceRatio };
  },
  cispo: (work, input) => {
    const { library, batch, settings } = work;
    const config = { bounds: settings.cispo, logRatioBound: settings.logRatioBound };
    const { loss, clipFraction, grad } = library.cispoF64(batch, input, { ...config, aggregate: settings.aggregate });
    const slopes = library.cispoF64(batch, input, { ...config, aggregate: SUM }).grad;
    // term = slope · log π
    return { loss, clipFraction, grad, terms: negativeProducts(library, batch, slopes.map(negated), input.logProbs) };
  },
  surrogate: ({ library, batch, settings }, input) => {
    const { loss, grad } = library.surrogateF64(batch, input, { aggregate: settings.aggregate });
    return { loss, grad, terms: library.surrogateF64(batch, input, { aggregate: SUM }).grad };
  },
  reinforce: ({ library, batch, settings }, input) => {
    const { loss, grad } = library.reinforceF64(batch, input, { aggregate: settings.aggregate });
    return { loss, grad, terms: negativeProducts(library, batch, input.advantages, input.logProbs) };
  },
};

/** @param {number} x */
const negated = (x) => -x;

/**
 * @param {Work} work
 * @returns {{ clipLow: number, clipHigh: number, logRatioBound: number | null,
 *   dualClip: import("../../engine.js").DualClip }}
 */
function clipConfig({ state, settings }) {
  const { clipLow, clipHigh } = state.parameters;
  const { dual, dualClip, logRatioBound } = settings;
  return {
    clipLow,
    clipHigh,
    logRatioBound,
    dualClip: dual === "off" ? "off" : dual === "both" ? { bothSigns: dualClip } : { negativeOnly: dualClip },
  };
}

/**
 * The terms of the clipped surrogate. Where a token is not clipped its term equals its gradient, −ρA. Where it is,
 * the term is the bound's: −clip(ρ)·A, which CISPO has for a gradient,
 * or −c·A of the second clip if the ratio is beyond c.
 * @param {Work} work
 * @param {Input} given
 * @param {ReturnType<typeof clipConfig>} config
 */
function clippedTerms({ library, batch, settings, state }, given, config) {
  const input = withinBound(given, config.logRatioBound);
  const slopes = library.ppoClipF64(batch, input, { ...config, aggregate: SUM }).grad;
  const { clipLow: low, clipHigh: high } = state.parameters;
  const { advantages } = input;
  const held = [...slopes.keys()].some((i) => slopes[i] === 0 && advantages[i] !== 0);
  if (!held) return slopes;
  const bounded = library.cispoF64(batch, input, {
    bounds: { kind: "relative", low, high },
    logRatioBound: config.logRatioBound,
    aggregate: SUM,
  }).grad;
  if (config.dualClip === "off")
    return slopes.map((/** @type {number} */ slope, /** @type {number} */ i) => (slope === 0 ? bounded[i] : slope));
  const ratios = exponentials(library, batch, input.logProbs, input.oldLogProbs);
  const second = negativeProducts(
    library,
    batch,
    advantages,
    new Float64Array(advantages.length).fill(settings.dualClip),
  );
  return slopes.map((/** @type {number} */ slope, /** @type {number} */ i) => {
    if (slope !== 0) return slope;
    const beyond = ratios[i] > settings.dualClip && (advantages[i] < 0 || settings.dual === "both");
    return beyond ? Math.max(bounded[i], second[i]) : bounded[i];
  });
}

/**
 * Log-ratios beyond the framework's bound put on it: there the loss is the same, but its gradient is not 0 yet.
 * @param {Input} input
 * @param {number | null} bound
 * @returns {Input}
 */
function withinBound({ logProbs, oldLogProbs, advantages }, bound) {
  const most = bound ?? Infinity;
  const difference = (/** @type {number} */ i) => logProbs[i] - oldLogProbs[i];
  if (!logProbs.some((_, i) => Math.abs(difference(i)) > most)) return { logProbs, oldLogProbs, advantages };
  const beyond = (/** @type {number} */ i) => Math.abs(difference(i)) > most;
  return {
    logProbs: logProbs.map((x, i) => (beyond(i) ? Math.sign(difference(i)) * most : x)),
    oldLogProbs: oldLogProbs.map((x, i) => (beyond(i) ? 0 : x)),
    advantages,
  };
}
