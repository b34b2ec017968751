/** What {@link shift} reads. */
export interface ShiftInput<A> {
  /** Raw model output, `width` numbers per position of `rawLayout`. */
  raw: A;
  /** Numbers per position: the vocabulary for logits, 1 for values. */
  width: number;
  /** Prompts and responses as the model read them. */
  rawLayout: RawLayout;
}

/** Logits of the rows that predicted each token. */
export interface LogitsInput<A> {
  /** `[tokens, vocab]`, row-major. */
  logits: A;
  /** Size of the vocabulary. */
  vocab: number;
}

/** Logits, and the id of each token. */
export interface LogProbInput<A> extends LogitsInput<A> {
  tokens: Uint32Array;
}

/** What {@link logitsGradient} reads. */
export interface LogitsGradientInput<A> extends LogProbInput<A> {
  /** ∂loss/∂logProbs, as the losses write it. */
  gradLogProbs: A;
  /** ∂loss/∂entropy, as {@link entropyBonus} writes it; zeros without a bonus. */
  gradEntropy: A;
}

/** How logits become a distribution. */
export interface PolicyConfig {
  /** Logits are divided by this before the soft-max; positive, default 1. */
  temperature?: number;
}

/** Log-probability of each token, and the entropy of the distribution it was drawn from. */
export interface LogProbOutput<A> {
  logProbs: A;
  entropy: A;
}

/**
 * Takes the rows that predicted the responses (the batch) out of what a model returned for whole sequences: one to the
 * left of the tokens. `out[i, t] = raw[i, L_i − T_i − 1 + t]`
 */
export function shift(batch: Batch, input: ShiftInput<Float32Array>): Float32Array;
/** {@link shift} in f64. */
export function shiftF64(batch: Batch, input: ShiftInput<Float64Array>): Float64Array;

/** Log-probability of each token. `z[a_i] − m − ln Σ_v e^{z_v − m}`, `z = logits / τ`, `m = max z` */
export function tokenLogProbs(batch: Batch, input: LogProbInput<Float32Array>, config?: PolicyConfig): Float32Array;
/** {@link tokenLogProbs} in f64. */
export function tokenLogProbsF64(batch: Batch, input: LogProbInput<Float64Array>, config?: PolicyConfig): Float64Array;

/** {@link tokenLogProbs} and {@link entropy} in one reading of the logits. */
export function logProbsAndEntropy(
  batch: Batch, input: LogProbInput<Float32Array>, config?: PolicyConfig,
): LogProbOutput<Float32Array>;
/** {@link logProbsAndEntropy} in f64. */
export function logProbsAndEntropyF64(
  batch: Batch, input: LogProbInput<Float64Array>, config?: PolicyConfig,
): LogProbOutput<Float64Array>;

/** Entropy of the distribution each kept token was drawn from, in nats. `ln Σ_v e^{z_v} − Σ_v p_v z_v` */
export function entropy(batch: Batch, input: LogitsInput<Float32Array>, config?: PolicyConfig): Float32Array;
/** {@link entropy} in f64. */
export function entropyF64(batch: Batch, input: LogitsInput<Float64Array>, config?: PolicyConfig): Float64Array;

/** Sum of the squared probabilities: the chance that two draws from the same distribution agree. `Σ_v p_v²` */
export function sumSquaredProbs(batch: Batch, input: LogitsInput<Float32Array>, config?: PolicyConfig): Float32Array;
/** {@link sumSquaredProbs} in f64. */
export function sumSquaredProbsF64(batch: Batch, input: LogitsInput<Float64Array>, config?: PolicyConfig): Float64Array;

/**
 * The gradient of a loss with respect to the logits, from those with respect to log-probabilities (g) and entropy (h).
 * `(g_i (1[v = a_i] − p_v) − h_i p_v (ln p_v + H)) / τ`
 */
export function logitsGradient(
  batch: Batch, input: LogitsGradientInput<Float32Array>, config?: PolicyConfig,
): Float32Array;
/** {@link logitsGradient} in f64. */
export function logitsGradientF64(
  batch: Batch, input: LogitsGradientInput<Float64Array>, config?: PolicyConfig,
): Float64Array;

/** Logits, and `k` ids for each token. */
export interface TopKLogitsInput<A> extends LogitsInput<A> {
  /** `[tokens, k]`. */
  tokens: Uint32Array;
  k: number;
}

/** What {@link topkLogitsGradient} reads. */
export interface TopKGradientInput<A> extends TopKLogitsInput<A> {
  /** `[tokens, k]`: ∂loss/∂ of the log-probabilities of these ids. */
  gradLogProbs: A;
}

/** Log-probabilities of several vocabulary entries for each token. `z[a_ij] − m − ln Σ_v e^{z_v − m}` */
export function topkLogProbs(batch: Batch, input: TopKLogitsInput<Float32Array>, config?: PolicyConfig): Float32Array;
/** {@link topkLogProbs} in f64. */
export function topkLogProbsF64(batch: Batch, input: TopKLogitsInput<Float64Array>, config?: PolicyConfig): Float64Array;

/** The gradient to the logits from that to the log-probabilities of some entries. `(Σ_{j: a_j = v} g_j − p_v Σ_j g_j) / τ` */
export function topkLogitsGradient(
  batch: Batch, input: TopKGradientInput<Float32Array>, config?: PolicyConfig,
): Float32Array;
/** {@link topkLogitsGradient} in f64. */
export function topkLogitsGradientF64(
  batch: Batch, input: TopKGradientInput<Float64Array>, config?: PolicyConfig,
): Float64Array;
