// The rows of the chain, in the order in which a value travels, and what each cell is computed from.
// This is all the page knows about how formulas depend on each other; the numbers come from the library.

import { criticEstimators, groupEstimators, shareEstimators } from "./compute/estimators.js";
import { isKept, nextKept } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute/conventions.js").Settings} Settings */

/**
 * @typedef {object} Where a cell to be explained
 * @property {State} state
 * @property {Settings} settings
 * @property {number} s its sequence
 * @property {number} i its index
 */

/**
 * @typedef {object} Row
 * @property {string} key
 * @property {"reward" | "advantage" | "loss" | "metric"} stage
 * @property {"action" | "state" | "sequence"} align what its numbers belong to: a token, the state before it,
 *   or the whole sequence
 * @property {boolean} [signed] a result whose sign means something
 * @property {(state: State) => "mask" | "input" | "result"} kind
 * @property {(state: State) => boolean} [shown]
 * @property {(where: Where) => string[]} sources ids of cells (`value.0.3`: row, sequence, index), of numbers over many
 *   cells (`total.mean`), of parameters (`gamma`)
 */

const mask = () => /** @type {const} */ ("mask");
const input = () => /** @type {const} */ ("input");
const result = () => /** @type {const} */ ("result");
/** @returns {string[]} */
const nothing = () => [];

/** @param {State} state */
const inLoss = (state) => state.choices.placement === "loss" || state.choices.placement === "loss-weighted";

/** @param {State} state */
const usesGroups = (state) => groupEstimators.includes(state.choices.advantage);

/** @param {State} state */
const usesCritic = (state) => criticEstimators.includes(state.choices.advantage);

/** @param {State} state */
const usesReturns = (state) => usesCritic(state) || state.choices.advantage === "reinforce-plus-plus";

/** @param {State} state */
const usesKl = (state) => state.choices.placement !== "off";

/**
 * Which row the loss and the metrics read their advantages from.
 * @param {State} state
 */
export const weightRow = (state) => (state.choices.weight === "raw" ? "advantage" : "whitened");

/**
 * The masks that decide which token comes next after a cell's.
 * @param {Where} where
 */
function masksUpToNext({ state, s, i }) {
  const sequence = state.sequences[s];
  return range(i, Math.min(nextKept(sequence, i), sequence.tokens.length - 1)).map((j) => `mask.${s}.${j}`);
}

/**
 * Whether a recursion steps on dropped tokens between this one and the next kept one, instead of stepping over them.
 * @param {Where} where
 */
export function stepsOnDropped({ state, settings, s, i }) {
  const next = nextKept(state.sequences[s], i);
  return settings.across === "zero-step" && next > i + 1 && next < state.sequences[s].tokens.length;
}

/**
 * A row's cell at the next kept token; nothing after the last.
 * @param {Where} where
 * @param {string} row
 */
function later({ state, s, i }, row) {
  const next = nextKept(state.sequences[s], i);
  return next < state.sequences[s].tokens.length ? [`${row}.${s}.${next}`] : [];
}

/** @param {Where} where */
const nextValue = ({ state, s, i }) => `value.${s}.${nextKept(state.sequences[s], i)}`;

/** @type {Record<string, (where: Where) => string[]>} */
const advantageSources = {
  given: nothing,
  gae: (w) => [
    `delta.${w.s}.${w.i}`,
    "gamma",
    "lambda",
    ...later(w, "advantage"),
    ...(stepsOnDropped(w) ? [nextValue(w)] : []),
    ...masksUpToNext(w),
  ],
  "monte-carlo": ({ s, i }) => [`discountedReturn.${s}.${i}`, `value.${s}.${i}`],
  "reinforce-plus-plus": ({ s, i }) => [`discountedReturn.${s}.${i}`],
  uniform: ({ s }) => [`sequenceScore.${s}.0`, `total.kept.${s}`],
  "last-k": ({ s }) => [`sequenceScore.${s}.0`, "lastK", `total.kept.${s}`],
  attention: ({ s, i }) => [`sequenceScore.${s}.0`, `attention.${s}.${i}`, `total.attention.${s}`],
};

