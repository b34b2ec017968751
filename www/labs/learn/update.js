// One update of the policy, from sampling to the new logits. Exponentials, logarithms and every formula are the
// library's, because a browser's own differ in their last digits; here are only sums, products and comparisons.

import { aggregateOf, estimators, losses } from "./methods.js";
import { judge, rowOf } from "./world.js";

/** @typedef {import("../../engine.js").Library} Library */
/** @typedef {import("../../engine.js").Batch} Batch */
/** @typedef {import("./world.js").World} World */
/** @typedef {import("./state.js").Settings} Settings */

/**
 * @typedef {object} Table the policy and its critic
 * @property {Float64Array} logits a row for each place
 * @property {Float64Array} values one for each row
 */

/** @typedef {{ [key in typeof METRICS[number]]: number }} Metrics */

export const METRICS = /** @type {const} */ ([
  "reward",
  "solved",
  "entropy",
  "kl",
  "klEstimate",
  "clipped",
  "tied",
  "loss",
  "gradient",
  "length",
]);

/**
 * @typedef {object} Samples the answers that an update was made from, one after the other, each `positions` wide
 * @property {number} group answers to each prompt
 * @property {Uint32Array} tokens
 * @property {Uint8Array} mask 0 after the end of an answer
 * @property {Float64Array} scores one for each answer
 * @property {Uint8Array} right
 * @property {Float64Array} taskRewards of the tokens, without the price of the KL
 * @property {Float64Array} logProbs
 * @property {Float64Array} refLogProbs
 * @property {Float64Array} newLogProbs after the last epoch but one: what the last gradient was taken at
 * @property {Float64Array} entropies
 * @property {Float64Array} values
 * @property {Float64Array} advantages
 */

/** The logits ran away, so that the next probabilities would be no numbers. */
export class Diverged extends Error {}

/** What every update of a run needs, made once. */
export class Bench {
  /**
   * @param {Library} library
   * @param {World} world
   * @param {Float64Array} start the logits of the initial policy
   */
  constructor(library, world, start) {
    const vocabulary = world.letters.length;
    const entries = world.rows * vocabulary;
    this.library = library;
    this.world = world;
    this.start = start;
    this.vocabulary = vocabulary;
    this.rows = library.Batch.padded(1, world.rows, new Uint8Array(world.rows).fill(1));
    this.entries = library.Batch.padded(1, entries, new Uint8Array(entries).fill(1));
    this.every = Uint32Array.from({ length: entries }, (_, i) => i % vocabulary);
    this.zeros = new Float64Array(entries);
    this.minus = new Float64Array(entries).fill(-1);
    /** any letter of each row: where the log-probabilities have no gradient, which one does not matter */
    this.firsts = new Uint32Array(world.rows);
    this.none = new Float64Array(world.rows);
    this.startLogProbs = this.logProbs(start);
  }

  /** Of every letter in every row. @param {Float64Array} logits @returns {Float64Array} */
  logProbs(logits) {
    return this.library.topkLogProbsF64(this.rows, {
      logits,
      vocab: this.vocabulary,
      tokens: this.every,
      k: this.vocabulary,
    });
  }

  /** @param {Float64Array} logProbs of every letter in every row @returns {Float64Array} */
  exponentials(logProbs) {
    // the gradient of the summed surrogate against log-probabilities of 0 is −p·advantage
    return this.library.surrogateF64(
      this.entries,
      { logProbs, oldLogProbs: this.zeros, advantages: this.minus },
      { aggregate: { mode: "token-sum" } },
    ).grad;
  }

  /** @param {Float64Array} logits */
  probabilities(logits) {
    return this.exponentials(this.logProbs(logits));
  }

  /** Of every row. @param {Float64Array} logits @returns {Float64Array} */
  entropies(logits) {
    return this.library.entropyF64(this.rows, { logits, vocab: this.vocabulary });
  }

  /** From the initial policy, of every row, exact. @param {Float64Array} logits @returns {Float64Array} */
  klToStart(logits) {
    return this.library.klExactF64(this.rows, { logits, refLogits: this.start, vocab: this.vocabulary });
  }

  /**
   * From the gradients of the log-probabilities of all letters, and of the entropies of the rows, to that of the
   * logits.
   * @param {Float64Array} logits
   * @param {Float64Array} gradLogProbs
   * @param {Float64Array | null} gradEntropy
   * @returns {Float64Array}
   */
  gradient(logits, gradLogProbs, gradEntropy) {
    const { library, rows, vocabulary: vocab } = this;
    const input = { logits, vocab, tokens: this.every, k: vocab, gradLogProbs };
    const gradient = library.topkLogitsGradientF64(rows, input);
    if (!gradEntropy) return gradient;
    const more = library.logitsGradientF64(rows, {
      logits,
      vocab,
      tokens: this.firsts,
      gradLogProbs: this.none,
      gradEntropy,
    });
    for (let i = 0; i < gradient.length; i += 1) gradient[i] += more[i];
    return gradient;
  }

