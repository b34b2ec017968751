// What the laboratory that learns remembers: the world, the settings from each update on, and where the run stands.
// Everything else follows from these, bit for bit.

import { problemOf, rules, wordsOf } from "./world.js";

/** @typedef {Record<string, any>} Settings see `defaults` */

/**
 * @typedef {object} State
 * @property {Record<string, any>} world see `worldDefaults`
 * @property {{ from: number, settings: Settings }[]} phases from which update on which settings hold; the first from 0
 * @property {boolean} live whether a change of a setting holds from the present update on, not from the start
 * @property {number} at updates made
 * @property {number} speed updates a second while it plays; 0 for as many as there is time for
 * @property {number} prompt whose answers are shown
 * @property {string} topic what is explained
 */

/** @type {Record<string, string[]>} */
export const choices = {
  stop: ["off", "on"],
  memory: ["position", "previous"],
  rule: rules,
  estimator: ["grpo", "dr-grpo", "rloo", "max-rl", "rf", "rf-baseline", "gae", "returns"],
  loss: ["ppo", "dual", "gspo", "cispo", "sapo", "surrogate", "reinforce"],
  aggregate: ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"],
  klPlace: ["none", "loss", "reward"],
  klKind: ["k1", "k2", "k3", "abs"],
};

/** Beside these only texts: `words` and `extra`. @type {Record<string, any>} */
export const worldDefaults = {
  words: "note tone knot knee",
  extra: "",
  stop: "off",
  memory: "position",
  seed: 1,
  spread: 1,
};

/** @type {Settings} */
export const defaults = {
  rule: "letters",
  group: 8,
  estimator: "grpo",
  gamma: 1,
  lambda: 0.95,
  criticRate: 0.5,
  loss: "ppo",
  clipLow: 0.2,
  clipHigh: 0.2,
  aggregate: "token-mean",
  klPlace: "none",
  klKind: "k3",
  beta: 0.1,
  entropy: 0,
  rate: 3,
  epochs: 4,
};

/** @type {Record<string, [number, number]>} */
const RANGES = {
  seed: [0, 4294967295],
  spread: [0, 10],
  group: [1, 64],
  gamma: [0, 1],
  lambda: [0, 1],
  criticRate: [0, 1],
  clipLow: [0, 0.99],
  clipHigh: [0, 10],
  beta: [0, 100],
  entropy: [-10, 10],
  rate: [0, 1000],
  epochs: [1, 16],
};
const WHOLE = ["seed", "group", "epochs"];

export const MOST_UPDATES = 5000;
const MOST_PHASES = 20;
const LONGEST_TEXT = 80;
export const speeds = [1, 5, 20, 60, 200, 0];
export const topics = ["sample", "reward", "kl", "advantage", "loss", "gradient", "entropy", "clip"];

/** @param {string} name @param {number} value */
export function fits(name, value) {
  const [low, high] = RANGES[name];
  return Number.isFinite(value) && (!WHOLE.includes(name) || Number.isInteger(value)) && value >= low && value <= high;
}

/** @param {string} name */
export const rangeOf = (name) => ({ low: RANGES[name][0], high: RANGES[name][1], whole: WHOLE.includes(name) });

/** @returns {State} */
export const initial = () => ({
  world: worldDefaults,
  phases: [{ from: 0, settings: defaults }],
  live: false,
  at: 0,
  speed: 20,
  prompt: 0,
  topic: "sample",
});

/**
 * The settings that made an update.
 * @param {State["phases"]} phases
 * @param {number} update from 1
 * @returns {Settings}
 */
export const settingsOf = (phases, update) =>
  /** @type {{ settings: Settings }} */ (phases.findLast(({ from }) => from < update) ?? phases[0]).settings;

/** Those that the fields show: of the next update. @param {State} state */
export const present = ({ phases, at }) => settingsOf(phases, at + 1);

/**
 * @param {State} state
 * @param {Partial<Settings>} changes
 * @returns {State}
 */
export function withSettings(state, changes) {
  const { phases, live, at } = state;
  // from the start: in every phase, because what is not changed stays as it was
  if (!live || at === 0)
    return {
      ...state,
      phases: merged(phases.map(({ from, settings }) => ({ from, settings: { ...settings, ...changes } }))),
    };
  const before = phases.filter(({ from }) => from < at);
  const next = { from: at, settings: { ...settingsOf(phases, at + 1), ...changes } };
  return { ...state, phases: merged([...before.slice(0, MOST_PHASES - 1), next]) };
}

/** Without phases that change nothing. @param {State["phases"]} phases */
const merged = (phases) =>
  phases.filter(({ settings }, i) => i === 0 || JSON.stringify(settings) !== JSON.stringify(phases[i - 1].settings));

/**
 * @param {State} state
 * @param {Partial<State["world"]>} changes
 * @returns {State} another world is learned from the start
 */
export function withWorld(state, changes) {
  const world = { ...state.world, ...changes };
  return { ...state, world, prompt: Math.min(state.prompt, wordsOf(world.words).length - 1) };
}

/**
 * A state that came from outside: valid values are taken, the rest keeps its default.
 * @param {unknown} data
 * @returns {State | null}
 */
export function read(data) {
  if (!isRecord(data)) return null;
  const world = taken(isRecord(data.world) ? data.world : {}, worldDefaults);
  if (problemOf(world.words, world.extra) !== null)
    Object.assign(world, { words: worldDefaults.words, extra: worldDefaults.extra });
  const given = Array.isArray(data.phases) ? data.phases.slice(0, MOST_PHASES).filter(isRecord) : [];
  const phases = given.map((phase, i) => ({
    from: i === 0 ? 0 : whole(phase.from, 0, MOST_UPDATES),
    settings: taken(isRecord(phase.settings) ? phase.settings : {}, defaults),
  }));
  const rising = phases.filter(({ from }, i) => i === 0 || from > phases[i - 1].from);
  return {
    world,
    phases: rising.length > 0 ? rising : [{ from: 0, settings: defaults }],
    live: data.live === true,
    at: whole(data.at, 0, MOST_UPDATES),
    speed: speeds.find((speed) => speed === data.speed) ?? 20,
    prompt: whole(data.prompt, 0, wordsOf(world.words).length - 1),
    topic: topics.find((topic) => topic === data.topic) ?? "sample",
  };
}

/**
 * @param {Record<string, unknown>} from
 * @param {Record<string, any>} fallback
 * @returns {Record<string, any>}
 */
const taken = (from, fallback) =>
  Object.fromEntries(
    Object.entries(fallback).map(([name, value]) => {
      const found = from[name];
      if (choices[name]) return [name, choices[name].includes(String(found)) ? String(found) : value];
      if (typeof value === "string")
        return [name, typeof found === "string" && found.length <= LONGEST_TEXT ? found : value];
      return [name, typeof found === "number" && fits(name, found) ? found : value];
    }),
  );

/** @param {unknown} value @param {number} low @param {number} high */
const whole = (value, low, high) =>
  typeof value === "number" && Number.isInteger(value) ? Math.min(high, Math.max(low, value)) : low;

/** @param {unknown} data @returns {data is Record<string, unknown>} */
const isRecord = (data) => typeof data === "object" && data !== null && !Array.isArray(data);
