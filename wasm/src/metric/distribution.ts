/** What {@link varianceProxy} reads. */
export interface VarianceProxyInput<A> {
  oldLogProbs: A;
  /** `Σ_v π(v)²` of the distribution each token was drawn from ({@link sumSquaredProbs}). */
  sumPiSquared: A;
  advantages: A;
  /** Importance weights, where the loss uses them; default 1. */
  weights?: A;
}

/** The keys of {@link VarianceProxy}. */
export type VarianceProxyKey =
  | "proxy1_signal_strength" | "proxy2_total_power" | "proxy3_pure_noise" | "expected_a_squared" | "expected_w";

/** What {@link varianceProxy} gives, under verl's keys. */
export type VarianceProxy = Record<`variance_proxy/${VarianceProxyKey}`, number>;

/** How often each size of number occurred, in logarithmic buckets: quantiles of a stream, off by at most 1/32 of themselves. */
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
  /** Gives the memory back at once; otherwise it goes with the object, at the garbage collector's leisure. */
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
  /** Gives the memory back at once; otherwise it goes with the object, at the garbage collector's leisure. */
  free(): void;
}

/** How many equally weighted tokens the weighted ones are worth. `(Σ_t w_t)² / Σ_t w_t²` */
export function effectiveSampleSize(batch: Batch, weights: Float32Array): number;
/** {@link effectiveSampleSize} in f64. */
export function effectiveSampleSizeF64(batch: Batch, weights: Float64Array): number;

/** The value below which a share `level` of the kept tokens lies, linear between neighbours. */
export function quantile(batch: Batch, values: Float32Array, level: number): number;
/** {@link quantile} in f64. */
export function quantileF64(batch: Batch, values: Float64Array, level: number): number;

/** Sum over the kept tokens of each sequence. `Σ_t x_t` */
export function rowSums(batch: Batch, values: Float32Array): Float32Array;
/** {@link rowSums} in f64. */
export function rowSumsF64(batch: Batch, values: Float64Array): Float64Array;

/** Mean over the kept tokens of each sequence. `Σ_t x_t / n_i` */
export function rowMeans(batch: Batch, values: Float32Array, config?: MeanConfig): Float32Array;
/** {@link rowMeans} in f64. */
export function rowMeansF64(batch: Batch, values: Float64Array, config?: MeanConfig): Float64Array;

/** Each sequence brought to mean 0 and variance 1 by itself. `(x_t − μ_i) / √max(σ_i², floor)` */
export function rowNormalize(batch: Batch, values: Float32Array, floor: number): Float32Array;
/** {@link rowNormalize} in f64. */
export function rowNormalizeF64(batch: Batch, values: Float64Array, floor: number): Float64Array;

/** Signal and noise of the policy gradient, from the size of each token's score function. */
export function varianceProxy(
  batch: Batch, input: VarianceProxyInput<Float32Array>, gradientNorm: number, config?: MeanConfig,
): VarianceProxy;
/** {@link varianceProxy} in f64. */
export function varianceProxyF64(
  batch: Batch, input: VarianceProxyInput<Float64Array>, gradientNorm: number, config?: MeanConfig,
): VarianceProxy;
