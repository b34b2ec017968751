// Not run, as sample.ts: rewards, divergences, rollout corrections, metrics, controllers.
import * as tokenwise from "tokenwise";

const u = Uint32Array.of(0, 1);
const flags = Uint8Array.of(0, 1);
const batch: tokenwise.Batch = tokenwise.Batch.padded(1, 2, Uint8Array.of(1, 1));
const groups: tokenwise.Groups = { ids: u };
const single = Float32Array.of(1, 2);
const double = Float64Array.of(1, 2);
const criteria: tokenwise.Criterion[] = tokenwise.parseRejection("token_k1", "2");

export const singleArrays: Float32Array[] = [
  tokenwise.klImportanceWeighted(
    batch,
    { logProbs: single, refLogProbs: single, oldLogProbs: single },
    { weight: "sequence", kl: { estimator: "k2" } },
  ),
  tokenwise.klImportanceWeightedGradient(batch, {
    logProbs: single,
    refLogProbs: single,
    oldLogProbs: single,
    gradKl: single,
  }),
  tokenwise.klInScores(batch, { scores: single, oldLogProbs: single, refLogProbs: single }, { beta: 0.05 }),
  tokenwise.clippedRewards(batch, { scores: single, kl: single }, { low: -Infinity }),
  tokenwise.repetitionPenalty(batch, u, { ngram: 2 }),
  tokenwise.lengthPenaltyGroup(groups, { scores: single, outputs: u, inputs: u, turns: u }, { turnWeight: 1 }),
  tokenwise.stopProperlyPenalty({ scores: single, truncated: flags }, { coefficient: 0.5 }),
  tokenwise.missingEosPenalty({ scores: single, ended: flags }, { penalty: 1 }),
  tokenwise.rewardScaleClip(single, { kind: "clip", low: -1, high: 1 }).scores,
  tokenwise.rolloutWeights(
    batch,
    { oldLogProbs: single, rolloutLogProbs: single },
    { level: "geometric", bound: tokenwise.parseWeightBound("2"), logBound: null },
  ).weights,
  tokenwise.rolloutGate(batch, { oldLogProbs: single, rolloutLogProbs: single }, { level: "token", mode: "clip" })
    .weights,
  tokenwise.rowMeans(batch, single, { divisor: "count" }),
  tokenwise.rowNormalize(batch, single, { floor: 1e-8 }),
];
export const doubleArrays: Float64Array[] = [
  tokenwise.klImportanceWeightedF64(
    batch,
    { logProbs: double, refLogProbs: double, oldLogProbs: double },
    { weight: "sequence", kl: { estimator: "k2" } },
  ),
  tokenwise.klImportanceWeightedGradientF64(batch, {
    logProbs: double,
    refLogProbs: double,
    oldLogProbs: double,
    gradKl: double,
  }),
  tokenwise.klInScoresF64(batch, { scores: double, oldLogProbs: double, refLogProbs: double }, { beta: 0.05 }),
  tokenwise.clippedRewardsF64(batch, { scores: double, kl: double }, { low: -Infinity }),
  tokenwise.repetitionPenaltyF64(batch, u, { ngram: 2 }),
  tokenwise.lengthPenaltyGroupF64(groups, { scores: double, outputs: u, inputs: u, turns: u }, { turnWeight: 1 }),
  tokenwise.stopProperlyPenaltyF64({ scores: double, truncated: flags }, { coefficient: 0.5 }),
  tokenwise.missingEosPenaltyF64({ scores: double, ended: flags }, { penalty: 1 }),
  tokenwise.rewardScaleClipF64(double, { kind: "clip", low: -1, high: 1 }).scores,
  tokenwise.rolloutWeightsF64(
    batch,
    { oldLogProbs: double, rolloutLogProbs: double },
    { level: "geometric", bound: tokenwise.parseWeightBound("2"), logBound: null },
  ).weights,
  tokenwise.rolloutGateF64(batch, { oldLogProbs: double, rolloutLogProbs: double }, { level: "token", mode: "clip" })
    .weights,
  tokenwise.rowMeansF64(batch, double, { divisor: "count" }),
  tokenwise.rowNormalizeF64(batch, double, { floor: 1e-8 }),
  tokenwise.pfPpoWeights(single, { kind: "power", power: 1 }),
  tokenwise.pfPpoWeightsF64(double, { kind: "power", power: 1 }),
];
export const numbers: number[] = [
  tokenwise.effectiveSampleSize(batch, single),
  tokenwise.verlMetrics(batch, { advantages: single, responseLengths: { tokens: u, limit: 2 } }, { divisor: "count" })[
    "critic/advantages/mean"
  ],
  tokenwise.trlMetrics(
    batch,
    { rewards: { groups, sources: single, sourceWeights: double, names: ["a", "b"] } },
    { level: "sequence" },
  )["reward"],
  tokenwise.openrlhfMetrics(batch, { scores: single, groups }, { klUse: "loss" })["train/reward"],
  tokenwise.reduceMetric("critic/score/max", double, true),
  tokenwise.quantile(batch, single, { level: 0.5 }),
  tokenwise.varianceProxy(
    batch,
    { oldLogProbs: single, sumPiSquared: single, advantages: single },
    { gradientNorm: 1 },
  )["variance_proxy/expected_w"],
  tokenwise.rolloutMismatch(batch, { oldLogProbs: single, rolloutLogProbs: single }, { divisor: "count" })[
    "rollout_corr/chi2_seq"
  ],
  tokenwise.rolloutWeightMetrics(batch, { oldLogProbs: single, rolloutLogProbs: single }, { unscored: "ignore" })[
    "rollout_corr/rollout_is_mean"
  ],
  tokenwise.rolloutRejectionMetrics(batch, { oldLogProbs: single, rolloutLogProbs: single }, { criteria })[
    "rollout_corr/rollout_rs_masked_fraction"
  ],
  tokenwise.probabilityDifference(batch, { oldLogProbs: single, rolloutLogProbs: single })[
    "training/rollout_probs_diff_max"
  ],
  tokenwise.effectiveSampleSizeF64(batch, double),
  tokenwise.verlMetricsF64(batch, { advantages: double }, { divisor: "count" })["critic/advantages/mean"],
  tokenwise.trlMetricsF64(batch, { entropies: double }, { entropyCoefficient: null })["entropy"],
  tokenwise.openrlhfMetricsF64(batch, { scores: double })["train/reward"],
  tokenwise.quantileF64(batch, double, { level: 0.5 }),
  tokenwise.varianceProxyF64(
    batch,
    { oldLogProbs: double, sumPiSquared: double, advantages: double },
    { gradientNorm: 1 },
  )["variance_proxy/expected_w"],
  tokenwise.rolloutMismatchF64(batch, { oldLogProbs: double, rolloutLogProbs: double }, { divisor: "count" })[
    "rollout_corr/chi2_seq"
  ],
  tokenwise.rolloutWeightMetricsF64(batch, { oldLogProbs: double, rolloutLogProbs: double }, { unscored: "ignore" })[
    "rollout_corr/rollout_is_mean"
  ],
  tokenwise.rolloutRejectionMetricsF64(batch, { oldLogProbs: double, rolloutLogProbs: double }, { criteria })[
    "rollout_corr/rollout_rs_masked_fraction"
  ],
  tokenwise.probabilityDifferenceF64(batch, { oldLogProbs: double, rolloutLogProbs: double })[
    "training/rollout_probs_diff_max"
  ],
  tokenwise.fixedKl(0.1, 1, 64),
  tokenwise.adaptiveKl({ beta: 0.1 }, 1, 64),
];
export const masks: Uint8Array[] = [
  tokenwise.rolloutRejection(
    batch,
    { oldLogProbs: single, rolloutLogProbs: single },
    { criteria: [{ option: "seq-max-k3", upper: 1 }] },
  ),
  tokenwise.klMask(batch, { oldLogProbs: single, rolloutLogProbs: single }, { tau: 0.1 }),
  tokenwise.sequenceVeto(batch, { oldLogProbs: single, rolloutLogProbs: single }, { lower: 0.1, upper: 9 }),
  tokenwise.m2poMask(batch, { oldLogProbs: single, rolloutLogProbs: single }, { tau: 0.1 }),
  tokenwise.offPolicySequenceMask(
    batch,
    { logProbs: single, oldLogProbs: single, advantages: single },
    { threshold: 1 },
  ),
  tokenwise.highEntropyMask(batch, single, { share: 0.2 }),
  tokenwise.dynamicSamplingFilter(groups, single, { kind: "spread", atLeast: 1e-6 }),
  tokenwise.rolloutRejectionF64(
    batch,
    { oldLogProbs: double, rolloutLogProbs: double },
    { criteria: [{ option: "seq-max-k3", upper: 1 }] },
  ),
  tokenwise.klMaskF64(batch, { oldLogProbs: double, rolloutLogProbs: double }, { tau: 0.1 }),
  tokenwise.sequenceVetoF64(batch, { oldLogProbs: double, rolloutLogProbs: double }, { lower: 0.1, upper: 9 }),
  tokenwise.m2poMaskF64(batch, { oldLogProbs: double, rolloutLogProbs: double }, { tau: 0.1 }),
  tokenwise.offPolicySequenceMaskF64(
    batch,
    { logProbs: double, oldLogProbs: double, advantages: double },
    { threshold: 1 },
  ),
  tokenwise.highEntropyMaskF64(batch, double, { share: 0.2 }),
  tokenwise.dynamicSamplingFilterF64(groups, double, { kind: "spread", atLeast: 1e-6 }),
  tokenwise.responseMaskFromEos({ batch: 1, len: 2 }, { tokens: u, eos: u }),
];
export const draws: Uint32Array = tokenwise.pfPpoIndices({ weights: double, draws: 4 }, { seed: 7 });

