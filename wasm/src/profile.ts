/** Whose conventions to follow: the papers, verl 0.9.1, TRL 1.16.0, OpenRLHF 0.11.2. */
export type ProfileName = "paper" | "verl-0.9.1" | "trl-1.16" | "openrlhf-0.11";

/** What {@link compareProfiles} reads. What is left out is left out of the chain, with all that needs it. */
export interface ProfileInput<A> {
  /** Token rewards, before any KL. */
  rewards: A;
  /** One score per sequence; without them the rewards are added up, over the slots a profile says. */
  scores?: A;
  /** The critic's values when the batch was collected. */
  values?: A;
  /** Its new values; with them and `values` there is a value loss. */
  predictions?: A;
  /** Log-probabilities of the policy being trained. */
  logProbs: A;
  /** Those of the policy that sampled, as the trainer computes them. */
  oldLogProbs: A;
  /** Those of the reference; with them there is a KL in the reward, and a KL loss. */
  refLogProbs?: A;
  /** Those the sampler reported; with them every policy loss is weighed. */
  rolloutLogProbs?: A;
}

/** What both sides are given alike; `null` or nothing leaves a number to each profile. */
export interface CompareConfig {
  /** Discount γ; default 1. */
  gamma?: number;
  /** λ of the generalized advantage estimate. */
  lambda?: number | null;
  /** The price β of the KL in the reward. */
  beta?: number | null;
  /** ε⁻ of the clipped surrogate; default 0.2. */
  clipLow?: number;
  /** ε⁺ of it; default 0.2. */
  clipHigh?: number;
  /** The bound of its second clip, above 1. */
  dualClip?: number | null;
  /** How far from the old values the critic's predictions are held. */
  valueClip?: number | null;
  /** Which advantages the losses are given; default "group-relative". */
  estimator?: "group-relative" | "leave-one-out" | "whitened";
  /** How the clipped surrogate, CISPO, the KL loss and the value loss aggregate; default "token-mean". */
  mode?: "token-mean" | "token-sum" | "seq-mean-token-sum" | "seq-mean-token-mean";
}

/** A result that comes out differently under two profiles, and why. */
export interface ProfileDifference {
  /** Which result, such as "gae.advantages" or "ppo_clip". */
  result: string;
  /** What one entry of it stands for. */
  shape: "tokens" | "sequences" | "scalar";
  /** Where the two are farthest apart; `null` for a single number. */
  index: number | null;
  /** Both numbers there; `null` where the batch has too little for one of the two. */
  values: [number | null, number | null];
  /** The code of the error in that case. */
  refused: [string | null, string | null];
  /** How far apart they are; NaN, which counts as farthest, where one of them is no number. */
  difference: number;
  /** How many entries differ. */
  count: number;
  /** The conventions that made it so, with what they are on both sides. */
  causes: { convention: string; values: [string, string] }[];
}

/** Runs one batch under two profiles and tells which results differ, by how much, and by which conventions. */
export function compareProfiles(
  batch: Batch, groups: Groups, input: ProfileInput<Float32Array>, profiles: [ProfileName, ProfileName], config?: CompareConfig,
): ProfileDifference[];
/** {@link compareProfiles} in f64. */
export function compareProfilesF64(
  batch: Batch, groups: Groups, input: ProfileInput<Float64Array>, profiles: [ProfileName, ProfileName], config?: CompareConfig,
): ProfileDifference[];
/** The conventions of a profile: their names, and what they are. */
export function conventions(profile: ProfileName): Record<string, string>;
