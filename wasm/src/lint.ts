/** A rule of {@link lint}. */
export type LintRule =
  | "not-a-number" | "reward-on-dropped-slot" | "last-token-hidden" | "nothing-kept" | "ratio-at-first-update" | "returns-disagree"
  | "group-not-centred" | "tied-group";

/** A column that {@link lint} reads: one number per token slot. */
export type LintColumn =
  | "logProbs" | "oldLogProbs" | "refLogProbs" | "rolloutLogProbs" | "advantages" | "returns" | "values" | "rewards" | "tokenScores"
  | "entropies" | "oldEntropies" | "predictions";

/** What {@link lint} reads: whatever columns there are, and what there is once a sequence. */
export type LintInput = Partial<Record<LintColumn, Float64Array>> & {
  /** Task scores, one per sequence. */
  scores?: Float64Array;
  /** 1 for sequences that have a score; without it all have. */
  scored?: Uint8Array;
  /** 1 for sequences of the first update after sampling, where every ratio must be 1. */
  firstUpdate?: Uint8Array;
  /** Which prompt a sequence answers: an id below the number of sequences, or 2³² − 1 for none. */
  groups?: Uint32Array;
};

/** How {@link lint} judges. */
export interface LintConfig {
  /** How far two numbers may differ and still count as equal; default 1e-4. */
  tolerance?: number;
  /** All sequences are of the first update after sampling. */
  firstUpdate?: boolean;
  /** How many findings are told; all are counted. */
  limit?: number;
}

/** One fault. */
export interface LintFinding {
  /** The rule that was broken. */
  rule: LintRule;
  /** The sequence, counted from 0; of a group its first one. */
  sequence: number;
  /** The token in the sequence, counted from 0, if it is about one. */
  token: number | null;
  /** The column it is about, if it is about one. */
  field: LintColumn | null;
  /** Its numbers: `value`, `more`, `last`, `ratio`, `tokens`, `returned`, `advantage`, `wanted`, `size`, `sum`, `score`, those it has. */
  numbers: Record<string, number>;
  /** For `not-a-number`: how many tokens have a fault in the columns computed after it. */
  spoilt: Partial<Record<LintColumn, number>> | null;
}

/** What {@link lint} gives. */
export interface LintReport {
  /** How often each rule was broken. */
  counts: Record<LintRule, number>;
  /** The faults: those of each sequence, then those of groups, in the order of their ids. */
  findings: LintFinding[];
}

/** The usual faults of logged rollouts: those the command `tokenwise lint` finds, in numbers. */
export function lint(batch: Batch, input: LintInput, config?: LintConfig): LintReport;
