/** What the policy losses read. */
export interface PolicyLossInput<A> {
  /** Log-probabilities of the policy being trained. */
  logProbs: A;
  /** Log-probabilities of the policy that sampled; constants. */
  oldLogProbs: A;
  /** Constants. */
  advantages: A;
  /** A weight for each token's loss, such as a rollout correction; constants, default 1. */
  weights?: A;
}

/** How {@link surrogate} is computed. */
export interface SurrogateConfig {
  /** Log-ratios are bounded to ± this; default null, none. */
  logRatioBound?: number | null;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** A second bound: none (default), `c` where the advantage is negative (verl: 3), or δ for both signs (TRL). */
export type DualClip = "off" | { negativeOnly: number } | { bothSigns: number };

/** How {@link ppoClip} clips and aggregates. */
export interface PpoConfig {
  /** ε⁻; default 0.2. */
  clipLow?: number;
  /** ε⁺; default 0.2 (DAPO: 0.28). */
  clipHigh?: number;
  /** Default "off". */
  dualClip?: DualClip;
  /** Log-ratios are bounded to ± this; default 20, null for none. */
  logRatioBound?: number | null;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
  /** What the means of the metrics divide by; default "count". */
  divisor?: Divisor;
  /** Which log-ratio the reported KL averages; default "bounded". */
  reportedKl?: "bounded" | "unbounded";
}

/** What most policy losses give. */
export interface PolicyLossOutput<A> extends LossOutput<A> {
  /** Share of tokens that the loss holds back on the usual side. */
  clipFraction: number;
  /** Share of tokens held back by a second bound. */
  clipFractionLower: number;
  /** Mean of `log π_old − log π`, or what the loss reports in its place. */
  kl: number;
}

/** How {@link reinforce} and {@link tisLoss} aggregate. */
export interface ReinforceConfig {
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
  /** What the means of the metrics divide by; default "count". */
  divisor?: Divisor;
}

/** Between which bounds {@link cispo} takes the ratio: `1 − low … 1 + high`, or at most `high`. */
export type CispoBounds = { kind: "relative"; low: number; high: number } | { kind: "absolute"; high: number };

/** How {@link cispo} bounds and aggregates. */
export interface CispoConfig extends ReinforceConfig {
  /** Default relative, 0.2 and 0.2. */
  bounds?: CispoBounds;
  /** Log-ratios are bounded to ± this before the exponential; default 20, null for none. */
  logRatioBound?: number | null;
}

/** How {@link clipCov} clips, and which tokens {@link clipCovSelection} may choose. */
export interface ClipCovConfig extends ReinforceConfig {
  /** ε⁻; default 0.2. */
  clipLow?: number;
  /** ε⁺; default 0.2. */
  clipHigh?: number;
  /** Candidates have a covariance above this; default 1. */
  lower?: number;
  /** Candidates have a covariance below this; default 5. */
  upper?: number;
  /** Share of the kept tokens to choose, at least one; in [0, 1], default 2e-4. */
  ratio?: number;
}

/** How {@link klCov} chooses and punishes. */
export interface KlCovConfig extends ReinforceConfig {
  /** Share of the kept tokens to punish, at least one; in [0, 1], default 2e-4. */
  ratio?: number;
  /** The price κ of their absolute log-ratio; default 0.1. */
  klCoef?: number;
}

/** How far {@link dppoTv} and {@link dppoKl} let the probability of a token move; the bounds are divergences. */
export interface DppoConfig extends ReinforceConfig {
  /** The bound where the advantage is not positive; default 0.2. */
  clipLow?: number;
  /** The bound where the advantage is positive; default 0.2. */
  clipHigh?: number;
  /** The ratio counts at most this; default 3. */
  ratioCap?: number;
  /** Log-ratios are bounded to ± this before the exponential; default 20, null for none. */
  logRatioBound?: number | null;
}

/** How {@link dro} holds the policy near the one that sampled. */
export interface DroConfig extends ReinforceConfig {
  /** The strength β of the quadratic penalty; positive. There is no customary value. */
  beta: number;
}

/** How {@link gmpo} clips. */
export interface GmpoConfig {
  /** Log-ratios are clipped at `−clipLow`, in log space; default 0.4. */
  clipLow?: number;
  /** Log-ratios are clipped at `clipHigh`, in log space; default 0.4. */
  clipHigh?: number;
  /** Whose sequences the mean counts; default all rows of the batch at hand, empty ones too. */
  counts?: GlobalCounts;
  /** What means divide by; default "count". */
  divisor?: Divisor;
}

/** How {@link gspo} clips; `aggregate` is every sequence the same unless a mode is named. */
export interface GspoConfig extends ReinforceConfig {
  /** ε⁻; default 3e-4. */
  clipLow?: number;
  /** ε⁺; default 4e-4. */
  clipHigh?: number;
  /** Whether the gradient flows through all of the sequence (default) or through the token's own log-probability. */
  form?: "sequence" | "token";
  /** The log of the ratio counts at most this; default null, none (verl: 10). */
  logRatioCap?: number | null;
}

/** How {@link luspo} clips. */
export interface LuspoConfig {
  /** ε⁻; default 0.2. */
  clipLow?: number;
  /** ε⁺; default 0.2. */
  clipHigh?: number;
}

/** How soft the gate of {@link sapo} is; `aggregate` is every sequence the same unless a mode is named. */
export interface SapoConfig extends ReinforceConfig {
  /** τ where the advantage is positive; default 1. */
  tauPositive?: number;
  /** τ elsewhere; default 1.05. */
  tauNegative?: number;
  /** Log-ratios are bounded to ± this; default 20, null for none. */
  logRatioBound?: number | null;
}

/** How {@link topr} weighs good and bad responses. */
export interface ToprConfig {
  /** Weight of responses with a positive score; default 1. */
  positive?: number;
  /** Weight of the others; default 1. */
  negative?: number;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** The shape of the weight of {@link vespo}: `φ(w) = w^k e^{λ (1 − w)}`. */
export interface VespoConfig {
  /** k where the advantage is not negative; default 2. */
  kPositive?: number;
  /** λ where the advantage is not negative; default 3. */
  lambdaPositive?: number;
  /** k where the advantage is negative; default 3. */
  kNegative?: number;
  /** λ where the advantage is negative; default 2. */
  lambdaNegative?: number;
  /** Default the mean over tokens. */
  aggregate?: Aggregate;
}

/** What {@link vespo} gives. */
export interface VespoOutput<A> extends LossOutput<A> {
  /** Mean over the sequences with kept tokens of the weight of their first kept token. */
  phiMean: number;
}
