// What the user can change in the laboratory of logits: a small vocabulary, how many more entries there are,
// the temperature.

import { whole } from "../cells.js";

/** @typedef {{ text: string, logit: number }} Entry */

/**
 * @typedef {object} State
 * @property {Entry[]} entries
 * @property {number} chosen which entry was sampled
 * @property {number} temperature
 * @property {{ count: number, logit: number }} rest further entries, all with the same logit
 */

export const LIMITS = /** @type {Record<string, [number, number]>} */ ({ entries: [2, 64], rest: [0, 10000] });
export const LONGEST = 24;

/**
 * @param {[string, number][]} entries
 * @param {Partial<State>} [more]
 * @returns {State}
 */
const state = (entries, more = {}) => ({
  entries: entries.map(([text, logit]) => ({ text, logit })),
  chosen: 0,
  temperature: 1,
  rest: { count: 0, logit: 0 },
  ...more,
});

const letters = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => String.fromCharCode(97 + i));

/** @type {Record<string, () => State>} */
export const presets = {
  "six": () =>
    state([
      ["2", 4],
      ["3", 2.5],
      ["11", 1.5],
      ["two", 1],
      ["。", 0],
      ["?", -1],
    ]),
  "uniform": () => state(letters(8).map((text) => [text, 0])),
  "one-hot": () =>
    state([
      ["2", 30],
      ["3", 0],
      ["11", 0],
      ["two", 0],
    ]),
  "two-modes": () =>
    state(
      [
        ["yes", 3],
        ["no", 3],
        ["maybe", -2],
        ["so", -2],
        ["?", -2],
      ],
      { chosen: 1 },
    ),
  "masked": () =>
    state([
      ["2", 2],
      ["3", 1],
      ["11", 0],
      ["[pad]", -Infinity],
      ["[unused]", -Infinity],
    ]),
  "thousand": () =>
    state(
      letters(4).map((text) => [text, 0]),
      { rest: { count: 996, logit: 0 } },
    ),
  "long-tail": () =>
    state(
      [
        ["2", 8],
        ["3", 6],
        ["11", 4],
      ],
      { chosen: 2, rest: { count: 5000, logit: -1 } },
    ),
};

/** @param {State} given */
export const withMore = (given) => ({
  ...given,
  entries: [...given.entries, { text: String(given.entries.length + 1), logit: 0 }],
});

/** @param {State} given */
export const withLess = (given) => ({
  ...given,
  entries: given.entries.slice(0, -1),
  chosen: Math.min(given.chosen, given.entries.length - 2),
});

/**
 * @param {State} given
 * @param {number} index
 * @param {Partial<Entry>} changes
 * @returns {State}
 */
export const withEntry = (given, index, changes) => ({
  ...given,
  entries: given.entries.map((entry, i) => (i === index ? { ...entry, ...changes } : entry)),
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
    !Array.isArray(given.entries) ||
    !whole(given.entries.length, LIMITS.entries)
  )
    return null;
  const fits = (/** @type {any} */ entry) =>
    typeof entry?.text === "string" && entry.text.length <= LONGEST && typeof entry.logit === "number";
  if (!given.entries.every(fits)) return null;
  const { rest, chosen, temperature } = given;
  return {
    entries: given.entries.map((/** @type {Entry} */ { text, logit }) => ({ text, logit })),
    chosen: whole(chosen, [0, given.entries.length - 1]) ? chosen : 0,
    temperature: Number.isFinite(temperature) && temperature > 0 ? temperature : 1,
    rest: {
      count: whole(rest?.count, LIMITS.rest) ? rest.count : 0,
      logit: typeof rest?.logit === "number" ? rest.logit : 0,
    },
  };
}
