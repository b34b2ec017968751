// The names under which files keep what a rollout is made of: the table of docs/rollout-files.md, as the command has it.

/** @typedef {"logProbs" | "oldLogProbs" | "refLogProbs" | "rolloutLogProbs" | "advantages" | "returns" | "values" | "rewards" | "tokenScores" | "entropies" | "oldEntropies" | "predictions"} Column */

/** The numbers of which there is one per token. @type {Column[]} */
export const COLUMNS = [
  "logProbs", "oldLogProbs", "refLogProbs", "rolloutLogProbs", "advantages", "returns", "values", "rewards", "tokenScores", "entropies",
  "oldEntropies", "predictions",
];

/** @typedef {{ kind: "column", column: Column, name: string } | { kind: "mask" | "score" | "step" | "group" | "prompt" | "truncated" | "firstUpdate" | "length" | "promptLength" | "sequence" | "inside" | "list" | "text" | "id", name: string }} Field */

/** Our name first, then those of others. @type {[Column | Exclude<Field["kind"], "column">, string[]][]} */
const NAMES = [
  ["logProbs", ["log_probs", "logprobs", "new_log_probs", "log_prob", "per_token_logps", "trainer_logprobs"]],
  ["oldLogProbs", ["old_log_probs", "old_logprobs", "old_log_prob", "old_per_token_logps"]],
  ["refLogProbs", ["ref_log_probs", "ref_logprobs", "ref_log_prob", "ref_per_token_logps"]],
  ["rolloutLogProbs", ["rollout_log_probs", "rollout_logprobs", "sampling_log_probs", "sampling_per_token_logps", "inference_logprobs"]],
  ["advantages", ["advantages", "advantage"]],
  ["returns", ["returns"]],
  ["values", ["values"]],
  ["rewards", ["rewards", "token_level_rewards", "token_rewards"]],
  ["tokenScores", ["token_level_scores", "token_scores"]],
  ["entropies", ["entropies", "token_entropies", "entropy"]],
  ["oldEntropies", ["old_entropies", "entropys"]],
  ["predictions", ["predictions", "new_values", "vpreds"]],
  ["mask", ["mask", "response_mask", "loss_mask", "completion_mask", "action_mask"]],
  ["score", ["score", "scores", "reward"]],
  ["step", ["step", "global_step"]],
  ["group", ["group", "group_id", "uid", "prompt_id"]],
  ["prompt", ["prompt", "input"]],
  ["truncated", ["truncated", "is_truncated"]],
  ["firstUpdate", ["first_update", "is_first_step_after_rollout_phase"]],
  ["length", ["response_length", "completion_length", "num_tokens"]],
  ["promptLength", ["prompt_length", "prompt_len"]],
  ["sequence", ["sequence", "sequence_id"]],
  ["inside", ["tokens", "token_data"]],
  ["list", ["entries", "prompts", "responses", "rollouts", "samples", "sequences", "records", "data"]],
  // what a token reads like: the command has no use for it
  ["text", ["strings", "response_tokens", "token_strings", "token_texts", "token", "token_text"]],
  ["id", ["ids", "token_ids", "response_ids", "completion_ids"]],
];

/** @type {Map<string, Field>} a Map, because a file may have a field `__proto__` */
const FOUND = new Map();
for (const [key, names] of NAMES) {
  const isColumn = COLUMNS.includes(/** @type {Column} */ (key));
  const field = /** @type {Field} */ (isColumn ? { kind: "column", column: key, name: names[0] } : { kind: key, name: names[0] });
  for (const name of names) FOUND.set(name, field);
}

/** The name of a column in a file. @param {string} column */
export const fileName = (column) => NAMES.find(([key]) => key === column)?.[1][0] ?? column;

/**
 * What a name stands for. A score given by another name is not also looked for under its usual ones.
 * @param {string} scoreName the name given for the score, "" for none
 * @returns {(name: string) => Field | undefined}
 */
export function finder(scoreName) {
  if (scoreName === "") return (name) => FOUND.get(name);
  return (name) => {
    if (name === scoreName) return { kind: "score", name: "score" };
    const field = FOUND.get(name);
    return field?.kind === "score" ? undefined : field;
  };
}

/** How Python and others write the numbers JSON has no words for. @param {string} text */
export function wordNumber(text) {
  switch (text) {
    case "NaN": case "nan": case "null": case "None": return NaN;
    case "Infinity": case "inf": case "+inf": return Infinity;
    case "-Infinity": case "-inf": return -Infinity;
    default: return undefined;
  }
}
