// All numbers of the aggregation laboratory, from the library: every mode over the whole batch,
// and one mode over its parts.

import { refusalOf } from "../../parts/refusals.js";
import { modes, width } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("../../parts/refusals.js").Refusal} Refusal */
/** @typedef {{ loss: number, weights: Float64Array } | { refused: Refusal }} Outcome */
/** @typedef {{ from: number, to: number, rank: number, micro: number }} Part answers `from` up to `to` */

/** The prompt of each answer. @param {State} state */
export const promptsOf = (state) => state.answers.map((_, i) => Math.floor(i / state.perPrompt));

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {{ from: number, to: number }} [part]
 */
function batchOf(library, state, { from, to } = { from: 0, to: state.answers.length }) {
  const kept = state.answers.slice(from, to).flatMap((answer) => answer.kept);
  return library.Batch.padded(to - from, width(state), Uint8Array.from(kept, Number));
}

/**
 * @param {State} state
 * @param {{ from: number, to: number }} part
 */
const lossesOf = (state, { from, to }) =>
  Float64Array.from(state.answers.slice(from, to).flatMap((answer) => answer.losses));

/**
 * The library's words for a mode over a part of the answers.
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {string} mode
 * @param {{ from: number, to: number }} part
 * @param {import("../../engine.js").Batch} batch of the part
 * @param {Totals | null} totals of the whole step, or null to count the part alone
 * @returns {import("../../engine.js").Aggregate}
 */
function configOf(library, state, mode, part, batch, totals) {
  const { emptyRows, divisor, scale } = state;
  const counts =
    totals === null
      ? undefined
      : { tokens: totals.tokens, sequences: totals.sequences, prompts: totals.prompts.length, ranks: state.ranks };
  if (mode === "sum-norm-without-mean")
    return { mode: "seq-mean-token-sum-norm", scale, counts: { ...counts, sequences: 1 } };
  if (mode === "seq-mean-token-sum-norm") return { mode, scale, counts, emptyRows };
  if (mode !== "prompt-mean")
    return { mode: /** @type {"token-mean"} or another that needs no more */ (mode), counts, emptyRows, divisor };
  const prompts = promptsOf(state).slice(part.from, part.to);
  // prompts are numbered in a row, so the ids of a part become dense by subtraction
  const ids = Uint32Array.from(prompts, (prompt) => prompt - prompts[0]);
  const groups = { ids };
  const tokens =
    totals === null
      ? library.groupTokens(batch, groups)
      : Uint32Array.from(totals.prompts.slice(prompts[0], prompts[prompts.length - 1] + 1));
  return { mode, groups, tokens, counts };
}

/**
 * @param {() => { loss: number, weights: Float64Array }} run
 * @returns {Outcome}
 */
function attempt(run) {
  try {
    return run();
  } catch (error) {
    return { refused: refusalOf(error) };
  }
}

/**
 * @typedef {object} Totals the counts of the whole step
 * @property {number} tokens
 * @property {number} sequences
 * @property {number[]} prompts kept tokens of each
 */

/**
 * @typedef {object} Whole
 * @property {Record<string, Outcome>} modes
 * @property {Totals} totals
 * @property {number[]} lengths kept tokens of each answer
 * @property {Float64Array} sums the losses of each answer added up
 * @property {number} sum of all losses
 * @property {Record<string, Float64Array>} shares of each answer in each mode: its weights added up
 */

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @returns {Whole}
 */
export function compute(library, state) {
  const part = { from: 0, to: state.answers.length };
  const batch = batchOf(library, state);
  const losses = lossesOf(state, part);
  const ids = Uint32Array.from(promptsOf(state));
  const totals = {
    tokens: batch.kept,
    sequences: state.emptyRows === "counted" ? batch.sequences : batch.keptSequences,
    prompts: Array.from(/** @type {Uint32Array} */ (library.groupTokens(batch, { ids }))),
  };
  /** @type {Record<string, Outcome>} */
  const outcomes = {};
  /** @type {Record<string, Float64Array>} */
  const shares = {};
  for (const mode of modes) {
    const outcome = attempt(() =>
      library.aggregateF64(batch, losses, configOf(library, state, mode, part, batch, null)),
    );
    outcomes[mode] = outcome;
    if ("weights" in outcome) shares[mode] = library.sequenceSumsF64(batch, outcome.weights);
  }
  const sums = library.sequenceSumsF64(batch, losses);
  const sum = library.aggregateF64(batch, losses, { mode: "token-sum" }).loss;
  batch.free();
  return {
    modes: outcomes,
    totals,
    lengths: state.answers.map(({ kept }) => kept.filter(Boolean).length),
    sums,
    sum,
    shares,
  };
}

/**
 * The answers in the order they came, as evenly as whole answers allow.
 * @param {{ answers: unknown[], ranks: number, micro: number }} state
 * @returns {Part[]}
 */
export function partsOf({ answers, ranks, micro }) {
  const count = ranks * micro;
  const edge = (/** @type {number} */ p) => Math.floor((p * answers.length) / count);
  return Array.from({ length: count }, (_, p) => ({
    from: edge(p),
    to: edge(p + 1),
    rank: Math.floor(p / micro),
    micro: p % micro,
  }));
}

/**
 * @typedef {object} Split one mode over the parts of a step
 * @property {Part[]} parts
 * @property {Outcome[]} local each part by its own counts
 * @property {Outcome[]} global each part by the counts of the step
 * @property {number} naive the mean of the local losses; NaN if one has none
 * @property {number} right what global losses add up to
 * @property {number} twice the global losses divided by the number of micro-batches once more
 * @property {Float64Array | null} naiveWeights of every slot
 * @property {Float64Array | null} rightWeights of every slot
 */

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Totals} totals
 * @returns {Split}
 */
export function split(library, state, totals) {
  const parts = partsOf(state);
  const over = (/** @type {Totals | null} */ counts) =>
    parts.map((part) => {
      const batch = batchOf(library, state, part);
      const outcome = attempt(() =>
        library.aggregateF64(batch, lossesOf(state, part), configOf(library, state, state.mode, part, batch, counts)),
      );
      batch.free();
      return outcome;
    });
  const [local, global] = [over(null), over(totals)];
  // parts are to the step what tokens are to a batch: ranks × micro-batches, so the library adds and averages them too
  const grid = library.Batch.padded(state.ranks, state.micro, new Uint8Array(parts.length).fill(1));
  const numbers = (/** @type {Outcome[]} */ outcomes) =>
    Float64Array.from(outcomes, (outcome) => ("loss" in outcome ? outcome.loss : NaN));
  const mean = library.aggregateF64(grid, numbers(local), { mode: "token-mean" });
  const sum = library.aggregateF64(grid, numbers(global), { mode: "seq-mean-token-sum" });
  const twice = library.aggregateF64(grid, numbers(global), { mode: "token-mean" });
  grid.free();
  return {
    parts,
    local,
    global,
    naive: mean.loss,
    right: sum.loss,
    twice: twice.loss,
    naiveWeights: chained(local, mean.weights),
    rightWeights: chained(global, sum.weights),
  };
}

/**
 * The weight of a token is its weight in the part times that of the part (the chain rule; the page's own product).
 * @param {Outcome[]} outcomes
 * @param {Float64Array} outer
 */
function chained(outcomes, outer) {
  if (!outcomes.every((outcome) => "weights" in outcome)) return null;
  return Float64Array.from(
    outcomes.flatMap((outcome, p) =>
      Array.from(/** @type {any} */ (outcome).weights, (/** @type {number} */ w) => w * outer[p]),
    ),
  );
}
