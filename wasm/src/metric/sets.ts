/** How long sequences are in tokens, one entry per sequence, and how long they may be. */
export interface Lengths {
  tokens: Uint32Array;
  limit: number;
}

/** What a policy loss returned, as far as it is logged. */
export type LoggedPolicyLoss = { loss: number; clipFraction: number; clipFractionLower: number; kl: number };
/** What a value loss returned, as far as it is logged. */
export type LoggedValueLoss = { loss: number; clipFraction: number };

/** What {@link verlMetrics} reads: whatever there is. */
export interface VerlInput<A> {
  /** Token-level scores before any KL penalty, and rewards after it; with `responseLengths`. */
  scores?: A;
  rewards?: A;
  advantages?: A;
  returns?: A;
  /** The critic's values when the batch was collected, and its new ones. */
  values?: A;
  predictions?: A;
  /** The attention mask's lengths, not the loss mask's. */
  responseLengths?: Lengths;
  promptLengths?: Lengths;
  logProbs?: A;
  refLogProbs?: A;
  oldLogProbs?: A;
  /** Of the sampler. */
  rolloutLogProbs?: A;
  /** Beside `oldLogProbs`, and beside `logProbs`. */
  oldEntropies?: A;
  entropies?: A;
  /** With `oldLogProbs`, `advantages` and `gradientNorm`: the variance proxies. */
  sumPiSquared?: A;
  weights?: A;
  gradientNorm?: number;
  policyLoss?: LoggedPolicyLoss;
  valueLoss?: LoggedValueLoss;
  rewardKl?: { kl: number; coefficient: number };
  /** The mask before rejection, if rejection changed it. */
  maskBeforeRejection?: Uint8Array;
}

/** The conventions of {@link verlMetrics}; by default verl's. */
export interface VerlConfig {
  /** Of entropies and KL; default their mean over tokens. */
  aggregate?: Aggregate;
  /** Default "count-plus-epsilon". */
  divisor?: Divisor;
  /** Default k3, bounded. */
  kl?: KlConfig;
  /** Default 1e-3. */
  klCoefficient?: number;
  /** Default 0. */
  entropyCoefficient?: number;
  /** The importance weights and the rejection whose metrics are wanted; default none. */
  rolloutWeights?: RolloutConfig;
  rejection?: RejectionConfig;
}

/** Numbers by the keys a framework logs them under; what was not given is not there. */
export type LoggedMetrics = Record<string, number>;

/** What {@link trlMetrics} reads: whatever there is. */
export interface TrlInput<A> {
  logProbs?: A;
  /** Default `logProbs`. */
  oldLogProbs?: A;
  refLogProbs?: A;
  /** Of the sampler; NaN where it gave none. */
  rolloutLogProbs?: A;
  /** The importance weights between sampler and trainer. */
  weights?: A;
  advantages?: A;
  entropies?: A;
  /** What the loss returned, by the kind of loss. */
  loss?: ({ kind: "clipped" | "cispo" | "sapo" } & LoggedPolicyLoss) | { kind: "vespo"; loss: number; phiMean: number };
  /** One row of `sources` per reward function, NaN where it gave none; `names` name the keys. */
  rewards?: { groups: Groups; sources: A; sourceWeights: Float64Array; names: string[] };
  completionLengths?: Uint32Array;
  truncated?: Uint8Array;
  promptLengths?: Uint32Array;
}

/** The conventions of {@link trlMetrics}; by default TRL's. */
export interface TrlConfig {
  /** ε⁻ and ε⁺; default 0.2. */
  clipLow?: number;
  clipHigh?: number;
  /** Default "off". */
  dualClip?: DualClip;
  /** Of the clip's ratio; default "token". */
  level?: "token" | "sequence";
  /** Of `weights`; default "token". */
  weightLevel?: "token" | "sequence";
  /** Whose spread `frac_reward_zero_std` asks for; default "group". */
  scale?: "group" | "batch";
  /** Default null: no entropy bonus. */
  entropyCoefficient?: number | null;
  /** Default 0. */
  tokensSeen?: number;
}

/** What {@link openrlhfMetrics} reads: whatever there is. */
export interface OpenRlhfInput<A> {
  /** Of the trained policy for a KL in the loss, of the old one for a KL in the reward. */
  logProbs?: A;
  refLogProbs?: A;
  entropies?: A;
  /** The shaped rewards. */
  rewards?: A;
  predictions?: A;
  /** One per sequence. */
  scores?: A;
  groups?: Groups;
  /** Of prompt and response together. */
  totalLengths?: Lengths;
  truncated?: Uint8Array;
  policyLoss?: LoggedPolicyLoss;
  gate?: { filtered: number; kl: number };
  valueLoss?: LoggedValueLoss;
}

/** The conventions of {@link openrlhfMetrics}; by default OpenRLHF's. */
export interface OpenRlhfConfig {
  /** Of entropies, and of the KL of a loss; default their mean over tokens. */
  aggregate?: Aggregate;
  /** Default k1, bounded. */
  kl?: KlConfig;
  /** Default "reward". */
  klUse?: "reward" | "loss";
}

/** All that verl logs about the tokens of a batch, under its keys. */
export function verlMetrics(batch: Batch, input: VerlInput<Float32Array>, config?: VerlConfig): LoggedMetrics;
/** {@link verlMetrics} in f64. */
export function verlMetricsF64(batch: Batch, input: VerlInput<Float64Array>, config?: VerlConfig): LoggedMetrics;

/** All that the GRPO trainer of TRL logs about the tokens of a batch, under its keys. */
export function trlMetrics(batch: Batch, input: TrlInput<Float32Array>, config?: TrlConfig): LoggedMetrics;
/** {@link trlMetrics} in f64. */
export function trlMetricsF64(batch: Batch, input: TrlInput<Float64Array>, config?: TrlConfig): LoggedMetrics;

/** All that OpenRLHF logs about the tokens of a batch, under its keys. */
export function openrlhfMetrics(batch: Batch, input: OpenRlhfInput<Float32Array>, config?: OpenRlhfConfig): LoggedMetrics;
/** {@link openrlhfMetrics} in f64. */
export function openrlhfMetricsF64(batch: Batch, input: OpenRlhfInput<Float64Array>, config?: OpenRlhfConfig): LoggedMetrics;

/** The values of a metric, one per micro-batch, as one: by verl's rule for its key; losses add up if their counts were those of the step. */
export function reduceMetric(key: string, values: Float64Array, globalCounts?: boolean): number;
