// The rows of the chain, in the order in which a value travels, and what each cell is computed from.
// This is the page's only knowledge of how formulas hang together; the numbers come from the library.

import { nextKept } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Row
 * @property {string} key
 * @property {"reward" | "advantage" | "loss" | "metric"} stage
 * @property {"action" | "state"} align
 * @property {boolean} [signed] a result whose sign means something
 * @property {(state: State) => "mask" | "input" | "result"} kind
 * @property {(state: State) => boolean} [shown]
 * @property {(state: State, index: number) => string[]} sources ids of cells (`value.3`) and parameters (`gamma`)
 */

const mask = () => /** @type {const} */ ("mask");
const input = () => /** @type {const} */ ("input");
const result = () => /** @type {const} */ ("result");
/** @returns {string[]} */
const nothing = () => [];

/**
 * The masks that decide which token comes next after `i`.
 * @param {State} state
 * @param {number} i
 */
const masksUpToNext = (state, i) => range(i, Math.min(nextKept(state, i), state.tokens.length - 1)).map((j) => `mask.${j}`);

/** @param {State} state */
const allMasks = (state) => state.tokens.map((_, j) => `mask.${j}`);

/** @param {State} state */
const keptIndices = (state) => state.tokens.map((_, j) => j).filter((j) => state.mask[j]);

/**
 * Which row the loss and the metrics read their advantages from.
 * @param {State} state
 */
export const weightRow = (state) => (state.choices.weight === "raw" ? "advantage" : "whitened");

/** @type {Row[]} */
export const rows = [
  { key: "mask", stage: "reward", align: "action", kind: mask, sources: nothing },
  { key: "score", stage: "reward", align: "action", kind: input, sources: nothing },
  { key: "oldLogProb", stage: "reward", align: "action", kind: input, sources: nothing },
  { key: "refLogProb", stage: "reward", align: "action", kind: input, shown: (s) => s.choices.kl !== "given", sources: nothing },
  {
    key: "kl", stage: "reward", align: "action", signed: true,
    kind: (s) => (s.choices.kl === "given" ? "input" : "result"),
    sources: (s, i) => (s.choices.kl === "given" ? [] : [`oldLogProb.${i}`, `refLogProb.${i}`]),
  },
  {
    key: "reward", stage: "reward", align: "action", signed: true, kind: result,
    sources: (_, i) => [`score.${i}`, "beta", `kl.${i}`],
  },
  { key: "value", stage: "advantage", align: "state", kind: input, sources: nothing },
  {
    key: "delta", stage: "advantage", align: "action", signed: true, kind: result,
    shown: (s) => s.choices.advantage === "gae",
    sources: (s, i) => [`reward.${i}`, "gamma", `value.${nextKept(s, i)}`, `value.${i}`, ...masksUpToNext(s, i)],
  },
  {
    key: "advantage", stage: "advantage", align: "action", signed: true,
    kind: (s) => (s.choices.advantage === "gae" ? "result" : "input"),
    sources: (s, i) => {
      if (s.choices.advantage !== "gae") return [];
      const next = nextKept(s, i);
      const later = next < s.tokens.length ? [`advantage.${next}`] : [];
      return [`delta.${i}`, "gamma", "lambda", ...later, ...masksUpToNext(s, i)];
    },
  },
  {
    key: "return", stage: "advantage", align: "state", signed: true, kind: result,
    sources: (_, i) => [`advantage.${i}`, `value.${i}`],
  },
  {
    key: "discountedReturn", stage: "advantage", align: "state", signed: true, kind: result,
    sources: (s, i) => {
      const next = nextKept(s, i);
      const later = next < s.tokens.length ? `discountedReturn.${next}` : `value.${next}`;
      return [`reward.${i}`, "gamma", later, ...masksUpToNext(s, i)];
    },
  },
  {
    key: "whitened", stage: "advantage", align: "action", signed: true, kind: result,
    sources: (s) => [...keptIndices(s).map((j) => `advantage.${j}`), ...allMasks(s)],
  },
  {
    key: "logProb", stage: "loss", align: "action", kind: input,
    sources: (s, i) => (s.inputs.logProb[i] === null ? [`oldLogProb.${i}`] : []),
  },
  { key: "ratio", stage: "loss", align: "action", kind: result, sources: (_, i) => [`logProb.${i}`, `oldLogProb.${i}`] },
  {
    key: "lossTerm", stage: "loss", align: "action", signed: true, kind: result,
    sources: (s, i) => [`ratio.${i}`, `${weightRow(s)}.${i}`, "clipLow", "clipHigh"],
  },
  {
    key: "gradient", stage: "loss", align: "action", signed: true, kind: result,
    sources: (s, i) => [`ratio.${i}`, `${weightRow(s)}.${i}`, "clipLow", "clipHigh", ...allMasks(s)],
  },
  { key: "probability", stage: "metric", align: "action", kind: result, sources: (_, i) => [`oldLogProb.${i}`] },
  {
    key: "entropy", stage: "metric", align: "action", kind: result,
    sources: (_, i) => [`probability.${i}`, `oldLogProb.${i}`],
  },
  {
    key: "weightedEntropy", stage: "metric", align: "action", kind: result,
    sources: (s, i) => [`probability.${i}`, `${weightRow(s)}.${i}`, `entropy.${i}`],
  },
];

/** @type {Map<string, Row>} */
export const rowByKey = new Map(rows.map((row) => [row.key, row]));

/**
 * @param {State} state
 * @returns {Row[]}
 */
export const visibleRows = (state) =>
  rows.filter((row) => (row.shown?.(state) ?? true) && (!state.only || state.only.includes(row.key)));

/**
 * The value row has one cell more than there are tokens: the state after the last one.
 * @param {Row} row
 * @param {State} state
 */
export const cellCount = (row, state) => state.tokens.length + (row.key === "value" ? 1 : 0);

/**
 * What a cell is computed from. A dropped slot is 0 whatever stands around it.
 * @param {Row} row
 * @param {State} state
 * @param {number} index
 * @returns {string[]}
 */
export function sourcesOf(row, state, index) {
  if (row.kind(state) !== "result") return row.sources(state, index);
  if (!state.mask[index]) return [`mask.${index}`];
  return [...new Set([...row.sources(state, index), `mask.${index}`])];
}

/**
 * Every cell that would change with `id`, near or far.
 * @param {State} state
 * @param {string} id
 * @returns {Set<string>}
 */
export function dependents(state, id) {
  /** @type {Map<string, string[]>} */
  const users = new Map();
  for (const row of rows) {
    for (const index of range(0, cellCount(row, state) - 1)) {
      for (const source of sourcesOf(row, state, index)) {
        users.set(source, [...(users.get(source) ?? []), `${row.key}.${index}`]);
      }
    }
  }
  /** @type {Set<string>} */
  const found = new Set();
  const open = [id];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const user of users.get(next) ?? []) {
      if (!found.has(user)) {
        found.add(user);
        open.push(user);
      }
    }
  }
  return found;
}

/**
 * @param {number} first
 * @param {number} last inclusive
 */
function range(first, last) {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => first + k);
}
