// The runs that the page opens with: two groups of the experiment on two-digit addition, two seeds each, every 20th
// step. Recorded once; the file is loaded when it is shown.

import { dataOf, EXAMPLE, examples, keep } from "./state.js";

/**
 * @typedef {{ label: string, steps: number[], columns: Record<string, (number | null)[]>, rollouts: string }} Recorded
 */

/** @type {Promise<void> | null} */
let loading = null;

/**
 * Loads them, if a state shows one that is not there yet.
 * @param {import("./state.js").State} state
 * @returns {Promise<void> | null} null if there is nothing to load
 */
export function loadExample(state) {
  if (!state.runs.some((run) => run.data.startsWith(EXAMPLE) && !dataOf(run))) return null;
  loading ??= load();
  return loading;
}

async function load() {
  try {
    const answer = await fetch(new URL("./example.json", import.meta.url));
    if (!answer.ok) throw new Error(`example.json: ${answer.status}`);
    const runs = /** @type {Recorded[]} */ (await answer.json());
    for (const { label, steps, columns, rollouts } of runs) {
      const metrics = {
        steps: Float64Array.from(steps),
        keys: Object.keys(columns),
        columns: Object.values(columns).map((column) => Float64Array.from(column, (value) => value ?? NaN)),
      };
      const kept = rollouts === "" ? null : { name: "rollouts.jsonl", data: rollouts };
      if (examples.includes(label)) keep({ metrics, rollouts: kept }, EXAMPLE + label);
    }
  } finally {
    // without a network it may be there later
    loading = null;
  }
}
