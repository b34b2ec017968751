/** What {@link shapeRewards} reads. */
export interface ShapeInput<A> {
  /** Token scores, usually 0 but on the last token ({@link placeScores}). */
  scores: A;
  /** KL per token. */
  kl: A;
}

/** What {@link klInReward} reads. */
export interface KlInRewardInput<A> {
  /** Token scores, usually 0 but on the last token ({@link placeScores}). */
  scores: A;
  /** Log-probabilities of the policy that sampled. */
  oldLogProbs: A;
  /** Log-probabilities of the reference. */
  refLogProbs: A;
}

/** How {@link klInReward} prices the KL. */
export interface KlRewardConfig {
  /** The price β; default 0.001. */
  beta?: number;
  /** Which estimate. */
  kl?: KlConfig;
  /** What the mean KL of a sequence divides by; default "count". */
  divisor?: Divisor;
}

/** What {@link klInReward} gives. */
export interface KlInRewardOutput<A> {
  rewards: A;
  /** Mean over sequences of their mean KL: what a controller of β wants to see. */
  meanKl: number;
}

/** What {@link overlongPenalty} reads; one entry per sequence. */
export interface OverlongInput<A> {
  scores: A;
  /** Response lengths in tokens. */
  lengths: Uint32Array;
}

/** Where the penalty begins and how steep it is. */
export interface OverlongConfig {
  /** The longest response allowed; default 20480. */
  maxLen?: number;
  /** The last `buffer` tokens before it are penalised more and more; default 4096. */
  buffer?: number;
  /** The penalty reached at `maxLen`; default 1. */
  factor?: number;
  /** Beyond: on and on (default), or no deeper than `factor`. */
  floor?: "unlimited" | "factor";
}

/** One score per sequence, laid on its last kept token. `out[i, t] = s_i` there, else 0 */
export function placeScores(batch: Batch, scores: Float32Array): Float32Array;
/** {@link placeScores} in f64. */
export function placeScoresF64(batch: Batch, scores: Float64Array): Float64Array;

/** Token rewards: the scores, less a price for leaving the reference. `r_t = score_t − β kl_t` */
export function shapeRewards(batch: Batch, input: ShapeInput<Float32Array>, beta: number): Float32Array;
/** {@link shapeRewards} in f64. */
export function shapeRewardsF64(batch: Batch, input: ShapeInput<Float64Array>, beta: number): Float64Array;

/** Token rewards straight from log-probabilities, and the mean KL. `r_t = score_t − β kl(log π_old, log π_ref)_t` */
export function klInReward(
  batch: Batch, input: KlInRewardInput<Float32Array>, config?: KlRewardConfig,
): KlInRewardOutput<Float32Array>;
/** {@link klInReward} in f64. */
export function klInRewardF64(
  batch: Batch, input: KlInRewardInput<Float64Array>, config?: KlRewardConfig,
): KlInRewardOutput<Float64Array>;

/**
 * Scores with a soft penalty for responses that come near the length limit (DAPO).
 * `e_i = L_i − (maxLen − buffer)`, `out_i = s_i + min(−e_i / buffer · factor, 0)`
 */
export function overlongPenalty(input: OverlongInput<Float32Array>, config?: OverlongConfig): Float32Array;
/** {@link overlongPenalty} in f64. */
export function overlongPenaltyF64(input: OverlongInput<Float64Array>, config?: OverlongConfig): Float64Array;