const histogram = new tokenwise.Histogram();
histogram.add(batch, single);
histogram.merge(histogram.clone());
const running = new tokenwise.RunningMoments();
const baselines = new tokenwise.RoleBaselines(2, 0.5);
export const states: number[] = [
  histogram.quantile(0.5),
  histogram.count,
  running.update(double).std,
  running.count,
  running.mean,
  running.variance,
  running.std,
  baselines.clone().values.length,
];
const linear = new tokenwise.LinearKl({ follow: { length: 5 } });
const budget = new tokenwise.EntropyBudget({
  schedule: { kind: "exponential", alpha: 1, totalSteps: 10 },
  lambdaMax: null,
});
const game = new tokenwise.DualGame({
  kl: { target: 0.05 },
  budget: { guard: "on", source: { kind: "given", b0: 1 } },
});
export const prices: (number | null | undefined)[] = [
  linear.update(0.1),
  linear.beta,
  linear.clone().target,
  budget.update({ step: 0, whSum: 1, tokenCount: 2 }).usageRatio,
  budget.clone().lambda,
  game.step(batch, { oldLogProbs: single, advantages: single, rewards: single }).entries["dual_game/lambda"],
  game.clone().beta,
  game.lambda,
];
histogram.free();
running.free();
baselines.free();

// @ts-expect-error a kind without its numbers
tokenwise.rewardScaleClip(single, { kind: "clip" });
// @ts-expect-error β has no default
tokenwise.dro(batch, { logProbs: single, oldLogProbs: single, advantages: single }, {});
