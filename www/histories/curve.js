// What is computed from a history for the plot: smoothing, thinning, collapse. The same rules as on the command line.
// These are means over windows and comparisons, not formulas of the library; its mean is used for the table.
// No imports.

/** @typedef {{ steps: Float64Array, entropies: Float64Array }} Points */

/**
 * The mean of the `window` points around each; fewer at both ends, so that the curve does not lag.
 * @param {Float64Array} values
 * @param {number} window
 */
export function movingMean(values, window) {
  const n = values.length;
  const sums = new Float64Array(n + 1);
  for (let i = 0; i < n; i += 1) sums[i + 1] = sums[i] + values[i];
  const smooth = new Float64Array(n);
  for (let i = 0; i < n; i += 1) {
    const half = Math.min(Math.floor(window / 2), i, n - 1 - i);
    smooth[i] = half === 0 ? values[i] : (sums[i + half + 1] - sums[i - half]) / (2 * half + 1);
  }
  return smooth;
}

/**
 * s₁ = x₁, s ← weight·s + (1 − weight)·x.
 * @param {Float64Array} values
 * @param {number} weight of the past, below 1
 */
export function runningMean(values, weight) {
  const smooth = new Float64Array(values.length);
  let mean = values[0];
  for (let i = 0; i < values.length; i += 1) {
    mean = i === 0 ? values[0] : weight * mean + (1 - weight) * values[i];
    smooth[i] = mean;
  }
  return smooth;
}

/**
 * @param {Float64Array} values
 * @param {{ kind: string, window: number, weight: number }} smooth
 */
export function smoothed(values, { kind, window, weight }) {
  if (kind === "mean") return movingMean(values, window);
  return kind === "ema" ? runningMean(values, weight) : values;
}

/**
 * The first place from which the entropy stays below a share of its first value.
 * @param {Float64Array} entropies
 * @param {number} share
 * @returns {number} the place, −1 if it does not
 */
export function collapse(entropies, share) {
  const bound = entropies[0] * share;
  let above = entropies.length - 1;
  while (above >= 0 && !(entropies[above] >= bound)) above -= 1;
  return above + 1 < entropies.length ? above + 1 : -1;
}

/**
 * The part of a curve between two steps, with one neighbour on each side, in at most about `most` points: of each
 * stretch the lowest and the highest, so that no spike is lost.
 * @param {Float64Array} steps
 * @param {Float64Array} values
 * @param {[number, number] | null} range
 * @param {number} most
 * @returns {{ x: number[], y: number[] }}
 */
export function thinned(steps, values, range, most) {
  const from = range ? Math.max(0, place(steps, range[0]) - 1) : 0;
  const to = range ? Math.min(steps.length, place(steps, range[1]) + 2) : steps.length;
  /** @type {number[]} */
  const chosen = [];
  if (to - from <= most) for (let i = from; i < to; i += 1) chosen.push(i);
  else {
    const stretch = Math.ceil((2 * (to - from)) / most);
    chosen.push(from);
    for (let start = from; start < to; start += stretch) {
      let [low, high] = [start, start];
      for (let i = start + 1; i < Math.min(to, start + stretch); i += 1) {
        if (values[i] < values[low]) low = i;
        if (values[i] > values[high]) high = i;
      }
      chosen.push(Math.min(low, high), Math.max(low, high));
    }
    chosen.push(to - 1);
  }
  const kept = chosen.filter((at, i) => i === 0 || at > chosen[i - 1]);
  return { x: kept.map((at) => steps[at]), y: kept.map((at) => values[at]) };
}

/**
 * The first place whose step is not below.
 * @param {Float64Array} steps
 * @param {number} step
 */
function place(steps, step) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1;
    else high = middle;
  }
  return low;
}
