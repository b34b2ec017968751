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
  /** Gives the memory back at once; otherwise it goes with the object, at the garbage collector's leisure. */
  free(): void;
}

/** Raw model output: every row the same length, or ragged rows back to back. */
export type RawLayout = { batch: number; len: number } | { cuSeqlens: Uint32Array };

/** Sequences that answer the same prompt: one dense id per sequence in any order, or the sizes of contiguous groups. */
export type Groups = { ids: Uint32Array } | { sizes: Uint32Array };

/** What a mean divides by: `n` (default), or `n + 1e-8` as verl does. */
export type Divisor = "count" | "count-plus-epsilon";

/** Which variance: divided by `n`, or by `n − 1` (default). */
export type Spread = "population" | "sample";

/** A mean. */
export interface MeanConfig {
  /** Default "count". */
  divisor?: Divisor;
}

/** A variance. */
export interface VarianceConfig {
  /** Default "sample". */
  spread?: Spread;
  /** Default "count". */
  divisor?: Divisor;
}

/**
 * What a refused call throws. Codes of the core: length, offsets, token_id, group, sequence, config, entry,
 * empty_mask, too_few, overflow. Codes about what JavaScript handed over: type, key, choice, freed, memory.
 */
export class TokenwiseError extends Error {
  private constructor();
  readonly name: "TokenwiseError";
  readonly code:
    | "length" | "offsets" | "token_id" | "group" | "sequence" | "config" | "entry" | "empty_mask" | "too_few"
    | "overflow"
    | "type" | "key" | "choice" | "freed" | "memory";
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
