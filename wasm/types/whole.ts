// Declarations of the classes and functions that are not formulas of the catalogue; the whole package has them.

/** One condition a token or sequence must meet to be kept. */
export interface Criterion {
  /** What is measured: `k1 = −δ`, `k2 = δ²/2`, `k3 = e^δ − 1 − δ`; default "token-k1". */
  option?:
    | "token-k1"
    | "token-k2"
    | "token-k3"
    | "seq-sum-k1"
    | "seq-sum-k2"
    | "seq-sum-k3"
    | "seq-mean-k1"
    | "seq-mean-k2"
    | "seq-mean-k3"
    | "seq-max-k2"
    | "seq-max-k3";
  /** k1 only: `ln lower ≤ k1`; default 0.5. */
  lower?: number;
  /** k1: `k1 ≤ ln upper`; the others: statistic ≤ `upper`. Default 2. */
  upper?: number;
}

/** The conventions of {@link rolloutRejection}. */
export interface RejectionConfig {
  /** All must be met; none keeps everything. */
  criteria?: Criterion[];
  /** What a mean over a sequence divides by; default "count". */
  divisor?: Divisor;
}

/** Reads verl's `rollout_rs` and `rollout_rs_threshold`, such as "token_k1,seq_mean_k3" and "0.5_2.0,0.01". */
export function parseRejection(options: string, thresholds: string): Required<Criterion>[];

/** Reads verl's `rollout_is_threshold`: "U" truncates, "L_U" puts 0 outside. */
export function parseWeightBound(threshold: string): WeightBound;

/** How {@link bypassLoss} corrects for the sampler. */
export interface BypassConfig {
  /** The importance weights; default none. */
  weights?: RolloutConfig;
  /** Default none is rejected. */
  rejection?: RejectionConfig;
  /** Default "ppo-clip". */
  form?: "ppo-clip" | "reinforce";
  /** The config of that loss. */
  policy?: PpoConfig;
  /** What the means of the mismatch divide by; default "count". */
  divisor?: Divisor;
}

/** λ of the policy's estimate: fixed, or by length, `1 − 1 / (α · length)`. */
export type PolicyLambda = number | { alpha: number };

/** The running baseline of each role, all 0 at first; {@link roleBaseline} goes on from it. */
export class RoleBaselines {
  /** `decay` in [0, 1] is the share of the old baseline that an update keeps. */
  constructor(roles: number, decay: number);
  /** What the next score of each role is compared with. */
  readonly values: Float64Array;
  /** A second handle to the same baselines, freed by itself. */
  clone(): RoleBaselines;
  /** Gives the memory back at once; otherwise it goes with the object, by the garbage collector. */
  free(): void;
}

/** Each score against what its role has scored so far. `A_i = s_i − b_role`, then `b_role ← d b_role + (1 − d) s_i` */
export function roleBaseline(
  baselines: RoleBaselines,
  input: { roles: Uint32Array; scores: Float32Array },
): Float32Array;
/** {@link roleBaseline} in f64. */
export function roleBaselineF64(
  baselines: RoleBaselines,
  input: { roles: Uint32Array; scores: Float64Array },
): Float64Array;

/**
 * How often each magnitude occurred, in logarithmic buckets: quantiles of a stream, with a relative error of at most
 * 1/32.
 */
export class Histogram {
  constructor();
  /** Counts the kept values. */
  add(batch: Batch, values: Float32Array | Float64Array): void;
  /** Joins the counts of two disjoint sets of numbers; exact, in any order. */
  merge(other: Histogram): void;
  /** How many numbers were counted, NaN included. */
  readonly count: number;
  /** The number with a share `level` of the others below it: the middle of its bucket. */
  quantile(level: number): number;
  /** A second handle to the same histogram, freed by itself. */
  clone(): Histogram;
  /** Gives the memory back at once; otherwise it goes with the object, by the garbage collector. */
  free(): void;
}

/** Mean and spread of all scores so far, to normalise rewards across batches. */
export class RunningMoments {
  constructor();
  /** Takes in a batch; gives its own mean and deviation (NaN for a batch of one). */
  update(values: Float32Array | Float64Array): { mean: number; std: number };
  /** How many numbers were taken in. */
  readonly count: number;
  /** Their mean. */
  readonly mean: number;
  /** Their variance, divided by `n`. */
  readonly variance: number;
  /** Their standard deviation, divided by `n − 1`; 1 at the start. */
  readonly std: number;
  /** Gives the memory back at once; otherwise it goes with the object, by the garbage collector. */
  free(): void;
}

/** Count, mean and sum of squared deviations of some numbers. */
export interface Moments {
  count: number;
  mean: number;
  m2: number;
}

