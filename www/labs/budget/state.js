// What the page of the dual controllers remembers: every setting, the numbers written over the script,
// and where the run stands.

import { inputNames, scenarios } from "./world.js";

/**
 * @typedef {object} State
 * @property {Record<string, any>} settings see `defaults`
 * @property {Record<string, Record<string, number>>} edits by step: inputs that are not the script's
 * @property {number} at steps taken
 * @property {number} speed steps per second while it plays
 */

const ONE_OF = {
  scenario: scenarios,
  source: ["warm-up", "given"],
  schedule: ["reward-std-usage", "exponential", "plateau", "constant"],
  lambdaCap: ["on", "off"],
  whRange: ["off", "on"],
  budgetFollow: ["off", "on"],
  guard: ["on", "off"],
  controller: ["linear", "adaptive", "fixed"],
  klFollow: ["off", "on"],
};

/** @type {Record<string, string[]>} */
export const choices = ONE_OF;
export const speeds = [2, 5, 10, 30];

/** As group C1 of the experiment, over fewer steps. @type {Record<string, any>} */
export const defaults = {
  scenario: "falling",
  seed: 1,
  steps: 200,
  tokens: 4000,
  answerLambda: 30,
  answerBeta: 100,
  lambda: 0,
  lambdaRate: 0.02,
  lambdaCap: "on",
  lambdaMax: 10,
  whRange: "off",
  whLow: 0,
  whHigh: 1,
  source: "warm-up",
  b0: 100,
  warmUp: 10,
  rho: 0.45,
  budgetFollow: "off",
  budgetLength: 10,
  budgetFactor: 1.1,
  schedule: "reward-std-usage",
  share: 0.5,
  alpha: 1,
  decay: 0.95,
  minDelta: 0.001,
  patience: 10,
  kappa: 0.8,
  budgetMin: 0,
  guard: "on",
  controller: "linear",
  beta: 0.001,
  target: 0.02,
  betaRate: 0.01,
  betaMin: 1e-6,
  klFollow: "off",
  klLength: 10,
  klFactor: 1.1,
  horizon: 10000,
  samples: 64,
  gain: 1.2,
};

/** Settings that are the page's own, with the range it can work in; all others are checked by the library. */
const RANGES = {
  seed: [0, 4294967295],
  steps: [10, 1000],
  tokens: [1, 10000000],
  answerLambda: [0, 1e6],
  answerBeta: [0, 1e6],
  samples: [1, 1e6],
  gain: [0, 1e6],
};
const WHOLE = ["seed", "steps", "tokens", "samples", "warmUp", "budgetLength", "patience", "klLength"];

/**
 * @param {string} name
 * @param {number} value
 * @returns {boolean} whether the page can work with it
 */
export function fits(name, value) {
  const [low, high] = /** @type {Record<string, number[]>} */ (RANGES)[name] ?? [-Infinity, Infinity];
  return (
    Number.isFinite(value) && (!WHOLE.includes(name) || Number.isSafeInteger(value)) && value >= low && value <= high
  );
}

/** @param {string} name @returns {{ low: number, high: number, whole: boolean }} */
export const rangeOf = (name) => {
  const [low, high] = /** @type {Record<string, number[]>} */ (RANGES)[name] ?? [-Infinity, Infinity];
  return { low, high, whole: WHOLE.includes(name) };
};

/** @returns {State} */
export const initial = () => ({ settings: defaults, edits: {}, at: 80, speed: 10 });

/**
 * A state that came from outside: valid values are taken, the rest keeps its default.
 * @param {unknown} data
 * @returns {State | null}
 */
export function read(data) {
  if (!isRecord(data)) return null;
  const from = isRecord(data.settings) ? data.settings : {};
  const settings = Object.fromEntries(
    Object.entries(defaults).map(([name, fallback]) => {
      const value = from[name];
      if (choices[name]) return [name, choices[name].includes(String(value)) ? String(value) : fallback];
      return [name, typeof value === "number" && fits(name, value) ? value : fallback];
    }),
  );
  /** @type {State["edits"]} */
  const edits = {};
  for (const [step, inputs] of Object.entries(isRecord(data.edits) ? data.edits : {})) {
    if (!/^[1-9]\d{0,3}$/.test(step) || Number(step) > settings.steps || !isRecord(inputs)) continue;
    const kept = inputNames.filter((name) => typeof inputs[name] === "number" && Number.isFinite(inputs[name]));
    if (kept.length > 0) edits[step] = Object.fromEntries(kept.map((name) => [name, Number(inputs[name])]));
  }
  const at =
    typeof data.at === "number" && Number.isInteger(data.at) ? Math.min(settings.steps, Math.max(0, data.at)) : 0;
  return { settings, edits, at, speed: speeds.find((speed) => speed === data.speed) ?? 10 };
}

/** @param {unknown} data @returns {data is Record<string, unknown>} */
const isRecord = (data) => typeof data === "object" && data !== null && !Array.isArray(data);

/**
 * @param {State} state
 * @param {Record<string, any>} settings
 * @returns {State} a shorter run ends where it ends
 */
export function withSettings(state, settings) {
  const next = { ...state.settings, ...settings };
  const edits = Object.fromEntries(Object.entries(state.edits).filter(([step]) => Number(step) <= next.steps));
  return { ...state, settings: next, edits, at: Math.min(state.at, next.steps) };
}

/**
 * @param {State} state
 * @param {number} step
 * @param {string} name
 * @param {number | null} value null for what the script says
 * @returns {State}
 */
export function withInput(state, step, name, value) {
  const { [name]: _, ...others } = state.edits[step] ?? {};
  const inputs = value === null ? others : { ...others, [name]: value };
  const { [step]: __, ...edits } = state.edits;
  return { ...state, edits: Object.keys(inputs).length > 0 ? { ...edits, [step]: inputs } : edits };
}

/**
 * @param {Record<string, any>} s
 * @param {{ schedule?: "constant", guard?: "off" }} [instead]
 * @returns {import("../../engine.js").EntropyBudgetConfig}
 */
export function budgetConfig(s, instead = {}) {
  /** @type {Record<string, any>} */
  const schedules = {
    constant: { kind: "constant" },
    "reward-std-usage": { kind: "reward-std-usage", share: s.share, totalSteps: s.steps },
    exponential: { kind: "exponential", alpha: s.alpha, totalSteps: s.steps },
    plateau: {
      kind: "plateau",
      decay: s.decay,
      minDelta: s.minDelta,
      patience: s.patience,
      kappa: s.kappa,
      budgetMin: s.budgetMin,
    },
  };
  return {
    lambda: s.lambda,
    learningRate: s.lambdaRate,
    lambdaMax: s.lambdaCap === "on" ? s.lambdaMax : null,
    whRange: s.whRange === "on" ? { low: s.whLow, high: s.whHigh } : null,
    source: s.source === "given" ? { kind: "given", b0: s.b0 } : { kind: "warm-up", steps: s.warmUp, rho: s.rho },
    follow: s.budgetFollow === "on" ? { length: s.budgetLength, factor: s.budgetFactor } : null,
    schedule: schedules[instead.schedule ?? s.schedule],
    guard: instead.guard ?? s.guard,
  };
}

/** @param {Record<string, any>} s */
export const linearConfig = (s) => ({
  beta: s.beta,
  target: s.target,
  learningRate: s.betaRate,
  betaMin: s.betaMin,
  follow: s.klFollow === "on" ? { length: s.klLength, factor: s.klFactor } : null,
});
