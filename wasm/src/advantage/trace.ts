/** How {@link gaeDecoupled} discounts. */
export interface GaeDecoupledConfig extends ReturnsConfig {
  /** λ of the critic's returns; default 1. */
  lambdaValue?: number;
  /** λ of the policy's advantages, default 0.95; or α of `λ_i = 1 − 1 / max(α n_i, 1)`. */
  lambdaPolicy?: number | { alpha: number };
}

/** How {@link nStepReturns} looks ahead. */
export interface NStepConfig extends GaeConfig {
  /** Rewards taken as they came before the critic takes over; default 1. */
  n?: number;
}

/** What {@link vtrace} reads. */
export interface VtraceInput<A> extends GaeInput<A> {
  /** Log-probabilities under the policy being trained. */
  logProbs: A;
  /** Log-probabilities under the policy that generated the tokens. */
  oldLogProbs: A;
}

/** How {@link vtrace} discounts and clips. */
export interface VtraceConfig {
  /** Discount γ per step; default 1. */
  gamma?: number;
  /** Decay λ of the trace; default 1. */
  lambda?: number;
  /** Cap of the ratio that weighs each surprise; default 1. */
  rhoBar?: number;
  /** Cap of the ratio that carries surprises back; default 1. */
  cBar?: number;
  /** Cap of the ratio of the advantages; default 1. */
  rhoBarPg?: number;
  /** How much of the caps applies, in [0, 1]; default 1. */
  alpha?: number;
}

/** What {@link retrace} reads. */
export interface RetraceInput<A> extends VtraceInput<A> {
  /** Action values `Q(s, a)` of the emitted tokens. */
  actionValues: A;
}

/** How {@link retrace} discounts and corrects. */
export interface RetraceConfig {
  /** Discount γ per step; default 1. */
  gamma?: number;
  /** λ of the coefficient; default 1. */
  lambda?: number;
  /** `ρ`, `λ`, `λ π`, or `λ min(1, ρ)` (default). */
  coefficient?: "importance" | "lambda" | "tree-backup" | "retrace";
}

/** How {@link pufferAdvantage} discounts and clips. */
export interface PufferConfig {
  /** Discount γ per step; default 1. */
  gamma?: number;
  /** Decay λ of the trace; default 1. */
  lambda?: number;
  /** Cap of the ratio in the surprise; default 1. */
  rhoBar?: number;
  /** Cap of the ratio in the trace; default 1. */
  cBar?: number;
  /** Whether the ratio weighs the whole surprise (default) or the reward only. */
  variant?: "v3" | "v4";
}

/** The conventions of {@link reinforcePlusPlus}. */
export interface ReinforcePlusPlusConfig extends ReturnsConfig {
  /** How the returns are whitened. */
  whiten?: WhitenConfig;
}

/** Log-probabilities of teacher and student. */
export interface TeacherInput<A> {
  teacherLogProbs: A;
  oldLogProbs: A;
}

/** How {@link minillmAdvantage} discounts and divides. */
export interface MinillmConfig extends ReturnsConfig {
  /** Where the powers of γ start: at the token (default), or at the start of the sequence. */
  from?: "token" | "start";
  /** Divided by nothing, by the kept tokens left (default), or by these and a little of the padding (TRL). */
  length?: "off" | "kept" | "kept-and-padding";
}

/** GAE with one λ for the critic and another for the policy. `A_t = δ_t + γ λ_policy A_{t+1}`, `G_t = V_t + Â_t` */
export function gaeDecoupled(
  batch: Batch, input: GaeInput<Float32Array>, config?: GaeDecoupledConfig,
): GaeOutput<Float32Array>;
/** {@link gaeDecoupled} in f64. */
export function gaeDecoupledF64(
  batch: Batch, input: GaeInput<Float64Array>, config?: GaeDecoupledConfig,
): GaeOutput<Float64Array>;

/** The targets of TD(λ). `G_t = r_t + γ ((1 − λ) V_{t+1} + λ G_{t+1})` */
export function tdLambda(batch: Batch, input: GaeInput<Float32Array>, config?: GaeConfig): Float32Array;
/** {@link tdLambda} in f64. */
export function tdLambdaF64(batch: Batch, input: GaeInput<Float64Array>, config?: GaeConfig): Float64Array;

