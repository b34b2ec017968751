// Not run: what a strict compiler must accept, and (after each @ts-expect-error) what it must refuse.
import * as tokenwise from "tokenwise";

const u = Uint32Array.of(0, 1);
const batch: tokenwise.Batch = tokenwise.Batch.padded(1, 2, Uint8Array.of(1, 1));
const packed: tokenwise.Batch = tokenwise.Batch.packed(u, Uint8Array.of(1));
const counts: number = batch.sequences + batch.tokens + packed.kept + batch.clone().keptSequences;
packed.free();

const groups: tokenwise.Groups = { ids: u };
const aggregate: tokenwise.Aggregate = { mode: "prompt-mean", groups: { sizes: u }, tokens: u, counts: { tokens: 1, ranks: 2 } };
const single = Float32Array.of(1, 2);
const double = Float64Array.of(1, 2);
const config = { temperature: 0.5 };

export const singleArrays: Float32Array[] = [
  tokenwise.shift(batch, { raw: single, width: 1, rawLayout: { cuSeqlens: u } }),
  tokenwise.tokenLogProbs(batch, { logits: single, vocab: 2, tokens: u }, config),
  tokenwise.logProbsAndEntropy(batch, { logits: single, vocab: 2, tokens: u }, config).logProbs,
  tokenwise.entropy(batch, { logits: single, vocab: 2 }, config),
  tokenwise.sumSquaredProbs(batch, { logits: single, vocab: 2 }, config),
  tokenwise.logitsGradient(batch, { logits: single, vocab: 2, tokens: u, gradLogProbs: single, gradEntropy: single }),
  tokenwise.klEstimate(batch, { logProbs: single, refLogProbs: single }, { estimator: "k3", bounds: "every" }),
  tokenwise.klGradient(batch, { logProbs: single, refLogProbs: single }, { gradient: "straight-through" }),
  tokenwise.klExact(batch, { logits: single, refLogits: single, vocab: 2 }, config),
  tokenwise.klExactGradient(batch, { logits: single, refLogits: single, vocab: 2, gradKl: single }),
  tokenwise.placeScores(batch, single),
  tokenwise.shapeRewards(batch, { scores: single, kl: single }, 0.1),
  tokenwise.klInReward(batch, { scores: single, oldLogProbs: single, refLogProbs: single }, { kl: { estimator: "k1" } }).rewards,
  tokenwise.overlongPenalty({ scores: single, lengths: u }, { floor: "factor" }),
  tokenwise.discountedReturns(batch, { rewards: single, bootstrap: single }, { across: "zero-step" }),
  tokenwise.gae(batch, { rewards: single, values: single, bootstrap: single }, { lambda: 0.5, across: "step-over" }).advantages,
  tokenwise.monteCarloAdvantage(batch, { rewards: single, values: single, bootstrap: single }, { gamma: 0.5 }).returns,
  tokenwise.uniformCredit(batch, single),
  tokenwise.lastKCredit(batch, single, 2),
  tokenwise.attentionCredit(batch, { scores: single, weights: single }),
  tokenwise.groupRelative(groups, single, { singleton: "raw" }),
  tokenwise.leaveOneOut(groups, single, { singleton: "undefined" }),
  tokenwise.broadcast(batch, single),
  tokenwise.sequenceSums(batch, single),
  tokenwise.whiten(batch, single, { place: "floor-variance", center: "keep-mean" }),
  tokenwise.aggregate(batch, single, aggregate).weights,
  tokenwise.surrogate(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { aggregate }).grad,
];
export const singleNumbers: number[] = [
  tokenwise.ppoClip(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { dualClip: { negativeOnly: 3 }, logRatioBound: null }).clipFractionLower,
  tokenwise.valueLoss(batch, { predictions: single, values: single, returns: single }, { clip: null, factor: "whole" }).clipFraction,
  tokenwise.entropyBonus(batch, single, { coefficient: 0.5 }).loss,
  tokenwise.mean(batch, single, { divisor: "count-plus-epsilon" }),
  tokenwise.variance(batch, single, { spread: "population" }),
  tokenwise.correlation(batch, { x: single, y: single }),
  tokenwise.explainedVariance(batch, { values: single, returns: single }, { epsilon: 0 }),
  tokenwise.klMeans(batch, { logProbs: single, refLogProbs: single }).k3,
  tokenwise.clipFractions(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { dualClip: "off" }).dual,
  tokenwise.moments(batch, single).m2,
  tokenwise.coMoments(batch, { x: single, y: single }).coMoment,
  tokenwise.analysis(batch, { oldLogProbs: single, advantages: single, rewards: single })["analysis/wH_per_token"],
  tokenwise.analysisSums(batch, { oldLogProbs: single, advantages: single, rewards: single }).moments.count,
  tokenwise.exp(1),
  tokenwise.ln(1),
  tokenwise.sqrt(1),
];

