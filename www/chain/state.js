// What the user can change: sequences of tokens, parameters, choices. States are plain data, replaced,
// never changed in place.

/** @typedef {"gamma" | "lambda" | "beta" | "clipLow" | "clipHigh" | "dualClip" | "lastK" | "scale"} Parameter */
/** @typedef {"score" | "oldLogProb" | "refLogProb" | "kl" | "attention" | "value" | "advantage"} InputRow */
/** @typedef {"policy" | "tool" | "padding"} Role only tokens of the policy are kept */
/** @typedef {"paper" | "verl-0.9.1" | "trl-1.16" | "openrlhf-0.11"} ProfileName */

/**
 * @typedef {object} Choices
 * @property {"given" | "k1" | "k2" | "k3" | "abs"} kl where the KL row comes from
 * @property {"reward" | "loss" | "loss-weighted" | "off"} placement what the KL is a price of
 * @property {"gae" | "monte-carlo" | "given" | "uniform" | "last-k" | "attention" | "reinforce-plus-plus" | "grpo" |
 *   "dr-grpo" | "rloo" | "reinforce-baseline" | "opo" | "max-rl" | "best-of-group"} advantage
 * @property {"profile" | "step-over" | "zero-step"} across what a dropped token between two kept ones is
 * @property {"profile" | "sample" | "population"} spread divisor n − 1 or n in deviations
 * @property {"whitened" | "raw"} weight which advantage the loss reads
 * @property {"ppo" | "gspo" | "cispo" | "surrogate" | "reinforce"} loss
 * @property {"profile" | "off" | "negative" | "both"} dual the second clip
 * @property {"token-mean" | "token-sum" | "seq-mean-token-sum" | "seq-mean-token-mean" | "seq-mean-token-sum-norm" |
 *   "token-sum-norm" | "prompt-mean"} aggregate
 */

/**
 * @typedef {Record<InputRow, number[]> & { logProb: (number | null)[] }} Inputs `value` has one entry more: the state
 *   after the last token; `null` in `logProb` follows the old log-probability
 */

/**
 * @typedef {object} Sequence one response
 * @property {number} group sequences with the same number answer the same prompt
 * @property {string} prompt
 * @property {string[]} tokens
 * @property {Role[]} roles
 * @property {Inputs} inputs
 */

/**
 * @typedef {object} State
 * @property {string} preset the example it started from
 * @property {Sequence[]} sequences at least one
 * @property {Record<Parameter, number>} parameters
 * @property {Choices} choices
 * @property {ProfileName} profile whose conventions are followed
 * @property {ProfileName | null} against whose conventions are compared with them
 * @property {string[] | null} only the rows shown; all that apply if null
 * @property {{ id: string, step: number } | null} tour
 */

/** @type {Record<Parameter, number>} in the order in which they are shown */
export const defaultParameters = {
  gamma: 1,
  lambda: 0.95,
  beta: 0.1,
  lastK: 2,
  clipLow: 0.2,
  clipHigh: 0.28,
  dualClip: 3,
  scale: 10,
};

export const parameterNames = /** @type {Parameter[]} */ (Object.keys(defaultParameters));

/** @type {Record<keyof Choices, string[]>} */
export const choiceOptions = {
  kl: ["given", "k1", "k2", "k3", "abs"],
  placement: ["reward", "loss", "loss-weighted", "off"],
  advantage: [
    "gae",
    "monte-carlo",
    "given",
    "uniform",
    "last-k",
    "attention",
    "reinforce-plus-plus",
    "grpo",
    "dr-grpo",
    "rloo",
    "reinforce-baseline",
    "opo",
    "max-rl",
    "best-of-group",
  ],
  across: ["profile", "step-over", "zero-step"],
  spread: ["profile", "sample", "population"],
  weight: ["whitened", "raw"],
  loss: ["ppo", "gspo", "cispo", "surrogate", "reinforce"],
  dual: ["profile", "off", "negative", "both"],
  aggregate: [
    "token-mean",
    "token-sum",
    "seq-mean-token-sum",
    "seq-mean-token-mean",
    "seq-mean-token-sum-norm",
    "token-sum-norm",
    "prompt-mean",
  ],
};

/** @type {Choices} */
export const defaultChoices = {
  kl: "given",
  placement: "reward",
  advantage: "gae",
  across: "profile",
  spread: "profile",
  weight: "whitened",
  loss: "ppo",
  dual: "profile",
  aggregate: "token-mean",
};

/** @type {ProfileName[]} */
export const profileNames = ["paper", "verl-0.9.1", "trl-1.16", "openrlhf-0.11"];

/** @type {Role[]} */
export const roles = ["policy", "tool", "padding"];

/** @type {InputRow[]} */
export const inputRows = ["score", "oldLogProb", "refLogProb", "kl", "attention", "value", "advantage"];

/** What a link, a file or the page itself may ask for. */
export const limits = { sequences: 64, tokens: 256, cells: 4096, text: 200, groups: 1000 };

/**
 * A sequence with defaults for what is not given: zeros, tokens of the policy, a log-probability that follows the old
 * one.
 * @param {{ tokens: string[] } & Partial<Omit<Sequence, "inputs">> & { inputs?: Partial<Inputs> }} given
 * @returns {Sequence}
 */
export function sequenceOf({ tokens, inputs = {}, ...rest }) {
  const zeros = tokens.map(() => 0);
  return {
    group: 0,
    prompt: "",
    roles: tokens.map(() => "policy"),
    ...rest,
    tokens,
    inputs: {
      score: zeros,
      oldLogProb: zeros,
      refLogProb: zeros,
      kl: zeros,
      attention: tokens.map(() => 1),
      value: [...zeros, 0],
      advantage: zeros,
      logProb: tokens.map(() => null),
      ...inputs,
    },
  };
}