  free() {
    this.rows.free();
    this.entries.free();
  }
}

/**
 * Answers to every prompt, letter by letter; `rows` and `entries`: which row of logits a token was drawn from, and
 * which of the table's entries it is.
 * @param {World} world
 * @param {Float64Array} probabilities
 * @param {number} group
 * @param {import("./random.js").Random} random
 */
function sample(world, probabilities, group, random) {
  const { letters, words, lengths, positions, stop } = world;
  const count = words.length * group;
  const tokens = new Uint32Array(count * positions);
  const rows = new Uint32Array(count * positions);
  const entries = new Uint32Array(count * positions);
  const mask = new Uint8Array(count * positions);
  for (let answer = 0; answer < count; answer += 1) {
    const prompt = (answer - (answer % group)) / group;
    let previous = -1;
    for (let t = 0; t < lengths[prompt]; t += 1) {
      const row = rowOf(world, prompt, t, previous);
      const u = random.uniform();
      let letter = 0;
      let sum = probabilities[row * letters.length];
      // rounding may leave the sum a little below 1: then it is the last letter
      while (u >= sum && letter + 1 < letters.length) {
        letter += 1;
        sum += probabilities[row * letters.length + letter];
      }
      const slot = answer * positions + t;
      tokens[slot] = letter;
      rows[slot] = row;
      entries[slot] = row * letters.length + letter;
      mask[slot] = 1;
      previous = letter;
      if (letter === stop) break;
    }
  }
  return { tokens, rows, entries, mask };
}

/**
 * @param {Float64Array} table
 * @param {Uint32Array} places one for each token
 */
function gathered(table, places) {
  const out = new Float64Array(places.length);
  for (let i = 0; i < places.length; i += 1) out[i] = table[places[i]];
  return out;
}

/**
 * @param {World} world
 * @param {string} rule
 * @param {Uint32Array} tokens
 * @param {Uint8Array} mask
 * @param {number} group
 */
function scored(world, rule, tokens, mask, group) {
  const { positions } = world;
  const count = tokens.length / positions;
  const scores = new Float64Array(count);
  const right = new Uint8Array(count);
  const rewards = new Float64Array(tokens.length);
  let length = 0;
  for (let answer = 0; answer < count; answer += 1) {
    const from = answer * positions;
    let size = 0;
    while (size < positions && mask[from + size] === 1) size += 1;
    const judged = judge(world, rule, (answer - (answer % group)) / group, tokens.subarray(from, from + size));
    scores[answer] = judged.score;
    right[answer] = judged.right ? 1 : 0;
    if (judged.each) rewards.set(judged.each, from);
    else rewards[from + size - 1] = judged.score;
    length += size;
  }
  return { scores, right, rewards, length: length / count };
}

/**
 * @param {Bench} bench
 * @param {Table} table left as it is
 * @param {Settings} settings
 * @param {import("./random.js").Random} random
 * @returns {{ table: Table, metrics: Metrics, samples: Samples }} throws what the library refuses, and {@link Diverged}
 */
export function update(bench, table, settings, random) {
  const { library, world } = bench;
  const { group } = settings;
  const rowLogProbs = bench.logProbs(table.logits);
  const drawn = sample(world, bench.exponentials(rowLogProbs), group, random);
  const { tokens, rows, entries, mask } = drawn;
  const batch = library.Batch.padded(world.words.length * group, world.positions, mask);
  // the answers of a prompt in a row, which the library then takes for tokens of a sequence
  const byPrompt = library.Batch.padded(world.words.length, group, new Uint8Array(world.words.length * group).fill(1));
  try {
    const { scores, right, rewards: taskRewards, length } = scored(world, settings.rule, tokens, mask, group);
    const logProbs = gathered(rowLogProbs, entries);
    const refLogProbs = gathered(bench.startLogProbs, entries);
    const entropies = gathered(bench.entropies(table.logits), rows);
    const kl = gathered(bench.klToStart(table.logits), rows);
    const klEstimate = library.klEstimateF64(batch, { logProbs, refLogProbs }, { estimator: settings.klKind });
    const rewards =
      settings.klPlace === "reward"
        ? library.shapeRewardsF64(batch, { scores: taskRewards, kl: klEstimate }, { beta: settings.beta })
        : taskRewards;
    const values = gathered(table.values, rows);
    const groups = { sizes: new Uint32Array(world.words.length).fill(group) };
    const { advantages, returns } = estimators[settings.estimator]({
      library,
      batch,
      groups,
      rewards,
      values,
      settings,
    });
    const told = descend(bench, batch, {
      logits: table.logits,
      drawn,
      oldLogProbs: logProbs,
      refLogProbs,
      advantages,
      settings,
    });
    const kept = library.dynamicSamplingFilterF64(groups, scores);
    /** @type {Metrics} */
    const metrics = {
      reward: library.meanF64(byPrompt, scores),
      solved: library.meanF64(byPrompt, Float64Array.from(right)),
      entropy: library.meanF64(batch, entropies),
      kl: library.meanF64(batch, kl),
      klEstimate: library.meanF64(batch, klEstimate),
      clipped: told.clipped,
      tied: 1 - kept.reduce((/** @type {number} */ sum, /** @type {number} */ one) => sum + one, 0) / kept.length,
      loss: told.loss,
      gradient: told.gradient,
      length,
    };
    const next = returns ? criticAfter(bench, batch, table.values, drawn, values, returns, settings) : table.values;
    return {
      table: { logits: told.logits, values: next },
      metrics,
      samples: {
        group,
        tokens,
        mask,
        scores,
        right,
        taskRewards,
        logProbs,
        refLogProbs,
        newLogProbs: told.newLogProbs,
        entropies,
        values,
        advantages,
      },
    };
  } finally {
    batch.free();
    byPrompt.free();
  }
}

