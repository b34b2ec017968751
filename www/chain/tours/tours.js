// Guided tours: each step shows a cell and says one thing about it; some wait for an edit.

import { withChoices, withProfile } from "../edit/edits.js";
import { findPreset } from "../examples/presets.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../edit/edits.js").Place} Place */

/**
 * @typedef {object} Step
 * @property {Place} place the cell it is about
 * @property {(state: State) => State} [of] the state it is told on; without it, that of the step before
 * @property {Place} [gate] the input to be edited before going on
 */

/** @typedef {{ id: string, preset: string, steps: Step[] }} Tour */

/**
 * @param {string} row
 * @param {number} index
 * @param {number} [sequence]
 * @returns {Place}
 */
const at = (row, index, sequence = 0) => ({ row, sequence, index });

/** @param {string} id */
const preset = (id) => () => /** @type {State} */ (findPreset(id)?.state);

/** @type {Tour[]} */
export const tours = [
  {
    id: "story",
    preset: "one-plus-one",
    steps: [
      { place: at("token", 0), of: preset("one-plus-one") },
      { place: at("score", 5) },
      { place: at("kl", 2) },
      { place: at("reward", 5) },
      { place: at("value", 2) },
      { place: at("delta", 0) },
      { place: at("advantage", 5) },
      { place: at("advantage", 0) },
      { place: at("value", 2), gate: at("value", 2) },
      { place: at("return", 0), of: preset("one-plus-one") },
      { place: at("whitened", 5) },
      { place: at("logProb", 4), gate: at("logProb", 4) },
      { place: at("gradient", 4) },
    ],
  },
  {
    id: "slips",
    preset: "one-plus-one",
    steps: [
      { place: at("advantage", 2), of: preset("one-plus-one") },
      { place: at("advantage", 0), of: preset("terminal-credit") },
      { place: at("delta", 0), of: preset("exact-indices") },
      { place: at("advantage", 1), of: preset("exact-indices") },
      { place: at("discountedReturn", 0), of: preset("one-plus-one") },
      { place: at("whitened", 1), of: preset("whiten") },
      { place: at("advantage", 5), of: () => withChoices(preset("credit-assignments")(), { advantage: "last-k" }) },
      { place: at("advantage", 0), of: preset("you-know-one-plus-one") },
      { place: at("entropy", 0), of: preset("you-know-surrogate") },
    ],
  },
  {
    id: "dr-grpo",
    preset: "one-winner",
    steps: [
      { place: at("sequenceScore", 0), of: () => ({ ...preset("one-winner")(), profile: "paper", against: null }) },
      { place: at("groupAdvantage", 0) },
      { place: at("groupAdvantage", 0, 3), of: () => ({ ...preset("near-tie")(), profile: "paper", against: null }) },
      { place: at("groupAdvantage", 0, 3), of: (state) => withChoices(state, { advantage: "dr-grpo" }) },
      {
        place: at("score", 0),
        of: () => ({
          ...withChoices(preset("one-winner")(), { advantage: "dr-grpo" }),
          profile: "paper",
          against: null,
        }),
        gate: at("score", 0),
      },
      {
        place: at("tokenWeight", 0),
        of: () => withChoices(preset("dr-grpo-factor")(), { aggregate: "seq-mean-token-mean" }),
      },
      { place: at("tokenWeight", 0), of: (state) => withChoices(state, { aggregate: "seq-mean-token-sum-norm" }) },
      { place: at("tokenWeight", 0, 1), of: (state) => withChoices(state, { aggregate: "token-sum-norm" }) },
    ],
  },
  {
    id: "frameworks",
    preset: "near-tie",
    steps: [
      { place: at("groupAdvantage", 0, 3), of: () => ({ ...preset("near-tie")(), profile: "paper", against: null }) },
      { place: at("groupAdvantage", 0, 3), of: (state) => withProfile({ ...state, against: null }, "verl-0.9.1") },
      { place: at("groupAdvantage", 0, 3), of: (state) => withProfile(state, "trl-1.16") },
      {
        place: at("advantage", 1),
        of: () => ({ ...preset("tool-tokens")(), profile: "trl-1.16", against: "verl-0.9.1" }),
      },
    ],
  },
];

/** @param {string} id */
export const findTour = (id) => tours.find((tour) => tour.id === id) ?? null;

/**
 * The state that a step describes, before any edit.
 * @param {Tour} tour
 * @param {number} step
 * @returns {State}
 */
export function stateAt(tour, step) {
  const start = /** @type {State} */ (findPreset(tour.preset)?.state);
  const state = tour.steps.slice(0, step + 1).reduce((before, { of }) => (of ? of(before) : before), start);
  return { ...state, tour: { id: tour.id, step } };
}

/**
 * @param {State} state
 * @returns {{ tour: Tour, step: number, place: Place, waiting: boolean } | null} where a tour stands,
 *   and whether it waits for an edit
 */
export function tourOf(state) {
  const tour = state.tour && findTour(state.tour.id);
  if (!tour || !state.tour) return null;
  const step = Math.min(state.tour.step, tour.steps.length - 1);
  const { place, gate } = tour.steps[step];
  const value = (/** @type {State} */ of) =>
    gate && /** @type {any} */ (of.sequences[gate.sequence]?.inputs)?.[gate.row]?.[gate.index];
  return { tour, step, place, waiting: gate !== undefined && Object.is(value(state), value(stateAt(tour, step))) };
}
