/** What TRPO maximises and PPO clips, as a loss. `ρ_t = exp(log π_t − log π_old,t)`, `loss = −Agg_t ρ_t A_t` */
export function surrogate(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: SurrogateConfig,
): LossOutput<Float32Array>;
/** {@link surrogate} in f64. */
export function surrogateF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: SurrogateConfig,
): LossOutput<Float64Array>;

/** Clipped surrogate loss; `grad` is ∂loss/∂logProbs. `loss = −Agg_t min(ρ_t A_t, clip(ρ_t, 1 − ε⁻, 1 + ε⁺) A_t)` */
export function ppoClip(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: PpoConfig,
): PolicyLossOutput<Float32Array>;
/** {@link ppoClip} in f64. */
export function ppoClipF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: PpoConfig,
): PolicyLossOutput<Float64Array>;

/** The plain policy gradient as a loss; `grad` is ∂loss/∂logProbs, here and below. `loss = −Agg_t A_t log π_t` */
export function reinforce(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: ReinforceConfig,
): PolicyLossOutput<Float32Array>;
/** {@link reinforce} in f64. */
export function reinforceF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: ReinforceConfig,
): PolicyLossOutput<Float64Array>;

/**
 * A policy gradient weighed by the bounded ratio (CISPO).
 * `loss = −Agg_t ĉ_t A_t log π_t`, `ĉ_t = clip(ρ_t, low, high)`
 */
export function cispo(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: CispoConfig,
): PolicyLossOutput<Float32Array>;
/** {@link cispo} in f64. */
export function cispoF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: CispoConfig,
): PolicyLossOutput<Float64Array>;

/** A policy gradient weighed by the ratio, which counts at most 1. `loss = −Agg_t min(ρ_t, 1) A_t log π_t` */
export function tisLoss(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: ReinforceConfig,
): PolicyLossOutput<Float32Array>;
/** {@link tisLoss} in f64. */
export function tisLossF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: ReinforceConfig,
): PolicyLossOutput<Float64Array>;

/** The clipped surrogate without the tokens selected (1) beforehand. `L_t = [t not selected] · ppo_t` */
export function clipCov(
  batch: Batch, input: PolicyLossInput<Float32Array>, selected: Uint8Array, config?: ClipCovConfig,
): PolicyLossOutput<Float32Array>;
/** {@link clipCov} in f64. */
export function clipCovF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, selected: Uint8Array, config?: ClipCovConfig,
): PolicyLossOutput<Float64Array>;

/** Chooses (1) some tokens of high covariance for {@link clipCov}. `cov_t = (A_t − Ā)(log π_t − mean log π)` */
export function clipCovSelection(
  batch: Batch, input: PolicyLossInput<Float32Array>, seed: number, config?: ClipCovConfig,
): Uint8Array;
/** {@link clipCovSelection} in f64. */
export function clipCovSelectionF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, seed: number, config?: ClipCovConfig,
): Uint8Array;

/** The surrogate with a price on moving the tokens of highest covariance. `L_t = −ρ_t A_t + κ |d_t| [t chosen]` */
export function klCov(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: KlCovConfig,
): PolicyLossOutput<Float32Array>;
/** {@link klCov} in f64. */
export function klCovF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: KlCovConfig,
): PolicyLossOutput<Float64Array>;

/** Drops tokens whose probability has moved too far the way it is pushed. `A > 0 ? p − q ≤ ε⁺ : p − q ≥ −ε⁻` */
export function dppoTv(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: DppoConfig,
): PolicyLossOutput<Float32Array>;
/** {@link dppoTv} in f64. */
export function dppoTvF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: DppoConfig,
): PolicyLossOutput<Float64Array>;

/** {@link dppoTv} by binary KL. `A > 0 ? (b ≤ ε⁺ or p ≤ q) : (b ≤ ε⁻ or p ≥ q)` */
export function dppoKl(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: DppoConfig,
): PolicyLossOutput<Float32Array>;
/** {@link dppoKl} in f64. */
export function dppoKlF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: DppoConfig,
): PolicyLossOutput<Float64Array>;