/** @param {Where} where */
function lossSources({ state, settings, s, i }) {
  const { loss } = state.choices;
  const advantage = `${weightRow(state)}.${s}.${i}`;
  const relative = settings.cispo.kind === "relative";
  if (loss === "reinforce") return [advantage, `logProb.${s}.${i}`];
  if (loss === "surrogate") return [`ratio.${s}.${i}`, advantage];
  if (loss === "cispo")
    return [`ratio.${s}.${i}`, advantage, `logProb.${s}.${i}`, ...(relative ? ["clipLow", "clipHigh"] : [])];
  const dual = loss === "ppo" && settings.dual !== "off" && state.choices.dual !== "profile" ? ["dualClip"] : [];
  return [`${loss === "gspo" ? "sequenceRatio" : "ratio"}.${s}.${i}`, advantage, "clipLow", "clipHigh", ...dual];
}

/** @param {Where} where */
function gradientSources(where) {
  const { state, settings, s, i } = where;
  const kl = inLoss(state) && state.choices.kl !== "given" ? [`klGradient.${s}.${i}`] : [];
  if (state.choices.loss === "gspo" && settings.gspo.form === "sequence") return [`total.pull.${s}`, ...kl];
  return [...lossSources(where).filter((id) => !id.startsWith("logProb.")), `tokenWeight.${s}.${i}`, ...kl];
}

