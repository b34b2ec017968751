// A toy instead of a training run: a scripted series of measurements that the controllers react to. Nothing
// here is a formula of the library; its numbers are inputs, rounded to six digits so that each of them can be typed.

export const scenarios = ["steady", "falling", "collapse", "noisy", "drift", "plateau"];

/** What is measured in a step; the last three are only logged, no controller reads them. */
export const inputNames = [
  "whSum",
  "tokenCount",
  "kl",
  "rewardStd",
  "rewardSumMean",
  "entropyMean",
  "covarianceMean",
  "correlation",
];

/**
 * @typedef {object} Shape a scenario at one moment
 * @property {number} wh per token, before the policy answers to λ
 * @property {number} kl per token, before the policy answers to β
 * @property {number} std of the rewards
 * @property {number} reward mean of the summed rewards
 * @property {number} rough how large the noise is, as a share
 */

/** @type {Record<string, (s: number) => Shape>} `s` goes from 0 to 1 over the run */
const shapes = {
  steady: (s) => ({ wh: 0.05, kl: 0.03, std: 0.45, reward: 0.3 + 0.3 * s, rough: 0.05 }),
  falling: (s) => ({
    wh: 0.08 * Math.exp(-2.6 * s),
    kl: 0.01 + 0.04 * s,
    std: 0.45 - 0.2 * s,
    reward: 0.2 + 0.6 * s,
    rough: 0.05,
  }),
  collapse: (s) => {
    const gone = s > 0.4 && s <= 0.85;
    const wh = s <= 0.4 ? 0.05 : gone ? Math.max(2e-5, 0.05 * Math.exp(-40 * (s - 0.4))) : 0.02;
    return {
      wh,
      kl: gone ? 0.15 : 0.03,
      std: gone ? 0.02 : 0.45,
      reward: s <= 0.4 ? 0.3 + 0.2 * s : gone ? 0.2 : 0.3,
      rough: 0.05,
    };
  },
  noisy: (s) => ({ wh: 0.05, kl: 0.03, std: 0.25, reward: 0.3 + 0.3 * s, rough: 0.6 }),
  drift: (s) => ({ wh: 0.05, kl: 0.005 + 0.12 * s, std: 0.4, reward: 0.3 + 0.2 * s, rough: 0.05 }),
  plateau: (s) => ({ wh: 0.05, kl: 0.03, std: 0.4, reward: 0.2 + 0.5 * Math.min(1, s / 0.35), rough: 0.02 }),
};

/**
 * A number in [−1, 1) that depends only on its three arguments, so that any step can be computed first.
 * @param {number} seed
 * @param {number} step
 * @param {number} channel
 */
function noise(seed, step, channel) {
  let h =
    Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(step + 1, 0xc2b2ae35) ^ Math.imul(channel + 1, 0x27d4eb2f);
  let sum = 0;
  for (let round = 0; round < 2; round += 1) {
    h = Math.imul(h ^ (h >>> 16), 0x45d9f3b);
    h = Math.imul(h ^ (h >>> 13), 0x119de1f3);
    h ^= h >>> 16;
    sum += (h >>> 0) / 2 ** 32;
  }
  return sum - 1;
}

/** @param {number} value */
const six = (value) => Number(value.toPrecision(6));

/**
 * What the world shows in a step, given the prices of the step before: with more λ the policy spends less,
 * with more β it stays closer.
 * @param {{ scenario: string, seed: number, steps: number, tokens: number, answerLambda: number,
 *   answerBeta: number }} settings
 * @param {number} step from 1
 * @param {{ lambda: number, beta: number }} prices
 * @returns {Record<string, number>}
 */
export function measure(settings, step, { lambda, beta }) {
  const shape = shapes[settings.scenario](step / settings.steps);
  const noisy = (/** @type {number} */ channel) => noise(settings.seed, step, channel) * shape.rough;
  const tokenCount = Math.max(1, Math.round(settings.tokens * (1 + noise(settings.seed, step, 0) * 0.05)));
  const wh = (shape.wh * (1 + noisy(1))) / (1 + settings.answerLambda * lambda);
  return {
    whSum: six(wh * tokenCount),
    tokenCount,
    kl: six((shape.kl * (1 + noisy(2))) / (1 + settings.answerBeta * beta)),
    rewardStd: six(Math.max(0, shape.std * (1 + noisy(3)))),
    rewardSumMean: six(shape.reward * (1 + noisy(4) * 0.5)),
    // −p log p is at most 1/e
    entropyMean: six(Math.min(0.36, 0.9 * Math.sqrt(wh))),
    covarianceMean: six(0.02 * (1 + noisy(5))),
    correlation: six(0.2 * (1 + noisy(6))),
  };
}
