// All numbers of the laboratory of logits, from the library.
// The entries that share one logit are computed once and counted.

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Result
 * @property {number[]} logits of the shown entries, then of the rest if there is one
 * @property {number[]} counts how many entries each stands for
 * @property {Float64Array} logProbs
 * @property {Float64Array} probs
 * @property {Float64Array} terms −p·log p; 0 where p is 0
 * @property {Float64Array} gradLogProb ∂ log p(chosen) / ∂ logit
 * @property {Float64Array} gradEntropy ∂ H / ∂ logit
 * @property {number} entropy
 * @property {number} squares Σ p²
 * @property {number} expectedTerm Σ p·(−p·log p): what the proxy is on average
 * @property {number} expectedSurprise Σ p·(−log p): what −log p is on average
 * @property {number} vocabulary
 * @property {number} support entries that are not masked out
 * @property {number} bound ln of the support
 * @property {number} choices e^H
 * @property {number} careless the entropy by code that multiplies p and z without care
 */

/** @param {State} state */
function vocabularyOf({ entries, rest }) {
  const logits = new Float64Array(entries.length + rest.count).fill(rest.logit);
  for (const [i, { logit }] of entries.entries()) logits[i] = logit;
  return logits;
}

/**
 * @typedef {object} Measures what a curve is made of
 * @property {Float64Array} logProbs
 * @property {Float64Array} probs
 * @property {Float64Array} terms
 * @property {number} entropy
 * @property {number} squares
 * @property {number} expectedTerm
 * @property {number} expectedSurprise
 */

/** How many entries each line stands for. @param {State} state */
const countsOf = ({ entries, rest }) => [...entries.map(() => 1), ...(rest.count > 0 ? [rest.count] : [])];

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @returns {Measures} throws what the library throws at a temperature it refuses
 */
