/** How much a token's entropy counts in the budget. Without a reference the gate of "kl-gated" is 1. */
export type TokenWeight = "plain" | "kl-gated" | "structural";

/** What the weight of a token is made of. */
export interface TokenWeightFields<A> {
  /** Default "plain". */
  weight?: TokenWeight;
  /** Weights made beforehand; needed where the weight is "structural". */
  structural?: A;
  /** Log-probabilities of the reference; constants. */
  refLogProbs?: A;
}

/** What {@link tokenWeights} reads. */
export interface TokenWeightInput<A> extends TokenWeightFields<A> {
  logProbs: A;
  advantages: A;
}

/** How much each token's entropy counts in the budget. `p (1 − p) |A|`, gated by `|log π − log π_ref|`, or given */
export function tokenWeights(batch: Batch, input: TokenWeightInput<Float32Array>): Float32Array;
/** {@link tokenWeights} in f64. */
export function tokenWeightsF64(batch: Batch, input: TokenWeightInput<Float64Array>): Float64Array;

/** How far each advantage is from that of the kept token before it. `|A_t − A_{t−1}|` */
export function advantageJump(batch: Batch, advantages: Float32Array): Float32Array;
/** {@link advantageJump} in f64. */
export function advantageJumpF64(batch: Batch, advantages: Float64Array): Float64Array;

/** What {@link structuralWeights} reads. */
export interface StructuralInput<A> {
  logProbs: A;
  advantages: A;
  /** {@link advantageJump} or {@link trieComplexity}. */
  complexity: A;
}

/** What {@link structuralWeights} weighs by how much. */
export interface StructuralConfig {
  /** c; default 1. */
  complexity?: number;
  /** α; default 0.3. */
  surprisal?: number;
  /** β; default 0.2. */
  drift?: number;
  /** Over what a token is compared with the others; default "batch". */
  scope?: "batch" | "sequence";
}

/** How important each token is for the structure of what is written. `max(0, c z(C) + α z(−log π) + β z(D))` */
export function structuralWeights(
  batch: Batch, input: StructuralInput<Float32Array>, config?: StructuralConfig,
): Float32Array;
/** {@link structuralWeights} in f64. */
export function structuralWeightsF64(
  batch: Batch, input: StructuralInput<Float64Array>, config?: StructuralConfig,
): Float64Array;

/** What {@link trieComplexity} reads. */
export interface TrieInput<A> {
  tokens: Uint32Array;
  rewards: A;
}

/** How {@link trieComplexity} compares branches. */
export interface TrieConfig {
  /** Which responses are compared: all of the group, or those with the same tokens before; default "any". */
  prefix?: "any" | "same";
  /** The number of a branch; default "mean". */
  value?: "mean" | "median";
  /** How far branches are from each other; default "variance". */
  spread?: "variance" | "inter-quartile-range" | "range";
  /** Branches of fewer responses are left out; default 1. */
  minBranchSize?: number;
}

/** How much the choice of each token decided the score, by what other responses to the same prompt chose there. */
export function trieComplexity(
  batch: Batch, groups: Groups, input: TrieInput<Float32Array>, config?: TrieConfig,
): Float32Array;
/** {@link trieComplexity} in f64. */
export function trieComplexityF64(
  batch: Batch, groups: Groups, input: TrieInput<Float64Array>, config?: TrieConfig,
): Float64Array;

/** What {@link dualGame} reads. */
export interface DualGameInput<A> extends PolicyLossInput<A>, TokenWeightFields<A> {}

/** Prices and clip of {@link dualGame}. */
export interface DualGameConfig extends ReinforceConfig {
  /** Negative advantages are multiplied by this; default 1.2. */
  gamma?: number;
  /** The price of weighted entropy; default 0. */
  lambda?: number;
  /** The price of leaving the reference; default 0. */
  beta?: number;
  /** ε⁻; default 0.2. */
  clipLow?: number;
  /** ε⁺; default 0.2. */
  clipHigh?: number;
  /** Whether the gradient sees that the modified advantage depends on the policy; default "detached". */
  gradient?: "detached" | "through";
  /** Log-ratios are bounded to ± this; default 20, null for none. */
  logRatioBound?: number | null;
}

/** What {@link dualGame} gives. */
export interface DualGameOutput<A> extends LossOutput<A> {
  /** Share of tokens held by the clip on either side. */
  clipFraction: number;
  /** Share of them held above `1 + ε⁺`. */
  clipFractionUpper: number;
  /** Share of them held below `1 − ε⁻`. */
  clipFractionLower: number;
  /** Mean of `log π_old − log π`, bounded. */
  kl: number;
}

/**
 * Clipped surrogate whose advantages pay for entropy and for leaving the reference.
 * `A_mod = max(A, 0) + γ min(A, 0) − λ w (−log π − 1) − β (log π − log π_ref)`
 */
export function dualGame(
  batch: Batch, input: DualGameInput<Float32Array>, config?: DualGameConfig,
): DualGameOutput<Float32Array>;
/** {@link dualGame} in f64. */
export function dualGameF64(
  batch: Batch, input: DualGameInput<Float64Array>, config?: DualGameConfig,
): DualGameOutput<Float64Array>;
