// The estimators and losses the reader can choose, each as the call of the library that computes it.

/** @typedef {import("../../engine.js").Library} Library */
/** @typedef {import("../../engine.js").Batch} Batch */
/** @typedef {import("./state.js").Settings} Settings */

/**
 * @typedef {object} Rollout what an estimator reads
 * @property {Library} library
 * @property {Batch} batch
 * @property {{ sizes: Uint32Array }} groups
 * @property {Float64Array} rewards of the tokens
 * @property {Float64Array} values of the critic, before each token
 * @property {Settings} settings
 */

/**
 * @typedef {object} Estimated
 * @property {Float64Array} advantages of the tokens
 * @property {Float64Array} [returns] what the critic learns
 */

/** One number for a whole answer. @param {(rollout: Rollout, scores: Float64Array) => Float64Array} estimate */
const ofAnswers = (estimate) => (/** @type {Rollout} */ rollout) => {
  const { library, batch, rewards } = rollout;
  const scores = library.sequenceSumsF64(batch, rewards);
  return { advantages: library.broadcastF64(batch, estimate(rollout, scores)) };
};

/** Nothing comes after the last token. @param {Batch} batch */
const nothing = (batch) => new Float64Array(batch.sequences);

/** @type {Record<string, (rollout: Rollout) => Estimated>} */
export const estimators = {
  "grpo": ofAnswers(({ library, groups }, scores) =>
    library.groupRelativeF64(groups, scores, { epsilon: 1e-6, singleton: "raw" }),
  ),
  "dr-grpo": ofAnswers(({ library, groups }, scores) =>
    library.groupRelativeF64(groups, scores, { scale: "unit", singleton: "raw" }),
  ),
  "rloo": ofAnswers(({ library, groups }, scores) => library.leaveOneOutF64(groups, scores, { singleton: "raw" })),
  "max-rl": ofAnswers(({ library, groups }, scores) =>
    library.maxRlF64(groups, scores, { epsilon: 1e-6, singleton: "raw" }),
  ),
  "rf-baseline": ({ library, batch, groups, rewards }) => ({
    advantages: library.reinforcePlusPlusBaselineF64(batch, groups, library.sequenceSumsF64(batch, rewards), {
      singleton: "raw",
    }),
  }),
  "rf": ({ library, batch, rewards, settings: { gamma } }) => ({
    advantages: library.reinforcePlusPlusF64(batch, { rewards, bootstrap: nothing(batch) }, { gamma }).advantages,
  }),
  "gae": ({ library, batch, rewards, values, settings: { gamma, lambda } }) =>
    library.gaeF64(batch, { rewards, values, bootstrap: nothing(batch) }, { gamma, lambda }),
  "returns": ({ library, batch, rewards, settings: { gamma } }) => ({
    advantages: library.discountedReturnsF64(batch, { rewards, bootstrap: nothing(batch) }, { gamma }),
  }),
};

/** What each setting changes only for some methods. @type {Record<string, (settings: Settings) => boolean>} */
export const matters = {
  gamma: ({ estimator }) => ["rf", "gae", "returns"].includes(estimator),
  lambda: ({ estimator }) => estimator === "gae",
  criticRate: ({ estimator }) => estimator === "gae",
  clipLow: ({ loss }) => ["ppo", "dual", "gspo", "cispo"].includes(loss),
  clipHigh: ({ loss }) => ["ppo", "dual", "gspo", "cispo"].includes(loss),
  klKind: ({ klPlace }) => klPlace !== "none",
  beta: ({ klPlace }) => klPlace !== "none",
};

/** @typedef {{ logProbs: Float64Array, oldLogProbs: Float64Array, advantages: Float64Array }} Input */
/** @typedef {import("../../engine.js").Aggregate} Aggregate */
/** @typedef {{ loss: number, clipFraction?: number, grad: Float64Array }} Lost nothing is clipped without a fraction */

/** Beyond this many times its probability a token with a negative advantage has no gradient any more. */
export const DUAL = 3;

/** @typedef {(library: Library, batch: Batch, input: Input, settings: Settings, aggregate: Aggregate) => Lost} Loss */

/** @type {Record<string, Loss>} */
export const losses = {
  ppo: (library, batch, input, { clipLow, clipHigh }, aggregate) =>
    library.ppoClipF64(batch, input, { clipLow, clipHigh, aggregate }),
  dual: (library, batch, input, { clipLow, clipHigh }, aggregate) =>
    library.ppoClipF64(batch, input, { clipLow, clipHigh, dualClip: { negativeOnly: DUAL }, aggregate }),
  gspo: (library, batch, input, { clipLow, clipHigh }, aggregate) =>
    library.gspoF64(batch, input, { clipLow, clipHigh, aggregate }),
  cispo: (library, batch, input, { clipLow, clipHigh }, aggregate) =>
    library.cispoF64(batch, input, { bounds: { kind: "relative", low: clipLow, high: clipHigh }, aggregate }),
  sapo: (library, batch, input, _, aggregate) => library.sapoF64(batch, input, { aggregate }),
  surrogate: (library, batch, input, _, aggregate) => library.surrogateF64(batch, input, { aggregate }),
  reinforce: (library, batch, input, _, aggregate) => library.reinforceF64(batch, input, { aggregate }),
};

/**
 * @param {Settings} settings
 * @param {number} positions the most tokens of an answer
 * @returns {Aggregate}
 */
export const aggregateOf = ({ aggregate: mode }, positions) =>
  mode === "seq-mean-token-sum-norm" ? { mode, scale: positions } : { mode };
