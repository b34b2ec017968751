// The worked examples, with their published numbers where these can be compared with the exact results.

import { defaultChoices, defaultParameters, sequenceOf } from "../state.js";
import { traps } from "./traps.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../state.js").Sequence} Sequence */

/**
 * @typedef {object} Comparison
 * @property {string} [row] the row compared, of the first sequence
 * @property {string} [number] or the number of the summary line
 * @property {(number | null)[]} document the published numbers; null where there is none
 * @property {number} digits after the point, as printed there
 * @property {boolean} [negated] the published number is the objective, ours the loss
 * @property {Partial<State["parameters"]>} [parameters] where they differ from the preset's
 * @property {Partial<State["choices"]>} [choices]
 */

/** @typedef {{ id: string, state: State, comparisons: Comparison[] }} Example */
/** @typedef {Example | import("./traps.js").Trap} Preset */

const SIX = ["是", "的", "，", "等于", "2", "！"];
const LAST_SCORE = [0, 0, 0, 0, 0, 1];
// the first example has no log-probabilities: these are from the second,
// with the reference chosen so that k1 gives its KL
const OLD_LOG_PROBS = [-0.12, -0.08, -0.15, -0.1, -0.05, -0.02];
const VALUES = [0.2, 0.25, 0.3, 0.35, 0.45, 0.6, 0];
const KL = [0.1, 0.05, -0.05, 0.1, 0.2, 0.05];
const REF_LOG_PROBS = [-0.22, -0.13, -0.1, -0.2, -0.25, -0.07];

/**
 * @param {string} preset
 * @param {Partial<Omit<Sequence, "inputs">>} sequence
 * @param {Partial<Sequence["inputs"]>} inputs
 * @param {Partial<State["parameters"]>} [parameters]
 * @param {Partial<State["choices"]>} [choices]
 * @param {string[] | null} [only]
 * @returns {State}
 */
function state(preset, sequence, inputs, parameters = {}, choices = {}, only = null) {
  return {
    preset,
    sequences: [sequenceOf({ prompt: "请问1+1=2？", tokens: SIX, ...sequence, inputs })],
    parameters: { ...defaultParameters, ...parameters },
    choices: { ...defaultChoices, ...choices },
    profile: "paper",
    against: null,
    only,
    tour: null,
  };
}

