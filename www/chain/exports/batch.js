// A state as flat arrays, one sequence after the other, the way the library and NumPy take it.

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */

/**
 * @typedef {object} Flat
 * @property {number[]} offsets where each sequence begins, and where the last one ends
 * @property {boolean[]} mask
 * @property {number[]} groups which prompt each sequence answers, numbered from 0
 * @property {Record<string, number[]>} rows the inputs; `logProb` with what it follows put in
 * @property {number[]} bootstrap the value after each sequence
 */

/** Rows that go into a formula as they stand. */
const INPUTS = /** @type {const} */ (["score", "oldLogProb", "refLogProb", "kl", "attention", "advantage"]);

/**
 * @param {State} state
 * @returns {Flat}
 */
export function flatten({ sequences }) {
  const offsets = [0];
  for (const { tokens } of sequences) offsets.push(offsets[offsets.length - 1] + tokens.length);
  const order = [...new Set(sequences.map(({ group }) => group))];
  /** @type {Record<string, number[]>} */
  const rows = Object.fromEntries(INPUTS.map((key) => [key, sequences.flatMap(({ inputs }) => inputs[key])]));
  rows.value = sequences.flatMap(({ inputs, tokens }) => inputs.value.slice(0, tokens.length));
  rows.logProb = sequences.flatMap(({ inputs }) => inputs.logProb.map((own, i) => own ?? inputs.oldLogProb[i]));
  return {
    offsets,
    mask: sequences.flatMap(({ roles }) => roles.map((role) => role === "policy")),
    groups: sequences.map(({ group }) => order.indexOf(group)),
    rows,
    bootstrap: sequences.map(({ inputs, tokens }) => inputs.value[tokens.length]),
  };
}

/** @param {State} state */
export const klInLoss = ({ choices }) => choices.placement === "loss" || choices.placement === "loss-weighted";

/**
 * Whether scores are held within bounds, as some frameworks do, and one of them is beyond.
 * @param {Flat} flat
 * @param {number} bound
 */
export const isClipped = (flat, bound) => flat.rows.score.some((score, i) => flat.mask[i] && Math.abs(score) > bound);

/**
 * Whether the score of a sequence counts its dropped slots too.
 * @param {Flat} flat
 * @param {Result} result
 */
export const countsAll = (flat, { settings }) => settings.scoreSlots === "all" && !flat.mask.every(Boolean);

/**
 * Text from outside, for a comment: on one line, without characters that an editor or a compiler could take for more
 * than letters.
 * @param {string} text
 */
export const remark = (text) =>
  text.replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (letter) => `\\u{${/** @type {number} */ (letter.codePointAt(0)).toString(16)}}`,
  );

/**
 * The tokens of a sequence, for a comment.
 * @param {import("../state.js").Sequence} sequence
 */
export const tokensOf = ({ tokens }) => remark(tokens.join(" ")).slice(0, 160);