/** `n` rewards as they came, then the critic's value. `G_t = r_t + γ r_{t+1} + … + γ^n V_{t+n}` */
export function nStepReturns(batch: Batch, input: GaeInput<Float32Array>, config?: NStepConfig): Float32Array;
/** {@link nStepReturns} in f64. */
export function nStepReturnsF64(batch: Batch, input: GaeInput<Float64Array>, config?: NStepConfig): Float64Array;

/**
 * Returns that follow what happened as long as it went at least as well as expected.
 * `r_t + G_{t+1}`, or `r_t + V_{t+1}`
 */
export function upgo(batch: Batch, input: GaeInput<Float32Array>): Float32Array;
/** {@link upgo} in f64. */
export function upgoF64(batch: Batch, input: GaeInput<Float64Array>): Float64Array;

/** Value targets and advantages for tokens that an older policy generated. `target_t = V_t + e_t` */
export function vtrace(
  batch: Batch, input: VtraceInput<Float32Array>, config?: VtraceConfig,
): { targets: Float32Array; advantages: Float32Array };
/** {@link vtrace} in f64. */
export function vtraceF64(
  batch: Batch, input: VtraceInput<Float64Array>, config?: VtraceConfig,
): { targets: Float64Array; advantages: Float64Array };

/**
 * Returns for action values from tokens another policy generated.
 * `G_t = r_t + γ (V_{t+1} + c_{t+1} (G_{t+1} − Q_{t+1}))`
 */
export function retrace(batch: Batch, input: RetraceInput<Float32Array>, config?: RetraceConfig): Float32Array;
/** {@link retrace} in f64. */
export function retraceF64(batch: Batch, input: RetraceInput<Float64Array>, config?: RetraceConfig): Float64Array;

/** GAE and V-trace in one recursion. `A_t = δ_t + γ λ c A_{t+1}` */
export function pufferAdvantage(
  batch: Batch, input: GaeInput<Float32Array> & { ratios: Float32Array }, config?: PufferConfig,
): Float32Array;
/** {@link pufferAdvantage} in f64. */
export function pufferAdvantageF64(
  batch: Batch, input: GaeInput<Float64Array> & { ratios: Float64Array }, config?: PufferConfig,
): Float64Array;

/** What followed each token, minus what the greedy answer scored (ReMax). `A_t = G_t − b_i` */
export function remax(batch: Batch, input: { rewards: Float32Array; baselines: Float32Array }): GaeOutput<Float32Array>;
/** {@link remax} in f64. */
export function remaxF64(batch: Batch, input: { rewards: Float64Array; baselines: Float64Array }): GaeOutput<Float64Array>;

/** What followed each token, compared with what followed all tokens of the batch. `A_t = (G_t − μ) / √(σ² + ε)` */
export function reinforcePlusPlus(
  batch: Batch, input: ReturnsInput<Float32Array>, config?: ReinforcePlusPlusConfig,
): GaeOutput<Float32Array>;
/** {@link reinforcePlusPlus} in f64. */
export function reinforcePlusPlusF64(
  batch: Batch, input: ReturnsInput<Float64Array>, config?: ReinforcePlusPlusConfig,
): GaeOutput<Float64Array>;

/** On-policy distillation; β default 1. `A_t = A⁰_t + β (log π_teacher,t − log π_old,t)` */
export function opdAdvantage(
  batch: Batch, input: TeacherInput<Float32Array> & { advantages?: Float32Array }, config?: { coefficient?: number },
): Float32Array;
/** {@link opdAdvantage} in f64. */
export function opdAdvantageF64(
  batch: Batch, input: TeacherInput<Float64Array> & { advantages?: Float64Array }, config?: { coefficient?: number },
): Float64Array;

/** How much likelier the teacher finds a token and all that follows. `Σ_{u ≥ t} γ^{u−t} ρ_u / Σ_{u ≥ t} γ^{u−t}` */
export function minillmAdvantage(batch: Batch, input: TeacherInput<Float32Array>, config?: MinillmConfig): Float32Array;
/** {@link minillmAdvantage} in f64. */
export function minillmAdvantageF64(batch: Batch, input: TeacherInput<Float64Array>, config?: MinillmConfig): Float64Array;
