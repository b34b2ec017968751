// What the KL laboratory shows: two small distributions, which estimate is looked at, how many samples are drawn.

/** @typedef {"logits" | "probabilities"} Form */
/** @typedef {"unbounded" | "k3-only" | "every"} Bounds */
/** @typedef {"policy" | "reference"} Side */

/**
 * @typedef {object} Distribution
 * @property {Form} form how it is written; probabilities need not add up to 1, they are divided by their sum
 * @property {number[]} values
 */

/**
 * @typedef {object} State
 * @property {Distribution} policy
 * @property {Distribution} reference
 * @property {Bounds} bounds whose bounds the estimators have
 * @property {number} ratio π/π_old for the curves of the weighted estimates
 * @property {string} chosen the row that is explained
 * @property {number} samples
 * @property {number} seed
 * @property {number} together how many samples are averaged into one entry of the histogram
 */

export const LEAST = 2;
export const MOST = 8;
/** @type {Form[]} */
export const forms = ["logits", "probabilities"];
/** @type {Bounds[]} */
export const boundsNames = ["unbounded", "k3-only", "every"];
export const sampleSizes = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];
export const togetherSizes = [1, 4, 16, 64];

/** @type {State} */
const plain = {
  policy: { form: "logits", values: [2, 1, 0] },
  reference: { form: "probabilities", values: [0.2, 0.3, 0.5] },
  bounds: "unbounded",
  ratio: 1,
  chosen: "loss.k3",
  samples: 1000,
  seed: 1,
  together: 1,
};

/** @type {{ id: string, state: State }[]} */
export const presets = [
  { id: "other-way", state: plain },
  { id: "nothing", state: { ...plain, chosen: "loss.k1" } },
  { id: "weighted", state: { ...plain, chosen: "loss.ratio-k3", ratio: 1.5 } },
  {
    id: "bound",
    state: { ...plain, policy: { form: "logits", values: [6, 3, 0] }, bounds: "k3-only", chosen: "loss.k3" },
  },
  {
    id: "rare",
    state: {
      ...plain,
      policy: { form: "probabilities", values: [0.499, 0.499, 0.002] },
      reference: { form: "probabilities", values: [0.3, 0.3, 0.4] },
      chosen: "reward.k3",
      samples: 200,
    },
  },
  {
    id: "near",
    state: {
      ...plain,
      policy: { form: "probabilities", values: [0.22, 0.3, 0.48] },
      chosen: "loss.k2",
      together: 64,
      samples: 10_000,
    },
  },
];

export const initial = () => presets[0].state;

/** The example a state is, if it is one as it was given. @param {State} state */
export const presetOf = (state) =>
  presets.find((preset) => preset.state === state || JSON.stringify(preset.state) === JSON.stringify(state))?.id ?? "";

/**
 * Whether a number may stand in a distribution.
 * @param {Form} form
 * @param {number} value
 */
export const fits = (form, value) =>
  Number.isFinite(value) && (form === "logits" ? Math.abs(value) <= 50 : value >= 1e-12 && value <= 1e6);

/**
 * @param {State} state
 * @param {Side} side
 * @param {Partial<Distribution>} change
 * @returns {State}
 */
export const withDistribution = (state, side, change) => ({ ...state, [side]: { ...state[side], ...change } });

/**
 * @param {State} state
 * @param {Side} side
 * @param {number} index
 * @param {number} value
 */
export const withEntry = (state, side, index, value) =>
  withDistribution(state, side, { values: state[side].values.map((old, i) => (i === index ? value : old)) });

/**
 * Adds an action, as likely as the last one, or removes one.
 * @param {State} state
 * @param {number} count
 * @returns {State}
 */
export function withActions(state, count) {
  const sized = (/** @type {number[]} */ values) =>
    Array.from({ length: count }, (_, i) => values[i] ?? values[values.length - 1]);
  return {
    ...state,
    policy: { ...state.policy, values: sized(state.policy.values) },
    reference: { ...state.reference, values: sized(state.reference.values) },
  };
}

/**
 * @param {unknown} data
 * @returns {Distribution | null}
 */
function readDistribution(data) {
  const { form, values } = /** @type {any} */ (data ?? {});
  if (!forms.includes(form) || !Array.isArray(values) || values.length < LEAST || values.length > MOST) return null;
  return values.every((value) => typeof value === "number" && fits(form, value))
    ? { form, values: values.slice() }
    : null;
}

/**
 * @param {unknown} data from outside
 * @param {string[]} rows that can be chosen
 * @returns {State | null}
 */
export function read(data, rows) {
  if (typeof data !== "object" || data === null) return null;
  const given = /** @type {Record<string, any>} */ (data);
  const policy = given.policy === undefined ? plain.policy : readDistribution(given.policy);
  const reference = given.reference === undefined ? plain.reference : readDistribution(given.reference);
  if (!policy || !reference || policy.values.length !== reference.values.length) return null;
  /**
   * @param {keyof State} key
   * @param {(value: any) => boolean} good
   * @returns {any}
   */
  const or = (key, good) => (good(given[key]) ? given[key] : plain[key]);
  return {
    policy,
    reference,
    bounds: or("bounds", (value) => boundsNames.includes(value)),
    ratio: or("ratio", (value) => typeof value === "number" && value > 0 && value <= 100),
    chosen: or("chosen", (value) => rows.includes(value)),
    samples: or("samples", (value) => sampleSizes.includes(value)),
    seed: or("seed", (value) => Number.isInteger(value) && value >= 0 && value <= 0xffffffff),
    together: or("together", (value) => togetherSizes.includes(value)),
  };
}
