// What is to be learned: for each prompt a word, written letter by letter; and what an answer is worth. No imports.

/** What ends an answer, where the reader lets answers end by themselves. */
export const STOP = "⏹";

export const LIMITS = { words: 6, letters: 8, vocabulary: 12 };

/**
 * @typedef {object} World
 * @property {string[]} letters the vocabulary; with {@link STOP} as the last one where answers end by themselves
 * @property {number[][]} words what each prompt wants, as indices into the letters, the end included
 * @property {number[]} lengths the most tokens that an answer to each prompt can have
 * @property {number} positions the most tokens that any answer can have
 * @property {number} contexts rows of logits for one position: 1, or one for every letter before it and one for none
 * @property {number} rows of the table of logits
 * @property {number} stop the index of the letter that ends an answer, −1 if there is none
 */

/** @param {string} text */
export const wordsOf = (text) => text.split(/\s+/u).filter((word) => word !== "");

/** @param {string} words @param {string} extra */
function lettersOf(words, extra) {
  return [...new Set(Array.from(wordsOf(words + " " + extra).join("")))].filter((letter) => letter !== STOP).sort();
}

/**
 * Why these words cannot be learned here; null if they can.
 * @param {string} words
 * @param {string} extra
 * @returns {"none" | "many" | "long" | "few" | "letters" | null}
 */
export function problemOf(words, extra) {
  const all = wordsOf(words);
  if (all.length === 0) return "none";
  if (all.length > LIMITS.words) return "many";
  if (all.some((word) => Array.from(word).length > LIMITS.letters)) return "long";
  const count = lettersOf(words, extra).length;
  if (count < 2) return "few";
  return count > LIMITS.vocabulary ? "letters" : null;
}

/**
 * @param {{ words: string, extra: string, stop: string, memory: string }} settings
 * @returns {World}
 */
export function worldOf({ words: text, extra, stop: ends, memory }) {
  const letters = lettersOf(text, extra);
  const stop = ends === "on" ? letters.push(STOP) - 1 : -1;
  const words = wordsOf(text).map((word) => [
    ...Array.from(word, (letter) => letters.indexOf(letter)).filter((index) => index >= 0),
    ...(stop >= 0 ? [stop] : []),
  ]);
  const longest = words.reduce((most, word) => Math.max(most, word.length), 0);
  // an answer that ends by itself may also be too long
  const positions = stop >= 0 ? longest + 1 : longest;
  const lengths = words.map((word) => (stop >= 0 ? positions : word.length));
  const contexts = memory === "previous" ? letters.length + 1 : 1;
  return { letters, words, lengths, positions, contexts, rows: words.length * positions * contexts, stop };
}

/**
 * The row of logits that an answer reads.
 * @param {World} world
 * @param {number} prompt
 * @param {number} position
 * @param {number} previous the letter before, −1 for none
 */
export const rowOf = ({ positions, contexts }, prompt, position, previous) =>
  (prompt * positions + position) * contexts + (contexts === 1 ? 0 : previous + 1);

export const rules = ["letters", "each", "whole", "count", "trap"];

/**
 * What an answer is worth, and how much of that on each token; the shares add up to the score where the rule pays
 * letter by letter, and stand on the last token otherwise.
 * @param {World} world
 * @param {string} rule
 * @param {number} prompt
 * @param {ArrayLike<number>} tokens of the answer, as long as it is
 * @returns {{ score: number, right: boolean, each: number[] | null }}
 */
export function judge({ words }, rule, prompt, tokens) {
  const word = words[prompt];
  const size = Math.max(word.length, tokens.length);
  const hits = Array.from(tokens, (token, i) => (i < word.length && token === word[i] ? 1 : 0));
  const right = tokens.length === word.length && hits.every((hit) => hit === 1);
  const share = (/** @type {number} */ count) => count / size;
  if (rule === "each") {
    const each = hits.map(share);
    return { score: share(hits.filter((hit) => hit === 1).length), right, each };
  }
  if (rule === "letters") return { score: share(hits.filter((hit) => hit === 1).length), right, each: null };
  if (rule === "whole") return { score: right ? 1 : 0, right, each: null };
  const same = share(Array.from(tokens).filter((token) => token === word[0]).length);
  if (rule === "count") return { score: same, right, each: null };
  return { score: right ? 1 : same / 2, right, each: null };
}