/** The moments of two quantities together. */
export interface CoMoments {
  count: number;
  meanX: number;
  meanY: number;
  m2X: number;
  m2Y: number;
  /** Sum of the products of the deviations. */
  coMoment: number;
}

/** The five numbers of {@link analysis}, by the keys a trainer logs them under. */
export interface AnalysisEntries {
  "analysis/entropy_per_token_mean": number;
  "analysis/covariance_mean": number;
  "analysis/wH_sum": number;
  "analysis/wH_per_token": number;
  "analysis/reward_sum_mean": number;
}

/** The sums behind {@link AnalysisEntries}. */
export interface AnalysisSums {
  /** Of advantages (x) and log-probabilities (y). */
  moments: CoMoments;
  entropySum: number;
  whSum: number;
  rewardSum: number;
  sequences: number;
}

/** The moments of two disjoint sets of numbers together. */
export function momentsMerge(a: Moments, b: Moments): Moments;
/** The mean by a named divisor. */
export function momentsMean(moments: Moments, config?: MeanConfig): number;
/** The variance by named conventions. */
export function momentsVariance(moments: Moments, config?: VarianceConfig): number;

/** The moments of two disjoint sets of pairs together. */
export function coMomentsMerge(a: CoMoments, b: CoMoments): CoMoments;
/** The covariance. `Σ (x − x̄)(y − ȳ) / (n − 1)`, or `/ n` for "population" */
export function coMomentsCovariance(moments: CoMoments, config?: { spread?: Spread }): number;
/** Pearson's correlation; NaN where one quantity is constant. */
export function coMomentsCorrelation(moments: CoMoments): number;

/** The sums of two disjoint batches together. */
export function analysisMerge(a: AnalysisSums, b: AnalysisSums): AnalysisSums;
/** The five numbers of merged sums. */
export function analysisEntries(sums: AnalysisSums): AnalysisEntries;

/**
 * Merges the values of a metric, one per micro-batch, by verl's rule for its key; losses add up if their counts were
 * those of the step.
 */
export function reduceMetric(key: string, values: Float64Array, globalCounts?: boolean): number;

/** Where {@link adaptiveKl} is and where it wants to be. */
export interface AdaptiveKlConfig {
  /** The price now, not negative; default 0.001. */
  beta?: number;
  /** The KL wanted; default 0.1. */
  target?: number;
  /** Over how many samples the price may move by its full step; default 10000. */
  horizon?: number;
}

/** The price of the next step, from the KL of a step over `samples` sequences: it never moves. */
export function fixedKl(beta: number, kl: number, samples: number): number;

/** The price of the next step. `β · (1 + clip(KL / target − 1, −0.2, 0.2) · n / horizon)` */
export function adaptiveKl(config: AdaptiveKlConfig | undefined, kl: number, samples: number): number;

/** How a token's entropy is weighed: `p (1 − p) |A|`, the same gated by `|log π − log π_ref|`, or given. */
export type TokenWeight = "plain" | "kl-gated" | "structural";

/** A target that follows what was measured: `factor` (1.1) times the mean of the last `length` (10) measurements. */
export interface Follow {
  length?: number;
  factor?: number;
}

/** Where {@link LinearKl} starts, where it wants to be, and how fast it goes. */
export interface LinearKlConfig {
  /** The first price; default 0.001. */
  beta?: number;
  /** The KL wanted; default 0.02. */
  target?: number;
  /** η_β; default 0.01. */
  learningRate?: number;
  /** The lowest price; default 1e-6. */
  betaMin?: number;
  /** Whether the target follows the KL measured; default null, no. */
  follow?: Follow | null;
}

/** A price of KL that moves by a share of how far the KL is from its target. `β ← max(β_min, β + η (KL − D))` */
export class LinearKl {
  constructor(config?: LinearKlConfig);
  /** Takes the KL of a step, gives the price of the next. */
  update(kl: number): number;
  /** Another machine in the same state. */
  clone(): LinearKl;
  /** The price now. */
  readonly beta: number;
  /** The KL wanted now. */
  readonly target: number;
  /** Gives the memory back at once; otherwise it goes with the object, by the garbage collector. */
  free(): void;
}

/** How the budget B follows from B0. */
export type BudgetSchedule =
  | { kind: "constant" }
  | { kind: "reward-std-usage"; share: number; totalSteps: number }
  | { kind: "exponential"; alpha: number; totalSteps: number }
  | { kind: "plateau"; decay: number; minDelta: number; patience: number; kappa: number; budgetMin: number };