/** @type {Example[]} */
export const examples = [
  {
    id: "one-plus-one",
    state: state(
      "one-plus-one",
      {},
      {
        score: LAST_SCORE,
        kl: KL,
        value: VALUES,
        oldLogProb: OLD_LOG_PROBS,
        refLogProb: REF_LOG_PROBS,
        advantage: [0.621, 0.612, 0.597, 0.57, 0.505, 0.395],
      },
    ),
    comparisons: [
      { row: "reward", document: [-0.01, -0.005, 0.005, -0.01, -0.02, 0.995], digits: 3 },
      { row: "delta", document: [0.04, 0.045, 0.055, 0.09, 0.13, 0.395], digits: 3 },
      { row: "advantage", document: [0.621, 0.612, 0.597, 0.57, 0.505, 0.395], digits: 3 },
      { row: "return", document: [0.821, 0.862, 0.897, 0.92, 0.955, 0.995], digits: 3 },
    ],
  },
  {
    id: "terminal-credit",
    state: state(
      "terminal-credit",
      {},
      {
        score: LAST_SCORE,
        kl: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
        value: VALUES,
        oldLogProb: OLD_LOG_PROBS,
        refLogProb: [-0.22, -0.18, -0.25, -0.2, -0.15, -0.12],
        advantage: [0.27, 0.28, 0.3, 0.33, 0.36, 0.39],
      },
    ),
    comparisons: [
      { row: "reward", document: [-0.01, -0.01, -0.01, -0.01, -0.01, 0.99], digits: 2 },
      { row: "advantage", document: [0.27, 0.28, 0.3, 0.33, 0.36, 0.39], digits: 2 },
    ],
  },
  {
    id: "credit-assignments",
    state: state(
      "credit-assignments",
      {},
      {
        score: LAST_SCORE,
        kl: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
        value: VALUES,
        oldLogProb: OLD_LOG_PROBS,
        refLogProb: [-0.22, -0.18, -0.25, -0.2, -0.15, -0.12],
        attention: [0.05, 0.05, 0.05, 0.15, 0.6, 0.1],
        advantage: [0, 0, 0, 0, 0, 1],
      },
      { lastK: 3 },
      { advantage: "uniform", placement: "off", weight: "raw" },
    ),
    comparisons: [
      { row: "advantage", document: [0.17, 0.17, 0.17, 0.17, 0.17, 0.17], digits: 2 },
      { row: "advantage", document: [0, 0, 0, 0.33, 0.33, 0.34], digits: 2, choices: { advantage: "last-k" } },
      {
        row: "advantage",
        document: [0.28, 0.3, 0.33, null, null, 0.39],
        digits: 2,
        choices: { advantage: "gae", placement: "reward" },
      },
    ],
  },
  {
    id: "exact-indices",
    state: state(
      "exact-indices",
      {},
      {
        score: LAST_SCORE,
        kl: [0.1, 0.05, 0.1, 0.15, 0.2, 0.05],
        value: VALUES,
        oldLogProb: OLD_LOG_PROBS,
        refLogProb: [-0.22, -0.13, -0.25, -0.25, -0.25, -0.07],
        advantage: [0.615, 0.582, 0, 0.565, 0.505, 0.395],
      },
    ),
    comparisons: [
      { row: "reward", document: [-0.01, -0.005, -0.01, -0.015, -0.02, 0.995], digits: 3 },
      {
        row: "discountedReturn",
        document: [0.888, 0.907, 0.921, 0.94, 0.965, 0.995],
        digits: 3,
        parameters: { gamma: 0.99 },
      },
      { row: "delta", document: [0.075, null, null, 0.085, 0.13, 0.395], digits: 3 },
      { row: "advantage", document: [0.615, 0.582, null, 0.565, 0.505, 0.395], digits: 3 },
    ],
  },
  {
    id: "whiten",
    state: state(
      "whiten",
      { prompt: "", tokens: ["a₁", "a₂", "a₃", "a₄", "a₅"] },
      { value: [0.5, 0.6, 0.7, 0.8, 0.9, 0], advantage: [0.1, 0.3, 0.2, -0.1, 0.05] },
      {},
      { advantage: "given" },
      ["mask", "value", "advantage", "return", "whitened"],
    ),
    comparisons: [
      { row: "return", document: [0.6, 0.9, 0.9, 0.7, 0.95], digits: 2 },
      { row: "whitened", document: [-0.08, 1.46, 0.69, -1.62, -0.46], digits: 2 },
      { row: "whitened", document: [-0.08, 1.46, 0.69, -1.62, -0.46], digits: 2, choices: { spread: "population" } },
    ],
  },
  {
    id: "you-know-one-plus-one",
    state: youKnow("you-know-one-plus-one", {}),
    comparisons: [
      { row: "kl", document: [0.03, 0.02, null, null, null, null], digits: 2 },
      { row: "reward", document: [-0.0003, -0.0002, null, null, null, 0.9999], digits: 4 },
      { row: "advantage", document: [0.13, 0.1, 0.08, 0.05, 0.03, 0.05], digits: 2 },
      { row: "return", document: [0.95, 0.95, 0.96, 0.95, 0.95, 1], digits: 2 },
    ],
  },
  {
    id: "you-know-surrogate",
    state: youKnow("you-know-surrogate", { advantage: "given", weight: "raw" }),
    comparisons: [
      { row: "probability", document: [0.887, 0.923, 0.861, 0.905, 0.951, 0.98], digits: 3 },
      { row: "ratio", document: [1, 1, 1, 1, 1, 1], digits: 1 },
      { row: "lossTerm", document: [0.13, 0.1, 0.08, 0.05, 0.03, 0.05], digits: 2, negated: true },
      { number: "loss", document: [0.0733], digits: 4, negated: true },
    ],
  },
];

/**
 * @param {string} id
 * @param {Partial<State["choices"]>} choices
 */
function youKnow(id, choices) {
  return state(
    id,
    { prompt: "你知道1+1=2吗？", tokens: ["是的", "，", "1+1", "=", "2", "⟨eos⟩"] },
    {
      score: LAST_SCORE,
      oldLogProb: OLD_LOG_PROBS,
      refLogProb: [-0.15, -0.1, -0.18, -0.12, -0.08, -0.03],
      kl: [0.03, 0.02, 0.03, 0.02, 0.03, 0.01],
      value: [0.82, 0.85, 0.88, 0.9, 0.92, 0.95, 0],
      advantage: [0.13, 0.1, 0.08, 0.05, 0.03, 0.05],
    },
    { beta: 0.01, lambda: 1 },
    { kl: "k1", ...choices },
  );
}

/** @type {Preset[]} */
export const presets = [...examples, ...traps];

/**
 * @param {string} id
 * @returns {Preset | null}
 */
export const findPreset = (id) => presets.find((preset) => preset.id === id) ?? null;
