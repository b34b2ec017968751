// All numbers of a state, from the library. A refused step leaves its rows empty and is reported; the others still stand.

import { weightRow } from "./rows.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {{ step: string, code: string, message: string }} Refusal */

/**
 * @typedef {object} Result
 * @property {Record<string, ArrayLike<number> | undefined>} rows
 * @property {Record<string, number | undefined>} summary
 * @property {Refusal[]} refusals
 */

/**
 * @param {any} library the WebAssembly module
 * @param {State} state
 * @returns {Result}
 */
export function compute(library, state) {
  const { inputs, parameters, choices, tokens } = state;
  const count = tokens.length;
  const batch = library.Batch.padded(1, count, Uint8Array.from(state.mask, Number));
  /** @type {Result} */
  const result = { rows: {}, summary: {}, refusals: [] };
  const { rows, summary } = result;

  /**
   * @param {string} name
   * @param {Record<string, unknown>} needs what the step reads; it is skipped if something of it is missing
   * @param {() => void} run
   */
  const step = (name, needs, run) => {
    if (Object.values(needs).some((need) => need === undefined)) return;
    try {
      run();
    } catch (error) {
      const refused = /** @type {{ name?: string, code?: string, message?: string }} */ (error);
      result.refusals.push({ step: name, code: refused.code ?? "unknown", message: refused.message ?? String(error) });
    }
  };

  const values = Float64Array.from(inputs.value.slice(0, count));
  const bootstrap = Float64Array.of(inputs.value[count]);
  const oldLogProbs = Float64Array.from(inputs.oldLogProb);
  const logProbs = Float64Array.from(inputs.logProb, (own, i) => own ?? inputs.oldLogProb[i]);
  const scores = Float64Array.from(inputs.score);
  Object.assign(rows, { score: scores, oldLogProb: oldLogProbs, refLogProb: Float64Array.from(inputs.refLogProb) });
  Object.assign(rows, { value: Float64Array.from(inputs.value), logProb: logProbs });

  if (choices.kl === "given") rows.kl = Float64Array.from(inputs.kl);
  else {
    step("kl", {}, () => {
      const refLogProbs = rows.refLogProb;
      rows.kl = library.klEstimateF64(batch, { logProbs: oldLogProbs, refLogProbs }, { estimator: choices.kl });
    });
  }
  step("reward", { kl: rows.kl }, () => {
    rows.reward = library.shapeRewardsF64(batch, { scores, kl: rows.kl }, parameters.beta);
  });

  const { gamma, lambda } = parameters;
  if (choices.advantage === "given") {
    const advantage = Float64Array.from(inputs.advantage);
    rows.advantage = advantage;
    // A + V as the library's `score − β·kl` with β = −1: the page itself adds nothing
    step("return", {}, () => {
      rows.return = library.shapeRewardsF64(batch, { scores: advantage, kl: values }, -1);
    });
  } else {
    step("advantage", { reward: rows.reward }, () => {
      const input = { rewards: rows.reward, values, bootstrap };
      // with λ = 0 the estimate is the TD error itself
      rows.delta = library.gaeF64(batch, input, { gamma, lambda: 0 }).advantages;
      const { advantages, returns } = library.gaeF64(batch, input, { gamma, lambda });
      rows.advantage = advantages;
      rows.return = returns;
    });
  }
  step("discountedReturn", { reward: rows.reward }, () => {
    rows.discountedReturn = library.discountedReturnsF64(batch, { rewards: rows.reward, bootstrap }, { gamma });
  });
  step("whitened", { advantage: rows.advantage }, () => {
    summary.mean = library.meanF64(batch, rows.advantage);
    summary.variance = library.varianceF64(batch, rows.advantage, { spread: choices.spread });
    summary.deviation = library.sqrtF64(summary.variance);
    rows.whitened = library.whitenF64(batch, rows.advantage, { spread: choices.spread });
  });

  const advantages = rows[weightRow(state)];
  step("ratio", {}, () => {
    rows.ratio = exponentials(library, batch, logProbs, oldLogProbs);
    rows.probability = exponentials(library, batch, oldLogProbs, new Float64Array(count));
  });
  const { clipLow, clipHigh } = parameters;
  step("loss", { advantages }, () => {
    const input = { logProbs, oldLogProbs, advantages };
    const outcome = library.ppoClipF64(batch, input, { clipLow, clipHigh });
    rows.gradient = outcome.grad;
    summary.loss = outcome.loss;
    summary.clipFraction = outcome.clipFraction;
    rows.lossTerm = perToken(library, state, (only) => library.ppoClipF64(only, input, { clipLow, clipHigh }).loss);
  });
  step("analysis", { advantages, reward: rows.reward }, () => {
    const input = { oldLogProbs, advantages, rewards: rows.reward };
    rows.entropy = perToken(library, state, (only) => library.analysisF64(only, input)["analysis/entropy_per_token_mean"]);
    rows.weightedEntropy = perToken(library, state, (only) => library.analysisF64(only, input)["analysis/wH_sum"]);
    const numbers = library.analysisF64(batch, input);
    summary.entropyPerTokenMean = numbers["analysis/entropy_per_token_mean"];
    summary.covarianceMean = numbers["analysis/covariance_mean"];
    summary.whSum = numbers["analysis/wH_sum"];
    summary.whPerToken = numbers["analysis/wH_per_token"];
    summary.rewardSumMean = numbers["analysis/reward_sum_mean"];
  });
  batch.free();
  return result;
}

/**
 * exp(a − b) of each token: the gradient of the summed surrogate where every advantage is −1.
 * @param {any} library
 * @param {any} batch
 * @param {Float64Array} logProbs
 * @param {Float64Array} oldLogProbs
 * @returns {Float64Array}
 */
function exponentials(library, batch, logProbs, oldLogProbs) {
  const advantages = new Float64Array(logProbs.length).fill(-1);
  return library.surrogateF64(batch, { logProbs, oldLogProbs, advantages }, { aggregate: { mode: "token-sum" } }).grad;
}

/**
 * What a number over a whole batch is for each kept token alone.
 * @param {any} library
 * @param {State} state
 * @param {(batch: any) => number} number
 * @returns {Float64Array}
 */
function perToken(library, state, number) {
  return Float64Array.from(state.mask, (keep, index) => {
    if (!keep) return 0;
    const only = library.Batch.padded(1, state.mask.length, Uint8Array.from(state.mask, (_, j) => Number(j === index)));
    try {
      return number(only);
    } finally {
      only.free();
    }
  });
}
