// Samples from the policy and what the estimators make of them. The generator is seeded:
// the same seed gives the same samples.

import { rowOf } from "./estimates.js";

/** @typedef {import("./state.js").State} State */

/** The estimators of the histograms; placement, weights and gradients do not change a value. */
export const sampled = ["loss.k1", "loss.abs", "loss.k2", "loss.k3"].map(rowOf);

/**
 * Uniform numbers in [0, 1): mulberry32.
 * @param {number} seed
 * @returns {() => number}
 */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * @param {ArrayLike<number>} p
 * @param {number} count
 * @param {number} seed
 * @returns {Uint32Array} actions
 */
export function draw(p, count, seed) {
  const next = uniform(seed);
  const actions = new Uint32Array(count);
  const last = p.length - 1;
  for (let i = 0; i < count; i += 1) {
    let left = next();
    let action = 0;
    while (action < last && (left -= p[action]) >= 0) action += 1;
    actions[i] = action;
  }
  return actions;
}

/**
 * @typedef {object} Sampled what one estimator makes of the samples
 * @property {import("./estimates.js").Row} row
 * @property {number} mean
 * @property {number} variance of the entries
 * @property {number} error the mean's standard error
 * @property {number} negative share of entries below 0
 * @property {Float64Array} middles of the bins
 * @property {Float64Array} shares of the entries in each
 */

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {import("./compute.js").Result} result
 * @returns {{ entries: number, counts: number[], estimates: Sampled[] }}
 */
export function sample(library, state, result) {
  const { samples, together, seed } = state;
  // as many as fill whole groups; at least two entries, or there is no spread
  const entries = Math.max(2, Math.floor(samples / together));
  const count = entries * together;
  const actions = draw(result.p, count, seed);
  const counts = Array.from({ length: result.count }, () => 0);
  for (const action of actions) counts[action] += 1;
  const ones = new Uint8Array(count).fill(1);
  const groups = library.Batch.padded(entries, together, ones);
  // one long row: statistics do not ask whose token it is, and long rows are fast
  const all = library.Batch.padded(1, entries, ones.subarray(0, entries));
  const estimates = sampled.map((row) => {
    // a token's estimate depends on its action alone: the library was asked once for each
    const each = result.rows.find((one) => one.row.id === row.id)?.values ?? new Float64Array(result.count);
    const values = new Float64Array(count);
    for (let i = 0; i < count; i += 1) values[i] = each[actions[i]];
    const averaged = /** @type {Float64Array} */ (together === 1 ? values : library.rowMeansF64(groups, values));
    const mean = library.meanF64(all, averaged);
    const variance = library.varianceF64(all, averaged, { spread: "sample" });
    const error = library.sqrtF64(variance / entries);
    let below = 0;
    for (const value of averaged) if (value < 0) below += 1;
    return { row, mean, variance, error, negative: below / entries, averaged };
  });
  all.free();
  groups.free();
  const [low, high] = range(estimates.map(({ averaged }) => averaged));
  return {
    entries,
    counts,
    estimates: estimates.map(({ averaged, ...rest }) => ({ ...rest, ...bins(averaged, low, high) })),
  };
}

const BINS = 48;

/**
 * One range for all histograms, so that they can be compared.
 * @param {Float64Array[]} all
 * @returns {[number, number]}
 */
function range(all) {
  let [low, high] = [0, 0];
  for (const values of all) {
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  const room = (high - low || 1) / BINS;
  return [low - room, high + room];
}

/**
 * @param {Float64Array} values
 * @param {number} low
 * @param {number} high
 */
function bins(values, low, high) {
  const width = (high - low) / BINS;
  const shares = new Float64Array(BINS);
  for (const value of values)
    shares[Math.min(BINS - 1, Math.max(0, Math.floor((value - low) / width)))] += 1 / values.length;
  return { middles: Float64Array.from({ length: BINS }, (_, i) => low + (i + 0.5) * width), shares };
}
