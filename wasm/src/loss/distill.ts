/** Which estimate {@link klLoss} takes, and how much it counts. */
export interface KlLossConfig {
  /** Default k3, its own gradient, unbounded. */
  kl?: KlConfig;
  /** The coefficient β; default 0.001. */
  coefficient?: number;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** What {@link klLoss} gives. */
export interface KlLossOutput<A> extends LossOutput<A> {
  /** The aggregated estimate, without β. */
  aggregated: number;
  /** The mean of the estimate over the kept tokens. */
  mean: number;
}

/** Log-probabilities of the sampled tokens: student now, student when it sampled, teacher. */
export interface TaughtInput<A> {
  logProbs: A;
  oldLogProbs: A;
  teacherLogProbs: A;
}

/** What {@link opdLoss} reads. */
export interface OpdLossInput<A> extends TaughtInput<A> {
  /** A weight for each token's loss; constants, default 1. */
  weights?: A;
}

/** How {@link opdLoss} measures the distance and what it does with it. */
export interface OpdLossConfig {
  /** Default k1, unbounded. */
  kl?: KlConfig;
  /** Estimates are taken within ± this; default 10, null for no bound. */
  maxLoss?: number | null;
  /** An advantage for the clipped surrogate (default), for the plain one, for REINFORCE; or the loss itself. */
  route?: "clipped" | "surrogate" | "reinforce" | "supervised";
  /** Loss and gradient are multiplied by this; default 1. */
  coefficient?: number;
  /** ε⁻ of the clipped route; default 0.2. */
  clipLow?: number;
  /** ε⁺ of the clipped route; default 0.2. */
  clipHigh?: number;
  /** Default "off". */
  dualClip?: DualClip;
  /** Log-ratios are bounded to ± this; default 20, null for none. */
  logRatioBound?: number | null;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
  /** What the means of the clip metrics divide by; default "count". */
  divisor?: Divisor;
}

/** What {@link opdLoss} gives. */
export interface OpdLossOutput<A> extends PolicyLossOutput<A> {
  /** Mean of the estimate's absolute value, before `maxLoss`. */
  absLoss: number;
  /** The smallest estimate, before `maxLoss`. */
  lossMin: number;
  /** The largest estimate, before `maxLoss`. */
  lossMax: number;
}

/** What {@link refKl} reads. */
export interface RefKlInput<A> {
  logProbs: A;
  oldLogProbs: A;
  /** Of the teacher. */
  refLogProbs: A;
  /** A weight for each token's loss; constants, default 1. */
  weights?: A;
}

/** How far {@link refKl} lets the policy go. */
export interface RefKlConfig {
  /** A token whose probability fell by more than this has no policy gradient; default 0.2. */
  fall?: number;
  /** The price of the squared log-ratio; default 0.001. */
  drift?: number;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** What {@link refKl} gives. */
export interface RefKlOutput<A> extends LossOutput<A> {
  /** Mean of `log π_ref − log π`. */
  refKl: number;
  /** Share of tokens whose probability fell too far. */
  fallen: number;
  /** Mean of `ρ − 1 − ln ρ` over those. */
  mismatchFallen: number;
  /** Mean of `ρ − 1 − ln ρ` over the others. */
  mismatchKept: number;
}

/** How {@link iwOpd} weighs the beginning of a response. */
export interface IwOpdConfig {
  /** How much more the first token counts than the last; default 0.5. */
  gamma?: number;
  /** The least total of absolute advantages; default 1e-8. */
  epsilon?: number;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** What {@link iwOpd} gives. */
export interface IwOpdOutput<A> extends LossOutput<A> {
  meanAdvantage: number;
  meanAbsAdvantage: number;
  meanWeight: number;
  minWeight: number;
  maxWeight: number;
}

/** Rows of `k` log-probabilities, of student and teacher. */
export interface TopKRows<A> {
  /** `[tokens, k]`, row-major. */
  logProbs: A;
  /** `[tokens, k]`; constants. */
  teacherLogProbs: A;
  /** Entries a token. */
  k: number;
}

/** What {@link forwardKlTopk} reads; with both ids it also gives the overlap. */
export interface ForwardKlTopKInput<A> extends TopKRows<A> {
  /** `[tokens, k]`: the teacher's likeliest tokens. */
  teacherIds?: Uint32Array;
  /** `[tokens, k]`: the student's likeliest tokens. */
  studentIds?: Uint32Array;
}

/** The bounds of {@link forwardKlTopk}. */
export interface ForwardKlTopKConfig {
  /** Log-probabilities are taken no lower than this; default −10, null for no floor. */
  logProbFloor?: number | null;
  /** A token's loss is taken no higher than this; default 10, null for no bound. */
  maxLoss?: number | null;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** Mean, smallest and largest. */
export interface MeanMinMax {
  mean: number;
  min: number;
  max: number;
}

/** What {@link forwardKlTopk} gives. */
export interface ForwardKlTopKOutput<A> extends LossOutput<A> {
  lossMin: number;
  lossMax: number;
  /** The probability of the entries together, under the student. */
  studentMass: MeanMinMax;
  /** The same under the teacher. */
  teacherMass: MeanMinMax;
  /** null without ids. */
  overlap: { ratio: number; tokenAdvantage: number } | null;
  /** The loss of each token. */
  losses: A;
}

/** What {@link topkJsd} reads. */
export interface TopKInput<A> extends TopKRows<A> {
  /** A weight for each token's loss; constants, default 1. */
  weights?: A;
}

/** How {@link topkJsd} compares the two. */
export interface TopKJsdConfig {
  /** 0 forward KL, 1 reverse KL, between them the mixture; default 0.5. */
  beta?: number;
  /** The probability outside is one more entry (default), or the entries are scaled to 1. */
  rest?: "tail" | "renormalize";
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** What {@link mixedKlTopk} reads. */
export interface MixedKlInput<A> extends TopKRows<A> {
  /** Of the student, over the whole vocabulary; needed unless `outside` is null. */
  entropies?: A;
}

/** How {@link mixedKlTopk} mixes. */
export interface MixedKlConfig {
  /** The share of forward KL; default 0.5. */
  forward?: number;
  /** The teacher's log-probability outside its entries (NeMo-RL: −100), or null (default) for scaling the student's. */
  outside?: number | null;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** What {@link mixedKlTopk} gives. */
export interface MixedKlOutput<A> extends LossOutput<A> {
  /** ∂loss/∂entropies. */
  gradEntropies: A;
}

/** What {@link generalizedJsd} reads. */
export interface JsdInput<A> {
  /** `[tokens, vocab]`, row-major: the student's. */
  logits: A;
  /** The teacher's, of the same shape; constants. */
  teacherLogits: A;
  vocab: number;
  /** A weight for each token's loss; constants, default 1. */
  weights?: A;
}

/** How {@link generalizedJsd} compares the two. */
export interface JsdConfig {
  /** 0 forward KL, 1 reverse KL, between them the mixture; default 0.5. */
  beta?: number;
  /** Both rows of logits are divided by this; default 1. */
  temperature?: number;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** How {@link bypassLoss} corrects for the sampler. */
export interface BypassConfig {
  /** The importance weights; default none. */
  weights?: RolloutConfig;
  /** Default none is rejected. */
  rejection?: RejectionConfig;
  /** Default "ppo-clip". */
  form?: "ppo-clip" | "reinforce";
  /** The config of that loss. */
  policy?: PpoConfig;
  /** What the means of the mismatch divide by; default "count". */
  divisor?: Divisor;
}

/** What {@link bypassLoss} reads: `oldLogProbs` are the sampler's. */
export interface BypassInput<A> {
  logProbs: A;
  oldLogProbs: A;
  advantages: A;
}

/** What {@link bypassLoss} gives. */
export interface BypassOutput<A> extends PolicyLossOutput<A> {
  /** Under verl's keys, `rollout_corr/…`. */
  metrics: Record<string, number>;
  /** The importance weight of each token. */
  weights: A;
  /** The tokens (1) left after rejection. */
  keep: Uint8Array;
}

/** The price of leaving the reference, as a loss of its own. `loss = β · Agg_t kl(log π − log π_ref)` */
export function klLoss(
  batch: Batch, input: KlInput<Float32Array>, config?: KlLossConfig,
): KlLossOutput<Float32Array>;
/** {@link klLoss} in f64. */
export function klLossF64(
  batch: Batch, input: KlInput<Float64Array>, config?: KlLossConfig,
): KlLossOutput<Float64Array>;

/** On-policy distillation: each token's distance to the teacher, as an advantage `−L_t` or as a loss. `L_t = kl(log π − log π_teacher)` */
export function opdLoss(
  batch: Batch, input: OpdLossInput<Float32Array>, config?: OpdLossConfig,
): OpdLossOutput<Float32Array>;
/** {@link opdLoss} in f64. */
export function opdLossF64(
  batch: Batch, input: OpdLossInput<Float64Array>, config?: OpdLossConfig,
): OpdLossOutput<Float64Array>;

/** A policy gradient towards the teacher, held near the sampler. `loss = Agg_t (−keep_t ρ_t (log π_ref − log π) + c d_t²)` */
export function refKl(
  batch: Batch, input: RefKlInput<Float32Array>, config?: RefKlConfig,
): RefKlOutput<Float32Array>;
/** {@link refKl} in f64. */
export function refKlF64(
  batch: Batch, input: RefKlInput<Float64Array>, config?: RefKlConfig,
): RefKlOutput<Float64Array>;

/** On-policy distillation that weighs early tokens more. `loss = −Agg_t w_t a_t log π_t`, `a = log π_teacher − log π_old` */
export function iwOpd(
  batch: Batch, input: TaughtInput<Float32Array>, config?: IwOpdConfig,
): IwOpdOutput<Float32Array>;
/** {@link iwOpd} in f64. */
export function iwOpdF64(
  batch: Batch, input: TaughtInput<Float64Array>, config?: IwOpdConfig,
): IwOpdOutput<Float64Array>;

/** Forward KL over the teacher's likeliest tokens. `loss = Agg_t Σ_j p_j (ln p_j − s_j)` */
export function forwardKlTopk(
  batch: Batch, input: ForwardKlTopKInput<Float32Array>, config?: ForwardKlTopKConfig,
): ForwardKlTopKOutput<Float32Array>;
/** {@link forwardKlTopk} in f64. */
export function forwardKlTopkF64(
  batch: Batch, input: ForwardKlTopKInput<Float64Array>, config?: ForwardKlTopKConfig,
): ForwardKlTopKOutput<Float64Array>;

/** {@link generalizedJsd} over a few tokens and the rest; `grad` is ∂loss/∂logProbs. */
export function topkJsd(
  batch: Batch, input: TopKInput<Float32Array>, config?: TopKJsdConfig,
): LossOutput<Float32Array>;
/** {@link topkJsd} in f64. */
export function topkJsdF64(
  batch: Batch, input: TopKInput<Float64Array>, config?: TopKJsdConfig,
): LossOutput<Float64Array>;

/** A mixture of both KL divergences over the teacher's likeliest tokens. `w · forward + (1 − w) · reverse` */
export function mixedKlTopk(
  batch: Batch, input: MixedKlInput<Float32Array>, config?: MixedKlConfig,
): MixedKlOutput<Float32Array>;
/** {@link mixedKlTopk} in f64. */
export function mixedKlTopkF64(
  batch: Batch, input: MixedKlInput<Float64Array>, config?: MixedKlConfig,
): MixedKlOutput<Float64Array>;

/** The generalized Jensen–Shannon divergence over the vocabulary. `β KL(q‖m) + (1 − β) KL(p‖m)`, `m = (1 − β) p + β q` */
export function generalizedJsd(
  batch: Batch, input: JsdInput<Float32Array>, config?: JsdConfig,
): { loss: number; gradLogits: Float32Array };
/** {@link generalizedJsd} in f64. */
export function generalizedJsdF64(
  batch: Batch, input: JsdInput<Float64Array>, config?: JsdConfig,
): { loss: number; gradLogits: Float64Array };

/** A policy loss that takes the sampler's log-probabilities for the old ones and corrects for both at once. */
export function bypassLoss(
  batch: Batch, input: BypassInput<Float32Array>, config?: BypassConfig,
): BypassOutput<Float32Array>;
/** {@link bypassLoss} in f64. */
export function bypassLossF64(
  batch: Batch, input: BypassInput<Float64Array>, config?: BypassConfig,
): BypassOutput<Float64Array>;
