// Declarations of tokenwise/gpu, beside those of the whole library.

/** Who computed a call on a GPU, and what it cost. */
export interface GpuReport {
  /** The GPU, within its tolerance; or the core, with its bits. */
  ran: "gpu" | "core";
  /**
   * Why the core computed, for programs: `not_finite`, the code of the error of a device that failed (`lost`,
   * `out_of_memory`, `limit` …), `precision` for numbers in f64, or why the formula has no kernel (`sorts`,
   * `per_sequence` …).
   */
  code: string | null;
  /** The same in words. */
  reason: string | null;
  /** What the browser calls the device. */
  adapter: string;
  /** From the call to its result. */
  milliseconds: number;
  /** On the device alone, where it has timestamps. */
  deviceMilliseconds: number | null;
  /** Bytes sent to the device. */
  bytesUp: number;
  /** Bytes read back. */
  bytesDown: number;
  /** Kernels started. */
  dispatches: number;
}

/** What a method of {@link Gpu} gives: the result of the function of the same name, and a report. */
export interface Answer<T> {
  result: T;
  report: GpuReport;
}

/**
 * The GPU of the browser. Its methods are the functions over `Float32Array`, as promises. What the device cannot answer,
 * the core does, on the calling thread. Arguments are copied before a method returns; results are fresh arrays. A refused
 * call rejects with a {@link TokenwiseError}.
 */
export class Gpu {
  private constructor();
  /**
   * Asks the browser for a device. Rejects with a {@link TokenwiseError}: `no_adapter` where there is no WebGPU or no
   * adapter, `adapter` where it lacks what the shaders need, `device` where the request fails.
   */
  static create(): Promise<Gpu>;
  /** Why the core computes a formula; undefined if the GPU does. */
  static whyCore(name: string): string | undefined;
  /** What the browser calls the device. */
  readonly adapter: string;
  /** A formula by the name of its function: `gpu.call("ppoClip", batch, input, config)`. */
  call(name: string, ...given: unknown[]): Promise<Answer<any>>;
  /** Gives the device back; calls under way end first. */
  free(): void;
}
