// Bugs that people really had: the smallest batch that shows each, what came out, what is right, and where it was
// reported.

import { defaultChoices, defaultParameters, sequenceOf } from "../state.js";

/** @typedef {import("../state.js").State} State */

/**
 * @typedef {object} Case one way of computing the same batch
 * @property {string} id names its words
 * @property {"wrong" | "right" | "other"} verdict
 * @property {(state: State) => State} [of] the state computed; the preset's own if missing
 */

/**
 * @typedef {object} Trap
 * @property {string} id
 * @property {State} state
 * @property {{ row?: string, number?: string }} shows the row (sequence after sequence) or the number in which it shows
 * @property {Case[]} cases
 * @property {[string, string][]} links what the thread is called, and where it is
 */

/**
 * @param {string} preset
 * @param {Parameters<typeof sequenceOf>[0][]} sequences
 * @param {Partial<State["parameters"]>} parameters
 * @param {Partial<State["choices"]>} choices
 * @param {Partial<State>} [rest]
 * @returns {State}
 */
const state = (preset, sequences, parameters, choices, rest = {}) => ({
  preset,
  sequences: sequences.map(sequenceOf),
  parameters: { ...defaultParameters, ...parameters },
  choices: { ...defaultChoices, ...choices },
  profile: "paper",
  against: null,
  only: null,
  tour: null,
  ...rest,
});

/** @param {State} state every slot taken for the policy's */
const allKept = (state) => ({
  ...state,
  sequences: state.sequences.map((sequence) => ({
    ...sequence,
    roles: sequence.roles.map(() => /** @type {const} */ ("policy")),
  })),
});

/** @param {Partial<State["choices"]>} choices */
const choosing = (choices) => (/** @type {State} */ state) => ({ ...state, choices: { ...state.choices, ...choices } });

/** @param {State["profile"]} profile */
const under = (profile) => (/** @type {State} */ state) => ({ ...state, profile });

/** @param {string} repository @param {number} number */
const thread = (repository, number, kind = "issues") =>
  /** @type {[string, string]} */ ([
    `${repository.split("/")[1]}#${number}`,
    `https://github.com/${repository}/${kind}/${number}`,
  ]);

const ANSWERS = ["4", "5", "3", "22"];

/**
 * One answer token per sequence, all to the same question.
 * @param {number[]} scores
 */
const answers = (scores) =>
  scores.map((score, i) => ({ prompt: "2+2=", tokens: [ANSWERS[i]], inputs: { score: [score], oldLogProb: [-1.4] } }));

