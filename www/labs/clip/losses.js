// The policy losses that depend on one token's ratio: how the library is called, and which numbers each of them has.
// Loss: this token's own term. Gradient: of the sum of the tokens' terms, by this token's log-probability.

/**
 * @typedef {object} Parameter
 * @property {string} key
 * @property {string} sign for the field's label; "^" before what stands above, "_" below
 * @property {number} start
 * @property {number} step
 * @property {[number, number]} range
 * @property {1 | -1} [when] shown only for advantages of this sign
 */

/** @typedef {{ logProbs: Float64Array, oldLogProbs: Float64Array, advantages: Float64Array }} Input */

/**
 * @typedef {object} Loss
 * @property {string} id
 * @property {"clip" | "sequence" | "weight" | "soft"} family
 * @property {Parameter[]} parameters
 * @property {boolean} [sequence] reads the other tokens of the sequence too
 * @property {boolean} [shared] its term cannot be told apart from that of the whole sequence
 * @property {(call: Call, values: (key: string) => number) => { loss: number, grad: Float64Array }} run
 */

/** @typedef {{ library: import("../../engine.js").Library, batch: import("../../engine.js").Batch, input: Input, rows: number, width: number }} Call */

const SUM = { mode: /** @type {const} */ ("token-sum") };

/** @type {(key: string, sign: string, start: number, more?: Partial<Parameter>) => Parameter} */
const parameter = (key, sign, start, more = {}) => ({ key, sign, start, step: 0.01, range: [0, 10], ...more });

const EPS = parameter("eps", "ε", 0.2, { range: [0, 0.99] });
const low = (/** @type {number} */ start) => parameter("low", "ε^−", start, { range: [0, 0.99] });
const high = (/** @type {number} */ start) => parameter("high", "ε^+", start);
const positive = { range: /** @type {[number, number]} */ ([0.01, 100]), step: 0.1 };