function measure(library, state) {
  const one = library.Batch.padded(1, 1, Uint8Array.of(1));
  const counts = countsOf(state);
  try {
    const at = distribution(library, one, vocabularyOf(state), counts.length, state.temperature);
    return { ...at, ...expectations(library, at, counts) };
  } finally {
    one.free();
  }
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @returns {Result} throws what the library throws at a temperature it refuses
 */
export function compute(library, state) {
  const { chosen, temperature } = state;
  const at = measure(library, state);
  const vocabulary = vocabularyOf(state);
  const counts = countsOf(state);
  const one = library.Batch.padded(1, 1, Uint8Array.of(1));
  const gradient = (/** @type {number} */ g, /** @type {number} */ h) => {
    const input = {
      logits: vocabulary,
      vocab: vocabulary.length,
      tokens: Uint32Array.of(chosen),
      gradLogProbs: Float64Array.of(g),
      gradEntropy: Float64Array.of(h),
    };
    return library.logitsGradientF64(one, input, { temperature }).slice(0, counts.length);
  };
  const logits = Array.from(vocabulary.slice(0, counts.length));
  const [gradLogProb, gradEntropy] = [gradient(1, 0), gradient(0, 1)];
  const support = logits.reduce((all, logit, i) => (logit === -Infinity ? all : all + counts[i]), 0);
  one.free();
  return {
    ...at,
    logits,
    counts,
    gradLogProb,
    gradEntropy,
    vocabulary: vocabulary.length,
    support,
    bound: library.lnF64(support),
    choices: library.expF64(at.entropy),
    careless: careless(at, logits, counts, temperature),
  };
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {any} one a batch of one token
 * @param {Float64Array} logits
 * @param {number} shown how many entries are asked for
 * @param {number} temperature
 */
function distribution(library, one, logits, shown, temperature) {
  const config = { temperature };
  const ids = Uint32Array.from({ length: shown }, (_, i) => i);
  const logProbs = /** @type {Float64Array} */ (
    library.topkLogProbsF64(one, { logits, vocab: logits.length, tokens: ids, k: shown }, config)
  );
  // an entry that cannot be drawn is a dropped token: it is left out
  const batch = library.Batch.padded(
    1,
    shown,
    Uint8Array.from(logProbs, (x) => Number(x !== -Infinity)),
  );
  const each = (/** @type {Float64Array} */ advantages) =>
    // the gradient of the summed surrogate against log-probabilities of 0 is −p·advantage
    /** @type {Float64Array} */ (
      library.surrogateF64(
        batch,
        { logProbs, oldLogProbs: new Float64Array(shown), advantages },
        { aggregate: { mode: "token-sum" } },
      ).grad
    );
  const result = {
    logProbs,
    probs: each(new Float64Array(shown).fill(-1)),
    terms: each(logProbs),
    entropy: library.entropyF64(one, { logits, vocab: logits.length }, config)[0],
    squares: library.sumSquaredProbsF64(one, { logits, vocab: logits.length }, config)[0],
  };
  batch.free();
  return result;
}

/**
 * Averages over the distribution; the products with how many entries there are of a kind are the page's own.
 * @param {import("../../engine.js").Library} library
 * @param {{ probs: Float64Array, terms: Float64Array, logProbs: Float64Array }} at
 * @param {number[]} counts
 */
function expectations(library, { probs, terms }, counts) {
  const batch = library.Batch.padded(1, probs.length, new Uint8Array(probs.length).fill(1));
  const sum = (/** @type {(i: number) => number} */ of) =>
    library.aggregateF64(
      batch,
      Float64Array.from(probs, (_, i) => counts[i] * of(i)),
      { mode: "token-sum" },
    ).loss;
  const result = { expectedTerm: sum((i) => probs[i] * terms[i]), expectedSurprise: sum((i) => terms[i]) };
  batch.free();
  return result;
}

/**
 * ln Σ eᶻ − Σ p·z as it is often written, with a product that is 0·(−∞) where an entry is masked out.
 * The library does not compute it this way.
 * @param {{ probs: Float64Array, logProbs: Float64Array }} at
 * @param {number[]} logits
 * @param {number[]} counts
 * @param {number} temperature
 */
function careless({ probs, logProbs }, logits, counts, temperature) {
  const first = logProbs.findIndex(Number.isFinite);
  const normaliser = logits[first] / temperature - logProbs[first];
  return normaliser - probs.reduce((all, p, i) => all + counts[i] * p * (logits[i] / temperature), 0);
}

/**
 * @typedef {object} Sweep numbers along one axis
 * @property {number[]} x
 * @property {number[]} entropy
 * @property {number[]} expectedSurprise
 * @property {number[]} expectedTerm
 * @property {number[]} surprise −log p of the chosen entry
 * @property {number[]} term −p·log p of the chosen entry
 */

/**
 * @param {number[]} x
 * @param {Measures[]} results
 * @param {number} chosen
 * @returns {Sweep}
 */
const sweep = (x, results, chosen) => ({
  x,
  entropy: results.map(({ entropy }) => entropy),
  expectedSurprise: results.map(({ expectedSurprise }) => expectedSurprise),
  expectedTerm: results.map(({ expectedTerm }) => expectedTerm),
  surprise: results.map(({ logProbs }) => 0 - logProbs[chosen]),
  term: results.map(({ terms }) => terms[chosen]),
});

export const TEMPERATURES = /** @type {[number, number]} */ ([0.05, 5]);

/** @param {import("../../engine.js").Library} library @param {State} state */
export function overTemperature(library, state) {
  const [low, high] = TEMPERATURES;
  const x = Array.from({ length: 61 }, (_, k) => low * (high / low) ** (k / 60));
  return sweep(
    x,
    x.map((temperature) => measure(library, { ...state, temperature })),
    state.chosen,
  );
}

/**
 * From undecided to certain: one entry takes probability from all others, which stay equal.
 * @param {import("../../engine.js").Library} library
 * @param {number} entries at least 2
 */
export function overSharpness(library, entries) {
  const others = entries - 1;
  const wanted = Array.from({ length: 61 }, (_, k) => (1 + (others * k) / 60.5) / entries);
  const states = wanted.map((p) => ({
    entries: [{ text: "", logit: Math.log((p * others) / (1 - p)) }],
    chosen: 0,
    temperature: 1,
    rest: { count: others, logit: 0 },
  }));
  const results = states.map((state) => measure(library, state));
  return sweep(
    results.map(({ probs }) => probs[0]),
    results,
    0,
  );
}
