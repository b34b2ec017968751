// What the library makes of the columns of a file. Every number here comes from the library; where one is not a
// function of its own, it is a gradient that has the value wanted (said beside it).

import { Pending } from "../engines/replay.js";
import { COLUMNS } from "./fields.js";

/** @typedef {import("./state.js").Settings} Settings */
/** @typedef {ReturnType<import("./dataset.js").Dataset["part"]>} Part */

/** What can be shown of a token, in the order of the columns of the table. */
export const QUANTITIES = [
  ...COLUMNS,
  "kl",
  "ratio",
  "samplerRatio",
  "reward",
  "gaeAdvantage",
  "gaeReturn",
  "groupAdvantage",
  "loss",
  "gradient",
  "probability",
  "surprise",
  "weightedEntropy",
];

/** How a quantity is coloured: by its sign, by its size alone (it has one sign only), or by the side of 1 it is on. */
const BY_SIZE = new Set([
  "logProbs",
  "oldLogProbs",
  "refLogProbs",
  "rolloutLogProbs",
  "entropies",
  "oldEntropies",
  "probability",
  "surprise",
  "weightedEntropy",
]);

/** @param {string} quantity @returns {"sign" | "size" | "one"} */
export const scaleOf = (quantity) =>
  BY_SIZE.has(quantity) ? "size" : quantity === "ratio" || quantity === "samplerRatio" ? "one" : "sign";

const SUM = { aggregate: { mode: /** @type {const} */ ("token-sum") } };

/**
 * @param {import("../engine.js").Library} library
 * @param {Part} part
 * @param {Settings} settings
 * @returns {{ columns: Record<string, Float64Array>, refusals: { quantity: string, code: string, message: string }[] }}
 */
export function quantities(library, part, settings) {
  const tokens = part.keep.length;
  const { columns, scores, groups } = part;
  const sequences = part.offsets.length - 1;
  /** @type {{ quantity: string, code: string, message: string }[]} */
  const refusals = [];
  if (tokens === 0) return { columns, refusals };

  const batch = library.Batch.packed(part.offsets, part.keep);
  const zeros = new Float64Array(tokens);
  /** @param {string} quantity @param {unknown[]} needs @param {() => void} work */
  const step = (quantity, needs, work) => {
    if (needs.some((need) => need === undefined)) return;
    try {
      work();
    } catch (error) {
      // an engine that answers later
      if (error instanceof Pending) throw error;
      const { code = "unknown", message = String(error) } = /** @type {any} */ (error);
      refusals.push({ quantity, code, message });
    }
  };
  // exp(a − b): the gradient of the summed surrogate where every advantage is −1
  const minusOne = zeros.map(() => -1);
  const exponential = (/** @type {Float64Array} */ a, /** @type {Float64Array} */ b) =>
    library.surrogateF64(batch, { logProbs: a, oldLogProbs: b, advantages: minusOne }, SUM).grad;

  const { logProbs, oldLogProbs, refLogProbs, rolloutLogProbs, values } = columns;
  const behaviour = oldLogProbs ?? logProbs;
  step("kl", [behaviour, refLogProbs], () => {
    columns.kl = library.klEstimateF64(batch, { logProbs: behaviour, refLogProbs }, { estimator: settings.kl });
  });
  step("ratio", [logProbs, oldLogProbs], () => {
    columns.ratio = exponential(logProbs, oldLogProbs);
  });
  step("samplerRatio", [behaviour, rolloutLogProbs], () => {
    columns.samplerRatio = exponential(behaviour, rolloutLogProbs);
  });

  step("reward", [columns.rewards ? undefined : (columns.tokenScores ?? scores)], () => {
    const placed = columns.tokenScores ?? library.placeScoresF64(batch, /** @type {Float64Array} */ (scores));
    columns.reward = columns.kl
      ? library.shapeRewardsF64(batch, { scores: placed, kl: columns.kl }, { beta: settings.beta })
      : placed;
  });
  const rewards = columns.rewards ?? columns.reward;
  step("gaeAdvantage", [rewards, values], () => {
    const bootstrap = new Float64Array(sequences);
    const { gamma, lambda } = settings;
    const result = library.gaeF64(batch, { rewards, values, bootstrap }, { gamma, lambda });
    columns.gaeAdvantage = result.advantages;
    columns.gaeReturn = result.returns;
  });
  step("groupAdvantage", [scores, groups], () => {
    const seen = new Map();
    const ids = Uint32Array.from(/** @type {Uint32Array} */ (groups), (group) => {
      if (!seen.has(group)) seen.set(group, seen.size);
      return seen.get(group);
    });
    // a group of one has nothing to be compared with: no advantage
    if (seen.size === sequences) return;
    columns.groupAdvantage = library.broadcastF64(
      batch,
      library.groupRelativeF64({ ids }, /** @type {Float64Array} */ (scores)),
    );
  });

  const advantages = columns.advantages ?? columns.gaeAdvantage ?? columns.groupAdvantage;
  const { clipLow, clipHigh } = settings;
  const policy = { logProbs: logProbs ?? oldLogProbs, oldLogProbs: behaviour, advantages };
  step("loss", [policy.logProbs, advantages], () => {
    columns.gradient = library.ppoClipF64(batch, policy, { clipLow, clipHigh, ...SUM }).grad;
    // a token's loss is the larger of −r·A and −clip(r)·A: the gradients of the plain surrogate and of CISPO
    const plain = library.surrogateF64(batch, policy, SUM).grad;
    const clipped = library.cispoF64(batch, policy, {
      bounds: { kind: "relative", low: clipLow, high: clipHigh },
      logRatioBound: null,
      ...SUM,
    }).grad;
    columns.loss = plain.map((/** @type {number} */ x, /** @type {number} */ i) =>
      x >= clipped[i] ? x : Math.max(x, clipped[i]),
    );
  });
  step("probability", [behaviour], () => {
    columns.probability = exponential(behaviour, zeros);
    // −p·log p: the gradient of the summed surrogate where the advantage is log p; 0 where p is 0,
    // as in the library's analysis
    const finite = behaviour.map((x) => (x === -Infinity ? 0 : x));
    columns.surprise = library.surrogateF64(
      batch,
      { logProbs: behaviour, oldLogProbs: zeros, advantages: finite },
      SUM,
    ).grad;
  });
  step("weightedEntropy", [columns.surprise, advantages], () => {
    const weights = library.tokenWeightsF64(batch, { logProbs: behaviour, advantages });
    // the product of two columns of the library
    columns.weightedEntropy = weights.map(
      (/** @type {number} */ w, /** @type {number} */ i) => w * columns.surprise[i],
    );
  });
  batch.free();
  return { columns, refusals };
}
