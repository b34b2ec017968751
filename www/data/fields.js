// The numbers of which a file may have one per token, and their names in files (docs/rollout-files.md).

const NAMES = {
  logProbs: "log_probs",
  oldLogProbs: "old_log_probs",
  refLogProbs: "ref_log_probs",
  rolloutLogProbs: "rollout_log_probs",
  advantages: "advantages",
  returns: "returns",
  values: "values",
  rewards: "rewards",
  tokenScores: "token_level_scores",
  entropies: "entropies",
  oldEntropies: "old_entropies",
  predictions: "predictions",
};

/** @typedef {keyof typeof NAMES} Column */

export const COLUMNS = /** @type {Column[]} */ (Object.keys(NAMES));

/** The name of a column in a file. @param {string} column */
export const fileName = (column) => NAMES[/** @type {Column} */ (column)] ?? column;
