// All numbers of a state, from the library. A refused step leaves its rows empty and is reported;
// the other steps keep theirs.

import { NotLoaded } from "../../engine.js";
import { refusalOf } from "../../parts/refusals.js";
import { exponentials, negativeProducts, sums } from "./arithmetic.js";
import { conventionsOf, settingsOf } from "./conventions.js";
import { advantageOf } from "./estimators.js";
import { policyLoss } from "./losses.js";
import { weightRow } from "../rows.js";
import { inputRows } from "../state.js";
import { carriedOver, clippedScores, klInLoss, sequenceScores, spreadOf } from "./steps.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("./conventions.js").Conventions} Conventions */
/** @typedef {{ step: string, code: string, message: string }} Refusal */

/**
 * @typedef {object} Result
 * @property {Record<string, Float64Array[] | undefined>} rows by key, then by sequence: one number per token; `value`
 *   has one more, rows that belong to a sequence have one
 * @property {Record<string, Float64Array[] | undefined>} hidden what a recursion carries over dropped slots,
 *   where it steps on them
 * @property {Record<string, number | undefined>} summary numbers over all kept tokens
 * @property {Refusal[]} refusals
 * @property {import("./conventions.js").Settings} settings
 */

/**
 * @typedef {object} Work what the steps share
 * @property {import("../../engine.js").Library} library
 * @property {State} state
 * @property {import("../../engine.js").Batch} batch
 * @property {{ ids: Uint32Array }} groups
 * @property {import("./conventions.js").Settings} settings
 * @property {Record<string, Float64Array>} flat the inputs, sequence after sequence
 * @property {Float64Array} scores one per sequence
 */

/** @type {WeakMap<State, Result>} */
const done = new WeakMap();

/**
 * @param {import("../../engine.js").Library} library the WebAssembly module
 * @param {State} state
 * @returns {Result}
 */
export function compute(library, state) {
  const found = done.get(state) ?? computeUnder(library, state, conventionsOf(library, state.profile));
  done.set(state, found);
  return found;
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Conventions} conventions
 * @returns {Result}
 */
export function computeUnder(library, state, conventions) {
  const { sequences } = state;
  const offsets = new Uint32Array(sequences.length + 1);
  for (const [s, { tokens }] of sequences.entries()) offsets[s + 1] = offsets[s] + tokens.length;
  const count = offsets[sequences.length];
  const mask = new Uint8Array(count);
  for (const [s, { roles }] of sequences.entries())
    mask.set(
      roles.map((role) => Number(role === "policy")),
      offsets[s],
    );
  const batch = library.Batch.packed(offsets, mask);
  const groups = { ids: denseIds(sequences.map(({ group }) => group)) };
  const settings = settingsOf(state, conventions, groups.ids, () => library.groupTokens(batch, groups));
  /** @type {Result} */
  const result = { rows: {}, hidden: {}, summary: {}, refusals: [], settings };
  const all = {
    library,
    state,
    batch,
    groups,
    settings,
    flat: flatten(state, count),
    scores: new Float64Array(sequences.length),
    offsets,
    mask,
    result,
  };
  try {
    run(all);
  } finally {
    batch.free();
  }
  return result;
}

/** @typedef {Work & { offsets: Uint32Array, mask: Uint8Array, result: Result }} Whole */

