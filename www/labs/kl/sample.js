// Samples from the policy and what the estimators make of them. The generator is seeded: the same seed gives the same samples.

import { klConfig } from "./compute.js";
import { rowOf } from "./rows.js";

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
  return Uint32Array.from({ length: count }, () => {
    let left = next();
    for (let action = 0; action < p.length - 1; action += 1) {
      left -= p[action];
      if (left < 0) return action;
    }
    return p.length - 1;
  });
}

/**
 * @typedef {object} Sampled what one estimator makes of the samples
 * @property {import("./rows.js").Row} row
 * @property {number} mean
 * @property {number} variance of the entries
 * @property {number} error the mean's standard error
 * @property {number} negative share of entries below 0
 * @property {Float64Array} middles of the bins
 * @property {Float64Array} shares of the entries in each
 */

/**
 * @param {any} library
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
  const batch = library.Batch.padded(entries, together, new Uint8Array(count).fill(1));
  const single = together === 1 ? batch : library.Batch.padded(entries, 1, new Uint8Array(entries).fill(1));
  const input = { logProbs: Float64Array.from(actions, (a) => result.logP[a]), refLogProbs: Float64Array.from(actions, (a) => result.logQ[a]) };
  const estimates = sampled.map((row) => {
    const values = library.klEstimateF64(batch, input, klConfig(row, state));
    const averaged = together === 1 ? values : library.rowMeansF64(batch, values);
    const mean = library.meanF64(single, averaged);
    const variance = library.varianceF64(single, averaged, { spread: "sample" });
    const error = library.sqrtF64(variance / entries);
    const negative = averaged.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + Number(value < 0), 0) / entries;
    return { row, mean, variance, error, negative, averaged };
  });
  if (single !== batch) single.free();
  batch.free();
  const [low, high] = range(estimates.map(({ averaged }) => averaged));
  return { entries, counts, estimates: estimates.map(({ averaged, ...rest }) => ({ ...rest, ...bins(averaged, low, high) })) };
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
  for (const value of values) shares[Math.min(BINS - 1, Math.max(0, Math.floor((value - low) / width)))] += 1 / values.length;
  return { middles: Float64Array.from({ length: BINS }, (_, i) => low + (i + 0.5) * width), shares };
}
