/** Log-probabilities of policy and reference. */
export interface KlInput<A> {
  logProbs: A;
  refLogProbs: A;
}

/** Which estimate of the KL, with which gradient and bounds. */
export interface KlConfig {
  /** From `d = log π − log π_ref`: `d` (default), `|d|`, `d²/2`, `e^{−d} − 1 + d`. */
  estimator?: "k1" | "abs" | "k2" | "k3";
  /** The derivative of the value (default), or that of `d²/2` whatever the value. */
  gradient?: "own" | "straight-through";
  /** None (default); verl's for k3; OpenRLHF's for every estimator. */
  bounds?: "unbounded" | "k3-only" | "every";
}

/** Logits of policy and reference. */
export interface KlExactInput<A> {
  /** `[tokens, vocab]`, row-major: the policy's row that predicted each token. */
  logits: A;
  /** The reference's rows, of the same shape. */
  refLogits: A;
  /** Size of the vocabulary. */
  vocab: number;
}

/** What {@link klExactGradient} reads. */
export interface KlExactGradientInput<A> extends KlExactInput<A> {
  /** ∂loss/∂kl of each token. */
  gradKl: A;
}

/** What {@link klImportanceWeighted} reads. */
export interface KlWeightedInput<A> extends KlInput<A> {
  /** Log-probabilities of the policy that sampled. */
  oldLogProbs: A;
}

/** Which weight and which estimate. */
export interface KlWeightedConfig {
  /** Default "token". */
  weight?: "token" | "sequence" | "token-bounded" | "token-finite" | "score-function";
  /** Default k3, its own gradient, unbounded. */
  kl?: KlConfig;
}

/**
 * Per-token estimate of how far the policy has moved from the reference.
 * `d = log π − log π_ref`; k1: `d`, abs: `|d|`, k2: `d²/2`, k3: `e^{−d} − 1 + d`
 */
export function klEstimate(batch: Batch, input: KlInput<Float32Array>, config?: KlConfig): Float32Array;
/** {@link klEstimate} in f64. */
export function klEstimateF64(batch: Batch, input: KlInput<Float64Array>, config?: KlConfig): Float64Array;

/**
 * The derivative of each token's KL estimate with respect to its log-probability.
 * k1: `1`, abs: `sign d`, k2: `d`, k3: `1 − e^{−d}`, straight-through: `d`
 */
export function klGradient(batch: Batch, input: KlInput<Float32Array>, config?: KlConfig): Float32Array;
/** {@link klGradient} in f64. */
export function klGradientF64(batch: Batch, input: KlInput<Float64Array>, config?: KlConfig): Float64Array;

/** The KL divergence itself, over the whole vocabulary. `Σ_v p_v (ln p_v − ln q_v)` */
export function klExact(batch: Batch, input: KlExactInput<Float32Array>, config?: PolicyConfig): Float32Array;
/** {@link klExact} in f64. */
export function klExactF64(batch: Batch, input: KlExactInput<Float64Array>, config?: PolicyConfig): Float64Array;

/** The gradient to the policy's logits, from that to each token's exact KL. `g_i p_v (ln p_v − ln q_v − kl_i) / τ` */
export function klExactGradient(
  batch: Batch, input: KlExactGradientInput<Float32Array>, config?: PolicyConfig,
): Float32Array;
/** {@link klExactGradient} in f64. */
export function klExactGradientF64(
  batch: Batch, input: KlExactGradientInput<Float64Array>, config?: PolicyConfig,
): Float64Array;

/** KL from tokens that an older policy drew, as an estimate for the policy of now. `w · k(d)` */
export function klImportanceWeighted(
  batch: Batch, input: KlWeightedInput<Float32Array>, config?: KlWeightedConfig,
): Float32Array;
/** {@link klImportanceWeighted} in f64. */
export function klImportanceWeightedF64(
  batch: Batch, input: KlWeightedInput<Float64Array>, config?: KlWeightedConfig,
): Float64Array;

/** The gradient to the log-probabilities from that to each token's weighted KL. `g_t w k'(d_t) + g_t w k(d_t)` */
export function klImportanceWeightedGradient(
  batch: Batch, input: KlWeightedInput<Float32Array> & { gradKl: Float32Array }, config?: KlWeightedConfig,
): Float32Array;
/** {@link klImportanceWeightedGradient} in f64. */
export function klImportanceWeightedGradientF64(
  batch: Batch, input: KlWeightedInput<Float64Array> & { gradKl: Float64Array }, config?: KlWeightedConfig,
): Float64Array;
