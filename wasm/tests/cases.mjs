// One call of every function with small numbers whose results can be seen by eye.
import { tokenwise } from "./load.mjs";

const { Batch } = tokenwise;
const ln = Math.log;

/** `[name, arguments, expected]` of every function with two precisions; `x` stands in every dropped slot. */
export function cases(array, x) {
  const a = (...values) => array.from(values);
  const u = (...values) => Uint32Array.from(values);
  const two = Batch.padded(1, 2, Uint8Array.of(1, 0));
  const three = Batch.padded(1, 3, Uint8Array.of(1, 0, 1));
  const four = Batch.padded(1, 4, Uint8Array.of(1, 1, 0, 1));
  const pair = Batch.padded(2, 2, Uint8Array.of(1, 0, 1, 1));
  const groups = { ids: u(0, 1, 0, 1, 2) };
  const none = -Infinity;
  const logProbs = { logProbs: a(-1, x, -1), refLogProbs: a(-1.5, x, -1) };
  const ratios = { logProbs: a(0, ln(2), x, 0), oldLogProbs: a(0, 0, x, 0), advantages: a(1, 3, x, -1) };
  const same = a(-0.5, x, -1);
  const analysed = { oldLogProbs: a(0, x, 0), advantages: a(1, x, -1), rewards: a(0.25, x, 1) };
  const third = 1 / 3;
  const dot = (values) => ({ count: 2, mean: 2, m2: 2, ...values });
  return [
    ["shift", [Batch.padded(1, 3, Uint8Array.of(1, 1, 1)), { raw: a(x, 0.25, 0.5, 0.75, x), width: 1, rawLayout: { batch: 1, len: 5 } }],
      [0.25, 0.5, 0.75]],
    ["tokenLogProbs", [two, { logits: a(none, 3, x, x), vocab: 2, tokens: u(1, 99) }], [0, 0]],
    ["logProbsAndEntropy", [two, { logits: a(0, none, x, x), vocab: 2, tokens: u(0, 99) }], { logProbs: [0, 0], entropy: [0, 0] }],
    ["entropy", [two, { logits: a(1.5, 1.5, x, x), vocab: 2 }, { temperature: 0.5 }], [ln(2), 0]],
    ["sumSquaredProbs", [two, { logits: a(0, 0, 0, 0, x, 0, 0, 0), vocab: 4 }], [0.25, 0]],
    ["logitsGradient", [two, { logits: a(0, 0, x, x), vocab: 2, tokens: u(1, 0), gradLogProbs: a(1, x), gradEntropy: a(0, x) }],
      [-0.5, 0.5, 0, 0]],

    ["klEstimate", [three, logProbs, { estimator: "k2" }], [0.125, 0, 0]],
    ["klGradient", [three, logProbs, { estimator: "k3", gradient: "straight-through" }], [0.5, 0, 0]],
    ["klExact", [two, { logits: a(0, none, x, x), refLogits: a(0, 0, x, x), vocab: 2 }], [ln(2), 0]],
    ["klExactGradient", [two, { logits: a(1, 1, x, x), refLogits: a(0, 0, x, x), vocab: 2, gradKl: a(1, x) }], [0, 0, 0, 0]],

    ["placeScores", [pair, a(1, 5)], [1, 0, 0, 5]],
    ["shapeRewards", [three, { scores: a(0, x, 1), kl: a(0.5, x, -0.25) }, 0.5], [-0.25, 0, 1.125]],
    ["klInReward", [three, { scores: a(0, x, 1), oldLogProbs: a(-1, x, -0.5), refLogProbs: a(-1.5, x, -0.5) }, { beta: 0.5, kl: { estimator: "k1" } }],
      { rewards: [-0.25, 0, 1], meanKl: 0.25 }],
    ["overlongPenalty", [{ scores: a(1, 1, 1, 1), lengths: u(6, 7, 10, 12) }, { maxLen: 10, buffer: 4, floor: "factor" }], [1, 0.75, 0, 0]],

    ["discountedReturns", [four, { rewards: a(0, 1, x, 2), bootstrap: a(0) }, { gamma: 0.5 }], [1, 2, 0, 2]],
    ["gae", [four, { rewards: a(0, 0, x, 1), values: a(0.5, 0.5, x, 0.5), bootstrap: a(0) }, { lambda: 0.5 }],
      { advantages: [0.125, 0.25, 0, 0.5], returns: [0.625, 0.75, 0, 1] }],
    ["gae", [four, { rewards: a(0, 0, x, 1), values: a(0.5, 0.5, x, 0.5), bootstrap: a(0) }, { lambda: 0.5, across: "zero-step" }],
      { advantages: [-0.0625, -0.125, 0, 0.5], returns: [0.4375, 0.375, 0, 1] }],
    ["monteCarloAdvantage", [three, { rewards: a(0.5, x, 1), values: a(0.25, x, 0.5), bootstrap: a(0) }, { gamma: 0.5 }],
      { advantages: [0.75, 0, 0.5], returns: [1, 0, 1] }],
    ["uniformCredit", [four, a(3)], [1, 1, 0, 1]],
    ["lastKCredit", [four, a(1), 2], [0, 0.5, 0, 0.5]],
    ["attentionCredit", [four, { scores: a(2), weights: a(1, 2, x, 1) }], [0.5, 1, 0, 0.5]],
    ["groupRelative", [groups, a(1, 4, 3, 4, 7), { spread: "population", epsilon: 0 }], [-1, 0, 1, 0, 0]],
    ["leaveOneOut", [{ sizes: u(3, 1) }, a(0, 1, 5, 7), { singleton: "raw" }], [-3, -1.5, 4.5, 7]],
    ["broadcast", [Batch.packed(u(0, 2, 3), Uint8Array.of(1, 0, 1)), a(0.5, -0.5)], [0.5, 0, -0.5]],
    ["sequenceSums", [pair, a(0.5, x, 1, -2)], [0.5, -1]],
    ["whiten", [four, a(-3, 0, x, 3), { scale: "unit", spread: "population", epsilon: 0 }], [-3, 0, 0, 3]],

    ["aggregate", [pair, a(1, x, 3, 4), { mode: "seq-mean-token-mean" }], { loss: 2.25, weights: [0.5, 0, 0.25, 0.25] }],
    ["aggregate", [pair, a(1, x, 3, 4), { mode: "seq-mean-token-sum-norm", scale: 2 }], { loss: 2, weights: [0.25, 0, 0.25, 0.25] }],
    ["aggregate", [pair, a(1, x, 3, 4), { mode: "prompt-mean", groups: { ids: u(0, 0) }, tokens: u(4) }],
      { loss: 2, weights: [0.25, 0, 0.25, 0.25] }],
    ["aggregate", [pair, a(1, x, 3, 4), { mode: "token-mean", counts: { tokens: 8, ranks: 2 } }], { loss: 2, weights: [0.25, 0, 0.25, 0.25] }],
    ["surrogate", [three, { logProbs: same, oldLogProbs: same, advantages: a(1, x, -0.5) }], { loss: -0.25, grad: [-0.5, 0, 0.25] }],
    ["ppoClip", [four, ratios, { clipHigh: 0.5 }],
      { loss: -1.5, clipFraction: third, clipFractionLower: 0, kl: -ln(2) / 3, grad: [-third, 0, 0, third] }],
    ["ppoClip", [four, ratios, { clipHigh: 0.5, dualClip: { bothSigns: 1.25 }, logRatioBound: null }],
      { loss: -1.25, clipFraction: 0, clipFractionLower: third, kl: -ln(2) / 3, grad: [-third, 0, 0, third] }],
    ["valueLoss", [three, { predictions: a(1, x, 2), values: a(1, x, 1), returns: a(0, x, 2) }],
      { loss: 0.3125, clipFraction: 0.5, grad: [0.5, 0, 0] }],
    ["entropyBonus", [three, a(1, x, 3), { coefficient: 0.5 }], { loss: -1, grad: [-0.25, 0, -0.25] }],

    ["mean", [three, a(1, x, 2)], 1.5],
    ["variance", [three, a(1, x, 3), { spread: "population" }], 1],
    ["correlation", [four, { x: a(1, 2, x, 3), y: a(3, 2, x, 1) }], -1],
    ["explainedVariance", [three, { values: a(1, x, 1), returns: a(0, x, 4) }, { epsilon: 0 }], 0],
    ["klMeans", [three, logProbs], { k1: 0.25, abs: 0.25, k2: 0.0625, k3: (Math.exp(-0.5) - 0.5) / 2 }],
    ["clipFractions", [four, ratios], { clipped: third, low: 0, high: third, dual: 0 }],
    ["moments", [three, a(1, x, 3)], dot()],
    ["coMoments", [three, { x: a(1, x, 3), y: a(0, x, -4) }], { count: 2, meanX: 2, meanY: -2, m2X: 2, m2Y: 8, coMoment: -4 }],
    ["analysis", [three, analysed], {
      "analysis/entropy_per_token_mean": 0, "analysis/covariance_mean": 0, "analysis/wH_sum": 0, "analysis/wH_per_token": 0,
      "analysis/reward_sum_mean": 1.25,
    }],
    ["analysisSums", [three, analysed], {
      moments: { count: 2, meanX: 0, meanY: 0, m2X: 2, m2Y: 0, coMoment: 0 }, entropySum: 0, whSum: 0, rewardSum: 1.25, sequences: 1,
    }],

    ["exp", [0], 1],
    ["ln", [1], 0],
    ["sqrt", [2.25], 1.5],
  ];
}

