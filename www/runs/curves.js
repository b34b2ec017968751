// What is computed from runs for the pictures: the points of a key, the mean over seeds and how far they spread.
// No formulas of the library, only means, and the lowest and highest.

import { smoothed } from "../histories/curve.js";

/** @typedef {{ steps: Float64Array, values: Float64Array }} Points */
/** @typedef {import("./read.js").Metrics} Metrics */

/** @type {WeakMap<Metrics, Map<string, Points | null>>} */
const known = new WeakMap();

/**
 * The points of a key, without the steps that did not log it.
 * @param {Metrics} metrics
 * @param {string} key
 * @returns {Points | null} null if it was never logged
 */
export function pointsOf(metrics, key) {
  const all = known.get(metrics) ?? new Map();
  known.set(metrics, all);
  const found = all.get(key);
  if (found !== undefined) return found;
  const index = metrics.keys.indexOf(key);
  const points = index < 0 ? null : finite(metrics.steps, metrics.columns[index]);
  all.set(key, points);
  return points;
}

/** @param {Float64Array} steps @param {Float64Array} values @returns {Points | null} */
function finite(steps, values) {
  let count = 0;
  for (let i = 0; i < values.length; i += 1) if (Number.isFinite(values[i])) count += 1;
  if (count === 0) return null;
  // most keys are logged at every step: nothing is copied then
  if (count === values.length) return { steps, values };
  const kept = { steps: new Float64Array(count), values: new Float64Array(count) };
  let at = 0;
  for (let i = 0; i < values.length; i += 1) {
    if (!Number.isFinite(values[i])) continue;
    kept.steps[at] = steps[i];
    kept.values[at] = values[i];
    at += 1;
  }
  return kept;
}

/**
 * @param {Points} points
 * @param {{ kind: string, window: number, weight: number }} smooth
 * @returns {Points}
 */
export const smoothPoints = ({ steps, values }, smooth) => ({ steps, values: smoothed(values, smooth) });

/**
 * Mean, lowest and highest over runs, at every step that one of them has.
 * @param {Points[]} runs
 * @returns {{ steps: Float64Array, mean: Float64Array, low: Float64Array, high: Float64Array }}
 */
export function together(runs) {
  const same = runs.every(
    ({ steps }) => steps.length === runs[0].steps.length && steps.every((s, i) => s === runs[0].steps[i]),
  );
  const steps = same ? runs[0].steps : Float64Array.from(new Set(runs.flatMap((run) => Array.from(run.steps)))).sort();
  const [mean, low, high] = [1, 2, 3].map(() => new Float64Array(steps.length));
  low.fill(Infinity);
  high.fill(-Infinity);
  const counts = new Uint32Array(steps.length);
  for (const run of runs) {
    let row = 0;
    for (let i = 0; i < run.steps.length; i += 1) {
      while (steps[row] < run.steps[i]) row += 1;
      const value = run.values[i];
      mean[row] += value;
      counts[row] += 1;
      if (value < low[row]) low[row] = value;
      if (value > high[row]) high[row] = value;
    }
  }
  for (let i = 0; i < steps.length; i += 1) mean[i] /= counts[i];
  return { steps, mean, low, high };
}

/**
 * The value at the step, or at the last one before it.
 * @param {Points | null} points
 * @param {number} step
 */
export function valueAt(points, step) {
  if (!points) return NaN;
  let [low, high] = [0, points.steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points.steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? NaN : points.values[low - 1];
}

/** The part of a key before its first slash. @param {string} key */
export const prefixOf = (key) => (key.includes("/") ? key.slice(0, key.indexOf("/")) : "");

/**
 * The keys of runs by prefix, each in the order in which they were logged first.
 * @param {Metrics[]} all
 * @param {string} search
 * @returns {[string, string[]][]}
 */
export function keysOf(all, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const keys = new Set(all.flatMap(({ keys: own }) => own));
  /** @type {Map<string, string[]>} */
  const groups = new Map();
  for (const key of keys) {
    const name = key.toLowerCase();
    if (!words.every((word) => name.includes(word))) continue;
    const prefix = prefixOf(key);
    groups.set(prefix, [...(groups.get(prefix) ?? []), key]);
  }
  return [...groups];
}
