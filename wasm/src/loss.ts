/** The counts of a whole optimiser step, so that micro-batches and ranks add up to it. */
export interface GlobalCounts {
  /** Kept tokens. */
  tokens?: number;
  /** Sequences. */
  sequences?: number;
  /** Prompts. */
  prompts?: number;
  /** The result is multiplied by this; default 1. */
  ranks?: number;
}

/** What every mode of {@link Aggregate} knows. */
export interface AggregateBase {
  /** Whose tokens and sequences the denominators count; default those of the batch at hand. */
  counts?: GlobalCounts;
  /** Whether a sequence without kept tokens counts; default "excluded". */
  emptyRows?: "excluded" | "counted";
  /** What "seq-mean-token-mean" divides each sequence by; default "count". */
  divisor?: Divisor;
}

/** How the losses of the tokens become one number; default the mean over all kept tokens. */
export type Aggregate =
  | (AggregateBase & { mode?: "token-mean" | "token-sum" | "seq-mean-token-sum" | "seq-mean-token-mean" })
  | (AggregateBase & {
      mode: "seq-mean-token-sum-norm";
      /** A constant length such as the longest allowed (Dr. GRPO). */
      scale: number;
    })
  | (AggregateBase & {
      mode: "prompt-mean";
      /** The prompt of each sequence. */
      groups: Groups;
      /** Kept tokens of each prompt over the whole step ({@link groupTokens} counts one batch). */
      tokens: Uint32Array;
    });

/** What {@link aggregate} gives. */
export interface AggregateOutput<A> {
  loss: number;
  /** ∂loss/∂losses. */
  weights: A;
}

/** A loss and its gradient. */
export interface LossOutput<A> {
  loss: number;
  grad: A;
}

/** What {@link valueLoss} reads. */
export interface ValueLossInput<A> {
  /** The critic's new values. */
  predictions: A;
  /** Its values when the batch was collected; constants. */
  values: A;
  /** What it should have said; constants. */
  returns: A;
}

/** How {@link valueLoss} clips and aggregates. */
export interface ValueConfig {
  /** Predictions are held within ± this of the old values; default 0.5, null for none. */
  clip?: number | null;
  /** ½ (default) or 1 before the squared error. */
  factor?: "half" | "whole";
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
  /** What the mean of the clip fraction divides by; default "count". */
  divisor?: Divisor;
}

/** What {@link valueLoss} gives. */
export interface ValueOutput<A> extends LossOutput<A> {
  /** Share of kept tokens whose clipped error is the larger one. */
  clipFraction: number;
}

/** How {@link entropyBonus} weighs the entropy. */
export interface EntropyBonusConfig {
  /** The coefficient c; default 0.01. */
  coefficient?: number;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** The losses of the tokens as one number, and the weight of each. `loss = Σ_i Σ_t W[i, t] L[i, t]` */
export function aggregate(batch: Batch, losses: Float32Array, config?: Aggregate): AggregateOutput<Float32Array>;
/** {@link aggregate} in f64. */
export function aggregateF64(batch: Batch, losses: Float64Array, config?: Aggregate): AggregateOutput<Float64Array>;

/** Kept tokens of each prompt in one batch. `out_p = Σ_{i of prompt p} n_i` */
export function groupTokens(batch: Batch, groups: Groups): Uint32Array;

/**
 * The critic's squared error, the larger of clipped and unclipped; `grad` is ∂loss/∂predictions.
 * `v̂ = clip(v, V − ε, V + ε)`, `loss = ½ Agg_t max((v − G)², (v̂ − G)²)`
 */
export function valueLoss(batch: Batch, input: ValueLossInput<Float32Array>, config?: ValueConfig): ValueOutput<Float32Array>;
/** {@link valueLoss} in f64. */
export function valueLossF64(
  batch: Batch, input: ValueLossInput<Float64Array>, config?: ValueConfig,
): ValueOutput<Float64Array>;

/** A reward for staying undecided, as a loss; `grad` is ∂loss/∂entropy. `loss = −c · Agg_t H_t` */
export function entropyBonus(batch: Batch, entropy: Float32Array, config?: EntropyBonusConfig): LossOutput<Float32Array>;
/** {@link entropyBonus} in f64. */
export function entropyBonusF64(batch: Batch, entropy: Float64Array, config?: EntropyBonusConfig): LossOutput<Float64Array>;