/** @type {Row[]} */
export const rows = [
  {
    key: "sequenceScore",
    stage: "reward",
    align: "sequence",
    signed: true,
    kind: result,
    shown: (s) => usesScore(s),
    sources: ({ s }) => [`total.rewards.${s}`],
  },
  {
    key: "groupAdvantage",
    stage: "advantage",
    align: "sequence",
    signed: true,
    kind: result,
    shown: usesGroups,
    sources: ({ state, s }) => [
      ...groupOf(state, s).map((other) => `sequenceScore.${other}.0`),
      ...(state.choices.advantage === "opo" ? groupOf(state, s).map((other) => `total.kept.${other}`) : []),
    ],
  },
  { key: "mask", stage: "reward", align: "action", kind: mask, sources: nothing },
  { key: "score", stage: "reward", align: "action", kind: input, sources: nothing },
  { key: "oldLogProb", stage: "reward", align: "action", kind: input, sources: nothing },
  {
    key: "refLogProb",
    stage: "reward",
    align: "action",
    kind: input,
    shown: (s) => usesKl(s) && s.choices.kl !== "given",
    sources: nothing,
  },
  {
    key: "kl",
    stage: "reward",
    align: "action",
    signed: true,
    shown: usesKl,
    kind: (s) => (s.choices.kl === "given" ? "input" : "result"),
    sources: ({ state, s, i }) => {
      if (state.choices.kl === "given") return [];
      const weighted = state.choices.placement === "loss-weighted" ? [`ratio.${s}.${i}`] : [];
      return [...weighted, `${inLoss(state) ? "logProb" : "oldLogProb"}.${s}.${i}`, `refLogProb.${s}.${i}`];
    },
  },
  {
    key: "reward",
    stage: "reward",
    align: "action",
    signed: true,
    kind: result,
    sources: ({ state, s, i }) =>
      state.choices.placement === "reward" ? [`score.${s}.${i}`, "beta", `kl.${s}.${i}`] : [`score.${s}.${i}`],
  },
  {
    key: "attention",
    stage: "advantage",
    align: "action",
    kind: input,
    shown: (s) => s.choices.advantage === "attention",
    sources: nothing,
  },
  { key: "value", stage: "advantage", align: "state", kind: input, shown: usesReturns, sources: nothing },
  {
    key: "delta",
    stage: "advantage",
    align: "action",
    signed: true,
    kind: result,
    shown: (s) => s.choices.advantage === "gae",
    sources: (w) => [
      `reward.${w.s}.${w.i}`,
      "gamma",
      ...(stepsOnDropped(w) ? [] : [nextValue(w)]),
      `value.${w.s}.${w.i}`,
      ...masksUpToNext(w),
    ],
  },
  {
    key: "advantage",
    stage: "advantage",
    align: "action",
    signed: true,
    kind: (s) => (s.choices.advantage === "given" ? "input" : "result"),
    sources: (w) =>
      usesGroups(w.state) ? [`groupAdvantage.${w.s}.0`] : advantageSources[w.state.choices.advantage](w),
  },
  {
    key: "return",
    stage: "advantage",
    align: "state",
    signed: true,
    kind: result,
    shown: usesCritic,
    sources: ({ s, i }) => [`advantage.${s}.${i}`, `value.${s}.${i}`],
  },
  {
    key: "discountedReturn",
    stage: "advantage",
    align: "state",
    signed: true,
    kind: result,
    shown: usesReturns,
    sources: (w) => {
      const next = later(w, "discountedReturn");
      return [`reward.${w.s}.${w.i}`, "gamma", ...(next.length > 0 ? next : [nextValue(w)]), ...masksUpToNext(w)];
    },
  },
  {
    key: "whitened",
    stage: "advantage",
    align: "action",
    signed: true,
    kind: result,
    shown: (s) => s.choices.weight === "whitened" || !usesGroups(s),
    sources: ({ s, i }) => [`advantage.${s}.${i}`, "total.mean", "total.variance"],
  },
  {
    key: "logProb",
    stage: "loss",
    align: "action",
    kind: input,
    sources: ({ state, s, i }) => (state.sequences[s].inputs.logProb[i] === null ? [`oldLogProb.${s}.${i}`] : []),
  },
  {
    key: "ratio",
    stage: "loss",
    align: "action",
    kind: result,
    sources: ({ s, i }) => [`logProb.${s}.${i}`, `oldLogProb.${s}.${i}`],
  },
  {
    key: "sequenceRatio",
    stage: "loss",
    align: "action",
    kind: result,
    shown: (s) => s.choices.loss === "gspo",
    sources: ({ s }) => [`total.ratio.${s}`],
  },
  { key: "lossTerm", stage: "loss", align: "action", signed: true, kind: result, sources: lossSources },
  {
    key: "tokenWeight",
    stage: "loss",
    align: "action",
    kind: result,
    sources: ({ state, s }) => tokenWeightSources(state, s),
  },
  {
    key: "klTerm",
    stage: "loss",
    align: "action",
    signed: true,
    kind: result,
    shown: inLoss,
    sources: ({ s, i }) => ["beta", `kl.${s}.${i}`],
  },
  {
    key: "klGradient",
    stage: "loss",
    align: "action",
    signed: true,
    kind: result,
    shown: (s) => inLoss(s) && s.choices.kl !== "given",
    sources: ({ state, s, i }) => [
      `tokenWeight.${s}.${i}`,
      "beta",
      ...(state.choices.placement === "loss-weighted" ? [`kl.${s}.${i}`, `ratio.${s}.${i}`] : []),
      `logProb.${s}.${i}`,
      `refLogProb.${s}.${i}`,
    ],
  },
  { key: "gradient", stage: "loss", align: "action", signed: true, kind: result, sources: gradientSources },
  {
    key: "probability",
    stage: "metric",
    align: "action",
    kind: result,
    sources: ({ s, i }) => [`oldLogProb.${s}.${i}`],
  },
  {
    key: "entropy",
    stage: "metric",
    align: "action",
    kind: result,
    sources: ({ s, i }) => [`probability.${s}.${i}`, `oldLogProb.${s}.${i}`],
  },
  {
    key: "entropyWeight",
    stage: "metric",
    align: "action",
    kind: result,
    sources: ({ state, s, i }) => [`probability.${s}.${i}`, `${weightRow(state)}.${s}.${i}`],
  },
  {
    key: "weightedEntropy",
    stage: "metric",
    align: "action",
    kind: result,
    sources: ({ s, i }) => [`entropyWeight.${s}.${i}`, `entropy.${s}.${i}`],
  },
];

