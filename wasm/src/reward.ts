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

/** What {@link klInScores} reads. */
export interface KlInScoresInput<A> {
  /** One score per sequence. */
  scores: A;
  oldLogProbs: A;
  refLogProbs: A;
}

/** The conventions of {@link clippedRewards}. */
export interface ClippedRewardsConfig {
  /** The price; default 0.01. */
  beta?: number;
  /** Scores are held to at least this; default −10. */
  low?: number;
  /** Scores are held to at most this; default 10. */
  high?: number;
}

/** The conventions of {@link repetitionPenalty}. */
export interface RepetitionConfig {
  /** Tokens in a row that count as one phrase; default 3. */
  ngram?: number;
  /** The reward of a response that only repeats itself; default −1. */
  penalty?: number;
}

/** What {@link lengthPenaltyGroup} reads; one entry per sequence. */
export interface GroupLengthInput<A> {
  scores: A;
  /** Tokens the policy wrote. */
  outputs: Uint32Array;
  /** Tokens it was given in between. */
  inputs: Uint32Array;
  /** Turns taken. */
  turns: Uint32Array;
}

/** What each kind of length weighs; default 0. */
export interface GroupLengthConfig {
  outputWeight?: number;
  inputWeight?: number;
  turnWeight?: number;
}

/** How scores are brought to a range. */
export type RewardScale =
  | { kind: "clip"; low: number; high: number }
  | { kind: "shift-scale-clip"; bias: number; scale: number; bound: number }
  | { kind: "map"; fromLow: number; fromHigh: number; toLow: number; toHigh: number };

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

/** Scores less a price for the whole way from the reference. `s_i − β Σ_t (log π_old − log π_ref)` */
export function klInScores(batch: Batch, input: KlInScoresInput<Float32Array>, beta: number): Float32Array;
/** {@link klInScores} in f64. */
export function klInScoresF64(batch: Batch, input: KlInScoresInput<Float64Array>, beta: number): Float64Array;

/** Token rewards from one score per sequence and the KL. `r_t = −max(β, 0) kl_t + [t is last] clip(s_i, low, high)` */
export function clippedRewards(batch: Batch, input: ShapeInput<Float32Array>, config?: ClippedRewardsConfig): Float32Array;
/** {@link clippedRewards} in f64. */
export function clippedRewardsF64(
  batch: Batch, input: ShapeInput<Float64Array>, config?: ClippedRewardsConfig,
): Float64Array;

/** A penalty for saying the same thing again, per sequence. `(1 − distinct n-grams / n-grams) · penalty` */
export function repetitionPenalty(batch: Batch, tokens: Uint32Array, config?: RepetitionConfig): Float32Array;
/** {@link repetitionPenalty} in f64. */
export function repetitionPenaltyF64(batch: Batch, tokens: Uint32Array, config?: RepetitionConfig): Float64Array;

/** Scores with a price on length, relative to the longest answer to the prompt. `s_i − mean_g(s) · f_i` */
export function lengthPenaltyGroup(
  groups: Groups, input: GroupLengthInput<Float32Array>, config?: GroupLengthConfig,
): Float32Array;
/** {@link lengthPenaltyGroup} in f64. */
export function lengthPenaltyGroupF64(
  groups: Groups, input: GroupLengthInput<Float64Array>, config?: GroupLengthConfig,
): Float64Array;

/** Scores with a penalty where the response was cut off (1). `c s_i`, or `c` if negative */
export function stopProperlyPenalty(
  input: { scores: Float32Array; truncated: Uint8Array }, coefficient: number,
): Float32Array;
/** {@link stopProperlyPenalty} in f64. */
export function stopProperlyPenaltyF64(
  input: { scores: Float64Array; truncated: Uint8Array }, coefficient: number,
): Float64Array;

/** Scores with a fixed price where the response never ended (0). `s_i − penalty` */
export function missingEosPenalty(input: { scores: Float32Array; ended: Uint8Array }, penalty: number): Float32Array;
/** {@link missingEosPenalty} in f64. */
export function missingEosPenaltyF64(input: { scores: Float64Array; ended: Uint8Array }, penalty: number): Float64Array;

/** Scores brought to a range; `clipFraction` is the share a bound held. */
export function rewardScaleClip(scores: Float32Array, scale: RewardScale): { scores: Float32Array; clipFraction: number };
/** {@link rewardScaleClip} in f64. */
export function rewardScaleClipF64(
  scores: Float64Array, scale: RewardScale,
): { scores: Float64Array; clipFraction: number };
