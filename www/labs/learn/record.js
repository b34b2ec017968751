// A run as a trainer would record it: metrics as JSON Lines, and the answers of some updates as a file of rollouts.

import { Run } from "./run.js";
import { METRICS } from "./update.js";

/** The keys under which the metrics are logged. @type {Record<typeof METRICS[number], string>} */
const KEYS = {
  reward: "critic/score/mean",
  solved: "val/solved",
  entropy: "actor/entropy",
  kl: "actor/kl_to_start",
  klEstimate: "actor/kl_estimate",
  clipped: "actor/pg_clipfrac",
  tied: "critic/tied_groups",
  loss: "actor/loss",
  gradient: "actor/grad_norm",
  length: "response_length/mean",
};

/** @param {Run} run */
export const metricsLines = (run) =>
  run.shown
    .map((metrics, i) =>
      JSON.stringify({ step: i + 1, ...Object.fromEntries(METRICS.map((key) => [KEYS[key], metrics[key]])) }),
    )
    .map((line) => `${line}\n`)
    .join("");

/**
 * The answers of the present update, one line each.
 * @param {Run} run
 */
export function rolloutLines({ samples, world, at }) {
  if (!samples) return "";
  const { positions, letters } = world;
  const count = samples.scores.length;
  return Array.from({ length: count }, (_, answer) => {
    const prompt = (answer - (answer % samples.group)) / samples.group;
    const slots = Array.from({ length: positions }, (__, t) => answer * positions + t).filter(
      (i) => samples.mask[i] === 1,
    );
    const of = (/** @type {ArrayLike<number>} */ values) => slots.map((slot) => values[slot]);
    return JSON.stringify({
      step: at,
      prompt: world.words[prompt].map((v) => letters[v]).join(""),
      score: samples.scores[answer],
      response_tokens: slots.map((slot) => letters[samples.tokens[slot]]),
      old_log_probs: of(samples.logProbs),
      log_probs: of(samples.newLogProbs),
      ref_log_probs: of(samples.refLogProbs),
      token_level_scores: of(samples.taskRewards),
      entropies: of(samples.entropies),
      advantages: of(samples.advantages),
    });
  })
    .map((line) => `${line}\n`)
    .join("");
}

/** Updates whose answers are kept, beside the first and the last. */
const KEPT = 10;

/**
 * A whole run made again, with its answers at some updates.
 * @param {import("../../engine.js").Library} library
 * @param {import("./state.js").State} state
 * @param {number} at
 * @returns {{ metrics: string, rollouts: string }}
 */
export function recorded(library, { world, phases }, at) {
  const run = new Run(library, world, phases);
  let rollouts = "";
  for (let k = 0; k <= KEPT; k += 1) {
    const goal = 1 + Math.floor(((at - 1) * k) / KEPT);
    if (goal === run.at) continue;
    run.goTo(goal);
    rollouts += rolloutLines(run);
  }
  const metrics = metricsLines(run);
  run.free();
  return { metrics, rollouts };
}
