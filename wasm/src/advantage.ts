/** At a dropped token between two kept ones: go on to the next kept one (default), or a step of reward 0 and value 0. */
export type Across = "step-over" | "zero-step";

/** What the only sample of a prompt gets: 0 (default), its score, or NaN. */
export type Singleton = "zero" | "raw" | "undefined";

/** What {@link discountedReturns} reads. */
export interface ReturnsInput<A> {
  /** Token rewards. */
  rewards: A;
  /** One per sequence: what is expected after its last kept token. 0 for a finished sequence. */
  bootstrap: A;
}

/** How {@link discountedReturns} and {@link monteCarloAdvantage} discount. */
export interface ReturnsConfig {
  /** Discount γ per step, in [0, 1]; default 1. */
  gamma?: number;
  /** Default "step-over". */
  across?: Across;
}

/** What {@link gae} and {@link monteCarloAdvantage} read. */
export interface GaeInput<A> extends ReturnsInput<A> {
  /** Values V(s), each at the index of the token that follows the state. */
  values: A;
}

/** How {@link gae} discounts. */
export interface GaeConfig extends ReturnsConfig {
  /** Decay λ of the trace, in [0, 1]; default 1. */
  lambda?: number;
}

/** Advantages, not whitened, and returns: the critic's target. */
export interface GaeOutput<A> {
  advantages: A;
  returns: A;
}

/** What {@link attentionCredit} reads. */
export interface AttentionInput<A> {
  /** One score per sequence. */
  scores: A;
  /** How much each token mattered, not negative; only their proportions count. */
  weights: A;
}

/** The conventions of {@link whiten}. */
export interface WhitenConfig {
  /** Default "sample". */
  spread?: Spread;
  /** The small number ε; default 1e-8. */
  epsilon?: number;
  /** `√(σ² + ε)` (default), `√σ² + ε`, or `√max(σ², ε)`. */
  place?: "inside-root" | "outside" | "floor-variance";
  /** Whether the mean is taken away (default) or added back after scaling. */
  center?: "shift" | "keep-mean";
  /** Whether values are divided by their deviation (default) or not. */
  scale?: "standard-deviation" | "unit";
  /** Default "count". */
  divisor?: Divisor;
}

/** The discounted sum of the rewards from each token on. `G_t = r_t + γ G_{t+1}` */
export function discountedReturns(batch: Batch, input: ReturnsInput<Float32Array>, config?: ReturnsConfig): Float32Array;
/** {@link discountedReturns} in f64. */
export function discountedReturnsF64(batch: Batch, input: ReturnsInput<Float64Array>, config?: ReturnsConfig): Float64Array;

/**
 * Generalized advantage estimates: how much better each token was than the critic foresaw.
 * `δ_t = r_t + γ V_{t+1} − V_t`, `A_t = δ_t + γ λ A_{t+1}`, `G_t = A_t + V_t`
 */
export function gae(batch: Batch, input: GaeInput<Float32Array>, config?: GaeConfig): GaeOutput<Float32Array>;
/** {@link gae} in f64. */
export function gaeF64(batch: Batch, input: GaeInput<Float64Array>, config?: GaeConfig): GaeOutput<Float64Array>;

/** What really followed, minus what the critic expected. `G_t = r_t + γ G_{t+1}`, `A_t = G_t − V_t` */
export function monteCarloAdvantage(
  batch: Batch, input: GaeInput<Float32Array>, config?: ReturnsConfig,
): GaeOutput<Float32Array>;
/** {@link monteCarloAdvantage} in f64. */
export function monteCarloAdvantageF64(
  batch: Batch, input: GaeInput<Float64Array>, config?: ReturnsConfig,
): GaeOutput<Float64Array>;

/** Every kept token gets the same part of its sequence's score. `A[i, t] = s_i / n_i` */
export function uniformCredit(batch: Batch, scores: Float32Array): Float32Array;
/** {@link uniformCredit} in f64. */
export function uniformCreditF64(batch: Batch, scores: Float64Array): Float64Array;

/** The last `k` kept tokens share the score. `A[i, t] = s_i / min(k, n_i)` there, else 0 */
export function lastKCredit(batch: Batch, scores: Float32Array, k: number): Float32Array;
/** {@link lastKCredit} in f64. */
export function lastKCreditF64(batch: Batch, scores: Float64Array, k: number): Float64Array;

/** Each kept token gets its weight's share of the score. `A[i, t] = s_i · w[i, t] / Σ_u w[i, u]` */
export function attentionCredit(batch: Batch, input: AttentionInput<Float32Array>): Float32Array;
/** {@link attentionCredit} in f64. */
export function attentionCreditF64(batch: Batch, input: AttentionInput<Float64Array>): Float64Array;

/** One number per sequence laid on each of its kept tokens. `out[i, t] = values_i` */
export function broadcast(batch: Batch, values: Float32Array): Float32Array;
/** {@link broadcast} in f64. */
export function broadcastF64(batch: Batch, values: Float64Array): Float64Array;

/** The sum of the kept token rewards of each sequence. `out_i = Σ_t r[i, t]` */
export function sequenceSums(batch: Batch, rewards: Float32Array): Float32Array;
/** {@link sequenceSums} in f64. */
export function sequenceSumsF64(batch: Batch, rewards: Float64Array): Float64Array;

/** Values shifted to mean 0 and scaled to deviation 1 over the kept tokens of the batch. `y_t = (x_t − μ) / √(σ² + ε)` */
export function whiten(batch: Batch, values: Float32Array, config?: WhitenConfig): Float32Array;
/** {@link whiten} in f64. */
export function whitenF64(batch: Batch, values: Float64Array, config?: WhitenConfig): Float64Array;