export const doubleArrays: Float64Array[] = [
  tokenwise.shiftF64(batch, { raw: double, width: 1, rawLayout: { cuSeqlens: u } }),
  tokenwise.tokenLogProbsF64(batch, { logits: double, vocab: 2, tokens: u }, config),
  tokenwise.logProbsAndEntropyF64(batch, { logits: double, vocab: 2, tokens: u }, config).logProbs,
  tokenwise.entropyF64(batch, { logits: double, vocab: 2 }, config),
  tokenwise.sumSquaredProbsF64(batch, { logits: double, vocab: 2 }, config),
  tokenwise.logitsGradientF64(batch, { logits: double, vocab: 2, tokens: u, gradLogProbs: double, gradEntropy: double }),
  tokenwise.klEstimateF64(batch, { logProbs: double, refLogProbs: double }, { estimator: "k3", bounds: "every" }),
  tokenwise.klGradientF64(batch, { logProbs: double, refLogProbs: double }, { gradient: "straight-through" }),
  tokenwise.klExactF64(batch, { logits: double, refLogits: double, vocab: 2 }, config),
  tokenwise.klExactGradientF64(batch, { logits: double, refLogits: double, vocab: 2, gradKl: double }),
  tokenwise.placeScoresF64(batch, double),
  tokenwise.shapeRewardsF64(batch, { scores: double, kl: double }, 0.1),
  tokenwise.klInRewardF64(batch, { scores: double, oldLogProbs: double, refLogProbs: double }, { kl: { estimator: "k1" } }).rewards,
  tokenwise.overlongPenaltyF64({ scores: double, lengths: u }, { floor: "factor" }),
  tokenwise.discountedReturnsF64(batch, { rewards: double, bootstrap: double }, { across: "zero-step" }),
  tokenwise.gaeF64(batch, { rewards: double, values: double, bootstrap: double }, { lambda: 0.5, across: "step-over" }).advantages,
  tokenwise.monteCarloAdvantageF64(batch, { rewards: double, values: double, bootstrap: double }, { gamma: 0.5 }).returns,
  tokenwise.uniformCreditF64(batch, double),
  tokenwise.lastKCreditF64(batch, double, 2),
  tokenwise.attentionCreditF64(batch, { scores: double, weights: double }),
  tokenwise.groupRelativeF64(groups, double, { singleton: "raw" }),
  tokenwise.leaveOneOutF64(groups, double, { singleton: "undefined" }),
  tokenwise.broadcastF64(batch, double),
  tokenwise.sequenceSumsF64(batch, double),
  tokenwise.whitenF64(batch, double, { place: "floor-variance", center: "keep-mean" }),
  tokenwise.aggregateF64(batch, double, aggregate).weights,
  tokenwise.surrogateF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { aggregate }).grad,
];
export const doubleNumbers: number[] = [
  tokenwise.ppoClipF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { dualClip: { negativeOnly: 3 }, logRatioBound: null }).clipFractionLower,
  tokenwise.valueLossF64(batch, { predictions: double, values: double, returns: double }, { clip: null, factor: "whole" }).clipFraction,
  tokenwise.entropyBonusF64(batch, double, { coefficient: 0.5 }).loss,
  tokenwise.meanF64(batch, double, { divisor: "count-plus-epsilon" }),
  tokenwise.varianceF64(batch, double, { spread: "population" }),
  tokenwise.correlationF64(batch, { x: double, y: double }),
  tokenwise.explainedVarianceF64(batch, { values: double, returns: double }, { epsilon: 0 }),
  tokenwise.klMeansF64(batch, { logProbs: double, refLogProbs: double }).k3,
  tokenwise.clipFractionsF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { dualClip: "off" }).dual,
  tokenwise.momentsF64(batch, double).m2,
  tokenwise.coMomentsF64(batch, { x: double, y: double }).coMoment,
  tokenwise.analysisF64(batch, { oldLogProbs: double, advantages: double, rewards: double })["analysis/wH_per_token"],
  tokenwise.analysisSumsF64(batch, { oldLogProbs: double, advantages: double, rewards: double }).moments.count,
  tokenwise.expF64(1),
  tokenwise.lnF64(1),
  tokenwise.sqrtF64(1),
];

const moments: tokenwise.Moments = tokenwise.momentsMerge(tokenwise.moments(batch, single), { count: 0, mean: 0, m2: 0 });
const pairs: tokenwise.CoMoments = tokenwise.coMoments(batch, { x: single, y: single });
const sums: tokenwise.AnalysisSums = { moments: pairs, entropySum: 0, whSum: 0, rewardSum: 0, sequences: 1 };
export const merged: number[] = [
  counts,
  tokenwise.momentsMean(moments, { divisor: "count" }),
  tokenwise.momentsVariance(moments, { spread: "sample" }),
  tokenwise.coMomentsMerge(pairs, pairs).count,
  tokenwise.coMomentsCovariance(pairs, { spread: "sample" }),
  tokenwise.coMomentsCorrelation(pairs),
  tokenwise.analysisEntries(tokenwise.analysisMerge(sums, sums))["analysis/covariance_mean"],
];
export const prompts: Uint32Array = tokenwise.groupTokens(batch, groups);

try {
  tokenwise.mean(batch, single);
} catch (thrown) {
  const error = thrown as tokenwise.TokenwiseError;
  const code: "length" extends typeof error.code ? string : never = error.code;
  console.log(code, error.parameter, error.index?.toFixed(), error.expected, error.got, error.message);
}

// @ts-expect-error the other precision
tokenwise.mean(batch, double);
// @ts-expect-error a key that does not exist
tokenwise.gae(batch, { rewards: single, values: single, bootstrap: single }, { lamda: 1 });
// @ts-expect-error a choice that does not exist
tokenwise.klEstimate(batch, { logProbs: single, refLogProbs: single }, { estimator: "k4" });
// @ts-expect-error a mode without its scale
tokenwise.aggregate(batch, single, { mode: "seq-mean-token-sum-norm" });
// @ts-expect-error a scale without its mode
tokenwise.aggregate(batch, single, { mode: "token-mean", scale: 2 });
// @ts-expect-error a missing array
tokenwise.gae(batch, { rewards: single, values: single });
// @ts-expect-error made by padded and packed only
new tokenwise.Batch();

declare const console: { log(...values: unknown[]): void };