/** The settings of {@link EntropyBudget}. */
export interface EntropyBudgetConfig {
  /** The first price; default 0. */
  lambda?: number;
  /** η_λ; default 0.02. */
  learningRate?: number;
  /** The highest price; default null, none. */
  lambdaMax?: number | null;
  /** `wH` per token is held to this range before λ sees it; default null, not. */
  whRange?: { low: number; high: number } | null;
  /** Where B0 comes from; default a warm-up of 10 steps with ρ 0.45. */
  source?: { kind: "given"; b0: number } | { kind: "warm-up"; steps: number; rho: number };
  /** Whether B0 follows what is used; default null, no. */
  follow?: Follow | null;
  /** Default constant. */
  schedule?: BudgetSchedule;
  /** What to do when entropy is gone; default "off". */
  guard?: "off" | "on";
}

/** What was measured in one step. */
export interface BudgetObservation {
  step: number;
  /** Σ w H over the kept tokens. */
  whSum: number;
  /** Kept tokens. */
  tokenCount: number;
  /** Default 0. */
  rewardStd?: number;
  /** Default 0. */
  rewardSumMean?: number;
}

/** What a step made of the budget; null is not yet known. */
export interface BudgetReport {
  lambda: number;
  budget: number | null;
  budgetPerToken: number | null;
  whPerToken: number;
  usageRatio: number | null;
  warmUpFinished: boolean;
  plateau: boolean;
  collapse: boolean;
}

/** A price of entropy that rises while more is used than the budget allows. `λ ← max(0, λ + η (wH_sum / N − B / N))` */
export class EntropyBudget {
  constructor(config?: EntropyBudgetConfig);
  /** Takes in a step, gives the price of the next update. */
  update(observation: BudgetObservation): BudgetReport;
  /** Another machine in the same state. */
  clone(): EntropyBudget;
  /** The price now. */
  readonly lambda: number;
  /** Gives the memory back at once; otherwise it goes with the object, by the garbage collector. */
  free(): void;
}

/** The settings of {@link DualGame}; a number is a fixed price of KL. */
export interface DualGameRules {
  kl?: number | LinearKlConfig | AdaptiveKlConfig;
  budget?: EntropyBudgetConfig;
}

/** What a step of {@link DualGame} reads. */
export interface DualGameStep<A> {
  /** Default "plain". */
  weight?: TokenWeight;
  /** Weights made beforehand; needed where the weight is "structural". */
  structural?: A;
  /** Log-probabilities of the reference; without them the price of KL stays. */
  refLogProbs?: A;
  oldLogProbs: A;
  advantages: A;
  rewards: A;
}

/** What a step of {@link DualGame} found out; `entries` has every key as a trainer logs it. */
export interface DualGameReport {
  lambda: number;
  beta: number;
  budget: BudgetReport;
  entries: { [key: string]: number };
}

/** Both prices, moved once per batch by what the batch shows. */
export class DualGame {
  constructor(config?: DualGameRules);
  /** Measures a batch, moves both prices, and tells everything. */
  step(batch: Batch, input: DualGameStep<Float32Array> | DualGameStep<Float64Array>): DualGameReport;
  /** Another game in the same state. */
  clone(): DualGame;
  /** The price of entropy now. */
  readonly lambda: number;
  /** The price of KL now. */
  readonly beta: number;
  /** Gives the memory back at once; otherwise it goes with the object, by the garbage collector. */
  free(): void;
}

/** What {@link compareProfiles} reads. What is left out is left out of the chain, with all that needs it. */
export interface ProfileInput<A> {
  /** Token rewards, before any KL. */
  rewards: A;
  /** One score per sequence; without them the rewards are added up, over the slots a profile says. */
  scores?: A;
  /** The critic's values when the batch was collected. */
  values?: A;
  /** Its new values; with them and `values` there is a value loss. */
  predictions?: A;
  /** Log-probabilities of the policy being trained. */
  logProbs: A;
  /** Those of the policy that sampled, as the trainer computes them. */
  oldLogProbs: A;
  /** Those of the reference; with them there is a KL in the reward, and a KL loss. */
  refLogProbs?: A;
  /** Those the sampler reported; with them every policy loss is weighed. */
  rolloutLogProbs?: A;
}

