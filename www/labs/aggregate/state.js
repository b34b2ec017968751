// What the user can change in the aggregation laboratory: a few answers with a loss per token,
// and how they are split.

import { whole } from "../cells.js";

/** @typedef {{ losses: number[], kept: boolean[] }} Answer one slot per column; dropped slots never matter */

/**
 * @typedef {object} State
 * @property {Answer[]} answers all of the same width
 * @property {number} scale the constant length of Dr. GRPO
 * @property {number} perPrompt how many answers in a row belong to one prompt
 * @property {"excluded" | "counted"} emptyRows
 * @property {"count" | "count-plus-epsilon"} divisor
 * @property {string} mode the one explained and split
 * @property {number} ranks
 * @property {number} micro micro-batches of each rank
 */

/** Every aggregation the library knows; the last but two is what verl's name meant until January 2026. */
export const modes = [
  "token-mean",
  "seq-mean-token-mean",
  "seq-mean-token-sum",
  "seq-mean-token-sum-norm",
  "sum-norm-without-mean",
  "token-sum",
  "prompt-mean",
];

export const LIMITS = /** @type {Record<string, [number, number]>} */ ({
  answers: [1, 12],
  width: [1, 16],
  perPrompt: [1, 12],
});

/**
 * @param {(number | null)[][]} rows null drops the slot
 * @param {number} width
 * @returns {Answer[]}
 */
const answersOf = (rows, width) =>
  rows.map((row) => ({
    losses: Array.from({ length: width }, (_, t) => row[t] ?? 0),
    kept: Array.from({ length: width }, (_, t) => row[t] !== null && row[t] !== undefined),
  }));

const fill = (/** @type {number} */ count, /** @type {number} */ loss) => Array(count).fill(loss);

/** @type {State} */
const base = {
  answers: answersOf([fill(5, 2), [10]], 10),
  scale: 10,
  perPrompt: 1,
  emptyRows: "excluded",
  divisor: "count",
  mode: "token-mean",
  ranks: 1,
  micro: 2,
};

/** @type {Record<string, () => State>} */
export const presets = {
  "verl-593": () => base,
  // lengths as they come out of a rollout: one long answer that rambles on, short ones that are right
  "long-wrong": () => ({
    ...base,
    answers: answersOf([fill(12, 1.2), fill(3, -0.9), fill(4, -0.9), fill(2, -0.9)], 12),
    scale: 12,
    perPrompt: 4,
    mode: "seq-mean-token-mean",
  }),
  "unequal-micro": () => ({
    ...base,
    answers: answersOf([fill(8, 1), fill(8, 1), fill(1, 3), fill(1, 3)], 8),
    scale: 8,
    perPrompt: 2,
    micro: 2,
  }),
  "equal": () => ({
    ...base,
    answers: answersOf([fill(4, 1), fill(4, 2), fill(4, 3), fill(4, 4)], 4),
    scale: 4,
    perPrompt: 2,
    micro: 4,
  }),
  "empty": () => ({
    ...base,
    answers: answersOf([fill(4, 1), [], fill(2, 3), fill(2, 2)], 4),
    scale: 4,
    perPrompt: 2,
    mode: "seq-mean-token-mean",
    micro: 4,
  }),
  "tool": () => {
    const answers = answersOf(
      [
        [1, 2, null, null, 3, 1],
        [2, null, 2],
        [1, 1, 1, 1, 1, 1],
      ],
      6,
    );
    // tokens of a tool have no loss, whatever their number
    answers[0].losses[2] = NaN;
    answers[0].losses[3] = Infinity;
    return { ...base, answers, scale: 6, micro: 3 };
  },
};

export const width = (/** @type {State} */ state) => state.answers[0].losses.length;

/**
 * How many micro-batches each rank can have, if each is to have at least one answer.
 * @param {{ answers: Answer[], ranks: number }} state
 */
export const mostMicro = ({ answers, ranks }) => Math.max(1, Math.floor(answers.length / ranks));

/**
 * @param {State} state
 * @returns {State} with a split that fits the number of answers
 */
export function fitted(state) {
  const ranks = Math.min(state.ranks, state.answers.length);
  return { ...state, ranks, micro: Math.min(state.micro, mostMicro({ ...state, ranks })) };
}

/**
 * @param {State} state
 * @param {number} wanted
 * @returns {State}
 */
export function withWidth(state, wanted) {
  const answers = state.answers.map(({ losses, kept }) => ({
    losses: Array.from({ length: wanted }, (_, t) => losses[t] ?? 0),
    kept: Array.from({ length: wanted }, (_, t) => kept[t] ?? false),
  }));
  return { ...state, answers };
}

/**
 * @param {State} state
 * @returns {State} with one answer more, like the last one
 */
export function withAnswer(state) {
  const last = state.answers[state.answers.length - 1];
  return { ...state, answers: [...state.answers, last] };
}

/**
 * @param {State} state
 * @param {number} index
 * @param {Partial<Answer>} changes
 * @returns {State}
 */
export const withChanged = (state, index, changes) => ({
  ...state,
  answers: state.answers.map((answer, i) => (i === index ? { ...answer, ...changes } : answer)),
});

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
    !Array.isArray(given.answers) ||
    !whole(given.answers.length, LIMITS.answers)
  )
    return null;
  const columns = given.answers[0]?.losses?.length;
  if (!whole(columns, LIMITS.width)) return null;
  const fits = (/** @type {any} */ answer) =>
    Array.isArray(answer?.losses) &&
    Array.isArray(answer?.kept) &&
    answer.losses.length === columns &&
    answer.kept.length === columns &&
    answer.losses.every((/** @type {unknown} */ x) => typeof x === "number") &&
    answer.kept.every((/** @type {unknown} */ x) => typeof x === "boolean");
  if (!given.answers.every(fits)) return null;
  const one = (/** @type {string} */ key, /** @type {unknown[]} */ choices) =>
    choices.includes(given[key]) ? given[key] : /** @type {any} */ (base)[key];
  const count = (/** @type {string} */ key, /** @type {[number, number]} */ bounds) =>
    whole(given[key], bounds) ? given[key] : 1;
  return fitted({
    answers: given.answers.map((/** @type {Answer} */ { losses, kept }) => ({ losses: [...losses], kept: [...kept] })),
    scale: Number.isFinite(given.scale) && given.scale > 0 ? given.scale : columns,
    perPrompt: count("perPrompt", LIMITS.perPrompt),
    emptyRows: one("emptyRows", ["excluded", "counted"]),
    divisor: one("divisor", ["count", "count-plus-epsilon"]),
    mode: one("mode", modes),
    ranks: count("ranks", LIMITS.answers),
    micro: count("micro", LIMITS.answers),
  });
}