/**
 * Goes down the loss, epoch by epoch, over the same answers.
 * @param {Bench} bench
 * @param {Batch} batch
 * @param {{ logits: Float64Array, drawn: { rows: Uint32Array, entries: Uint32Array, mask: Uint8Array },
 *   oldLogProbs: Float64Array, refLogProbs: Float64Array, advantages: Float64Array, settings: Settings }} input
 */
function descend(bench, batch, { logits: from, drawn, oldLogProbs, refLogProbs, advantages, settings }) {
  const { library, world } = bench;
  const { epochs, rate, klPlace, beta, entropy: bonus } = settings;
  const { rows, entries } = drawn;
  const aggregate = aggregateOf(settings, world.positions);
  const kl = { estimator: settings.klKind };
  const logits = from.slice();
  let [clipped, loss, squares, newLogProbs] = [0, 0, 0, oldLogProbs];
  for (let epoch = 0; epoch < epochs; epoch += 1) {
    const logProbs = gathered(bench.logProbs(logits), entries);
    const lost = losses[settings.loss](library, batch, { logProbs, oldLogProbs, advantages }, settings, aggregate);
    clipped += lost.clipFraction ?? 0;
    let total = lost.loss;
    // tokens drawn from the same row share its logits: their gradients add up
    const gradLogProbs = new Float64Array(logits.length);
    const gradEntropy = new Float64Array(world.rows);
    add(gradLogProbs, entries, lost.grad);
    if (klPlace === "loss") {
      const priced = library.klLossF64(batch, { logProbs, refLogProbs }, { kl, coefficient: beta, aggregate });
      add(gradLogProbs, entries, priced.grad);
      total += priced.loss;
    }
    if (bonus !== 0) {
      const entropies = gathered(bench.entropies(logits), rows);
      const paid = library.entropyBonusF64(batch, entropies, { coefficient: bonus, aggregate });
      add(gradEntropy, rows, paid.grad);
      total += paid.loss;
    }
    if (epoch === 0) loss = total;
    newLogProbs = logProbs;
    const gradient = bench.gradient(logits, gradLogProbs, bonus === 0 ? null : gradEntropy);
    squares = 0;
    for (let i = 0; i < logits.length; i += 1) {
      squares += gradient[i] * gradient[i];
      logits[i] -= rate * gradient[i];
    }
  }
  // a logit this large would be an infinite or undefined one soon
  if (!logits.every((z) => z < 1e15 && z > -1e15)) throw new Diverged();
  return { logits, loss, clipped: clipped / epochs, gradient: library.sqrtF64(squares), newLogProbs };
}

/**
 * @param {Float64Array} table
 * @param {Uint32Array} places one for each token
 * @param {Float64Array} values of the tokens, 0 where dropped
 */
function add(table, places, values) {
  for (let i = 0; i < places.length; i += 1) table[places[i]] += values[i];
}

/**
 * The critic goes towards the returns: every value by the mean error of the answers that passed it, times its rate.
 * @param {Bench} bench
 * @param {Batch} batch
 * @param {Float64Array} table
 * @param {{ rows: Uint32Array, mask: Uint8Array }} drawn
 * @param {Float64Array} values
 * @param {Float64Array} returns
 * @param {Settings} settings
 */
function criticAfter({ library }, batch, table, { rows, mask }, values, returns, { criticRate }) {
  const { grad } = library.valueLossF64(
    batch,
    { predictions: values, values, returns },
    { clip: null, factor: "half", aggregate: { mode: "token-sum" } },
  );
  const [sums, counts] = [new Float64Array(table.length), new Uint32Array(table.length)];
  for (let i = 0; i < rows.length; i += 1) {
    if (mask[i] === 0) continue;
    sums[rows[i]] += grad[i];
    counts[rows[i]] += 1;
  }
  return table.map((value, row) => (counts[row] === 0 ? value : value - (criticRate * sums[row]) / counts[row]));
}
