// What the page knows about one loss. A new loss is one such description in the list of its family (clip.js,
// sequence.js, weight.js, soft.js) and its words in both languages: clip.loss.<id>, clip.means.<id>, clip.used.<id>.

/** @typedef {import("../../../parts/dom.js").Child} Child */

/**
 * @typedef {object} Parameter
 * @property {string} key
 * @property {string} sign for the field's label; "^" before a superscript, "_" before a subscript
 * @property {number} start
 * @property {number} step
 * @property {[number, number]} range
 * @property {1 | -1} [when] shown only for advantages of this sign
 */

/** @typedef {{ logProbs: Float64Array, oldLogProbs: Float64Array, advantages: Float64Array }} Input */

/**
 * @typedef {{ library: import("../../../engine.js").Library, batch: import("../../../engine.js").Batch, input: Input,
 *   rows: number, width: number }} Call
 */

/** @typedef {(key: string) => number} Values of the parameters */
/** @typedef {(what: string) => Element} Writer writes a symbol, or the number it stands for */
/** @typedef {{ loss: Child[], slope: Child[], with?: Child[][] }} Formula `with`: what else the two lines refer to */
/** @typedef {{ x: number, text: string }} Mark on the axis of ratios */

/**
 * @typedef {object} Description
 * @property {string} id part of shared links: never renamed
 * @property {[number, number]} look colour and dash of its curve: no two losses share both, those often shown together
 *   share neither
 * @property {string[]} [examples] the examples of state.js that show it
 * @property {string[]} [explainedIn] those of them that explain it
 * @property {Parameter[]} parameters
 * @property {boolean} [sequence] reads the other tokens of the sequence too
 * @property {boolean} [shared] its term cannot be told apart from that of the whole sequence
 * @property {(call: Call, value: Values) => { loss: number, grad: Float64Array }} run the sum of the tokens' terms, and
 *   its gradient by each token's log-probability
 * @property {(w: Writer, bad: boolean) => Formula} formula the same with symbols and with numbers; `bad`: for a
 *   negative advantage
 * @property {(value: Values, bad: boolean) => Mark[]} [marks] its bounds, where they are bounds of the token's ratio
 * @property {boolean} [zeroMarks] its bounds are not bounds of the ratio: the ratios at which the gradient becomes 0
 *   are marked instead
 * @property {(numbers: (convention: string) => number[]) => Record<string, number | undefined>} [fromProfile] the
 *   parameters that a framework's conventions determine; `undefined` leaves one as it is
 */

export const SUM = { mode: /** @type {const} */ ("token-sum") };

/** @type {(key: string, sign: string, start: number, more?: Partial<Parameter>) => Parameter} */
export const parameter = (key, sign, start, more = {}) => ({ key, sign, start, step: 0.01, range: [0, 10], ...more });

export const EPS = parameter("eps", "ε", 0.2, { range: [0, 0.99] });
export const low = (/** @type {number} */ start) => parameter("low", "ε^−", start, { range: [0, 0.99] });
export const high = (/** @type {number} */ start) => parameter("high", "ε^+", start);
export const positive = { range: /** @type {[number, number]} */ ([0.01, 100]), step: 0.1 };

/** @param {Values} value @returns {Mark[]} */
export const epsMarks = (value) => [
  { x: 1 - value("eps"), text: "1−ε" },
  { x: 1 + value("eps"), text: "1+ε" },
];

/** @param {Values} value @returns {Mark[]} */
export const lowHighMarks = (value) => [
  { x: 1 - value("low"), text: "1−ε⁻" },
  { x: 1 + value("high"), text: "1+ε⁺" },
];