/** What both sides are given alike; `null` or nothing leaves a number to each profile. */
export interface CompareConfig {
  /** Discount γ; default 1. */
  gamma?: number;
  /** λ of the generalized advantage estimate. */
  lambda?: number | null;
  /** The price β of the KL in the reward. */
  beta?: number | null;
  /** ε⁻ of the clipped surrogate; default 0.2. */
  clipLow?: number;
  /** ε⁺ of it; default 0.2. */
  clipHigh?: number;
  /** The bound of its second clip, above 1. */
  dualClip?: number | null;
  /** How far from the old values the critic's predictions are held. */
  valueClip?: number | null;
  /** Which advantages the losses are given; default "group-relative". */
  estimator?: "group-relative" | "leave-one-out" | "whitened";
  /** How the clipped surrogate, CISPO, the KL loss and the value loss aggregate; default "token-mean". */
  mode?: "token-mean" | "token-sum" | "seq-mean-token-sum" | "seq-mean-token-mean";
}

/** A result that comes out differently under two profiles, and why. */
export interface ProfileDifference {
  /** Which result, such as "gae.advantages" or "ppo_clip". */
  result: string;
  /** What one entry of it stands for. */
  shape: "tokens" | "sequences" | "scalar";
  /** Where the two are farthest apart; `null` for a single number. */
  index: number | null;
  /** Both numbers there; `null` where the batch has too little for one of the two. */
  values: [number | null, number | null];
  /** The code of the error in that case. */
  refused: [string | null, string | null];
  /** How far apart they are; NaN, which counts as farthest, where one of them is no number. */
  difference: number;
  /** How many entries differ. */
  count: number;
  /** The conventions that made it so, with what they are on both sides. */
  causes: { convention: string; values: [string, string] }[];
}

/** Runs one batch under two profiles and tells which results differ, by how much, and by which conventions. */
export function compareProfiles(
  batch: Batch,
  groups: Groups,
  input: ProfileInput<Float32Array>,
  profiles: [ProfileName, ProfileName],
  config?: CompareConfig,
): ProfileDifference[];
/** {@link compareProfiles} in f64. */
export function compareProfilesF64(
  batch: Batch,
  groups: Groups,
  input: ProfileInput<Float64Array>,
  profiles: [ProfileName, ProfileName],
  config?: CompareConfig,
): ProfileDifference[];
/** A rule of {@link lint}. */
export type LintRule =
  | "not-a-number"
  | "reward-on-dropped-slot"
  | "last-token-hidden"
  | "nothing-kept"
  | "ratio-at-first-update"
  | "returns-disagree"
  | "group-not-centred"
  | "tied-group"
  | "log-prob-above-zero"
  | "score-missing"
  | "empty-sequence";

/** A column that {@link lint} reads: one number per token slot. */
export type LintColumn =
  | "logProbs"
  | "oldLogProbs"
  | "refLogProbs"
  | "rolloutLogProbs"
  | "advantages"
  | "returns"
  | "values"
  | "rewards"
  | "tokenScores"
  | "entropies"
  | "oldEntropies"
  | "predictions";

/** What {@link lint} reads: whatever columns there are, and what there is once a sequence. */
export type LintInput = Partial<Record<LintColumn, Float64Array>> & {
  /** Task scores, one per sequence. */
  scores?: Float64Array;
  /** 1 for sequences that have a score; without it all have. */
  scored?: Uint8Array;
  /** 1 for sequences of the first update after sampling, where every ratio must be 1. */
  firstUpdate?: Uint8Array;
  /** Which prompt a sequence answers: an id below the number of sequences, or 2³² − 1 for none. */
  groups?: Uint32Array;
};

/** How {@link lint} judges. */
export interface LintConfig {
  /** How far two numbers may differ and still count as equal; default 1e-4. */
  tolerance?: number;
  /** All sequences are of the first update after sampling. */
  firstUpdate?: boolean;
  /** How many findings are told; all are counted. */
  limit?: number;
}

/** One fault. */
export interface LintFinding {
  /** The rule that was broken. */
  rule: LintRule;
  /** The sequence, counted from 0; of a group its first one. */
  sequence: number;
  /** The token in the sequence, counted from 0, if it is about one. */
  token: number | null;
  /** The column it is about, if it is about one. */
  field: LintColumn | null;
  /**
   * Its numbers, those that the rule has: `value`, `more`, `last`, `ratio`, `tokens`, `returned`, `advantage`,
   * `wanted`, `size`, `sum`, `score`.
   */
  numbers: Record<string, number>;
  /** For `not-a-number`: how many tokens have a fault in the columns computed after it. */
  spoilt: Partial<Record<LintColumn, number>> | null;
}

/** What {@link lint} gives. */
export interface LintReport {
  /** How often each rule was broken. */
  counts: Record<LintRule, number>;
  /** The faults: those of each sequence, then those of groups, in the order of their ids. */
  findings: LintFinding[];
}

/** The usual faults of logged rollouts: those the command `tokenwise lint` finds, in numbers. */
export function lint(batch: Batch, input: LintInput, config?: LintConfig): LintReport;
