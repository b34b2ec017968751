// What the clip laboratory shows: one token, its advantage and ratio, and the losses laid over each other.

import { lossIds, losses } from "./losses.js";

/**
 * @typedef {object} State
 * @property {number} advantage
 * @property {number} q the token's probability when it was sampled
 * @property {number} ratio ρ of the token
 * @property {"linear" | "log"} scale
 * @property {number} most the largest ratio in the picture
 * @property {number} tokens of the sequence, this one included
 * @property {number} other the log-ratio of each of the others
 * @property {string[]} on the losses shown
 * @property {Record<string, number>} values of their parameters, by "loss.key"
 * @property {string} chosen the loss explained
 */

export const ranges = [2, 4, 10, 100];
/** @type {State["scale"][]} */
export const scales = ["linear", "log"];
export const LIMITS = { advantage: 100, q: [1e-6, 0.999], tokens: [1, 64], other: 5, ratio: 1e-3 };

/** @type {Record<string, number>} */
export const startValues = Object.fromEntries(
  losses.flatMap(({ id, parameters }) => parameters.map(({ key, start }) => [`${id}.${key}`, start])),
);

/** What an example shows, in the order of the page, and explains: the losses name their examples. @param {string} id */
const shown = (id) => ({
  on: losses.filter(({ examples }) => examples?.includes(id)).map((loss) => loss.id),
  chosen: losses.find(({ explainedIn }) => explainedIn?.includes(id))?.id ?? lossIds[0],
});

const overview = shown("overview");

/** @type {State} */
const plain = {
  advantage: 1,
  q: 0.1,
  ratio: 1.5,
  scale: "linear",
  most: 4,
  tokens: 2,
  other: 0,
  on: overview.on,
  values: startValues,
  chosen: overview.chosen,
};

/** @type {{ id: string, of: Partial<State> }[]} */
const examples = [
  { id: "dual", of: { advantage: -1, ratio: 5, most: 10 } },
  { id: "higher", of: { q: 0.02, ratio: 1.25, most: 2 } },
  { id: "keeps", of: { ratio: 2 } },
  { id: "soft", of: { tokens: 1, ratio: 1.8 } },
  { id: "outlier", of: { tokens: 8, ratio: 3 } },
  { id: "rare", of: { q: 0.01, ratio: 6, most: 10 } },
  { id: "bad", of: { advantage: -1, ratio: 0.5, most: 4, scale: "log" } },
];

/** @type {{ id: string, state: State }[]} */
export const presets = [
  { id: "overview", state: plain },
  ...examples.map(({ id, of }) => ({ id, state: { ...plain, ...of, ...shown(id) } })),
  { id: "all", state: { ...plain, on: lossIds } },
];

export const initial = () => presets[0].state;

/** @param {State} state */
export const presetOf = (state) =>
  presets.find((preset) => preset.state === state || JSON.stringify(preset.state) === JSON.stringify(state))?.id ?? "";

/** The largest ratio a token can have: its probability is at most 1. @param {number} q */
export const reach = (q) => 1 / q;

/**
 * Sets the old probability; the ratio stays possible.
 * @param {State} state
 * @param {number} q
 * @returns {State}
 */
export const withProbability = (state, q) => ({
  ...state,
  q,
  ratio: Math.min(state.ratio, Number((0.999 * reach(q)).toPrecision(6))),
});

/**
 * Adds or removes a loss; the one explained is always on.
 * @param {State} state
 * @param {string} id
 * @returns {State}
 */
export function withToggled(state, id) {
  const on = state.on.includes(id)
    ? state.on.filter((one) => one !== id)
    : lossIds.filter((one) => one === id || state.on.includes(one));
  if (on.length === 0) return state;
  const chosen = on.length > state.on.length ? id : on.includes(state.chosen) ? state.chosen : on[0];
  return { ...state, on, chosen };
}

/**
 * @param {unknown} data from outside
 * @returns {State | null}
 */
export function read(data) {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return null;
  const given = /** @type {Record<string, any>} */ (data);
  const number = (/** @type {keyof State} */ key, /** @type {number} */ least, /** @type {number} */ most) => {
    const value = given[key];
    return typeof value === "number" && value >= least && value <= most ? value : /** @type {number} */ (plain[key]);
  };
  const among = (/** @type {keyof State} */ key, /** @type {readonly unknown[]} */ options) =>
    /** @type {any} */ (options.includes(given[key]) ? given[key] : plain[key]);
  const wanted = Array.isArray(given.on) ? lossIds.filter((id) => given.on.includes(id)) : [];
  const on = wanted.length > 0 ? wanted : plain.on;
  const q = number("q", LIMITS.q[0], LIMITS.q[1]);
  const values = Object.fromEntries(
    losses.flatMap(({ id, parameters }) =>
      parameters.map(({ key, start, range: [least, most] }) => {
        const value = given.values?.[`${id}.${key}`];
        return [`${id}.${key}`, typeof value === "number" && value >= least && value <= most ? value : start];
      }),
    ),
  );
  const tokens = number("tokens", LIMITS.tokens[0], LIMITS.tokens[1]);
  return {
    advantage: number("advantage", -LIMITS.advantage, LIMITS.advantage),
    q,
    ratio: Math.min(number("ratio", LIMITS.ratio, 1e6), 0.999 * reach(q)),
    scale: among("scale", scales),
    most: among("most", ranges),
    tokens: Number.isInteger(tokens) ? tokens : plain.tokens,
    other: number("other", -LIMITS.other, LIMITS.other),
    on,
    values,
    chosen: on.includes(given.chosen) ? given.chosen : on[0],
  };
}
