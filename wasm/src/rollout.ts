/** Log-probabilities of the tokens as trainer and sampler computed them; `δ = log π_old − log π_rollout`. */
export interface RolloutInput<A> {
  oldLogProbs: A;
  rolloutLogProbs: A;
}

/** A weight too large or too small: left, held to `upper`, 0 outside the band, or held to the band. */
export type WeightBound =
  | { kind: "unbounded" }
  | { kind: "truncate"; upper: number }
  | { kind: "zero" | "clamp"; lower: number; upper: number };

/** What a token counts that the sampler could not score: NaN (default), or no correction. */
export type Unscored = "nan" | "ignore";

/** The conventions of {@link rolloutWeights}. */
export interface RolloutConfig {
  /** `e^δ` of each token (default), `e^{Σ δ}`, or `e^{Σ δ / n}`. */
  level?: "token" | "sequence" | "geometric";
  /** Default truncated at 2. */
  bound?: WeightBound;
  /** Log-ratios are bounded to ± this; default 20, null for none. */
  logBound?: number | null;
  /** Whether the weights are divided by their mean; default "off". */
  normalize?: "off" | "by-level" | "tokens";
  /** Default "nan". */
  unscored?: Unscored;
  /** Default "count". */
  divisor?: Divisor;
}

/** One condition a token or sequence must meet to be kept. */
export interface Criterion {
  /** What is measured: `k1 = −δ`, `k2 = δ²/2`, `k3 = e^δ − 1 − δ`; default "token-k1". */
  option?:
    | "token-k1" | "token-k2" | "token-k3" | "seq-sum-k1" | "seq-sum-k2" | "seq-sum-k3" | "seq-mean-k1"
    | "seq-mean-k2" | "seq-mean-k3" | "seq-max-k2" | "seq-max-k3";
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

/** The conventions of {@link rolloutGate}. */
export interface GateConfig {
  /** Default "off". */
  level?: "off" | "token" | "sequence";
  /** Default "ratio". */
  statistic?: "ratio" | "binary-kl" | "total-variation";
  /** Default "mask". */
  mode?: "clip" | "mask";
  /** The lower end of the band; default 0.5, for a divergence it must be 0. */
  lower?: number;
  /** The upper end; default 5. */
  upper?: number;
}

/** Which ratios a token may have before its whole sequence goes. */
export interface VetoConfig {
  /** Default 1e-4; 0 for no lower end. */
  lower?: number;
  /** Default Infinity: no upper end. */
  upper?: number;
}

/** The conventions of {@link offPolicySequenceMask}. */
export interface OffPolicyConfig {
  /** The mean KL a sequence may have; default 1e-4. */
  threshold?: number;
  /** Default "nan". */
  unscored?: Unscored;
}

/** When the scores of a prompt teach something: unless all equal (default), by their deviation, or by their mean. */
export type GroupRule =
  | { kind: "not-constant" }
  | { kind: "spread"; atLeast: number }
  | { kind: "mean-between"; low: number; high: number };

/** How a score becomes a weight: `|s|^power` (default, 2), 1 at largest and smallest, or 0.4 at the largest, else 0.1. */
export type PfPpoRule = { kind: "power"; power: number } | { kind: "max-min" | "max-random" };

/** The keys of {@link RolloutMismatch}. */
export type RolloutMismatchKey =
  | "training_ppl" | "training_log_ppl" | "kl" | "k3_kl" | "rollout_ppl" | "rollout_log_ppl" | "log_ppl_diff"
  | "log_ppl_abs_diff" | "log_ppl_diff_max" | "log_ppl_diff_min" | "ppl_ratio" | "chi2_token" | "chi2_seq";

/** What {@link rolloutMismatch} gives, under verl's keys. */
export type RolloutMismatch = Record<`rollout_corr/${RolloutMismatchKey}`, number>;

/** The keys of {@link RolloutWeightMetrics}. */
export type RolloutWeightMetricsKey =
  | "mean" | "std" | "max" | "min" | "eff_sample_size" | "ratio_fraction_high" | "ratio_fraction_low" | "seq_mean"
  | "seq_std" | "seq_max" | "seq_min" | "seq_max_deviation" | "seq_fraction_high" | "seq_fraction_low";

/** What {@link rolloutWeightMetrics} gives, under verl's keys; two of them only where the config asks for it. */
export type RolloutWeightMetrics = Record<`rollout_corr/rollout_is_${RolloutWeightMetricsKey}`, number> & {
  [key in `rollout_corr/rollout_is_${"oob_ratio" | "batch_norm_factor"}`]?: number;
};

/** What {@link rolloutRejectionMetrics} gives, under verl's keys: the totals, and the entries of every criterion. */
export type RejectionMetrics = Record<`rollout_corr/rollout_rs_${"masked_fraction" | "seq_masked_fraction"}`, number> & {
  [key in `rollout_corr/rollout_rs_${string}`]?: number;
};

/** What {@link probabilityDifference} gives, under verl's keys. */
export type ProbabilityDifference = Record<
  | `training/rollout_probs_diff_${"valid" | "max" | "mean" | "std"}`
  | "training/rollout_actor_probs_pearson_corr",
  number
>;

/**
 * How much each token counts, so that the trainer's policy might have drawn it; `factor` is what the weights were divided by.
 * `e^δ`, bounded
 */
export function rolloutWeights(
  batch: Batch, input: RolloutInput<Float32Array>, config?: RolloutConfig,
): { weights: Float32Array; factor: number };
/** {@link rolloutWeights} in f64. */
export function rolloutWeightsF64(
  batch: Batch, input: RolloutInput<Float64Array>, config?: RolloutConfig,
): { weights: Float64Array; factor: number };

/** What the weights of {@link rolloutWeights} do to the sample. */
export function rolloutWeightMetrics(
  batch: Batch, input: RolloutInput<Float32Array>, config?: RolloutConfig,
): RolloutWeightMetrics;
/** {@link rolloutWeightMetrics} in f64. */
export function rolloutWeightMetricsF64(
  batch: Batch, input: RolloutInput<Float64Array>, config?: RolloutConfig,
): RolloutWeightMetrics;

/** How far the trainer's log-probabilities are from the sampler's: KL, perplexities, χ². */
export function rolloutMismatch(batch: Batch, input: RolloutInput<Float32Array>, config?: MeanConfig): RolloutMismatch;
/** {@link rolloutMismatch} in f64. */
export function rolloutMismatchF64(batch: Batch, input: RolloutInput<Float64Array>, config?: MeanConfig): RolloutMismatch;

/** How far trainer and sampler are apart in probability: `|p − q|` and Pearson's correlation. */
export function probabilityDifference(batch: Batch, input: RolloutInput<Float32Array>): ProbabilityDifference;
/** {@link probabilityDifference} in f64. */
export function probabilityDifferenceF64(batch: Batch, input: RolloutInput<Float64Array>): ProbabilityDifference;

/** Which tokens stay (1): those whose trainer and sampler agree closely enough, by every criterion. */
export function rolloutRejection(batch: Batch, input: RolloutInput<Float32Array>, config?: RejectionConfig): Uint8Array;
/** {@link rolloutRejection} in f64. */
export function rolloutRejectionF64(batch: Batch, input: RolloutInput<Float64Array>, config?: RejectionConfig): Uint8Array;

/** What {@link rolloutRejection} sees and drops. */
export function rolloutRejectionMetrics(
  batch: Batch, input: RolloutInput<Float32Array>, config?: RejectionConfig,
): RejectionMetrics;
/** {@link rolloutRejectionMetrics} in f64. */
export function rolloutRejectionMetricsF64(
  batch: Batch, input: RolloutInput<Float64Array>, config?: RejectionConfig,
): RejectionMetrics;

/** OpenRLHF's gate: a weight per token, 0 or clipped where trainer and sampler disagree too much. */
export function rolloutGate(
  batch: Batch, input: RolloutInput<Float32Array>, config?: GateConfig,
): { weights: Float32Array; filtered: number; kl: number };
/** {@link rolloutGate} in f64. */
export function rolloutGateF64(
  batch: Batch, input: RolloutInput<Float64Array>, config?: GateConfig,
): { weights: Float64Array; filtered: number; kl: number };

/** Drops (0) tokens that trainer and sampler score too differently. `½ δ² ≤ τ` */
export function klMask(batch: Batch, input: RolloutInput<Float32Array>, tau: number): Uint8Array;
/** {@link klMask} in f64. */
export function klMaskF64(batch: Batch, input: RolloutInput<Float64Array>, tau: number): Uint8Array;

/** Drops (0) every sequence with a token whose ratio is outside the band. `lower ≤ e^δ ≤ upper` */
export function sequenceVeto(batch: Batch, input: RolloutInput<Float32Array>, config?: VetoConfig): Uint8Array;
/** {@link sequenceVeto} in f64. */
export function sequenceVetoF64(batch: Batch, input: RolloutInput<Float64Array>, config?: VetoConfig): Uint8Array;

/** Drops (0) the tokens scored most differently, until the mean of `δ²` over the rest is below τ. */
export function m2poMask(batch: Batch, input: RolloutInput<Float32Array>, tau: number): Uint8Array;
/** {@link m2poMask} in f64. */
export function m2poMaskF64(batch: Batch, input: RolloutInput<Float64Array>, tau: number): Uint8Array;

/** Drops (0) the bad tokens of sequences the policy has left. `A_t ≥ 0 ∨ Σ_t (log π_old − log π) / n_i ≤ τ` */
export function offPolicySequenceMask(
  batch: Batch, input: { logProbs: Float32Array; oldLogProbs: Float32Array; advantages: Float32Array }, config?: OffPolicyConfig,
): Uint8Array;
/** {@link offPolicySequenceMask} in f64. */
export function offPolicySequenceMaskF64(
  batch: Batch, input: { logProbs: Float64Array; oldLogProbs: Float64Array; advantages: Float64Array }, config?: OffPolicyConfig,
): Uint8Array;

/** Keeps (1) the share of tokens where the policy was least sure. */
export function highEntropyMask(batch: Batch, entropies: Float32Array, share: number): Uint8Array;
/** {@link highEntropyMask} in f64. */
export function highEntropyMaskF64(batch: Batch, entropies: Float64Array, share: number): Uint8Array;

/** Which prompts stay (1), one entry per group: those whose samples differ enough to learn from. */
export function dynamicSamplingFilter(groups: Groups, scores: Float32Array, rule?: GroupRule): Uint8Array;
/** {@link dynamicSamplingFilter} in f64. */
export function dynamicSamplingFilterF64(groups: Groups, scores: Float64Array, rule?: GroupRule): Uint8Array;

/** How often each sequence should be drawn again, by its score. `w_i = max(f(s_i) + 1e-8, 1e-8)` */
export function pfPpoWeights(scores: Float32Array, rule?: PfPpoRule): Float64Array;
/** {@link pfPpoWeights} in f64. */
export function pfPpoWeightsF64(scores: Float64Array, rule?: PfPpoRule): Float64Array;

/** Draws sequences with replacement, each in proportion to its weight; the same seed draws the same. */
export function pfPpoIndices(weights: Float64Array, seed: number, draws: number): Uint32Array;

/** The mask of a response: 1 up to and including the first token that ends it. */
export function responseMaskFromEos(layout: RawLayout, tokens: Uint32Array, eos: Uint32Array): Uint8Array;

/** Reads verl's `rollout_rs` and `rollout_rs_threshold`, such as "token_k1,seq_mean_k3" and "0.5_2.0,0.01". */
export function parseRejection(options: string, thresholds: string): Required<Criterion>[];

/** Reads verl's `rollout_is_threshold`: "U" truncates, "L_U" puts 0 outside. */
export function parseWeightBound(threshold: string): WeightBound;
