/** Divided by the deviation of the group (GRPO), not (Dr. GRPO), or by that of the batch's raw scores (TRL). */
export type GroupScale = "standard-deviation" | "unit" | "batch-deviation";

/** How a factor that depends on counts alone is kept: in f64 (default), or rounded to f32 as verl does. */
export type FactorPrecision = "exact" | "single";

/** The conventions of {@link groupRelative}. */
export interface GroupConfig {
  /** Default "standard-deviation". */
  scale?: GroupScale;
  /** Default "sample". */
  spread?: Spread;
  /** Added to the deviation; default 1e-6. */
  epsilon?: number;
  /** Default "zero". */
  singleton?: Singleton;
}

/** The conventions of {@link leaveOneOut}. */
export interface LeaveOneOutConfig {
  /** Default "zero". */
  singleton?: Singleton;
}

/** The conventions of {@link normalizeScores}. */
export interface NormalizeConfig {
  /** Whose mean is taken away; default "group". */
  mean?: "batch" | "group" | "off";
  /** Whether a score counts in its own mean; default "included". */
  own?: "included" | "left-out";
  /** Whose deviation divides; default "group". */
  deviation?: "batch" | "group" | "off";
  /** Default "sample". */
  spread?: Spread;
  /** Added to the deviation; default 1e-5. */
  epsilon?: number;
}

/** The conventions of {@link gpgAdvantage}. */
export interface GpgConfig {
  /** The number every advantage is divided by; default 1. */
  norm?: number;
  /** Default "zero". */
  singleton?: Singleton;
  /** How α is rounded; default "exact". */
  factor?: FactorPrecision;
}

/** The conventions of {@link maxRl}. */
export interface MaxRlConfig {
  /** `mean + ε` (default), or the mean where it is positive. */
  divisor?: "plus-epsilon" | "if-positive";
  /** Default 1e-6. */
  epsilon?: number;
  /** Default "zero". */
  singleton?: Singleton;
}

/** The conventions of {@link bestOfGroup}. */
export interface BestOfGroupConfig {
  /** Default "standard-deviation". */
  scale?: GroupScale;
  /** Default "sample". */
  spread?: Spread;
  /** Added to the deviation; default 1e-6. */
  epsilon?: number;
}

/** Scores of several reward sources. */
export interface GdpoInput<A> {
  /** One source after the other: `sources × sequences`. */
  sources: A;
  /** One weight per source. */
  weights: Float64Array;
}

/** The conventions of {@link gdpo}. */
export interface GdpoConfig {
  /** How each source is compared within its prompt. */
  group?: GroupConfig;
  /** How the weights of the sources are rounded; default "exact". */
  factors?: FactorPrecision;
  /** How the tokens are whitened. */
  whiten?: WhitenConfig;
}

/** The conventions of {@link reinforcePlusPlusBaseline}. */
export interface ReinforcePlusPlusBaselineConfig {
  /** Default "zero". */
  singleton?: Singleton;
  /** How the tokens are whitened. */
  whiten?: WhitenConfig;
}

/** What {@link optimalTokenBaseline} and {@link tirOptimalTokenBaseline} read. */
export interface OptimalBaselineInput<A> {
  rewards: A;
  oldLogProbs: A;
  /** `Σ_v π(v)²` of the distribution each token was drawn from ({@link sumSquaredProbs}). */
  sumPiSquared: A;
  /** Importance weights of the tokens; default 1. */
  isWeights?: A;
}

/** The conventions of {@link optimalTokenBaseline} and {@link tirOptimalTokenBaseline}. */
export interface OptimalBaselineConfig {
  /** What the tail of the longest answer is compared with: nothing (default), or its own return. */
  zeroTail?: "no-baseline" | "own-return";
  /** Added to the weights of each column; default 1e-8. */
  epsilon?: number;
}

/** The running baseline of each role, all 0 at first; {@link roleBaseline} goes on from it. */
export class RoleBaselines {
  /** `decay` in [0, 1] is the share of the old baseline that an update keeps. */
  constructor(roles: number, decay: number);
  /** What the next score of each role is compared with. */
  readonly values: Float64Array;
  /** A second handle to the same baselines, freed by itself. */
  clone(): RoleBaselines;
  /** Gives the memory back at once; otherwise it goes with the object, at the garbage collector's leisure. */
  free(): void;
}

/** Scores of one prompt's samples, compared with each other (GRPO). `A_i = (s_i − mean_j s_j) / (std_j s_j + ε)` */
export function groupRelative(groups: Groups, scores: Float32Array, config?: GroupConfig): Float32Array;
/** {@link groupRelative} in f64. */
export function groupRelativeF64(groups: Groups, scores: Float64Array, config?: GroupConfig): Float64Array;

/** Each score against the mean of the prompt's other samples (RLOO). `A_i = s_i − mean_{j≠i} s_j` */
export function leaveOneOut(groups: Groups, scores: Float32Array, config?: LeaveOneOutConfig): Float32Array;
/** {@link leaveOneOut} in f64. */
export function leaveOneOutF64(groups: Groups, scores: Float64Array, config?: LeaveOneOutConfig): Float64Array;

/** Each score against mean and spread of the prompt's other samples; ε default 1e-6. `A_i = (s_i − b_i) / (σ_i + ε)` */
export function leaveOneOutScaled(groups: Groups, scores: Float32Array, config?: { epsilon?: number }): Float32Array;
/** {@link leaveOneOutScaled} in f64. */
export function leaveOneOutScaledF64(groups: Groups, scores: Float64Array, config?: { epsilon?: number }): Float64Array;

