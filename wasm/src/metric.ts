/** Two quantities of the same alignment. */
export interface PairInput<A> {
  x: A;
  y: A;
}

/** What {@link explainedVariance} reads. */
export interface ExplainedVarianceInput<A> {
  /** What the critic said. */
  values: A;
  /** What it should have said. */
  returns: A;
}

/** The conventions of {@link explainedVariance}. */
export interface ExplainedVarianceConfig {
  /** Added to the variance of the returns; default 1e-5. */
  epsilon?: number;
  /** Default "sample". */
  spread?: Spread;
}

/** The mean of each KL estimate. */
export interface KlMeans {
  k1: number;
  abs: number;
  k2: number;
  k3: number;
}

/** The clip whose effect {@link clipFractions} counts. */
export interface ClipConfig {
  /** ε⁻; default 0.2. */
  clipLow?: number;
  /** ε⁺; default 0.2. */
  clipHigh?: number;
  /** Default "off". */
  dualClip?: DualClip;
  /** What the shares divide by; default "count". */
  divisor?: Divisor;
}

/** Shares of the kept tokens: held by the clip on either side, below, above, and by the dual clip. */
export interface ClipFractions {
  clipped: number;
  low: number;
  high: number;
  dual: number;
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

/** What {@link analysis} reads. */
export interface AnalysisInput<A> {
  /** Log-probabilities of the policy that sampled. */
  oldLogProbs: A;
  advantages: A;
  rewards: A;
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

/** Mean over the kept tokens. `Σ_t x_t / N` */
export function mean(batch: Batch, values: Float32Array, config?: MeanConfig): number;
/** {@link mean} of f64. */
export function meanF64(batch: Batch, values: Float64Array, config?: MeanConfig): number;

/** Variance over the kept tokens. `Σ_t (x_t − μ)² / (N − 1)`, or `/ N` for "population" */
export function variance(batch: Batch, values: Float32Array, config?: VarianceConfig): number;
/** {@link variance} of f64. */
export function varianceF64(batch: Batch, values: Float64Array, config?: VarianceConfig): number;

/** Pearson's correlation over the kept tokens. `Σ (x − x̄)(y − ȳ) / √(Σ (x − x̄)² · Σ (y − ȳ)²)` */
export function correlation(batch: Batch, input: PairInput<Float32Array>): number;
/** {@link correlation} of f64. */
export function correlationF64(batch: Batch, input: PairInput<Float64Array>): number;

/** How much of the spread of the returns the critic foresaw. `1 − Var(G − V) / (Var(G) + ε)` */
export function explainedVariance(
  batch: Batch, input: ExplainedVarianceInput<Float32Array>, config?: ExplainedVarianceConfig,
): number;
/** {@link explainedVariance} of f64. */
export function explainedVarianceF64(
  batch: Batch, input: ExplainedVarianceInput<Float64Array>, config?: ExplainedVarianceConfig,
): number;

/** Every KL estimate of {@link klEstimate}, averaged over the kept tokens in one pass. */
export function klMeans(batch: Batch, input: KlInput<Float32Array>, config?: MeanConfig): KlMeans;
/** {@link klMeans} of f64. */
export function klMeansF64(batch: Batch, input: KlInput<Float64Array>, config?: MeanConfig): KlMeans;

/** How many tokens the clip holds. low: share of `A < 0 ∧ ρ < 1 − ε⁻`, high: share of `A > 0 ∧ ρ > 1 + ε⁺` */
export function clipFractions(batch: Batch, input: PolicyLossInput<Float32Array>, config?: ClipConfig): ClipFractions;
/** {@link clipFractions} of f64. */
export function clipFractionsF64(batch: Batch, input: PolicyLossInput<Float64Array>, config?: ClipConfig): ClipFractions;

/** Count, mean and `Σ (x − μ)²` of the kept tokens; shards are joined by {@link momentsMerge}. */
export function moments(batch: Batch, values: Float32Array): Moments;
/** {@link moments} of f64. */
export function momentsF64(batch: Batch, values: Float64Array): Moments;
/** The moments of two disjoint sets of numbers together. */
export function momentsMerge(a: Moments, b: Moments): Moments;
/** The mean by a named divisor. */
export function momentsMean(moments: Moments, config?: MeanConfig): number;
/** The variance by named conventions. */
export function momentsVariance(moments: Moments, config?: VarianceConfig): number;

/** The joint moments of the kept pairs; shards are joined by {@link coMomentsMerge}. */
export function coMoments(batch: Batch, input: PairInput<Float32Array>): CoMoments;
/** {@link coMoments} of f64. */
export function coMomentsF64(batch: Batch, input: PairInput<Float64Array>): CoMoments;
/** The moments of two disjoint sets of pairs together. */
export function coMomentsMerge(a: CoMoments, b: CoMoments): CoMoments;
/** The covariance. `Σ (x − x̄)(y − ȳ) / (n − 1)`, or `/ n` for "population" */
export function coMomentsCovariance(moments: CoMoments, config?: { spread?: Spread }): number;
/** Pearson's correlation; NaN where one quantity is constant. */
export function coMomentsCorrelation(moments: CoMoments): number;

/**
 * Entropy, covariance of advantage and log-probability, weighted entropy and reward of a batch.
 * `p = e^{log p}`, `H = −p log p`, `w = p (1 − p) |A|`
 */
export function analysis(batch: Batch, input: AnalysisInput<Float32Array>): AnalysisEntries;
/** {@link analysis} of f64. */
export function analysisF64(batch: Batch, input: AnalysisInput<Float64Array>): AnalysisEntries;
/** The sums behind {@link analysis}; shards are joined by {@link analysisMerge}. */
export function analysisSums(batch: Batch, input: AnalysisInput<Float32Array>): AnalysisSums;
/** {@link analysisSums} of f64. */
export function analysisSumsF64(batch: Batch, input: AnalysisInput<Float64Array>): AnalysisSums;
/** The sums of two disjoint batches together. */
export function analysisMerge(a: AnalysisSums, b: AnalysisSums): AnalysisSums;
/** The five numbers of merged sums. */
export function analysisEntries(sums: AnalysisSums): AnalysisEntries;
