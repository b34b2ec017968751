// The chain as golden cases: what each step read and what it gave, for `cargo xtask golden DIR`.
// Only what the case format can express is written; it cannot express a convention that differs from the profile's.

import { flatten, isClipped, klInLoss } from "./batch.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {import("../compute/conventions.js").Settings} Settings */
/**
 * @typedef {{ op: string, inputs: Record<string, unknown>, params?: Record<string, unknown>,
 *   expect: Record<string, unknown> }} Step
 */

/**
 * @param {State} state
 * @param {Result} result
 * @param {Settings} own the settings where no choice overrides the profile
 * @returns {string}
 */
export function golden(state, result, own) {
  const { sequences } = state;
  const flat = flatten(state);
  const cols = Math.max(...sequences.map(({ tokens }) => tokens.length));
  const name = state.preset || "playground";
  const shape = {
    profile: state.profile,
    dtype: "f64",
    rows: sequences.length,
    cols,
    mask: padded(
      sequences.map(({ roles }) => roles.map((role) => Number(role === "policy"))),
      cols,
    ),
    groups: flat.groups,
  };
  /** @param {string} key of an input or a result */
  const row = (key) => {
    const found =
      result.rows[key] ?? sequences.map((_, s) => flat.rows[key].slice(flat.offsets[s], flat.offsets[s + 1]));
    return padded(
      found.map((numbers, s) => Array.from(numbers).slice(0, sequences[s].tokens.length)),
      cols,
    ).map(spelled);
  };
  const each = (/** @type {string} */ key) => (result.rows[key] ?? []).map(([number]) => spelled(number));
  const steps = [
    ...rewardSteps(state, result, row),
    ...advantageSteps(state, result, own, row, each, flat),
    ...lossSteps(state, result, own, row),
  ];
  const cases = steps.map(({ op, ...rest }) => ({
    op,
    name: `${name}: ${op}`,
    ...shape,
    ...rest,
    rtol: 1e-9,
    atol: 1e-12,
  }));
  const head = { format: "tokenwise-golden/1", source: "tokenwise playground, float64" };
  // one case per line, so that files can be read and compared
  return `${JSON.stringify(head).slice(0, -1)},"cases":[\n${cases.map((one) => JSON.stringify(one)).join(",\n")}\n]}\n`;
}

/**
 * @param {number[][]} rows
 * @param {number} cols
 */
const padded = (rows, cols) => rows.flatMap((numbers) => [...numbers, ...new Array(cols - numbers.length).fill(0)]);

/** @param {number} value */
const spelled = (value) =>
  Number.isNaN(value) ? "nan" : value === Infinity ? "inf" : value === -Infinity ? "-inf" : value;

/**
 * @param {State} state
 * @param {Result} result
 * @param {(key: string) => unknown[]} row
 * @returns {Step[]}
 */
function rewardSteps(state, { rows, settings }, row) {
  const { choices, parameters } = state;
  const steps = [];
  if (choices.kl !== "given" && choices.placement !== "loss-weighted" && rows.kl) {
    const inputs = { log_probs: row(klInLoss(state) ? "logProb" : "oldLogProb"), ref_log_probs: row("refLogProb") };
    steps.push({ op: "kl", inputs, params: { estimator: choices.kl }, expect: { kl: row("kl") } });
  }
  if (choices.placement === "reward" && rows.reward && !isClipped(flatten(state), settings.rewardClip)) {
    steps.push({
      op: "shape_rewards",
      inputs: { scores: row("score"), kl: row("kl") },
      params: { beta: parameters.beta },
      expect: { rewards: row("reward") },
    });
  }
  return steps;
}

/**
 * @param {State} state
 * @param {Result} result
 * @param {Settings} own
 * @param {(key: string) => unknown[]} row
 * @param {(key: string) => unknown[]} each
 * @param {import("./batch.js").Flat} flat
 * @returns {Step[]}
 */