/**
 * A policy gradient with a quadratic price for leaving the policy that sampled.
 * `loss = −Agg_t (A_t log π_t − ½ β d_t²)`
 */
export function dro(batch: Batch, input: PolicyLossInput<Float32Array>, config: DroConfig): PolicyLossOutput<Float32Array>;
/** {@link dro} in f64. */
export function droF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config: DroConfig,
): PolicyLossOutput<Float64Array>;

/** The geometric mean of a sequence's clipped ratios, times its mean advantage. `loss = −Σ_i A_i R_i / B` */
export function gmpo(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: GmpoConfig,
): PolicyLossOutput<Float32Array>;
/** {@link gmpo} in f64. */
export function gmpoF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: GmpoConfig,
): PolicyLossOutput<Float64Array>;

/** The clipped surrogate with one ratio per sequence (GSPO). `s_i = exp(Σ_t (log π_t − log π_old,t) / n_i)` */
export function gspo(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: GspoConfig,
): PolicyLossOutput<Float32Array>;
/** {@link gspo} in f64. */
export function gspoF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: GspoConfig,
): PolicyLossOutput<Float64Array>;

/** {@link gspo} whose sequences weigh by their length. `loss = −Σ_i Σ_t min(s_i A_t, clip(s_i) A_t) / B` */
export function luspo(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: LuspoConfig,
): PolicyLossOutput<Float32Array>;
/** {@link luspo} in f64. */
export function luspoF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: LuspoConfig,
): PolicyLossOutput<Float64Array>;

/** Fits differences of log-ratios to differences of advantages; β default 0.1. `Σ_i ½ ((u_i − ū) − Ā_i)² / (K − 1)` */
export function gvpo(
  batch: Batch, groups: Groups, input: PolicyLossInput<Float32Array>, config?: { beta?: number },
): LossOutput<Float32Array>;
/** {@link gvpo} in f64. */
export function gvpoF64(
  batch: Batch, groups: Groups, input: PolicyLossInput<Float64Array>, config?: { beta?: number },
): LossOutput<Float64Array>;

/** Imitation of the sequences with a positive score. `loss = −μ Σ_{i: s_i > 0} Σ_t log π_t / N₊` */
export function positiveNll(
  batch: Batch, input: { logProbs: Float32Array; scores: Float32Array }, mu: number,
): LossOutput<Float32Array>;
/** {@link positiveNll} in f64. */
export function positiveNllF64(
  batch: Batch, input: { logProbs: Float64Array; scores: Float64Array }, mu: number,
): LossOutput<Float64Array>;

/** A soft gate in place of the clip (SAPO). `f(ρ) = (4/τ) σ(τ (ρ − 1))`, `loss = −Agg_t f(ρ_t) A_t` */
export function sapo(
  batch: Batch, input: PolicyLossInput<Float32Array>, config?: SapoConfig,
): PolicyLossOutput<Float32Array>;
/** {@link sapo} in f64. */
export function sapoF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: SapoConfig,
): PolicyLossOutput<Float64Array>;

/**
 * Imitation of good responses, tapered learning from bad ones; one score per sequence.
 * `L_t = −w₊ A_t log π_t` or `−w₋ min(ρ_t, 1) A_t log π_t`
 */
export function topr(
  batch: Batch, input: PolicyLossInput<Float32Array>, scores: Float32Array, config?: ToprConfig,
): LossOutput<Float32Array>;
/** {@link topr} in f64. */
export function toprF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, scores: Float64Array, config?: ToprConfig,
): LossOutput<Float64Array>;

/** A policy gradient weighed by a smooth function of the sequence's ratio. `loss = −Agg_t φ A_t log π_t` */
export function vespo(batch: Batch, input: PolicyLossInput<Float32Array>, config?: VespoConfig): VespoOutput<Float32Array>;
/** {@link vespo} in f64. */
export function vespoF64(
  batch: Batch, input: PolicyLossInput<Float64Array>, config?: VespoConfig,
): VespoOutput<Float64Array>;