const moments = { count: 2, mean: 2, m2: 2 };
const coMoments = { count: 2, meanX: 2, meanY: -2, m2X: 2, m2Y: 8, coMoment: -4 };
const sums = { moments: coMoments, entropySum: 1, whSum: 0.5, rewardSum: 3, sequences: 2 };

/** The functions that know no precision. */
export const plainCases = [
  ["groupTokens", [Batch.padded(3, 2, Uint8Array.of(1, 1, 1, 0, 1, 0)), { ids: Uint32Array.of(1, 0, 1) }], [1, 3]],
  ["momentsMerge", [moments, { count: 2, mean: 4, m2: 2 }], { count: 4, mean: 3, m2: 8 }],
  ["momentsMean", [moments], 2],
  ["momentsVariance", [moments, { spread: "sample", divisor: "count" }], 2],
  ["coMomentsMerge", [coMoments, coMoments], { count: 4, meanX: 2, meanY: -2, m2X: 4, m2Y: 16, coMoment: -8 }],
  ["coMomentsCovariance", [coMoments, { spread: "population" }], -2],
  ["coMomentsCorrelation", [coMoments], -1],
  ["analysisMerge", [sums, sums], {
    moments: { count: 4, meanX: 2, meanY: -2, m2X: 4, m2Y: 16, coMoment: -8 }, entropySum: 2, whSum: 1, rewardSum: 6, sequences: 4,
  }],
  ["analysisEntries", [sums], {
    "analysis/entropy_per_token_mean": 0.5, "analysis/covariance_mean": -2, "analysis/wH_sum": 0.5, "analysis/wH_per_token": 0.25,
    "analysis/reward_sum_mean": 1.5,
  }],
];
