/** A target that follows what was measured: `factor` (1.1) times the mean of the last `length` (10) measurements. */
export interface Follow {
  length?: number;
  factor?: number;
}

/** Where {@link LinearKl} starts, where it wants to be, and how fast it goes. */
export interface LinearKlConfig {
  /** The first price; default 0.001. */
  beta?: number;
  /** The KL wanted; default 0.02. */
  target?: number;
  /** η_β; default 0.01. */
  learningRate?: number;
  /** The lowest price; default 1e-6. */
  betaMin?: number;
  /** Whether the target follows the KL measured; default null, no. */
  follow?: Follow | null;
}

/** A price of KL that moves by a share of how far the KL is from its target. `β ← max(β_min, β + η (KL − D))` */
export class LinearKl {
  constructor(config?: LinearKlConfig);
  /** Takes the KL of a step, gives the price of the next. */
  update(kl: number): number;
  /** Another machine in the same state. */
  clone(): LinearKl;
  /** The price now. */
  readonly beta: number;
  /** The KL wanted now. */
  readonly target: number;
  /** Gives the memory back at once; otherwise it goes with the object, at the garbage collector's leisure. */
  free(): void;
}

/** How the budget B follows from B0. */
export type BudgetSchedule =
  | { kind: "constant" }
  | { kind: "reward-std-usage"; share: number; totalSteps: number }
  | { kind: "exponential"; alpha: number; totalSteps: number }
  | { kind: "plateau"; decay: number; minDelta: number; patience: number; kappa: number; budgetMin: number };

/** The settings of {@link EntropyBudget}. */
export interface EntropyBudgetConfig {
  /** The first price; default 0. */
  lambda?: number;
  /** η_λ; default 0.02. */
  learningRate?: number;
  /** The highest price; default null, none. */
  lambdaMax?: number | null;
  /** `wH` per token is held to this range before λ sees it; default null, not. */
  whRange?: { low: number; high: number } | null;
  /** Where B0 comes from; default a warm-up of 10 steps with ρ 0.45. */
  source?: { kind: "given"; b0: number } | { kind: "warm-up"; steps: number; rho: number };
  /** Whether B0 follows what is used; default null, no. */
  follow?: Follow | null;
  /** Default constant. */
  schedule?: BudgetSchedule;
  /** What to do when entropy is gone; default "off". */
  guard?: "off" | "on";
}

/** What was measured in one step. */
export interface BudgetObservation {
  step: number;
  /** Σ w H over the kept tokens. */
  whSum: number;
  /** Kept tokens. */
  tokenCount: number;
  /** Default 0. */
  rewardStd?: number;
  /** Default 0. */
  rewardSumMean?: number;
}

/** What a step made of the budget; null is not yet known. */
export interface BudgetReport {
  lambda: number;
  budget: number | null;
  budgetPerToken: number | null;
  whPerToken: number;
  usageRatio: number | null;
  warmUpFinished: boolean;
  plateau: boolean;
  collapse: boolean;
}

/** A price of entropy that rises while more is used than the budget allows. `λ ← max(0, λ + η (wH_sum / N − B / N))` */
export class EntropyBudget {
  constructor(config?: EntropyBudgetConfig);
  /** Takes in a step, gives the price of the next update. */
  update(observation: BudgetObservation): BudgetReport;
  /** Another machine in the same state. */
  clone(): EntropyBudget;
  /** The price now. */
  readonly lambda: number;
  /** Gives the memory back at once; otherwise it goes with the object, at the garbage collector's leisure. */
  free(): void;
}

/** The settings of {@link DualGame}; a number is a fixed price of KL. */
export interface DualGameRules {
  kl?: number | LinearKlConfig | AdaptiveKlConfig;
  budget?: EntropyBudgetConfig;
}

/** What a step of {@link DualGame} reads. */
export interface DualGameStep<A> extends TokenWeightFields<A> {
  oldLogProbs: A;
  advantages: A;
  rewards: A;
}

/** What a step of {@link DualGame} found out; `entries` has every key as a trainer logs it. */
export interface DualGameReport {
  lambda: number;
  beta: number;
  budget: BudgetReport;
  entries: { [key: string]: number };
}

/** Both prices, moved once per batch by what the batch shows. */
export class DualGame {
  constructor(config?: DualGameRules);
  /** Measures a batch, moves both prices, and tells everything. */
  step(batch: Batch, input: DualGameStep<Float32Array> | DualGameStep<Float64Array>): DualGameReport;
  /** Another game in the same state. */
  clone(): DualGame;
  /** The price of entropy now. */
  readonly lambda: number;
  /** The price of KL now. */
  readonly beta: number;
  /** Gives the memory back at once; otherwise it goes with the object, at the garbage collector's leisure. */
  free(): void;
}
