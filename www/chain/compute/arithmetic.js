// Arithmetic on whole rows, by the library: the page itself does not calculate. Dropped slots are 0.

/** @typedef {Float64Array} Row */

const SUM = { aggregate: { mode: /** @type {const} */ ("token-sum") } };

/**
 * exp(a − b) of each token: the gradient of the summed surrogate where every advantage is −1.
 * @param {import("../../engine.js").Library} library
 * @param {import("../../engine.js").Batch} batch
 * @param {Row} a
 * @param {Row} b
 * @returns {Row}
 */
export function exponentials(library, batch, a, b) {
  const advantages = new Float64Array(a.length).fill(-1);
  return library.surrogateF64(batch, { logProbs: a, oldLogProbs: b, advantages }, SUM).grad;
}

/**
 * −a·b of each token: the gradient of the summed surrogate at ratio 1, with b as its weights.
 * @param {import("../../engine.js").Library} library
 * @param {import("../../engine.js").Batch} batch
 * @param {Row} a
 * @param {Row} b
 * @returns {Row}
 */
export function negativeProducts(library, batch, a, b) {
  const zeros = new Float64Array(a.length);
  return library.surrogateF64(batch, { logProbs: zeros, oldLogProbs: zeros, advantages: a, weights: b }, SUM).grad;
}

/**
 * a + f·b of each token, as the library's `score − β·kl`.
 * @param {import("../../engine.js").Library} library
 * @param {import("../../engine.js").Batch} batch
 * @param {Row} a
 * @param {Row} b
 * @param {number} [factor]
 * @returns {Row}
 */
export const sums = (library, batch, a, b, factor = 1) =>
  library.shapeRewardsF64(batch, { scores: a, kl: b }, { beta: -factor });