function advantageSteps(state, { rows, settings }, own, row, each, flat) {
  const { gamma, lambda, lastK } = state.parameters;
  const steps = [];
  const bootstrap = flat.bootstrap.map(spelled);
  const asProfile = settings.across === own.across;
  if (rows.discountedReturn && asProfile) {
    steps.push({
      op: "discounted_returns",
      inputs: { rewards: row("reward"), bootstrap },
      params: { gamma },
      expect: { returns: row("discountedReturn") },
    });
  }
  const critic = () => ({ rewards: row("reward"), values: row("value"), bootstrap });
  const advantages = () => ({ advantages: row("advantage") });
  /** @type {Record<string, () => Step>} */
  const byName = {
    uniform: () => ({ op: "uniform_credit", inputs: { scores: each("sequenceScore") }, expect: advantages() }),
    "last-k": () => ({
      op: "last_k_credit",
      inputs: { scores: each("sequenceScore") },
      params: { k: lastK },
      expect: advantages(),
    }),
    attention: () => ({
      op: "attention_credit",
      inputs: { scores: each("sequenceScore"), weights: row("attention") },
      expect: advantages(),
    }),
    // a case without the scores of others cannot express what a single score gets
    ...(flat.groups.every((id, s) => flat.groups.some((other, at) => at !== s && other === id)) && {
      "max-rl": () => ({
        op: "max_rl",
        inputs: { scores: each("sequenceScore") },
        params: { epsilon: settings.group.epsilon },
        expect: { scores: each("groupAdvantage") },
      }),
    }),
  };
  if (asProfile) {
    byName.gae = () => ({
      op: "gae",
      inputs: critic(),
      params: { gamma, lambda, whiten: false },
      expect: { ...advantages(), returns: row("return") },
    });
    byName["monte-carlo"] = () => ({
      op: "monte_carlo_advantage",
      inputs: critic(),
      params: { gamma },
      expect: { ...advantages(), returns: row("return") },
    });
  }
  // the whole rewards of a sequence are its score, so the sums agree whatever the profile counts
  if (flat.mask.every(Boolean) && settings.group.spread === own.group.spread) {
    const inputs = () => ({ rewards: row("reward") });
    byName.grpo = () => ({ op: "grpo", inputs: inputs(), params: { norm_by_std: true }, expect: advantages() });
    byName["dr-grpo"] = () => ({ op: "grpo", inputs: inputs(), params: { norm_by_std: false }, expect: advantages() });
    byName.rloo = () => ({ op: "rloo", inputs: inputs(), expect: advantages() });
    byName.opo = () => ({ op: "opo", inputs: inputs(), expect: advantages() });
  }
  const step = rows.advantage && byName[state.choices.advantage];
  if (step) steps.push(step());
  if (rows.whitened && settings.whiten.spread === own.whiten.spread) {
    steps.push({ op: "masked_whiten", inputs: { x: row("advantage") }, expect: { out: row("whitened") } });
  }
  return steps;
}

/** @type {Record<string, string>} */
const LOSSES = { ppo: "ppo_clip", gspo: "gspo", cispo: "cispo", surrogate: "surrogate", reinforce: "reinforce" };

/**
 * @param {State} state
 * @param {Result} result
 * @param {Settings} own
 * @param {(key: string) => unknown[]} row
 * @returns {Step[]}
 */
function lossSteps(state, { rows, summary, settings }, own, row) {
  const { choices, parameters } = state;
  const weight = choices.weight === "raw" ? "advantage" : "whitened";
  const steps = [];
  const fits =
    choices.loss === "ppo"
      ? settings.dual === "off" || settings.dual === own.dual
      : // OpenRLHF gives sequences equal weight in GSPO, whatever is chosen
        choices.loss !== "gspo" || state.profile !== "openrlhf-0.11" || choices.aggregate === "seq-mean-token-mean";
  if (rows.gradient && summary.loss !== undefined && fits) {
    /** @type {Record<string, unknown>} */
    const params = { aggregate: choices.aggregate };
    if (choices.aggregate === "seq-mean-token-sum-norm") params.scale_factor = parameters.scale;
    if (choices.aggregate === "token-sum-norm")
      Object.assign(params, {
        aggregate: "seq-mean-token-sum-norm",
        scale_factor: parameters.scale,
        global_sequences: 1,
      });
    if (choices.loss === "ppo" || choices.loss === "gspo")
      Object.assign(params, { clip_low: parameters.clipLow, clip_high: parameters.clipHigh });
    if (choices.loss === "cispo")
      Object.assign(
        params,
        settings.cispo.kind === "relative"
          ? { clip_low: settings.cispo.low, clip_high: settings.cispo.high }
          : { clip_high: settings.cispo.high },
      );
    if (choices.loss === "ppo") params.dual_clip = settings.dual === "off" ? null : settings.dualClip;
    /** @type {Record<string, unknown>} */
    const expect = { loss: spelled(summary.loss) };
    if (!klInLoss(state)) expect.grad = row("gradient");
    // verl divides its clip fraction by n + 1e-8, the page by n; in GSPO's cases it counts sequences,
    // on the page tokens
    if (summary.clipFraction !== undefined && settings.divisor === "count" && choices.loss !== "gspo")
      expect.clip_fraction = spelled(summary.clipFraction);
    steps.push({
      op: LOSSES[choices.loss],
      inputs: { log_probs: row("logProb"), old_log_probs: row("oldLogProb"), advantages: row(weight) },
      params,
      expect,
    });
  }
  if (summary.whSum !== undefined) {
    const expect = {
      "analysis/entropy_per_token_mean": summary.entropyPerTokenMean,
      "analysis/covariance_mean": summary.covarianceMean,
      "analysis/wH_sum": summary.whSum,
      "analysis/wH_per_token": summary.whPerToken,
      "analysis/reward_sum_mean": summary.rewardSumMean,
    };
    const inputs = { old_log_probs: row("oldLogProb"), advantages: row(weight), rewards: row("reward") };
    steps.push({
      op: "analysis",
      inputs,
      expect: Object.fromEntries(Object.entries(expect).map(([key, value]) => [key, spelled(value ?? NaN)])),
    });
  }
  return steps;
}
