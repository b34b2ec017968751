// Where the advantage row comes from: a recursion over values, a share of the score, or a comparison within the group.

/** @typedef {import("./compute.js").Work} Work */

/** Estimators that compare the scores of one prompt's sequences; each token gets its sequence's number. */
export const groupEstimators = ["grpo", "dr-grpo", "rloo", "reinforce-baseline", "opo", "max-rl", "best-of-group"];

/** Those of them after which nothing is to be whitened; REINFORCE++ with a baseline whitens over the batch. */
export const normalising = groupEstimators.filter((name) => name !== "reinforce-baseline");

/** Estimators that read the critic's values. */
export const criticEstimators = ["gae", "monte-carlo", "given"];

/** Estimators that divide the score of each sequence among its tokens. */
export const shareEstimators = ["uniform", "last-k", "attention"];

/**
 * One number per sequence.
 * @type {Record<string, (work: Work) => Float64Array>}
 */
const ofGroups = {
  grpo: ({ library, groups, scores, settings }) => library.groupRelativeF64(groups, scores, settings.group),
  "dr-grpo": ({ library, groups, scores, settings }) =>
    library.groupRelativeF64(groups, scores, { scale: "unit", singleton: settings.group.singleton }),
  rloo: ({ library, groups, scores, settings }) =>
    library.leaveOneOutF64(groups, scores, { singleton: settings.group.singleton }),
  "reinforce-baseline": ({ library, groups, scores, settings }) =>
    library.groupRelativeF64(groups, scores, { scale: "unit", singleton: settings.baselineSingleton }),
  opo: ({ library, batch, groups, scores, settings }) =>
    library.lengthWeightedBaselineF64(batch, groups, scores, { singleton: settings.baselineSingleton }),
  "max-rl": ({ library, groups, scores, settings }) =>
    library.maxRlF64(groups, scores, { epsilon: settings.group.epsilon, singleton: settings.group.singleton }),
  "best-of-group": ({ library, groups, scores, settings }) =>
    library.bestOfGroupF64(groups, scores, { epsilon: settings.group.epsilon, spread: settings.group.spread }),
};

/**
 * @param {Work} work
 * @returns {{ advantage: Float64Array, groupAdvantage?: Float64Array }}
 */
export function advantageOf(work) {
  const { library, batch, state, scores, flat } = work;
  const name = state.choices.advantage;
  const ofGroup = ofGroups[name];
  if (ofGroup) {
    const groupAdvantage = ofGroup(work);
    return { advantage: library.broadcastF64(batch, groupAdvantage), groupAdvantage };
  }
  if (name === "uniform") return { advantage: library.uniformCreditF64(batch, scores) };
  if (name === "last-k") return { advantage: library.lastKCreditF64(batch, scores, { k: state.parameters.lastK }) };
  if (name === "attention")
    return { advantage: library.attentionCreditF64(batch, { scores, weights: flat.attention }) };
  throw new Error(`no estimator ${name}`);
}