/** @type {Loss[]} */
export const losses = [
  {
    id: "surrogate", family: "clip", parameters: [],
    run: ({ library, batch, input }) => library.surrogateF64(batch, input, { aggregate: SUM }),
  },
  {
    id: "ppo", family: "clip", parameters: [EPS],
    run: ({ library, batch, input }, v) => library.ppoClipF64(batch, input, { clipLow: v("eps"), clipHigh: v("eps"), aggregate: SUM }),
  },
  {
    id: "higher", family: "clip", parameters: [low(0.2), high(0.28)],
    run: ({ library, batch, input }, v) => library.ppoClipF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), aggregate: SUM }),
  },
  {
    id: "dual", family: "clip", parameters: [EPS, parameter("c", "c", 3, { range: [1.001, 100], step: 0.1 })],
    run: ({ library, batch, input }, v) => library.ppoClipF64(batch, input, { clipLow: v("eps"), clipHigh: v("eps"), dualClip: { negativeOnly: v("c") }, aggregate: SUM }),
  },
  {
    id: "delta", family: "clip", parameters: [EPS, parameter("c", "δ", 4, { range: [1.001, 100], step: 0.1 })],
    run: ({ library, batch, input }, v) => library.ppoClipF64(batch, input, { clipLow: v("eps"), clipHigh: v("eps"), dualClip: { bothSigns: v("c") }, aggregate: SUM }),
  },
  {
    id: "gspo", family: "sequence", sequence: true, parameters: [low(0.2), high(0.2)],
    run: ({ library, batch, input }, v) => library.gspoF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), aggregate: SUM }),
  },
  {
    id: "luspo", family: "sequence", sequence: true, parameters: [low(0.2), high(0.2)],
    // a mean over sequences: as many as there are turn it into a sum
    run: ({ library, batch, input, rows }, v) => times(library.luspoF64(batch, input, { clipLow: v("low"), clipHigh: v("high") }), rows),
  },
  {
    id: "gmpo", family: "sequence", sequence: true, shared: true, parameters: [low(0.4), parameter("high", "ε^+", 0.4)],
    // "ranks" multiplies the result: the mean over a sequence's tokens becomes their sum
    run: ({ library, batch, input, width }, v) => library.gmpoF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), counts: { sequences: 1, ranks: width } }),
  },
  {
    id: "vespo", family: "sequence", sequence: true,
    parameters: [
      parameter("kPositive", "k", 2, { ...positive, when: 1 }), parameter("lambdaPositive", "λ", 3, { ...positive, when: 1 }),
      parameter("kNegative", "k", 3, { ...positive, when: -1 }), parameter("lambdaNegative", "λ", 2, { ...positive, when: -1 }),
    ],
    run: ({ library, batch, input }, v) => library.vespoF64(batch, input, {
      kPositive: v("kPositive"), lambdaPositive: v("lambdaPositive"), kNegative: v("kNegative"), lambdaNegative: v("lambdaNegative"), aggregate: SUM,
    }),
  },
  {
    id: "cispo", family: "weight", parameters: [low(0.2), high(0.2)],
    run: ({ library, batch, input }, v) => library.cispoF64(batch, input, { bounds: { kind: "relative", low: v("low"), high: v("high") }, aggregate: SUM }),
  },
  {
    id: "cispoCap", family: "weight", parameters: [parameter("cap", "ε_max", 5, { range: [0.01, 100], step: 0.1 })],
    run: ({ library, batch, input }, v) => library.cispoF64(batch, input, { bounds: { kind: "absolute", high: v("cap") }, aggregate: SUM }),
  },
  {
    id: "tis", family: "weight", parameters: [],
    run: ({ library, batch, input }) => library.tisLossF64(batch, input, { aggregate: SUM }),
  },
  {
    id: "topr", family: "weight", parameters: [parameter("positive", "w_+", 1, { step: 0.1, when: 1 }), parameter("negative", "w_−", 1, { step: 0.1, when: -1 })],
    // a response is good or bad as a whole; here its score has the sign of the advantage
    run: ({ library, batch, input, rows, width }, v) => {
      const scores = Float64Array.from({ length: rows }, (_, i) => input.advantages[i * width]);
      return library.toprF64(batch, input, scores, { positive: v("positive"), negative: v("negative"), aggregate: SUM });
    },
  },
  {
    id: "dppoTv", family: "weight", parameters: [low(0.2), high(0.2), parameter("cap", "c", 3, positive)],
    run: ({ library, batch, input }, v) => library.dppoTvF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), ratioCap: v("cap"), aggregate: SUM }),
  },
  {
    id: "dppoKl", family: "weight", parameters: [low(0.2), high(0.2), parameter("cap", "c", 3, positive)],
    run: ({ library, batch, input }, v) => library.dppoKlF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), ratioCap: v("cap"), aggregate: SUM }),
  },
  {
    id: "reinforce", family: "weight", parameters: [],
    run: ({ library, batch, input }) => library.reinforceF64(batch, input, { aggregate: SUM }),
  },
  {
    id: "sapo", family: "soft",
    parameters: [parameter("tauPositive", "τ", 1, { ...positive, step: 0.05, when: 1 }), parameter("tauNegative", "τ", 1.05, { ...positive, step: 0.05, when: -1 })],
    run: ({ library, batch, input }, v) => library.sapoF64(batch, input, { tauPositive: v("tauPositive"), tauNegative: v("tauNegative"), aggregate: SUM }),
  },
  {
    id: "dro", family: "soft", parameters: [parameter("beta", "β", 1, { ...positive })],
    run: ({ library, batch, input }, v) => library.droF64(batch, input, { beta: v("beta"), aggregate: SUM }),
  },
  {
    id: "klCov", family: "soft", parameters: [parameter("kappa", "κ", 0.1, { step: 0.05 })],
    // the token shown is one of those chosen
    run: ({ library, batch, input }, v) => library.klCovF64(batch, input, { ratio: 1, klCoef: v("kappa"), aggregate: SUM }),
  },
];

/** @type {Loss["family"][]} */
export const families = ["clip", "sequence", "weight", "soft"];

export const lossIds = losses.map(({ id }) => id);

/** @param {string} id */
export const lossOf = (id) => /** @type {Loss} */ (losses.find((loss) => loss.id === id));

/** @type {Record<string, [number, number]>} colour and dash: no two losses share both, those often shown together share neither */
const looks = {
  surrogate: [7, 2], ppo: [0, 0], higher: [1, 1], dual: [6, 3], delta: [3, 5],
  gspo: [2, 5], luspo: [1, 6], gmpo: [4, 3], vespo: [5, 1],
  cispo: [1, 3], cispoCap: [6, 1], tis: [4, 2], topr: [5, 5], dppoTv: [2, 1], dppoKl: [3, 3], reinforce: [7, 0],
  sapo: [3, 1], dro: [6, 2], klCov: [0, 3],
};

/** @param {string} id */
export const lookOf = (id) => ({ colour: looks[id][0], dash: looks[id][1] });

/** The parameters that count for the sign of an advantage. @param {Loss} loss @param {number} advantage */
export const parametersOf = (loss, advantage) => loss.parameters.filter(({ when }) => when === undefined || when === (advantage < 0 ? -1 : 1));

/**
 * A mean made a sum: the only product here that is not the library's.
 * @param {{ loss: number, grad: Float64Array }} result
 * @param {number} factor
 */
const times = ({ loss, grad }, factor) => ({ loss: loss * factor, grad: grad.map((one) => one * factor) });
