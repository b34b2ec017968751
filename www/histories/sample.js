// Two invented histories, so that there is something to look at: a questioner that stays curious,
// a solver that collapses.

export const sampleNames = ["Questioner", "Solver"];

const STEPS = 240;

/**
 * @param {string} name
 * @returns {{ steps: Float64Array, entropies: Float64Array }}
 */
export function samplePoints(name) {
  let seed = name === "Solver" ? 7 : 3;
  const noise = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32 - 0.5;
  };
  const shape =
    name === "Solver"
      ? (/** @type {number} */ s) => 0.35 + 4.1 / (1 + Math.exp(9 * (s - 0.42)))
      : (/** @type {number} */ s) => 2.9 + 1.7 * Math.exp(-3 * s);
  const steps = Float64Array.from({ length: STEPS }, (_, i) => i + 1);
  // four decimals, as a trainer would print them
  return { steps, entropies: steps.map((step) => Number((shape(step / STEPS) * (1 + 0.12 * noise())).toFixed(4))) };
}
