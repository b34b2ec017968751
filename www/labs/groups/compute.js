// All numbers of the laboratory of groups, from the library: every estimator, its sums,
// and the statistics that explain it.

import { refusalOf } from "../../parts/refusals.js";
import { estimators } from "./estimators.js";
import { samplesOf } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Inputs what the estimators read
 * @property {import("../../engine.js").Batch} batch one token slot per unit of length
 * @property {number[]} starts the first slot of each answer
 * @property {{ sizes: Uint32Array }} groups
 * @property {Float64Array} scores of all sources together
 * @property {Float64Array} rewards the scores on the last token of each answer
 * @property {Float64Array} greedy of each sample's prompt
 * @property {Float64Array} sources
 * @property {Float64Array} weights of the sources
 */

/**
 * @typedef {object} Group the scores of one prompt in numbers
 * @property {number} mean
 * @property {number} sample deviation with divisor n − 1; NaN for one score
 * @property {number} population deviation with divisor n
 * @property {number} perToken the mean score per token
 * @property {boolean} kept by dynamic sampling
 */

/**
 * @typedef {object} Result
 * @property {Float64Array} scores
 * @property {Record<string, Float64Array>} advantages
 * @property {Record<string, import("../../parts/refusals.js").Refusal>} refused
 * @property {Record<string, Float64Array>} sums of each group
 * @property {Group[]} groups
 * @property {(Group | undefined)[]} rest of each sample: the same statistics of its group without it
 * @property {Group[][]} sources the groups of each source of reward
 * @property {{ mean: number, sample: number }} batch
 * @property {Record<string, { mean: number, variance: number, values: Float64Array }>} whitening what the whitened
 *   estimators whiten, and by which mean and variance over all tokens
 */

/** @param {Uint32Array} sizes */
const edges = (sizes) =>
  Uint32Array.from([0, ...sizes].map((_, i) => sizes.slice(0, i).reduce((all, n) => all + n, 0)));

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @returns {Result}
 */
export function compute(library, state) {
  const samples = samplesOf(state);
  const sizes = Uint32Array.from(state.prompts, (prompt) => prompt.samples.length);
  const lengths = Uint32Array.from(samples, ({ length }) => length);
  const offsets = edges(lengths);
  const ones = (/** @type {number} */ count) => new Uint8Array(count).fill(1);
  const batch = library.Batch.packed(offsets, ones(offsets[samples.length]));
  // the samples as tokens and the prompts as sequences: that is how the library adds them up group by group
  const bySample = library.Batch.packed(edges(sizes), ones(samples.length));
  const first = Float64Array.from(samples, ({ score }) => score);
  const second = Float64Array.from(samples, ({ format }) => format);
  // score + weight · second, as the library's `score − β·kl`
  const scores = state.second
    ? library.shapeRewardsF64(bySample, { scores: first, kl: second }, { beta: -state.weight })
    : first;
  /** @type {Inputs} */
  const inputs = {
    batch,
    starts: Array.from(offsets.slice(0, -1)),
    groups: { sizes },
    scores,
    rewards: library.placeScoresF64(batch, scores),
    greedy: Float64Array.from(state.prompts.flatMap((prompt) => prompt.samples.map(() => prompt.greedy))),
    sources: state.second ? Float64Array.from([...first, ...second]) : first,
    weights: state.second ? Float64Array.from([1, state.weight]) : Float64Array.from([1]),
  };
  /** @type {Result} */
  const result = {
    scores,
    advantages: {},
    refused: {},
    sums: {},
    groups: [],
    rest: [],
    sources: [],
    batch: { mean: NaN, sample: NaN },
    whitening: {},
  };
  for (const { id, run } of estimators) {
    try {
      result.advantages[id] = run(library, inputs);
      result.sums[id] = library.sequenceSumsF64(bySample, result.advantages[id]);
    } catch (error) {
      result.refused[id] = refusalOf(error);
    }
  }
  const kept = library.dynamicSamplingFilterF64(inputs.groups, scores);
  result.groups = statistics(library, sizes, scores, lengths, kept);
  result.sources = state.second
    ? [first, second].map((source) => statistics(library, sizes, source, lengths, kept))
    : [result.groups];
  result.rest = samples.map((_, i) => rest(library, sizes, scores, i));
  const all = library.Batch.padded(1, samples.length, ones(samples.length));
  result.batch = { mean: library.meanF64(all, scores), sample: deviation(library, all, scores, "sample") };
  result.whitening = whitening(library, inputs);
  for (const each of [batch, bySample, all]) each.free();
  return result;
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {import("../../engine.js").Batch} batch
 * @param {Float64Array} values
 * @param {"sample" | "population"} spread
 */
function deviation(library, batch, values, spread) {
  // the sample deviation of one number is no number
  return batch.kept < 2 && spread === "sample" ? NaN : library.sqrtF64(library.varianceF64(batch, values, { spread }));
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {Uint32Array} sizes
 * @param {Float64Array} scores
 * @param {Uint32Array} lengths
 * @param {Uint8Array} kept
 * @returns {Group[]}
 */
function statistics(library, sizes, scores, lengths, kept) {
  return Array.from(edges(sizes).slice(0, -1), (from, g) => {
    const own = scores.slice(from, from + sizes[g]);
    const batch = library.Batch.padded(1, own.length, new Uint8Array(own.length).fill(1));
    const spans = edges(lengths.slice(from, from + sizes[g]));
    const tokens = library.Batch.packed(spans, new Uint8Array(spans[own.length]).fill(1));
    const group = {
      mean: library.meanF64(batch, own),
      sample: deviation(library, batch, own, "sample"),
      population: deviation(library, batch, own, "population"),
      perToken: library.meanF64(tokens, library.broadcastF64(tokens, own)),
      kept: kept[g] === 1,
    };
    batch.free();
    tokens.free();
    return group;
  });
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {Uint32Array} sizes
 * @param {Float64Array} scores
 * @param {number} index of the sample left out
 */
function rest(library, sizes, scores, index) {
  const starts = edges(sizes);
  const from = starts.findLast((start) => start <= index) ?? 0;
  const to = starts.find((start) => start > index) ?? 0;
  const others = scores.slice(from, to).filter((_, j) => from + j !== index);
  if (others.length === 0) return undefined;
  return statistics(
    library,
    Uint32Array.from([others.length]),
    others,
    new Uint32Array(others.length).fill(1),
    new Uint8Array(1),
  )[0];
}

/**
 * Mean and variance over all tokens of what the whitened estimators whiten.
 * @param {import("../../engine.js").Library} library
 * @param {Inputs} inputs
 */
function whitening(library, { batch, groups, scores, sources, weights }) {
  const centred = library.normalizeScoresF64(groups, scores, { deviation: "off", own: "included" });
  // a group of one is compared with 0, as verl does
  const alone = Array.from(groups.sizes).flatMap((n) => Array(n).fill(n === 1));
  const raw = Float64Array.from(centred, (value, i) => (alone[i] ? scores[i] : value));
  const decoupled = library.decoupledScoresF64(groups, { sources, weights }, { epsilon: 1e-6, singleton: "raw" });
  const found = (/** @type {Float64Array} */ values) => {
    const tokens = library.broadcastF64(batch, values);
    return {
      mean: library.meanF64(batch, tokens),
      variance: batch.kept < 2 ? NaN : library.varianceF64(batch, tokens),
      values,
    };
  };
  return { "rf-baseline": found(raw), "rf": found(scores), "gdpo": found(decoupled) };
}
