// The numbers over many cells that a formula names: means, deviations, counts.
// Each is worked out only when a formula asks for it.

import { negativeProducts } from "../compute/arithmetic.js";
import { groupOf, weightRow } from "../rows.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {import("../edit/edits.js").Place} Place */

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 * @returns {(name: string) => number | undefined}
 */
export function factsOf(library, state, result, { sequence: s, index }) {
  const group = groupOf(state, s);
  const score = (/** @type {number} */ other) => result.rows.sequenceScore?.[other]?.[0];
  const keptIn = (/** @type {number} */ other) =>
    state.sequences[other].roles.filter((role) => role === "policy").length;
  const add = (/** @type {number[]} */ counts) => counts.reduce((sum, count) => sum + count, 0);
  const everyone = [...state.sequences.keys()];
  const counted = everyone.filter((other) => result.settings.aggregate.emptyRows === "counted" || keptIn(other) > 0);
  /** @param {number[]} members */
  const mean = (members) =>
    over(
      library,
      members.map((other) => score(other) ?? NaN),
      (batch, values) => library.meanF64(batch, values),
    );
  const ranked = () => group.map((other) => score(other) ?? NaN).sort((a, b) => b - a);
  /** @type {Record<string, () => number | undefined>} */
  const facts = {
    kept: () => add(everyone.map(keptIn)),
    keptHere: () => keptIn(s),
    keptGroup: () => add(group.map(keptIn)),
    sequences: () => counted.length,
    placeHere: () => state.sequences[s].roles.slice(0, index + 1).filter((role) => role === "policy").length,
    prompts: () => new Set(state.sequences.map((one) => one.group)).size,
    groupSize: () => group.length,
    groupMean: () => mean(group),
    groupDeviation: () => {
      const values = group.map((other) => score(other) ?? NaN);
      const variance = over(library, values, (batch, row) =>
        library.varianceF64(batch, row, { spread: result.settings.group.spread }),
      );
      return variance === undefined ? undefined : library.sqrtF64(variance);
    },
    othersMean: () => mean(group.filter((other) => other !== s)),
    // what the library took away from the score
    lengthMean: () => (score(s) ?? NaN) - (result.rows.groupAdvantage?.[s]?.[0] ?? NaN),
    best: () => ranked()[0],
    second: () => ranked()[1],
    attention: () => {
      const sequence = state.sequences[s];
      return over(
        library,
        sequence.inputs.attention,
        (batch, row) => library.sequenceSumsF64(batch, row)[0],
        sequence.roles.map((role) => role === "policy"),
      );
    },
    logRatio: () => {
      const sequence = state.sequences[s];
      const now = result.rows.logProb?.[s] ?? [];
      const before = result.rows.oldLogProb?.[s] ?? [];
      return over(
        library,
        Array.from(now, (x, i) => x - before[i]),
        (batch, row) => library.sequenceSumsF64(batch, row)[0],
        sequence.roles.map((role) => role === "policy"),
      );
    },
    // what the tokens of a sequence push its ratio with: W·A of those that the clip does not hold
    pull: () => {
      const [weights, advantages] = [result.rows.tokenWeight?.[s], result.rows[weightRow(state)]?.[s]];
      if (!weights || !advantages) return undefined;
      return over(
        library,
        [...advantages],
        (batch, row) =>
          -library.sequenceSumsF64(batch, negativeProducts(library, batch, row, Float64Array.from(weights)))[0],
        state.sequences[s].roles.map((role, i) => role === "policy" && !isHeld(state, result, s, i)),
      );
    },
    heldTokens: () =>
      state.sequences[s].roles.filter((role, i) => role === "policy" && isHeld(state, result, s, i)).length,
    advantageCarried: () => result.hidden.advantage?.[s]?.[index + 1],
    discountedReturnCarried: () => result.hidden.discountedReturn?.[s]?.[index + 1],
  };
  return (name) => (name in facts ? facts[name]() : result.summary[name]);
}

/**
 * Whether the clip holds a token of a sequence under the sequence's own ratio.
 * @param {State} state
 * @param {Result} result
 * @param {number} s
 * @param {number} i
 */
function isHeld(state, result, s, i) {
  const ratio = result.rows.sequenceRatio?.[s]?.[i] ?? NaN;
  const advantage = result.rows[weightRow(state)]?.[s]?.[i] ?? NaN;
  const { clipLow, clipHigh } = state.parameters;
  return advantage < 0 ? ratio < 1 - clipLow : advantage > 0 && ratio > 1 + clipHigh;
}

/**
 * A number of the library over a few values.
 * @param {import("../../engine.js").Library} library
 * @param {number[]} values
 * @param {(batch: import("../../engine.js").Batch, values: Float64Array) => number} number
 * @param {boolean[]} [kept]
 */
function over(library, values, number, kept = values.map(() => true)) {
  const batch = library.Batch.padded(1, values.length, Uint8Array.from(kept, Number));
  try {
    return number(batch, Float64Array.from(values));
  } catch {
    // refused, like the number that needs it
    return undefined;
  } finally {
    batch.free();
  }
}
