// What the reader can change. States are replaced, never changed in place.

/** @typedef {"gamma" | "lambda" | "beta" | "clipLow" | "clipHigh"} Parameter */
/** @typedef {"score" | "oldLogProb" | "refLogProb" | "kl" | "value" | "advantage"} InputRow */

/**
 * @typedef {object} Choices
 * @property {"given" | "k1" | "abs" | "k2" | "k3"} kl where the KL row comes from
 * @property {"gae" | "given"} advantage where the advantage row comes from
 * @property {"sample" | "population"} spread divisor n − 1 or n in whitening
 * @property {"whitened" | "raw"} weight which advantage the loss reads
 */

/**
 * @typedef {object} State
 * @property {string} preset
 * @property {string} prompt
 * @property {string[]} tokens
 * @property {boolean[]} mask
 * @property {Record<InputRow, number[]> & { logProb: (number | null)[] }} inputs `value` has one entry more: the state after
 *   the last token; `null` in `logProb` follows the old log-probability
 * @property {Record<Parameter, number>} parameters
 * @property {Choices} choices
 * @property {string[]} [only] the rows shown; all if missing
 */

/** @type {Parameter[]} */
export const parameterNames = ["gamma", "lambda", "beta", "clipLow", "clipHigh"];

/** @type {Record<keyof Choices, string[]>} */
export const choiceOptions = {
  kl: ["given", "k1", "k2", "k3", "abs"],
  advantage: ["gae", "given"],
  spread: ["sample", "population"],
  weight: ["whitened", "raw"],
};

/**
 * The next kept token after `index`, or the number of tokens if there is none.
 * @param {State} state
 * @param {number} index
 */
export function nextKept(state, index) {
  for (let j = index + 1; j < state.tokens.length; j += 1) {
    if (state.mask[j]) return j;
  }
  return state.tokens.length;
}

/**
 * @param {State} state
 * @param {string} row
 * @param {number} index
 * @param {number | null} value
 * @returns {State}
 */
export function withInput(state, row, index, value) {
  const values = /** @type {(number | null)[]} */ (state.inputs[/** @type {InputRow} */ (row)]).slice();
  values[index] = value;
  return { ...state, inputs: { ...state.inputs, [row]: values } };
}

/**
 * @param {State} state
 * @param {number} index
 * @returns {State}
 */
export const withMaskToggled = (state, index) => ({ ...state, mask: state.mask.map((keep, j) => (j === index ? !keep : keep)) });

/**
 * @param {State} state
 * @param {Partial<Record<Parameter, number>>} parameters
 * @returns {State}
 */
export const withParameters = (state, parameters) => ({ ...state, parameters: { ...state.parameters, ...parameters } });

/**
 * @param {State} state
 * @param {Partial<Choices>} choices
 * @returns {State}
 */
export const withChoices = (state, choices) => ({ ...state, choices: { ...state.choices, ...choices } });