/** @type {Map<string, Row>} */
export const rowByKey = new Map(rows.map((row) => [row.key, row]));

/**
 * @param {State} state
 * @param {number} s
 */
function tokenWeightSources(state, s) {
  const mode = state.choices.aggregate;
  const scale = mode.endsWith("-norm") ? ["scale"] : [];
  if (mode === "seq-mean-token-mean") return [`total.kept.${s}`, "total.kept"];
  return mode === "token-sum" || mode === "token-sum-norm" ? scale : ["total.kept", ...scale];
}

/** @param {State} state */
const usesScore = (state) => usesGroups(state) || shareEstimators.includes(state.choices.advantage);

/**
 * What a number over many cells is made of: `total.mean` over all kept tokens,
 * `total.rewards.0` over those of a sequence.
 * @param {State} state
 * @param {Settings} settings
 * @param {string} id
 * @returns {string[]}
 */
export function totalSources(state, settings, id) {
  const [, name, which] = id.split(".");
  const sequences = which === undefined ? state.sequences.keys() : [Number(which)];
  return [...sequences].flatMap((s) => {
    const sequence = state.sequences[s];
    const slots = [...sequence.tokens.keys()];
    const kept = slots.filter((i) => isKept(sequence, i));
    const masks = slots.map((i) => `mask.${s}.${i}`);
    const of = (/** @type {string} */ row) => kept.map((i) => `${row}.${s}.${i}`);
    if (name === "mean" || name === "variance") return [...of("advantage"), ...masks];
    if (name === "attention") return [...of("attention"), ...masks];
    if (name === "ratio") return [...of("logProb"), ...of("oldLogProb"), ...masks];
    if (name === "pull")
      return [...of("sequenceRatio"), ...of("tokenWeight"), ...of(weightRow(state)), "clipLow", "clipHigh", ...masks];
    if (name === "rewards" && settings.scoreSlots === "kept") return [...of("reward"), ...masks];
    if (name === "rewards") {
      const priced = state.choices.placement === "reward" ? [...slots.map((i) => `kl.${s}.${i}`), "beta"] : [];
      return [...slots.map((i) => `score.${s}.${i}`), ...priced];
    }
    return masks;
  });
}

/**
 * The sequences that answer the same prompt, this one among them.
 * @param {State} state
 * @param {number} s
 */
export const groupOf = (state, s) =>
  [...state.sequences.keys()].filter((other) => state.sequences[other].group === state.sequences[s].group);

/**
 * @param {State} state
 * @returns {Row[]}
 */
export const visibleRows = (state) =>
  rows.filter(
    (row) => (row.shown?.(state) ?? true) && (!state.only || row.align === "sequence" || state.only.includes(row.key)),
  );

/**
 * The value row has one cell more than there are tokens: the state after the last one.
 * @param {Row} row
 * @param {State} state
 * @param {number} s
 */
export const cellCount = (row, state, s) =>
  row.align === "sequence" ? 1 : state.sequences[s].tokens.length + (row.key === "value" ? 1 : 0);

/**
 * What a cell is computed from. A dropped slot is 0 whatever stands around it.
 * @param {Row} row
 * @param {Where} where
 * @returns {string[]}
 */
export function sourcesOf(row, where) {
  const { state, s, i } = where;
  if (row.kind(state) !== "result" || row.align === "sequence") return row.sources(where);
  if (!isKept(state.sequences[s], i)) return [`mask.${s}.${i}`];
  return [...new Set([...row.sources(where), `mask.${s}.${i}`])];
}

/**
 * @param {number} first
 * @param {number} last inclusive
 */
export function range(first, last) {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => first + k);
}
