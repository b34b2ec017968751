// What the user can change in the laboratory of groups: prompts, the scores of their samples, how long these are.

import { whole } from "../cells.js";

/**
 * @typedef {object} Sample
 * @property {number} score
 * @property {number} format what a second source of reward gave
 * @property {number} length kept tokens
 */

/** @typedef {{ samples: Sample[], greedy: number }} Prompt `greedy`: what the greedy answer to it scored */

/**
 * @typedef {object} State
 * @property {Prompt[]} prompts
 * @property {boolean} second whether there is a second source of reward
 * @property {number} weight of the second source
 */

export const LIMITS = /** @type {Record<string, [number, number]>} */ ({
  prompts: [1, 5],
  samples: [1, 10],
  length: [1, 64],
});

/**
 * @param {number[]} scores
 * @param {number[]} [lengths]
 * @param {number} [greedy]
 * @param {number[]} [formats]
 * @returns {Prompt}
 */
const prompt = (scores, lengths = [], greedy = 0, formats = []) => ({
  samples: scores.map((score, i) => ({ score, format: formats[i] ?? 0, length: lengths[i] ?? 4 })),
  greedy,
});

const one = (/** @type {Prompt[]} */ ...prompts) => ({ prompts, second: false, weight: 1 });

/** @type {Record<string, () => State>} */
export const presets = {
  "winner": () => one(prompt([1, 0, 0, 0])),
  "near-tied": () => one(prompt([0.5, 0.5, 0.5, 0.5001])),
  "equal": () => one(prompt([1, 1, 1, 1])),
  "single": () => one(prompt([1, 0, 0, 0]), prompt([0.7])),
  "outlier": () => one(prompt([0.2, 0.3, 0.25, 0.25, 0.3, 9])),
  "unequal": () => one(prompt([1, 0, 1, 0], [6, 3, 2, 9], 1), prompt([0, 1], [4, 12], 0)),
  "lengths": () => one(prompt([1, 1, 0, 0], [2, 4, 10, 32])),
  "two-sources": () => ({
    ...one(prompt([1, 0, 1, 0], [], 0, [0, 0, 0.1, 0.1]), prompt([1, 1, 1, 0], [], 1, [0.1, 0, 0, 0])),
    second: true,
  }),
};

/** All samples in a row. @param {State} state */
export const samplesOf = (state) => state.prompts.flatMap(({ samples }) => samples);

/**
 * Where a sample stands: its prompt, and its place there.
 * @param {State} state
 * @param {number} index among all samples
 * @returns {[prompt: number, place: number]}
 */
export function placeOf(state, index) {
  let left = index;
  for (const [p, { samples }] of state.prompts.entries()) {
    if (left < samples.length) return [p, left];
    left -= samples.length;
  }
  return [state.prompts.length, left];
}

/**
 * @param {State} state
 * @param {number} which
 * @param {(prompt: Prompt) => Prompt} change
 * @returns {State}
 */
export const withPrompt = (state, which, change) => ({
  ...state,
  prompts: state.prompts.map((prompt, p) => (p === which ? change(prompt) : prompt)),
});

/**
 * @param {State} state
 * @param {number} index
 * @param {Partial<Sample>} changes
 * @returns {State}
 */
export function withSample(state, index, changes) {
  const [p, place] = placeOf(state, index);
  return withPrompt(state, p, (prompt) => ({
    ...prompt,
    samples: prompt.samples.map((sample, i) => (i === place ? { ...sample, ...changes } : sample)),
  }));
}

/** @type {(prompt: Prompt) => Prompt} */
export const longer = (prompt) => ({
  ...prompt,
  samples: [...prompt.samples, { ...prompt.samples[prompt.samples.length - 1] }],
});

/** @type {(prompt: Prompt) => Prompt} */
export const shorter = (prompt) => ({ ...prompt, samples: prompt.samples.slice(0, -1) });

/** One prompt more, like the last one. @param {State} state @returns {State} */
export const withMore = (state) => ({ ...state, prompts: [...state.prompts, state.prompts[state.prompts.length - 1]] });

/**
 * A state from outside, or null.
 * @param {unknown} data
 * @returns {State | null}
 */
export function read(data) {
  const given = /** @type {any} */ (data);
  if (
    typeof given !== "object" ||
    given === null ||
    !Array.isArray(given.prompts) ||
    !whole(given.prompts.length, LIMITS.prompts)
  )
    return null;
  /** @type {Prompt[]} */
  const prompts = [];
  for (const each of given.prompts) {
    if (!Array.isArray(each?.samples) || !whole(each.samples.length, LIMITS.samples)) return null;
    if (!each.samples.every((/** @type {any} */ sample) => typeof sample?.score === "number")) return null;
    const number = (/** @type {unknown} */ value) => (typeof value === "number" ? value : 0);
    const samples = each.samples.map((/** @type {any} */ { score, format, length }) => ({
      score,
      format: number(format),
      length: whole(length, LIMITS.length) ? length : 4,
    }));
    prompts.push({ samples, greedy: number(each.greedy) });
  }
  return { prompts, second: given.second === true, weight: Number.isFinite(given.weight) ? given.weight : 1 };
}
