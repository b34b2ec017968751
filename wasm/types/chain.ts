// Declarations that every package has beside those of its formulas.

/**
 * Where the tokens of a batch lie, and which of them take part. Checked once, then passed to every function.
 * *Kept* tokens (mask 1) take part; *dropped* slots (mask 0) never matter and get 0.
 */
export class Batch {
  private constructor();
  /** `[batch, len]`, row-major, every row the same length; one mask byte (0 or 1) per slot. */
  static padded(batch: number, len: number, mask: Uint8Array): Batch;
  /** Ragged rows back to back; row `i` is `cuSeqlens[i]` up to `cuSeqlens[i + 1]`. No sequences is `[0]`. */
  static packed(cuSeqlens: Uint32Array, mask: Uint8Array): Batch;
  /** A second handle to the same batch, freed by itself. */
  clone(): Batch;
  /** Number of sequences. */
  readonly sequences: number;
  /** Number of token slots, kept or not: the length of every per-token array. */
  readonly tokens: number;
  /** Number of kept tokens. */
  readonly kept: number;
  /** Number of sequences with at least one kept token. */
  readonly keptSequences: number;
  /** Gives the memory back at once; otherwise it goes with the object, by the garbage collector. */
  free(): void;
}

/** Raw model output: every row the same length, or ragged rows back to back. */
export type RawLayout = { batch: number; len: number } | { cuSeqlens: Uint32Array };

/** Sequences that answer the same prompt: one dense id per sequence in any order, or the sizes of contiguous groups. */
export type Groups = { ids: Uint32Array } | { sizes: Uint32Array };

/**
 * What a refused call throws. Codes of the core: length, offsets, token_id, group, sequence, config, entry,
 * empty_mask, too_few, overflow. Codes about what JavaScript handed over: type, key, choice, fields,
 * freed, memory. Codes of tokenwise/gpu: no_adapter, adapter, device.
 */
export class TokenwiseError extends Error {
  private constructor();
  readonly name: "TokenwiseError";
  readonly code:
    | "length"
    | "offsets"
    | "token_id"
    | "group"
    | "sequence"
    | "config"
    | "entry"
    | "empty_mask"
    | "too_few"
    | "overflow"
    | "type"
    | "key"
    | "choice"
    | "fields"
    | "freed"
    | "memory"
    | "no_adapter"
    | "adapter"
    | "device";
  /** The parameter or key at fault. */
  readonly parameter: string;
  /** The index of the entry at fault, where there is one. */
  readonly index: number | undefined;
  /** What would have been right: a number, or words. */
  readonly expected: number | string;
  /** What was there: a primitive as it is, an object by the name of its class, an overflow by its two factors. */
  readonly got: unknown;
}

/** `e^x`, rounded to f32: the same bits in every browser. */
export function exp(x: number): number;
/** `e^x` in f64: the same bits in every browser. */
export function expF64(x: number): number;
/** The natural logarithm, rounded to f32: the same bits in every browser. */
export function ln(x: number): number;
/** The natural logarithm in f64: the same bits in every browser. */
export function lnF64(x: number): number;
/** The square root of an f32, correctly rounded. */
export function sqrt(x: number): number;
/** The square root of an f64, correctly rounded. */
export function sqrtF64(x: number): number;

/** The counts of a whole optimiser step, so that micro-batches and ranks add up to it. */
export interface GlobalCounts {
  /** Kept tokens. */
  tokens?: number;
  /** Sequences. */
  sequences?: number;
  /** Prompts. */
  prompts?: number;
  /** The result is multiplied by this; default 1. */
  ranks?: number;
}

/** Whose tokens and sequences the denominators count: null for those of the batch at hand. */
export type Counts = GlobalCounts | null;

/** What every mode of {@link Aggregate} knows. */
export interface AggregateBase {
  /** Whose tokens and sequences the denominators count; default those of the batch at hand. */
  counts?: Counts;
  /** Whether a sequence without kept tokens counts; default "excluded". */
  emptyRows?: "excluded" | "counted";
  /** What "seq-mean-token-mean" divides each sequence by; default "count". */
  divisor?: Divisor;
}

/** How the losses of the tokens become one number; default the mean over all kept tokens. */
export type Aggregate =
  | (AggregateBase & { mode?: "token-mean" | "token-sum" | "seq-mean-token-sum" | "seq-mean-token-mean" })
  | (AggregateBase & {
      mode: "seq-mean-token-sum-norm";
      /** A constant length such as the longest allowed (Dr. GRPO). */
      scale: number;
    })
  | (AggregateBase & {
      mode: "prompt-mean";
      /** The prompt of each sequence. */
      groups: Groups;
      /** Kept tokens of each prompt over the whole step ({@link groupTokens} counts one batch). */
      tokens: Uint32Array;
    });

/** Whose conventions to follow: the papers, verl 0.9.1, TRL 1.16.0, OpenRLHF 0.11.2. */
export type ProfileName = "paper" | "verl-0.9.1" | "trl-1.16" | "openrlhf-0.11";

/** The conventions of a profile: their names, and what they are. */
export function conventions(profile: ProfileName): Record<string, string>;
