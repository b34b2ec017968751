// The same numbers by another engine: the time, and how far they are from the core's.

import { largestDifference, NoEngine, runBy } from "../../engines/run.js";
import { compute } from "./compute.js";

/** @typedef {import("../../engines/run.js").Why} Why */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */
/** @typedef {import("../../engines/run.js").EngineName} EngineName */

/** Short work is repeated for this many milliseconds. */
const ENOUGH = 4;

/** What is compared. */
const COMPARED = /** @type {const} */ ([
  "logProbs",
  "probs",
  "terms",
  "gradLogProb",
  "gradEntropy",
  "entropy",
  "squares",
  "expectedTerm",
  "expectedSurprise",
]);

/**
 * The log-probabilities of k entries of one row are those of k tokens with equal rows, for which the GPU has a kernel.
 * @param {import("../../engine.js").Library} library
 * @returns {import("../../engine.js").Library}
 */
const withRows = (library) =>
  new Proxy(library, {
    get(all, name) {
      if (name !== "topkLogProbsF64") return /** @type {any} */ (all)[name];
      return (/** @type {any} */ _, /** @type {any} */ input, /** @type {any} */ config) => {
        const { logits, vocab, tokens, k } = input;
        const rows = new Float64Array(k * vocab);
        for (let row = 0; row < k; row += 1) rows.set(logits, row * vocab);
        const batch = all.Batch.padded(1, k, new Uint8Array(k).fill(1));
        try {
          return all.tokenLogProbsF64(batch, { logits: rows, vocab, tokens }, config);
        } finally {
          batch.free();
        }
      };
    },
  });

/**
 * @param {EngineName} engine
 * @param {boolean} compare with the core
 * @param {State} state
 * @returns {Promise<import("../../engines/switch.js").Outcome & { result: Result } | { problem: Why }>}
 */
export async function byEngine(engine, compare, state) {
  try {
    const work = (/** @type {import("../../engine.js").Library} */ library) =>
      compute(engine === "webgpu" ? withRows(library) : library, state);
    const { value: result, cost } = await runBy(engine, work, ENOUGH);
    if (!compare) return { engine, cost, difference: null, result };
    const { value: core } = await runBy("core", (library) => compute(library, state));
    const picked = (/** @type {Result} */ from) => Object.fromEntries(COMPARED.map((key) => [key, from[key]]));
    return { engine, cost, difference: largestDifference(picked(result), picked(core)), result };
  } catch (error) {
    if (error instanceof NoEngine) return { problem: { code: error.code, reason: error.message } };
    throw error;
  }
}