/** @type {Trap[]} */
export const traps = [
  {
    id: "mask-leak",
    state: state(
      "mask-leak",
      [
        {
          prompt: "1+1=",
          tokens: ["2", "。", "⟨pad⟩"],
          roles: ["policy", "policy", "padding"],
          inputs: { score: [0, 1, 0], value: [0, 0, 100, 0], oldLogProb: [-0.1, -0.2, 0] },
        },
      ],
      {},
      { placement: "off", weight: "raw" },
      { only: ["mask", "score", "reward", "value", "delta", "advantage", "return"] },
    ),
    shows: { row: "advantage" },
    cases: [
      { id: "leaks", verdict: "wrong", of: allKept },
      { id: "masked", verdict: "right" },
    ],
    links: [thread("alibaba/ROLL", 447), thread("volcengine/verl", 50, "pull")],
  },
  {
    id: "tool-tokens",
    state: state(
      "tool-tokens",
      [
        {
          prompt: "17×23?",
          tokens: ["call", "(17*23)", "→", "391", "391", "。"],
          roles: ["policy", "policy", "tool", "tool", "policy", "policy"],
          inputs: {
            score: [0, 0, 0, 0, 0, 1],
            value: [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0],
            oldLogProb: [-0.3, -0.2, 0, 0, -0.1, -0.05],
          },
        },
      ],
      {},
      { placement: "off", weight: "raw" },
    ),
    shows: { row: "advantage" },
    cases: [
      { id: "naive", verdict: "wrong", of: allKept },
      { id: "zeroed", verdict: "other", of: choosing({ across: "zero-step" }) },
      { id: "stepped", verdict: "right", of: choosing({ across: "step-over" }) },
    ],
    links: [thread("volcengine/verl", 2337, "pull"), thread("radixark/miles", 1827, "pull")],
  },
  {
    id: "masked-reward",
    state: state(
      "masked-reward",
      [
        {
          prompt: "2+2=",
          tokens: ["4", "…"],
          roles: ["policy", "tool"],
          inputs: { score: [0, 1], oldLogProb: [-0.5, 0] },
        },
        { prompt: "2+2=", tokens: ["5", "。"], inputs: { score: [0, 0], oldLogProb: [-0.9, -0.1] } },
      ],
      {},
      { placement: "off", advantage: "grpo", weight: "raw" },
    ),
    shows: { row: "advantage" },
    cases: [
      { id: "allSlots", verdict: "wrong", of: under("verl-0.9.1") },
      { id: "keptSlots", verdict: "right", of: under("paper") },
    ],
    links: [thread("volcengine/verl", 6362)],
  },
  {
    id: "dr-grpo-factor",
    state: state(
      "dr-grpo-factor",
      [
        {
          prompt: "1+1=",
          tokens: ["我", "觉得", "是", "2", "。"],
          inputs: { advantage: [-2, -2, -2, -2, -2], oldLogProb: [-1, -1, -1, -1, -1] },
        },
        { prompt: "1+1=", tokens: ["3"], inputs: { advantage: [-10], oldLogProb: [-1] } },
      ],
      { scale: 10 },
      { placement: "off", advantage: "given", weight: "raw", loss: "surrogate", aggregate: "seq-mean-token-sum-norm" },
      { only: ["mask", "advantage", "oldLogProb", "logProb", "ratio", "lossTerm", "tokenWeight", "gradient"] },
    ),
    shows: { number: "loss" },
    cases: [
      { id: "withoutB", verdict: "wrong", of: choosing({ aggregate: "token-sum-norm" }) },
      { id: "drGrpo", verdict: "right", of: choosing({ aggregate: "seq-mean-token-sum-norm" }) },
      { id: "tokenMean", verdict: "other", of: choosing({ aggregate: "token-mean" }) },
      { id: "sequenceMean", verdict: "other", of: choosing({ aggregate: "seq-mean-token-mean" }) },
      { id: "sequenceSum", verdict: "other", of: choosing({ aggregate: "seq-mean-token-sum" }) },
    ],
    links: [thread("volcengine/verl", 3741), thread("volcengine/verl", 593)],
  },
  {
    id: "k3-in-loss",
    // one token for each of three actions: p = .6652, .2447, .0900 against .2, .3, .5
    state: state(
      "k3-in-loss",
      [
        {
          prompt: "A / B / C",
          tokens: ["A", "B", "C"],
          inputs: {
            oldLogProb: [-0.4076059644443803, -1.4076059644443804, -2.4076059644443806],
            refLogProb: [-1.6094379124341003, -1.2039728043259361, -0.6931471805599453],
          },
        },
      ],
      { beta: 1 },
      { placement: "loss", kl: "k3", advantage: "given", weight: "raw", aggregate: "token-sum" },
      {
        only: [
          "mask",
          "oldLogProb",
          "refLogProb",
          "kl",
          "logProb",
          "ratio",
          "klTerm",
          "klGradient",
          "gradient",
          "probability",
        ],
      },
    ),
    shows: { row: "klGradient" },
    cases: [
      { id: "k3", verdict: "wrong", of: choosing({ kl: "k3", placement: "loss" }) },
      { id: "k1", verdict: "wrong", of: choosing({ kl: "k1", placement: "loss" }) },
      { id: "k2", verdict: "right", of: choosing({ kl: "k2", placement: "loss" }) },
      { id: "k3weighted", verdict: "right", of: choosing({ kl: "k3", placement: "loss-weighted" }) },
    ],
    links: [thread("huggingface/trl", 4967), thread("huggingface/trl", 6503, "pull")],
  },
  {
    id: "group-of-one",
    state: state(
      "group-of-one",
      [
        ...answers([1, 0, 0]),
        { prompt: "3+3=", tokens: ["6"], group: 1, inputs: { score: [0.7], oldLogProb: [-0.2] } },
      ],
      {},
      { placement: "off", advantage: "grpo", weight: "raw" },
      { profile: "verl-0.9.1", against: "openrlhf-0.11" },
    ),
    shows: { row: "groupAdvantage" },
    cases: [
      { id: "verl", verdict: "other", of: under("verl-0.9.1") },
      { id: "trl", verdict: "other", of: under("trl-1.16") },
      { id: "openrlhf", verdict: "wrong", of: under("openrlhf-0.11") },
      { id: "paper", verdict: "right", of: under("paper") },
    ],
    links: [thread("volcengine/verl", 6478), thread("alibaba/ROLL", 475)],
  },
  {
    id: "one-winner",
    state: state(
      "one-winner",
      answers([1, 0, 0, 0]),
      {},
      { placement: "off", advantage: "grpo", weight: "raw" },
      { profile: "verl-0.9.1", against: "trl-1.16" },
    ),
    shows: { row: "groupAdvantage" },
    cases: [
      { id: "verl", verdict: "other", of: under("verl-0.9.1") },
      { id: "trl", verdict: "other", of: under("trl-1.16") },
      { id: "openrlhf", verdict: "other", of: under("openrlhf-0.11") },
      { id: "population", verdict: "other", of: (state) => choosing({ spread: "population" })(under("paper")(state)) },
      { id: "noDeviation", verdict: "other", of: (state) => choosing({ advantage: "dr-grpo" })(under("paper")(state)) },
    ],
    links: [],
  },
  {
    id: "near-tie",
    state: state(
      "near-tie",
      answers([0.5, 0.5, 0.5, 0.5001]),
      {},
      { placement: "off", advantage: "grpo", weight: "raw" },
      { profile: "verl-0.9.1", against: "trl-1.16" },
    ),
    shows: { row: "groupAdvantage" },
    cases: [
      { id: "verl", verdict: "other", of: under("verl-0.9.1") },
      { id: "trl", verdict: "other", of: under("trl-1.16") },
      { id: "openrlhf", verdict: "other", of: under("openrlhf-0.11") },
      { id: "population", verdict: "other", of: (state) => choosing({ spread: "population" })(under("paper")(state)) },
      { id: "noDeviation", verdict: "other", of: (state) => choosing({ advantage: "dr-grpo" })(under("paper")(state)) },
    ],
    links: [],
  },
];
