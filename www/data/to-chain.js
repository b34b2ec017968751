// A response of the file as a state of the chain, where every number can be changed.

import * as chain from "../chain/state.js";
import { textOf } from "./flow.js";

/** The chain shows at most so many tokens. */
const MOST = 200;

/**
 * @param {import("./types.js").Loaded} data
 * @param {{ sequence: number, token: number }} at
 * @param {import("./state.js").Settings} settings
 * @returns {any} null where the chain cannot show it
 */
export function chainState(data, { sequence, token }, settings) {
  const start = data.offsets[sequence];
  const length = data.offsets[sequence + 1] - start;
  // of a long response the part around the token
  const first = Math.max(0, Math.min(token - MOST / 2, length - MOST));
  const slots = Array.from({ length: Math.min(MOST, length) }, (_, i) => start + first + i);
  const tokens = slots.map((slot) => textOf(data, slot) || String(slot - start + 1));
  const kept = slots.map((slot) => data.keep[slot] === 1);
  const { columns } = data;
  const column = (/** @type {string} */ key) => (columns[key] ? slots.map((slot) => columns[key][slot]) : undefined);
  const zeros = slots.map(() => 0);
  // the score on its tokens: as given, else on the last kept one
  const score = column("tokenScores") ?? zeros.map((_, i) => (data.scored[sequence] === 1 && i === kept.lastIndexOf(true) ? data.score[sequence] : 0));
  const oldLogProb = column("oldLogProbs") ?? column("logProbs");
  const refLogProb = column("refLogProbs");
  const value = column("values");
  const advantage = column("advantages") ?? column("gaeAdvantage") ?? column("groupAdvantage");
  const { gamma, lambda, beta, clipLow, clipHigh } = settings;
  const given = { score, oldLogProb, logProb: column("logProbs"), refLogProb, kl: column("kl"), value, advantage };
  const inputs = Object.fromEntries(Object.entries(given).filter(([, numbers]) => numbers !== undefined));
  const prompt = data.prompts[data.prompt[sequence]] ?? "";
  const choices = { kl: refLogProb ? settings.kl : "given", advantage: value ? "gae" : "given" };
  const parameters = { gamma, lambda, beta, clipLow, clipHigh };
  const roles = kept.map((keep) => (keep ? "policy" : "tool"));
  const { stateFromSequences } = /** @type {any} */ (chain);
  if (stateFromSequences) return stateFromSequences([{ prompt, tokens, roles, inputs }], { parameters, choices });
  return {
    preset: "one-plus-one", prompt, tokens, mask: kept, parameters,
    inputs: { score: zeros, oldLogProb: zeros, refLogProb: zeros, kl: zeros, advantage: zeros, logProb: zeros.map(() => null), ...inputs, value: [...(value ?? zeros), 0] },
    choices: { ...choices, spread: "sample", weight: "raw" },
  };
}
