// Not run: what a strict compiler must accept, and (after each @ts-expect-error) what it must refuse.
import * as tokenwise from "tokenwise";

const u = Uint32Array.of(0, 1);
const batch: tokenwise.Batch = tokenwise.Batch.padded(1, 2, Uint8Array.of(1, 1));
const packed: tokenwise.Batch = tokenwise.Batch.packed(u, Uint8Array.of(1));
const counts: number = batch.sequences + batch.tokens + packed.kept + batch.clone().keptSequences;
packed.free();

const groups: tokenwise.Groups = { ids: u };
const aggregate: tokenwise.Aggregate = {
  mode: "prompt-mean",
  groups: { sizes: u },
  tokens: u,
  counts: { tokens: 1, ranks: 2 },
};
const single = Float32Array.of(1, 2);
const double = Float64Array.of(1, 2);
const wide = double;
const config = { temperature: 0.5 };

export const singleArrays: Float32Array[] = [
  tokenwise.shift(batch, { raw: single, width: 1, rawLayout: { cuSeqlens: u } }),
  tokenwise.tokenLogProbs(batch, { logits: single, vocab: 2, tokens: u }, config),
  tokenwise.logProbsAndEntropy(batch, { logits: single, vocab: 2, tokens: u }, config).logProbs,
  tokenwise.entropy(batch, { logits: single, vocab: 2 }, config),
  tokenwise.sumSquaredProbs(batch, { logits: single, vocab: 2 }, config),
  tokenwise.topkLogProbs(batch, { logits: single, vocab: 1, tokens: u, k: 1 }, config),
  tokenwise.topkLogitsGradient(batch, { logits: single, vocab: 1, tokens: u, k: 1, gradLogProbs: single }),
  tokenwise.logitsGradient(batch, { logits: single, vocab: 2, tokens: u, gradLogProbs: single, gradEntropy: single }),
  tokenwise.klEstimate(batch, { logProbs: single, refLogProbs: single }, { estimator: "k3", bounds: "every" }),
  tokenwise.klGradient(batch, { logProbs: single, refLogProbs: single }, { gradient: "straight-through" }),
  tokenwise.klExact(batch, { logits: single, refLogits: single, vocab: 2 }, config),
  tokenwise.klExactGradient(batch, { logits: single, refLogits: single, vocab: 2, gradKl: single }),
  tokenwise.placeScores(batch, single),
  tokenwise.shapeRewards(batch, { scores: single, kl: single }, { beta: 0.1 }),
  tokenwise.klInReward(batch, { scores: single, oldLogProbs: single, refLogProbs: single }, { kl: { estimator: "k1" } })
    .rewards,
  tokenwise.overlongPenalty({ scores: single, lengths: u }, { floor: "factor" }),
  tokenwise.discountedReturns(batch, { rewards: single, bootstrap: single }, { across: "zero-step" }),
  tokenwise.gae(batch, { rewards: single, values: single, bootstrap: single }, { lambda: 0.5, across: "step-over" })
    .advantages,
  tokenwise.monteCarloAdvantage(batch, { rewards: single, values: single, bootstrap: single }, { gamma: 0.5 }).returns,
  tokenwise.uniformCredit(batch, single),
  tokenwise.lastKCredit(batch, single, { k: 2 }),
  tokenwise.tokenWeights(batch, { logProbs: single, advantages: single, weight: "structural", structural: single }),
  tokenwise.advantageJump(batch, single),
  tokenwise.structuralWeights(
    batch,
    { logProbs: single, advantages: single, complexity: single },
    { scope: "sequence" },
  ),
  tokenwise.trieComplexity(batch, groups, { tokens: u, rewards: single }, { spread: "inter-quartile-range" }),
  tokenwise.attentionCredit(batch, { scores: single, weights: single }),
  tokenwise.groupRelative(groups, single, { singleton: "raw" }),
  tokenwise.leaveOneOut(groups, single, { singleton: "undefined" }),
  tokenwise.broadcast(batch, single),
  tokenwise.sequenceSums(batch, single),
  tokenwise.whiten(batch, single, { place: "floor-variance", center: "keep-mean" }),
  tokenwise.aggregate(batch, single, aggregate).weights,
  tokenwise.surrogate(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { aggregate }).grad,
  tokenwise.gaeDecoupled(
    batch,
    { rewards: single, values: single, bootstrap: single },
    { lambdaPolicy: { alpha: 0.05 } },
  ).returns,
  tokenwise.tdLambda(batch, { rewards: single, values: single, bootstrap: single }, { lambda: 0.5 }),
  tokenwise.nStepReturns(batch, { rewards: single, values: single, bootstrap: single }, { n: 2, across: "zero-step" }),
  tokenwise.upgo(batch, { rewards: single, values: single, bootstrap: single }),
  tokenwise.vtrace(
    batch,
    { rewards: single, values: single, bootstrap: single, logProbs: single, oldLogProbs: single },
    { rhoBar: 2 },
  ).targets,
  tokenwise.retrace(
    batch,
    { rewards: single, values: single, actionValues: single, bootstrap: single, logProbs: single, oldLogProbs: single },
    { coefficient: "lambda" },
  ),
  tokenwise.pufferAdvantage(
    batch,
    { rewards: single, values: single, bootstrap: single, ratios: single },
    { variant: "v4" },
  ),
  tokenwise.remax(batch, { rewards: single, baselines: single }).advantages,
  tokenwise.reinforcePlusPlus(batch, { rewards: single, bootstrap: single }, { whiten: { scale: "unit" } }).returns,
  tokenwise.opdAdvantage(
    batch,
    { teacherLogProbs: single, oldLogProbs: single, advantages: single },
    { coefficient: 0.5 },
  ),
  tokenwise.minillmAdvantage(batch, { teacherLogProbs: single, oldLogProbs: single }, { from: "start", length: "off" }),
  tokenwise.leaveOneOutScaled(groups, single, { epsilon: 0 }),
  tokenwise.normalizeScores(groups, single, { mean: "batch", own: "left-out" }),
  tokenwise.gpgAdvantage(groups, single, { factor: "single" }),
  tokenwise.maxRl(groups, single, { divisor: "if-positive" }),
  tokenwise.bestOfGroup(groups, single, { scale: "batch-deviation" }),
  tokenwise.lengthWeightedBaseline(batch, groups, single, { singleton: "raw" }),
  tokenwise.decoupledScores(groups, { sources: single, weights: wide }, { epsilon: 0 }),
  tokenwise.gdpo(batch, groups, { sources: single, weights: wide }, { group: { epsilon: 0 }, factors: "single" }),
  tokenwise.reinforcePlusPlusBaseline(batch, groups, single, { singleton: "raw" }),
  tokenwise.optimalTokenBaseline(
    batch,
    groups,
    { rewards: single, oldLogProbs: single, sumPiSquared: single },
    { zeroTail: "own-return" },
  ).returns,
  tokenwise.tirOptimalTokenBaseline(batch, groups, {
    rewards: single,
    oldLogProbs: single,
    sumPiSquared: single,
    isWeights: single,
  }).returns,
  tokenwise.roleBaseline(new tokenwise.RoleBaselines(2, 0.5), { roles: u, scores: single }),
];
export const singleNumbers: number[] = [
  tokenwise.ppoClip(
    batch,
    { logProbs: single, oldLogProbs: single, advantages: single },
    { dualClip: { negativeOnly: 3 }, logRatioBound: null },
  ).clipFractionLower,
  tokenwise.valueLoss(batch, { predictions: single, values: single, returns: single }, { clip: null, factor: "whole" })
    .clipFraction,
  tokenwise.entropyBonus(batch, single, { coefficient: 0.5 }).loss,
  tokenwise.mean(batch, single, { divisor: "count-plus-epsilon" }),
  tokenwise.variance(batch, single, { spread: "population" }),
  tokenwise.correlation(batch, { x: single, y: single }),
  tokenwise.explainedVariance(batch, { values: single, returns: single }, { epsilon: 0 }),
  tokenwise.klMeans(batch, { logProbs: single, refLogProbs: single }).k3,
  tokenwise.clipFractions(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { dualClip: "off" })
    .dual,
  tokenwise.moments(batch, single).m2,
  tokenwise.coMoments(batch, { x: single, y: single }).coMoment,
  tokenwise.analysis(batch, { oldLogProbs: single, advantages: single, rewards: single })["analysis/wH_per_token"],
  tokenwise.analysisSums(batch, { oldLogProbs: single, advantages: single, rewards: single }).moments.count,
  tokenwise.exp(1),
  tokenwise.ln(1),
  tokenwise.sqrt(1),
  tokenwise.reinforce(
    batch,
    { logProbs: single, oldLogProbs: single, advantages: single, weights: single },
    { divisor: "count" },
  ).kl,
  tokenwise.cispo(
    batch,
    { logProbs: single, oldLogProbs: single, advantages: single },
    { bounds: { kind: "absolute", high: 5 } },
  ).clipFraction,
  tokenwise.tisLoss(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { aggregate }).loss,
  tokenwise.clipCov(
    batch,
    { logProbs: single, oldLogProbs: single, advantages: single, selected: Uint8Array.of(0, 1) },
    { lower: 0 },
  ).loss,
  tokenwise.clipCovSelection(
    batch,
    { logProbs: single, oldLogProbs: single, advantages: single },
    { clip: { ratio: 0.5 }, seed: 7 },
  ).length,
  tokenwise.klCov(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { klCoef: 1 }).loss,
  tokenwise.dppoTv(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { ratioCap: 20 }).loss,
  tokenwise.dppoKl(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { logRatioBound: null }).loss,
  tokenwise.dro(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { beta: 0.1 }).loss,
  tokenwise.gmpo(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { counts: { sequences: 8 } })
    .loss,
  tokenwise.gspo(
    batch,
    { logProbs: single, oldLogProbs: single, advantages: single },
    { form: "token", logRatioCap: 10 },
  ).loss,
  tokenwise.luspo(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { clipLow: 0.1 }).loss,
  tokenwise.gvpo(batch, groups, { logProbs: single, oldLogProbs: single, advantages: single }, { beta: 0.5 }).loss,
  tokenwise.positiveNll(batch, { logProbs: single, scores: single }, { mu: 0.1 }).loss,
  tokenwise.dualGame(
    batch,
    { logProbs: single, oldLogProbs: single, advantages: single, refLogProbs: single, weight: "kl-gated" },
    { gradient: "through", aggregate },
  ).clipFractionUpper,
  tokenwise.sapo(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { tauNegative: 2 }).loss,
  tokenwise.klLoss(batch, { logProbs: single, refLogProbs: single }, { coefficient: 0.1 }).mean,
  tokenwise.opdLoss(
    batch,
    { logProbs: single, oldLogProbs: single, teacherLogProbs: single, weights: single },
    { route: "supervised", maxLoss: null },
  ).absLoss,
  tokenwise.refKl(batch, { logProbs: single, oldLogProbs: single, refLogProbs: single }, { fall: 0.1 }).fallen,
  tokenwise.iwOpd(batch, { logProbs: single, oldLogProbs: single, teacherLogProbs: single }, { gamma: 1 }).meanWeight,
  tokenwise.forwardKlTopk(
    batch,
    { logProbs: single, teacherLogProbs: single, k: 1, teacherIds: u, studentIds: u },
    { logProbFloor: null },
  ).studentMass.min,
  tokenwise.topkJsd(
    batch,
    { logProbs: single, teacherLogProbs: single, k: 1, weights: single },
    { rest: "renormalize" },
  ).loss,
  tokenwise.mixedKlTopk(
    batch,
    { logProbs: single, teacherLogProbs: single, k: 1, entropies: single },
    { outside: -100 },
  ).loss,
  tokenwise.generalizedJsd(batch, { logits: single, teacherLogits: single, vocab: 1 }, { beta: 1 }).loss,
  tokenwise.bypassLoss(
    batch,
    { logProbs: single, oldLogProbs: single, advantages: single },
    { weights: { level: "sequence" }, form: "reinforce" },
  ).loss,
  tokenwise.vespo(batch, { logProbs: single, oldLogProbs: single, advantages: single }, { kPositive: 1 }).phiMean,
];