/** @param {Whole} work */
function run(work) {
  const { library, state, batch, settings, flat, offsets, result } = work;
  const { choices, parameters, sequences } = state;
  const { rows, summary } = result;
  /** @type {Record<string, Float64Array | undefined>} */
  const now = { ...flat };
  /** @param {Float64Array} row */
  const split = (row) => sequences.map((_, s) => row.subarray(offsets[s], offsets[s + 1]));
  /** @param {Record<string, Float64Array>} found */
  const put = (found) => {
    for (const [key, row] of Object.entries(found)) {
      now[key] = row;
      rows[key] = split(row);
    }
  };
  /** Results: the sign of a product with 0 means nothing. @param {Record<string, Float64Array>} found */
  const putResults = (found) => {
    for (const row of Object.values(found)) for (let i = 0; i < row.length; i += 1) if (row[i] === 0) row[i] = 0;
    put(found);
  };
  /**
   * @param {string} name
   * @param {string[]} needs rows it reads; it is skipped if one of them is missing
   * @param {() => void} run
   */
  const step = (name, needs, run) => {
    if (needs.some((key) => now[key] === undefined)) return;
    try {
      run();
    } catch (error) {
      if (error instanceof NotLoaded) throw error;
      result.refusals.push({ step: name, ...refusalOf(error) });
    }
  };
  const row = (/** @type {string} */ key) => /** @type {Float64Array} */ (now[key]);

  put({
    score: flat.score,
    oldLogProb: flat.oldLogProb,
    refLogProb: flat.refLogProb,
    logProb: flat.logProb,
    attention: flat.attention,
  });
  rows.value = sequences.map(({ inputs }) => Float64Array.from(inputs.value));
  const bootstrap = Float64Array.from(sequences, ({ inputs, tokens }) => inputs.value[tokens.length]);

  const inLoss = choices.placement === "loss" || choices.placement === "loss-weighted";
  if (choices.kl === "given") put({ kl: flat.kl });
  else {
    now.kl = undefined;
    step("kl", [], () => {
      const input = { logProbs: inLoss ? flat.logProb : flat.oldLogProb, refLogProbs: flat.refLogProb };
      const config = { estimator: /** @type {"k1" | "k2" | "k3" | "abs"} */ (choices.kl), bounds: settings.klBounds };
      if (choices.placement !== "loss-weighted") put({ kl: library.klEstimateF64(batch, input, config) });
      else
        put({ kl: library.klImportanceWeightedF64(batch, { ...input, oldLogProbs: flat.oldLogProb }, { kl: config }) });
    });
  }
  const priced = choices.placement === "reward";
  step("reward", priced ? ["kl"] : [], () => {
    const input = { scores: clippedScores(work), kl: priced ? row("kl") : new Float64Array(flat.score.length) };
    put({ reward: library.shapeRewardsF64(batch, input, { beta: priced ? parameters.beta : 0 }) });
    work.scores = sequenceScores(work, input, priced ? parameters.beta : 0, row("reward"));
    rows.sequenceScore = Array.from(work.scores, (score) => Float64Array.of(score));
  });

  const { gamma, lambda } = parameters;
  const { across } = settings;
  const critic = { rewards: row("reward"), values: flat.value, bootstrap };
  step("discountedReturn", ["reward"], () => {
    put({ discountedReturn: library.discountedReturnsF64(batch, critic, { gamma, across }) });
    if (across === "zero-step") result.hidden = carriedOver(work, critic, split);
  });
  now.advantage = undefined;
  if (choices.advantage === "given") {
    put({ advantage: flat.advantage });
    step("return", [], () => put({ return: sums(library, batch, flat.advantage, flat.value) }));
  } else if (choices.advantage === "gae") {
    step("advantage", ["reward"], () => {
      // with λ = 0 the estimate is the TD error itself
      put({ delta: library.gaeF64(batch, critic, { gamma, lambda: 0, across }).advantages });
      const { advantages, returns } = library.gaeF64(batch, critic, { gamma, lambda, across });
      put({ advantage: advantages, return: returns });
    });
  } else if (choices.advantage === "monte-carlo") {
    step("advantage", ["reward"], () => {
      const { advantages, returns } = library.monteCarloAdvantageF64(batch, critic, { gamma, across });
      put({ advantage: advantages, return: returns });
    });
  } else if (choices.advantage === "reinforce-plus-plus") {
    step("advantage", ["discountedReturn"], () => put({ advantage: row("discountedReturn") }));
  } else {
    step("advantage", ["reward"], () => {
      const { advantage, groupAdvantage } = advantageOf(work);
      put({ advantage });
      if (groupAdvantage) rows.groupAdvantage = Array.from(groupAdvantage, (number) => Float64Array.of(number));
    });
  }
  step("whitened", ["advantage"], () => {
    const { spread, divisor } = settings.whiten;
    summary.mean = library.meanF64(batch, row("advantage"), { divisor });
    summary.variance = library.varianceF64(batch, row("advantage"), { spread, divisor });
    summary.deviation = library.sqrtF64(summary.variance);
    put({ whitened: library.whitenF64(batch, row("advantage"), settings.whiten) });
  });

  step("ratio", [], () =>
    put({
      ratio: exponentials(library, batch, flat.logProb, flat.oldLogProb),
      probability: exponentials(library, batch, flat.oldLogProb, new Float64Array(flat.oldLogProb.length)),
    }),
  );
  const weight = weightRow(state);
  step("loss", [weight], () => {
    const outcome = policyLoss(work, { logProbs: flat.logProb, oldLogProbs: flat.oldLogProb, advantages: row(weight) });
    const { loss: aggregated, weights } = library.aggregateF64(batch, outcome.terms, settings.aggregate);
    summary.loss = outcome.loss ?? aggregated;
    summary.clipFraction = outcome.clipFraction;
    putResults({ lossTerm: outcome.terms, tokenWeight: weights, gradient: outcome.grad });
    if (outcome.sequenceRatio) put({ sequenceRatio: outcome.sequenceRatio });
  });
  if (inLoss) step("klLoss", ["kl", "gradient"], () => klInLoss(work, row, putResults));
  step("analysis", [weight, "reward", "probability"], () => {
    const advantages = row(weight);
    const entropy = negativeProducts(library, batch, row("probability"), flat.oldLogProb);
    const entropyWeight = library.tokenWeightsF64(batch, { logProbs: flat.oldLogProb, advantages });
    const minus = negativeProducts(library, batch, entropyWeight, entropy);
    putResults({ entropy, entropyWeight, weightedEntropy: minus.map((x) => -x) });
    const numbers = library.analysisF64(batch, { oldLogProbs: flat.oldLogProb, advantages, rewards: row("reward") });
    summary.entropyPerTokenMean = numbers["analysis/entropy_per_token_mean"];
    summary.covarianceMean = numbers["analysis/covariance_mean"];
    summary.whSum = numbers["analysis/wH_sum"];
    summary.whPerToken = numbers["analysis/wH_per_token"];
    summary.rewardSumMean = numbers["analysis/reward_sum_mean"];
    Object.assign(summary, spreadOf(work, advantages, entropy));
  });
}

/**
 * @param {State} state
 * @param {number} count
 */
function flatten(state, count) {
  /** @type {Record<string, Float64Array>} */
  const flat = {};
  for (const key of inputRows) {
    const row = new Float64Array(count);
    let at = 0;
    for (const { inputs, tokens } of state.sequences) {
      for (let i = 0; i < tokens.length; i += 1) row[at + i] = inputs[key][i];
      at += tokens.length;
    }
    flat[key] = row;
  }
  flat.logProb = Float64Array.from(
    state.sequences.flatMap(({ inputs }) => inputs.logProb.map((own, i) => own ?? inputs.oldLogProb[i])),
  );
  return flat;
}

/**
 * @param {number[]} names
 * @returns {Uint32Array} the same, numbered from 0 in the order they appear
 */
function denseIds(names) {
  const order = [...new Set(names)];
  return Uint32Array.from(names, (name) => order.indexOf(name));
}
