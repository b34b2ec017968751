// Every group estimator of the library, under the conventions of those who use it. One of verl's is left out: its means
// divide by n + 1e-8, which vanishes in the single precision it computes in, but would show here.

/** @typedef {import("./compute.js").Inputs} Inputs */

/**
 * @typedef {object} Estimator
 * @property {string} id
 * @property {string} peers who computes it this way, by the names they use
 * @property {number} [epsilon] added to the deviation
 * @property {"zero" | "raw" | "undefined" | "refused" | "own"} single what a group of one gets; "own": neither
 * @property {"group" | "length" | "batch" | "tokens" | "none"} sum what adds up to 0: a group's advantages, the same
 *   weighted by length, those of the batch, those of all tokens, or nothing
 * @property {(library: import("../../engine.js").Library, inputs: Inputs) => Float64Array} run one number per sample
 */

/**
 * Numbers per token that are the same all along an answer, as one number per answer.
 * @param {Inputs} inputs
 * @param {Float64Array} tokens
 */
const first = ({ starts }, tokens) => Float64Array.from(starts, (start) => tokens[start]);

/** @type {Estimator[]} */
export const estimators = [
  {
    id: "grpo-verl",
    peers: "verl grpo · SkyRL",
    epsilon: 1e-6,
    single: "raw",
    sum: "group",
    run: (library, { groups, scores }) => library.groupRelativeF64(groups, scores, { epsilon: 1e-6, singleton: "raw" }),
  },
  {
    id: "grpo-trl",
    peers: "TRL scale_rewards=group",
    epsilon: 1e-4,
    single: "zero",
    sum: "group",
    run: (library, { groups, scores }) =>
      library.groupRelativeF64(groups, scores, { epsilon: 1e-4, singleton: "zero" }),
  },
  {
    id: "grpo-openrlhf",
    peers: "OpenRLHF group_norm",
    epsilon: 1e-9,
    single: "undefined",
    sum: "group",
    run: (library, { groups, scores }) =>
      library.groupRelativeF64(groups, scores, { epsilon: 1e-9, singleton: "undefined" }),
  },
  {
    id: "grpo-population",
    peers: "ddof = 0",
    epsilon: 0,
    single: "zero",
    sum: "group",
    run: (library, { groups, scores }) =>
      library.groupRelativeF64(groups, scores, { epsilon: 0, spread: "population" }),
  },
  {
    id: "grpo-batch",
    peers: "TRL scale_rewards=batch",
    epsilon: 1e-4,
    single: "zero",
    sum: "group",
    run: (library, { groups, scores }) =>
      library.groupRelativeF64(groups, scores, { epsilon: 1e-4, scale: "batch-deviation" }),
  },
  {
    id: "areal",
    peers: "AReaL Normalization",
    epsilon: 1e-5,
    single: "zero",
    sum: "group",
    run: (library, { groups, scores }) => library.normalizeScoresF64(groups, scores, { epsilon: 1e-5 }),
  },
  {
    id: "nemo",
    peers: "NeMo-RL grpo",
    epsilon: 1e-6,
    single: "zero",
    sum: "none",
    run: (library, { groups, scores }) => library.leaveOneOutScaledF64(groups, scores, { epsilon: 1e-6 }),
  },
  {
    id: "dr-grpo",
    peers: "Dr. GRPO · TRL scale_rewards=none · prime-rl",
    single: "zero",
    sum: "group",
    run: (library, { groups, scores }) => library.groupRelativeF64(groups, scores, { scale: "unit" }),
  },
  {
    id: "rloo",
    peers: "RLOO · verl rloo",
    single: "raw",
    sum: "group",
    run: (library, { groups, scores }) => library.leaveOneOutF64(groups, scores, { singleton: "raw" }),
  },
  {
    id: "max-rl",
    peers: "MaxRL · SkyRL",
    epsilon: 1e-6,
    single: "raw",
    sum: "group",
    run: (library, { groups, scores }) => library.maxRlF64(groups, scores, { epsilon: 1e-6, singleton: "raw" }),
  },
  {
    id: "gpg",
    peers: "GPG · verl gpg",
    single: "raw",
    sum: "group",
    run: (library, { groups, scores }) => library.gpgAdvantageF64(groups, scores, { singleton: "raw" }),
  },
  {
    id: "opo",
    peers: "OPO · verl opo",
    single: "raw",
    sum: "length",
    run: (library, { groups, scores, batch }) =>
      library.lengthWeightedBaselineF64(batch, groups, scores, { singleton: "raw" }),
  },
  {
    id: "pass-k",
    peers: "verl grpo_passk",
    epsilon: 1e-6,
    single: "refused",
    sum: "none",
    run: (library, { groups, scores }) => library.bestOfGroupF64(groups, scores, { epsilon: 1e-6 }),
  },
  {
    id: "remax",
    peers: "ReMax · verl remax",
    single: "own",
    sum: "none",
    run: (library, inputs) =>
      first(inputs, library.remaxF64(inputs.batch, { rewards: inputs.rewards, baselines: inputs.greedy }).advantages),
  },
  {
    id: "flash",
    peers: "OpenRLHF flash_reinforce",
    single: "own",
    sum: "batch",
    run: (library, { groups, scores }) =>
      library.normalizeScoresF64(groups, scores, { mean: "batch", deviation: "off" }),
  },
  {
    id: "rf-baseline",
    peers: "REINFORCE++-baseline · verl",
    single: "raw",
    sum: "tokens",
    run: (library, inputs) =>
      first(
        inputs,
        library.reinforcePlusPlusBaselineF64(inputs.batch, inputs.groups, inputs.scores, { singleton: "raw" }),
      ),
  },
  {
    id: "rf",
    peers: "REINFORCE++ · verl",
    single: "own",
    sum: "tokens",
    run: (library, inputs) =>
      first(
        inputs,
        library.reinforcePlusPlusF64(inputs.batch, {
          rewards: inputs.rewards,
          bootstrap: new Float64Array(inputs.scores.length),
        }).advantages,
      ),
  },
  {
    id: "decoupled",
    peers: "TRL normalize_then_sum · GDPO",
    epsilon: 1e-4,
    single: "zero",
    sum: "group",
    run: (library, { groups, sources, weights }) =>
      library.decoupledScoresF64(groups, { sources, weights }, { epsilon: 1e-4 }),
  },
  {
    id: "gdpo",
    peers: "GDPO · verl gdpo",
    epsilon: 1e-6,
    single: "raw",
    sum: "tokens",
    run: (library, inputs) =>
      first(
        inputs,
        library.gdpoF64(
          inputs.batch,
          inputs.groups,
          { sources: inputs.sources, weights: inputs.weights },
          { group: { epsilon: 1e-6, singleton: "raw" } },
        ),
      ),
  },
  {
    // for tokens that are all alike: the norm of their score functions cancels in the baseline,
    // so any positive one will do
    id: "token-baseline",
    peers: "OTB · verl optimal_token_baseline",
    single: "raw",
    sum: "none",
    run: (library, { batch, groups, rewards }) => {
      const [oldLogProbs, sumPiSquared] = [new Float64Array(rewards.length), new Float64Array(rewards.length).fill(2)];
      return library.rowMeansF64(
        batch,
        library.optimalTokenBaselineF64(batch, groups, { rewards, oldLogProbs, sumPiSquared }).advantages,
      );
    },
  },
];

export const estimatorById = new Map(estimators.map((estimator) => [estimator.id, estimator]));
