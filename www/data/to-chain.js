// Responses of the file as a state of the chain, where every number can be changed.

import { stateFromSequences } from "../chain/state.js";
import { textOf } from "./flow.js";

/** @typedef {import("./types.js").Loaded} Loaded */

/** The largest numbers of tokens per sequence and of sequences that the chain shows. */
const MOST_TOKENS = 200;
const MOST_SEQUENCES = 16;

/** The samples of the same prompt, in the same step, that have tokens. @param {Loaded} data @param {number} sequence */
export function samplesOf(data, sequence) {
  const found = [];
  const group = data.group[sequence];
  if (data.groupNames[group] === undefined) return [sequence];
  for (let other = 0; other < data.sequences; other += 1) {
    if (
      data.group[other] === group &&
      Object.is(data.step[other], data.step[sequence]) &&
      data.offsets[other + 1] > data.offsets[other]
    )
      found.push(other);
  }
  return found;
}

/** Whether the chain can show them all. @param {Loaded} data @param {number[]} sequences */
export const fitsChain = (data, sequences) =>
  sequences.length <= MOST_SEQUENCES &&
  sequences.every((sequence) => data.offsets[sequence + 1] - data.offsets[sequence] <= MOST_TOKENS);

/**
 * @param {Loaded} data
 * @param {number} sequence
 * @param {number} token of a long response the part around it
 */
function part(data, sequence, token) {
  const start = data.offsets[sequence];
  const length = data.offsets[sequence + 1] - start;
  const first = Math.max(0, Math.min(token - MOST_TOKENS / 2, length - MOST_TOKENS));
  const slots = Array.from({ length: Math.min(MOST_TOKENS, length) }, (_, i) => start + first + i);
  const tokens = slots.map((slot) => textOf(data, slot) || String(slot - start + 1));
  const kept = slots.map((slot) => data.keep[slot] === 1);
  const last = kept.lastIndexOf(true);
  const { columns } = data;
  const column = (/** @type {string} */ key) => (columns[key] ? slots.map((slot) => columns[key][slot]) : undefined);
  // the score on its tokens: as given, else on the last kept one
  const score =
    column("tokenScores") ??
    slots.map((_, i) => (data.scored[sequence] === 1 && i === last ? data.score[sequence] : 0));
  const given = {
    score,
    oldLogProb: column("oldLogProbs") ?? column("logProbs"),
    logProb: column("logProbs"),
    refLogProb: column("refLogProbs"),
    kl: column("kl"),
    value: column("values"),
    advantage: column("advantages") ?? column("gaeAdvantage") ?? column("groupAdvantage"),
  };
  const inputs = Object.fromEntries(Object.entries(given).filter(([, numbers]) => numbers !== undefined));
  const roles = kept.map((keep, i) => (keep ? "policy" : i > last ? "padding" : "tool"));
  const prompt = (data.prompts[data.prompt[sequence]] ?? "").slice(0, 180);
  // of a long response, which of its tokens these are
  const cut = slots.length < length ? ` [${first + 1}–${first + slots.length}]` : "";
  return { first, sequence: { group: 0, prompt: prompt + cut, tokens, roles, inputs } };
}

/**
 * @param {Loaded} data
 * @param {number[]} sequences all of one prompt
 * @param {number} token where a long one is cut around
 * @param {import("./state.js").Settings} settings
 * @returns {{ state: import("../chain/state.js").State, place: import("../chain/edit/edits.js").Place } | null} with
 *   the cell of that token; null where the chain cannot show it
 */
export function chainState(data, sequences, token, settings) {
  const parts = sequences.map((sequence) => part(data, sequence, token));
  const { gamma, lambda, beta, clipLow, clipHigh } = settings;
  const parameters = { gamma, lambda, beta, clipLow, clipHigh };
  /** @type {Partial<import("../chain/state.js").Choices>} */
  const choices = {
    kl: data.columns.refLogProbs ? settings.kl : "given",
    advantage: data.columns.values ? "gae" : "given",
    weight: "raw",
  };
  const state = stateFromSequences(
    parts.map((one) => one.sequence),
    { parameters, choices },
  );
  return state && { state, place: { row: "token", sequence: 0, index: Math.max(0, token - parts[0].first) } };
}
