// What to try: settings that show one thing each, and how many updates it takes to see it. What their words in the
// catalogue claim is tested.

/** @typedef {import("./state.js").State} State */

import { defaults, worldDefaults } from "./state.js";

/** @type {{ id: string, world?: Record<string, any>, settings?: Record<string, any>, updates: number }[]} */
export const tries = [
  { id: "start", updates: 80 },
  { id: "clip", settings: { clipLow: 0, clipHigh: 0 }, updates: 80 },
  { id: "collapse", settings: { rate: 1000 }, updates: 80 },
  { id: "klOne", settings: { klPlace: "loss", klKind: "k1", beta: 0.5 }, updates: 80 },
  { id: "klThree", settings: { klPlace: "loss", klKind: "k3", beta: 0.5 }, updates: 80 },
  { id: "pairs", settings: { group: 2 }, updates: 150 },
  { id: "sparse", settings: { rule: "whole", rate: 6 }, updates: 300 },
  { id: "discount", settings: { estimator: "gae", gamma: 0.4, lambda: 1, rate: 6 }, updates: 150 },
  { id: "trap", world: { words: "tok", extra: "en" }, settings: { rule: "trap", group: 16, rate: 4 }, updates: 150 },
  {
    id: "escape",
    world: { words: "tok", extra: "en" },
    settings: { rule: "trap", group: 16, rate: 8, estimator: "dr-grpo", entropy: 0.1 },
    updates: 150,
  },
];

/**
 * @param {State} state
 * @param {string} id
 * @returns {State} from the start
 */
export function tried(state, id) {
  const found = tries.find((one) => one.id === id) ?? tries[0];
  return {
    ...state,
    world: { ...worldDefaults, ...found.world },
    phases: [{ from: 0, settings: { ...defaults, ...found.settings } }],
    live: false,
    at: 0,
    prompt: 0,
  };
}

/** Which of them a state shows, "" for none. @param {State} state */
export const triedIn = ({ world, phases }) =>
  tries.find(
    (one) =>
      phases.length === 1 &&
      JSON.stringify(world) === JSON.stringify({ ...worldDefaults, ...one.world }) &&
      JSON.stringify(phases[0].settings) === JSON.stringify({ ...defaults, ...one.settings }),
  )?.id ?? "";