/**
 * A state of the chain made of sequences from elsewhere, such as a rollout file. What is left out of a sequence is 0
 * (log-probabilities under training: the old ones; roles: policy); parameters and choices that are left out are the
 * chain's own. Where log-probabilities of a reference are given, KL is k1 unless a choice says otherwise.
 * @example
 * const inputs = { score: [0, 1], oldLogProb: [-0.1, -0.2] };
 * context.open("chain", stateFromSequences([{ tokens: ["2", "！"], inputs }]));
 * @param {({ tokens: string[] } & Partial<Omit<Sequence, "inputs">> & { inputs?: Partial<Inputs> })[]} sequences
 *   `inputs.value` may have one entry per token, or one more for the state after the last
 * @param {{ parameters?: Partial<State["parameters"]>, choices?: Partial<Choices>, profile?: ProfileName,
 *   only?: string[] | null }} [rest]
 * @returns {State | null} null where it is more than the page shows
 */
export function stateFromSequences(sequences, rest = {}) {
  const completed = sequences.map((sequence) => {
    const value = sequence.inputs?.value;
    const inputs =
      value && value.length === sequence.tokens.length ? { ...sequence.inputs, value: [...value, 0] } : sequence.inputs;
    return sequenceOf({ ...sequence, tokens: sequence.tokens.map((text) => text.slice(0, limits.text)), inputs });
  });
  const kl = sequences.some((sequence) => sequence.inputs?.refLogProb) ? { kl: "k1" } : {};
  return readState({ preset: "", sequences: completed, ...rest, choices: { ...kl, ...rest.choices } });
}

/**
 * A state that came from outside, checked and completed.
 * @param {unknown} data
 * @returns {State | null}
 */
export function readState(data) {
  if (!isRecord(data) || !Array.isArray(data.sequences)) return null;
  const { sequences: given } = data;
  if (given.length === 0 || given.length > limits.sequences) return null;
  /** @type {Sequence[]} */
  const sequences = [];
  let cells = 0;
  for (const one of given) {
    const sequence = readSequence(one);
    if (!sequence) return null;
    cells += sequence.tokens.length;
    sequences.push(sequence);
  }
  if (cells > limits.cells) return null;
  const numbers = isRecord(data.parameters) ? data.parameters : {};
  const chosen = isRecord(data.choices) ? data.choices : {};
  const parameters = Object.fromEntries(
    parameterNames.map((name) => [name, typeof numbers[name] === "number" ? numbers[name] : defaultParameters[name]]),
  );
  const choices = Object.fromEntries(
    Object.entries(choiceOptions).map(([name, options]) => {
      const value = chosen[name];
      return [
        name,
        typeof value === "string" && options.includes(value)
          ? value
          : defaultChoices[/** @type {keyof Choices} */ (name)],
      ];
    }),
  );
  const { only, tour } = data;
  return {
    preset: shortText(data.preset) ?? "",
    sequences,
    parameters: /** @type {State["parameters"]} */ (parameters),
    choices: /** @type {Choices} */ (/** @type {unknown} */ (choices)),
    profile: readProfile(data.profile) ?? "paper",
    against: readProfile(data.against),
    only:
      Array.isArray(only) && only.length > 0 && only.length <= 64 && only.every((key) => shortText(key) !== null)
        ? only.map(String)
        : null,
    tour:
      isRecord(tour) && shortText(tour.id) !== null && isCount(tour.step, 1000)
        ? { id: String(tour.id), step: Number(tour.step) }
        : null,
  };
}

/**
 * @param {unknown} data
 * @returns {Sequence | null}
 */
function readSequence(data) {
  if (!isRecord(data) || !Array.isArray(data.tokens)) return null;
  const { tokens } = data;
  if (tokens.length === 0 || tokens.length > limits.tokens || !tokens.every((text) => shortText(text) !== null))
    return null;
  const given = isRecord(data.inputs) ? data.inputs : {};
  /** @type {Record<string, (number | null)[]>} */
  const inputs = {};
  for (const row of [...inputRows, "logProb"]) {
    const values = given[row];
    if (values === undefined) continue;
    const length = tokens.length + (row === "value" ? 1 : 0);
    if (!Array.isArray(values) || values.length !== length) return null;
    if (!values.every((value) => typeof value === "number" || (row === "logProb" && value === null))) return null;
    inputs[row] = values.slice();
  }
  const kinds = data.roles ?? tokens.map(() => "policy");
  if (!Array.isArray(kinds) || kinds.length !== tokens.length || !kinds.every((role) => roles.includes(role)))
    return null;
  const group = data.group ?? 0;
  if (!isCount(group, limits.groups)) return null;
  return sequenceOf({
    tokens: tokens.map(String),
    roles: kinds.slice(),
    group: Number(group),
    prompt: shortText(data.prompt) ?? "",
    inputs: /** @type {Partial<Inputs>} */ (inputs),
  });
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {unknown} value */
const shortText = (value) => (typeof value === "string" && value.length <= limits.text ? value : null);

/**
 * @param {unknown} value
 * @param {number} most
 */
const isCount = (value, most) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= most;

/**
 * @param {unknown} value
 * @returns {ProfileName | null}
 */
const readProfile = (value) => profileNames.find((name) => name === value) ?? null;

/**
 * @param {Sequence} sequence
 * @param {number} index
 */
export const isKept = (sequence, index) => sequence.roles[index] === "policy";

/**
 * The next kept token after `index`, or the number of tokens if there is none.
 * @param {Sequence} sequence
 * @param {number} index
 */
export function nextKept(sequence, index) {
  const next = sequence.roles.indexOf("policy", index + 1);
  return next < 0 ? sequence.tokens.length : next;
}