/**
 * Scores minus a mean, divided by a deviation, each over the batch, the prompt, or not at all.
 * `c_i / (√(Σ_j c_j² / d) + ε)`
 */
export function normalizeScores(groups: Groups, scores: Float32Array, config?: NormalizeConfig): Float32Array;
/** {@link normalizeScores} in f64. */
export function normalizeScoresF64(groups: Groups, scores: Float64Array, config?: NormalizeConfig): Float64Array;

/**
 * Scores against their prompt's mean, scaled up by the share that scored nothing (GPG).
 * `A_i = α (s_i − mean_j s_j) / F`
 */
export function gpgAdvantage(groups: Groups, scores: Float32Array, config?: GpgConfig): Float32Array;
/** {@link gpgAdvantage} in f64. */
export function gpgAdvantageF64(groups: Groups, scores: Float64Array, config?: GpgConfig): Float64Array;

/** Scores against their prompt's mean, in units of it (MaxRL). `A_i = (s_i − mean_j s_j) / (mean_j s_j + ε)` */
export function maxRl(groups: Groups, scores: Float32Array, config?: MaxRlConfig): Float32Array;
/** {@link maxRl} in f64. */
export function maxRlF64(groups: Groups, scores: Float64Array, config?: MaxRlConfig): Float64Array;

/** Only the best sample of a prompt counts, by its lead. `A_i = (s_i − second best s) / (std_j s_j + ε)` */
export function bestOfGroup(groups: Groups, scores: Float32Array, config?: BestOfGroupConfig): Float32Array;
/** {@link bestOfGroup} in f64. */
export function bestOfGroupF64(groups: Groups, scores: Float64Array, config?: BestOfGroupConfig): Float64Array;

/** Each score against the prompt's mean score per token (OPO). `A_i = s_i − Σ_j n_j s_j / Σ_j n_j` */
export function lengthWeightedBaseline(
  batch: Batch, groups: Groups, scores: Float32Array, config?: LeaveOneOutConfig,
): Float32Array;
/** {@link lengthWeightedBaseline} in f64. */
export function lengthWeightedBaselineF64(
  batch: Batch, groups: Groups, scores: Float64Array, config?: LeaveOneOutConfig,
): Float64Array;

/**
 * Several reward sources, each compared within its prompt first.
 * `Σ_k w_k (s_{k,i} − mean_j s_{k,j}) / (std_j s_{k,j} + ε)`
 */
export function decoupledScores(groups: Groups, input: GdpoInput<Float32Array>, config?: GroupConfig): Float32Array;
/** {@link decoupledScores} in f64. */
export function decoupledScoresF64(groups: Groups, input: GdpoInput<Float64Array>, config?: GroupConfig): Float64Array;

/** {@link decoupledScores} laid on the tokens and whitened over all of them (GDPO). `A = (a − μ) / √(σ² + ε)` */
export function gdpo(batch: Batch, groups: Groups, input: GdpoInput<Float32Array>, config?: GdpoConfig): Float32Array;
/** {@link gdpo} in f64. */
export function gdpoF64(batch: Batch, groups: Groups, input: GdpoInput<Float64Array>, config?: GdpoConfig): Float64Array;

/** Scores against their prompt's mean, laid on the tokens and whitened. `A = (c − μ) / √(σ² + ε)` */
export function reinforcePlusPlusBaseline(
  batch: Batch, groups: Groups, scores: Float32Array, config?: ReinforcePlusPlusBaselineConfig,
): Float32Array;
/** {@link reinforcePlusPlusBaseline} in f64. */
export function reinforcePlusPlusBaselineF64(
  batch: Batch, groups: Groups, scores: Float64Array, config?: ReinforcePlusPlusBaselineConfig,
): Float64Array;

/** A baseline of its own for every column. `b_t = Σ_j G_{j,t} C_{j,t} / (Σ_j C_{j,t} + ε)`, `A_t = G_t − b_t` */
export function optimalTokenBaseline(
  batch: Batch, groups: Groups, input: OptimalBaselineInput<Float32Array>, config?: OptimalBaselineConfig,
): GaeOutput<Float32Array>;
/** {@link optimalTokenBaseline} in f64. */
export function optimalTokenBaselineF64(
  batch: Batch, groups: Groups, input: OptimalBaselineInput<Float64Array>, config?: OptimalBaselineConfig,
): GaeOutput<Float64Array>;

/** {@link optimalTokenBaseline} whose columns count the kept tokens only, for answers with tool calls in them. */
export function tirOptimalTokenBaseline(
  batch: Batch, groups: Groups, input: OptimalBaselineInput<Float32Array>, config?: OptimalBaselineConfig,
): GaeOutput<Float32Array>;
/** {@link tirOptimalTokenBaseline} in f64. */
export function tirOptimalTokenBaselineF64(
  batch: Batch, groups: Groups, input: OptimalBaselineInput<Float64Array>, config?: OptimalBaselineConfig,
): GaeOutput<Float64Array>;

/** Each score against what its role has scored so far. `A_i = s_i − b_role`, then `b_role ← d b_role + (1 − d) s_i` */
export function roleBaseline(baselines: RoleBaselines, input: { roles: Uint32Array; scores: Float32Array }): Float32Array;
/** {@link roleBaseline} in f64. */
export function roleBaselineF64(
  baselines: RoleBaselines, input: { roles: Uint32Array; scores: Float64Array },
): Float64Array;