export const doubleArrays: Float64Array[] = [
  tokenwise.shiftF64(batch, { raw: double, width: 1, rawLayout: { cuSeqlens: u } }),
  tokenwise.tokenLogProbsF64(batch, { logits: double, vocab: 2, tokens: u }, config),
  tokenwise.logProbsAndEntropyF64(batch, { logits: double, vocab: 2, tokens: u }, config).logProbs,
  tokenwise.entropyF64(batch, { logits: double, vocab: 2 }, config),
  tokenwise.sumSquaredProbsF64(batch, { logits: double, vocab: 2 }, config),
  tokenwise.topkLogProbsF64(batch, { logits: double, vocab: 1, tokens: u, k: 1 }, config),
  tokenwise.topkLogitsGradientF64(batch, { logits: double, vocab: 1, tokens: u, k: 1, gradLogProbs: double }),
  tokenwise.logitsGradientF64(batch, {
    logits: double,
    vocab: 2,
    tokens: u,
    gradLogProbs: double,
    gradEntropy: double,
  }),
  tokenwise.klEstimateF64(batch, { logProbs: double, refLogProbs: double }, { estimator: "k3", bounds: "every" }),
  tokenwise.klGradientF64(batch, { logProbs: double, refLogProbs: double }, { gradient: "straight-through" }),
  tokenwise.klExactF64(batch, { logits: double, refLogits: double, vocab: 2 }, config),
  tokenwise.klExactGradientF64(batch, { logits: double, refLogits: double, vocab: 2, gradKl: double }),
  tokenwise.placeScoresF64(batch, double),
  tokenwise.shapeRewardsF64(batch, { scores: double, kl: double }, { beta: 0.1 }),
  tokenwise.klInRewardF64(
    batch,
    { scores: double, oldLogProbs: double, refLogProbs: double },
    { kl: { estimator: "k1" } },
  ).rewards,
  tokenwise.overlongPenaltyF64({ scores: double, lengths: u }, { floor: "factor" }),
  tokenwise.discountedReturnsF64(batch, { rewards: double, bootstrap: double }, { across: "zero-step" }),
  tokenwise.gaeF64(batch, { rewards: double, values: double, bootstrap: double }, { lambda: 0.5, across: "step-over" })
    .advantages,
  tokenwise.monteCarloAdvantageF64(batch, { rewards: double, values: double, bootstrap: double }, { gamma: 0.5 })
    .returns,
  tokenwise.uniformCreditF64(batch, double),
  tokenwise.lastKCreditF64(batch, double, { k: 2 }),
  tokenwise.tokenWeightsF64(batch, { logProbs: double, advantages: double, weight: "structural", structural: double }),
  tokenwise.advantageJumpF64(batch, double),
  tokenwise.structuralWeightsF64(
    batch,
    { logProbs: double, advantages: double, complexity: double },
    { scope: "sequence" },
  ),
  tokenwise.trieComplexityF64(batch, groups, { tokens: u, rewards: double }, { spread: "inter-quartile-range" }),
  tokenwise.attentionCreditF64(batch, { scores: double, weights: double }),
  tokenwise.groupRelativeF64(groups, double, { singleton: "raw" }),
  tokenwise.leaveOneOutF64(groups, double, { singleton: "undefined" }),
  tokenwise.broadcastF64(batch, double),
  tokenwise.sequenceSumsF64(batch, double),
  tokenwise.whitenF64(batch, double, { place: "floor-variance", center: "keep-mean" }),
  tokenwise.aggregateF64(batch, double, aggregate).weights,
  tokenwise.surrogateF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { aggregate }).grad,
  tokenwise.gaeDecoupledF64(
    batch,
    { rewards: double, values: double, bootstrap: double },
    { lambdaPolicy: { alpha: 0.05 } },
  ).returns,
  tokenwise.tdLambdaF64(batch, { rewards: double, values: double, bootstrap: double }, { lambda: 0.5 }),
  tokenwise.nStepReturnsF64(
    batch,
    { rewards: double, values: double, bootstrap: double },
    { n: 2, across: "zero-step" },
  ),
  tokenwise.upgoF64(batch, { rewards: double, values: double, bootstrap: double }),
  tokenwise.vtraceF64(
    batch,
    { rewards: double, values: double, bootstrap: double, logProbs: double, oldLogProbs: double },
    { rhoBar: 2 },
  ).targets,
  tokenwise.retraceF64(
    batch,
    { rewards: double, values: double, actionValues: double, bootstrap: double, logProbs: double, oldLogProbs: double },
    { coefficient: "lambda" },
  ),
  tokenwise.pufferAdvantageF64(
    batch,
    { rewards: double, values: double, bootstrap: double, ratios: double },
    { variant: "v4" },
  ),
  tokenwise.remaxF64(batch, { rewards: double, baselines: double }).advantages,
  tokenwise.reinforcePlusPlusF64(batch, { rewards: double, bootstrap: double }, { whiten: { scale: "unit" } }).returns,
  tokenwise.opdAdvantageF64(
    batch,
    { teacherLogProbs: double, oldLogProbs: double, advantages: double },
    { coefficient: 0.5 },
  ),
  tokenwise.minillmAdvantageF64(
    batch,
    { teacherLogProbs: double, oldLogProbs: double },
    { from: "start", length: "off" },
  ),
  tokenwise.leaveOneOutScaledF64(groups, double, { epsilon: 0 }),
  tokenwise.normalizeScoresF64(groups, double, { mean: "batch", own: "left-out" }),
  tokenwise.gpgAdvantageF64(groups, double, { factor: "single" }),
  tokenwise.maxRlF64(groups, double, { divisor: "if-positive" }),
  tokenwise.bestOfGroupF64(groups, double, { scale: "batch-deviation" }),
  tokenwise.lengthWeightedBaselineF64(batch, groups, double, { singleton: "raw" }),
  tokenwise.decoupledScoresF64(groups, { sources: double, weights: wide }, { epsilon: 0 }),
  tokenwise.gdpoF64(batch, groups, { sources: double, weights: wide }, { group: { epsilon: 0 }, factors: "single" }),
  tokenwise.reinforcePlusPlusBaselineF64(batch, groups, double, { singleton: "raw" }),
  tokenwise.optimalTokenBaselineF64(
    batch,
    groups,
    { rewards: double, oldLogProbs: double, sumPiSquared: double },
    { zeroTail: "own-return" },
  ).returns,
  tokenwise.tirOptimalTokenBaselineF64(batch, groups, {
    rewards: double,
    oldLogProbs: double,
    sumPiSquared: double,
    isWeights: double,
  }).returns,
  tokenwise.roleBaselineF64(new tokenwise.RoleBaselines(2, 0.5), { roles: u, scores: double }),
];
export const doubleNumbers: number[] = [
  tokenwise.ppoClipF64(
    batch,
    { logProbs: double, oldLogProbs: double, advantages: double },
    { dualClip: { negativeOnly: 3 }, logRatioBound: null },
  ).clipFractionLower,
  tokenwise.valueLossF64(
    batch,
    { predictions: double, values: double, returns: double },
    { clip: null, factor: "whole" },
  ).clipFraction,
  tokenwise.entropyBonusF64(batch, double, { coefficient: 0.5 }).loss,
  tokenwise.meanF64(batch, double, { divisor: "count-plus-epsilon" }),
  tokenwise.varianceF64(batch, double, { spread: "population" }),
  tokenwise.correlationF64(batch, { x: double, y: double }),
  tokenwise.explainedVarianceF64(batch, { values: double, returns: double }, { epsilon: 0 }),
  tokenwise.klMeansF64(batch, { logProbs: double, refLogProbs: double }).k3,
  tokenwise.clipFractionsF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { dualClip: "off" })
    .dual,
  tokenwise.momentsF64(batch, double).m2,
  tokenwise.coMomentsF64(batch, { x: double, y: double }).coMoment,
  tokenwise.analysisF64(batch, { oldLogProbs: double, advantages: double, rewards: double })["analysis/wH_per_token"],
  tokenwise.analysisSumsF64(batch, { oldLogProbs: double, advantages: double, rewards: double }).moments.count,
  tokenwise.expF64(1),
  tokenwise.lnF64(1),
  tokenwise.sqrtF64(1),
  tokenwise.reinforceF64(
    batch,
    { logProbs: double, oldLogProbs: double, advantages: double, weights: double },
    { divisor: "count" },
  ).kl,
  tokenwise.cispoF64(
    batch,
    { logProbs: double, oldLogProbs: double, advantages: double },
    { bounds: { kind: "absolute", high: 5 } },
  ).clipFraction,
  tokenwise.tisLossF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { aggregate }).loss,
  tokenwise.clipCovF64(
    batch,
    { logProbs: double, oldLogProbs: double, advantages: double, selected: Uint8Array.of(0, 1) },
    { lower: 0 },
  ).loss,
  tokenwise.clipCovSelectionF64(
    batch,
    { logProbs: double, oldLogProbs: double, advantages: double },
    { clip: { ratio: 0.5 }, seed: 7 },
  ).length,
  tokenwise.klCovF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { klCoef: 1 }).loss,
  tokenwise.dppoTvF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { ratioCap: 20 }).loss,
  tokenwise.dppoKlF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { logRatioBound: null })
    .loss,
  tokenwise.droF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { beta: 0.1 }).loss,
  tokenwise.gmpoF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { counts: { sequences: 8 } })
    .loss,
  tokenwise.gspoF64(
    batch,
    { logProbs: double, oldLogProbs: double, advantages: double },
    { form: "token", logRatioCap: 10 },
  ).loss,
  tokenwise.luspoF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { clipLow: 0.1 }).loss,
  tokenwise.gvpoF64(batch, groups, { logProbs: double, oldLogProbs: double, advantages: double }, { beta: 0.5 }).loss,
  tokenwise.positiveNllF64(batch, { logProbs: double, scores: double }, { mu: 0.1 }).loss,
  tokenwise.dualGameF64(
    batch,
    { logProbs: double, oldLogProbs: double, advantages: double, refLogProbs: double, weight: "kl-gated" },
    { gradient: "through", aggregate },
  ).clipFractionUpper,
  tokenwise.sapoF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { tauNegative: 2 }).loss,
  tokenwise.klLossF64(batch, { logProbs: double, refLogProbs: double }, { coefficient: 0.1 }).mean,
  tokenwise.opdLossF64(
    batch,
    { logProbs: double, oldLogProbs: double, teacherLogProbs: double, weights: double },
    { route: "supervised", maxLoss: null },
  ).absLoss,
  tokenwise.refKlF64(batch, { logProbs: double, oldLogProbs: double, refLogProbs: double }, { fall: 0.1 }).fallen,
  tokenwise.iwOpdF64(batch, { logProbs: double, oldLogProbs: double, teacherLogProbs: double }, { gamma: 1 })
    .meanWeight,
  tokenwise.forwardKlTopkF64(
    batch,
    { logProbs: double, teacherLogProbs: double, k: 1, teacherIds: u, studentIds: u },
    { logProbFloor: null },
  ).studentMass.min,
  tokenwise.topkJsdF64(
    batch,
    { logProbs: double, teacherLogProbs: double, k: 1, weights: double },
    { rest: "renormalize" },
  ).loss,
  tokenwise.mixedKlTopkF64(
    batch,
    { logProbs: double, teacherLogProbs: double, k: 1, entropies: double },
    { outside: -100 },
  ).loss,
  tokenwise.generalizedJsdF64(batch, { logits: double, teacherLogits: double, vocab: 1 }, { beta: 1 }).loss,
  tokenwise.bypassLossF64(
    batch,
    { logProbs: double, oldLogProbs: double, advantages: double },
    { weights: { level: "sequence" }, form: "reinforce" },
  ).loss,
  tokenwise.vespoF64(batch, { logProbs: double, oldLogProbs: double, advantages: double }, { kPositive: 1 }).phiMean,
];

const moments: tokenwise.Moments = tokenwise.momentsMerge(tokenwise.moments(batch, single), {
  count: 0,
  mean: 0,
  m2: 0,
});
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

const names: [tokenwise.ProfileName, tokenwise.ProfileName] = ["paper", "openrlhf-0.11"];
export const told: tokenwise.ProfileDifference[] = [
  ...tokenwise.compareProfiles(batch, groups, { rewards: single, logProbs: single, oldLogProbs: single }, names, {
    estimator: "whitened",
  }),
  ...tokenwise.compareProfilesF64(
    batch,
    groups,
    { rewards: double, values: double, logProbs: double, oldLogProbs: double },
    names,
    { lambda: null },
  ),
];
export const held: Record<string, string> = tokenwise.conventions("verl-0.9.1");

const faults: tokenwise.LintReport = tokenwise.lint(
  batch,
  { rewards: double, groups: new Uint32Array(2) },
  { firstUpdate: true, limit: 10 },
);
export const faulty: [tokenwise.LintRule, number | null][] = faults.findings.map(({ rule, token }) => [rule, token]);
