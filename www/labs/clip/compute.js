// Losses and gradients over the ratio, from the library; where a gradient is 0.

import { lossOf } from "./losses.js";
import { reach } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Zeros where the gradient is exactly 0
 * @property {[number, number][]} spans of ratios; 0 and Infinity for "as far as a ratio goes"
 * @property {number[]} points where it changes its sign
 */

/** @param {State} state @param {string} id */
export const valuesOf = (state, id) => (/** @type {string} */ key) => state.values[`${id}.${key}`];

/**
 * One sequence for every ratio: the token first, the others after it.
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {string} id
 * @param {ArrayLike<number>} ratios
 * @param {boolean} own only the token itself has an advantage
 * @returns {{ loss: number, grad: Float64Array }} the sum of the losses, the gradient of each token
 */
function run(library, state, id, ratios, own) {
  const loss = lossOf(id);
  const width = loss.sequence ? state.tokens : 1;
  const rows = ratios.length;
  const oldLogProb = library.lnF64(state.q);
  const at = (/** @type {(row: number, first: boolean) => number} */ make) =>
    Float64Array.from({ length: rows * width }, (_, i) => make(Math.floor(i / width), i % width === 0));
  // log π is the old one plus the log-ratio: the only sum made here
  const input = {
    logProbs: at((row, first) => (first ? oldLogProb + library.lnF64(ratios[row]) : oldLogProb + state.other)),
    oldLogProbs: at(() => oldLogProb),
    advantages: at((_, first) => (first || !own ? state.advantage : 0)),
  };
  const batch = library.Batch.padded(rows, width, new Uint8Array(rows * width).fill(1));
  try {
    const { loss: sum, grad } = loss.run({ library, batch, input, rows, width }, valuesOf(state, id));
    return { loss: sum, grad: width === 1 ? grad : Float64Array.from({ length: rows }, (_, row) => grad[row * width]) };
  } finally {
    batch.free();
  }
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {string} id
 * @param {ArrayLike<number>} ratios
 * @returns {Float64Array}
 */
export const gradients = (library, state, id, ratios) => run(library, state, id, ratios, false).grad;

/**
 * The token's own term; where a loss has only one for the whole sequence, the token's share of its sum.
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {string} id
 * @param {number} ratio
 * @returns {number}
 */
export function lossAt(library, state, id, ratio) {
  const { shared, sequence } = lossOf(id);
  const { loss } = run(library, state, id, [ratio], !shared);
  return shared && sequence ? loss / state.tokens : loss;
}

/**
 * Where the gradient is 0, found on a fine grid and narrowed down.
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {string} id
 * @returns {Zeros}
 */
export function zerosOf(library, state, id) {
  const [low, high] = [1e-3, Math.min(100, reach(state.q) * (1 - 1e-9))];
  const count = 500;
  // an odd step, so that no point of the grid is a round bound
  const grid = Float64Array.from({ length: count }, (_, i) => low * (high / low) ** (i / (count - 1)));
  const found = gradients(library, state, id, grid);
  /** @type {Zeros} */
  const zeros = { spans: [], points: [] };
  /** @param {number} i the kind changes between grid point i and the next */
  const edge = (i) => {
    let [from, to] = [grid[i], grid[i + 1]];
    const kind = Math.sign(found[i]);
    for (let step = 0; step < 48; step += 1) {
      const middle = Math.sqrt(from * to);
      if (Math.sign(gradients(library, state, id, [middle])[0]) === kind) from = middle;
      else to = middle;
    }
    return Math.sqrt(from * to);
  };
  let start = found[0] === 0 ? 0 : NaN;
  for (let i = 0; i + 1 < count; i += 1) {
    const [now, next] = [Math.sign(found[i]), Math.sign(found[i + 1])];
    if (now === next) continue;
    const at = edge(i);
    if (next === 0) start = at;
    else if (now === 0) {
      zeros.spans.push([start, at]);
      start = NaN;
    } else zeros.points.push(at);
  }
  if (!Number.isNaN(start)) zeros.spans.push([start, Infinity]);
  return zeros;
}

/** @typedef {{ ratios: Float64Array, losses: Float64Array, gradients: Float64Array, zeros: Zeros }} Curve */

/** A curve is asked for at every move of the token, and only depends on the rest. */
export class CurveCache {
  /** @param {import("../../engine.js").Library} library */
  constructor(library) {
    this.library = library;
    /** @type {Map<string, Curve>} */
    this.known = new Map();
  }

  /**
   * @param {State} state
   * @param {string} id
   * @returns {Curve}
   */
  of(state, id) {
    const { sequence, parameters } = lossOf(id);
    const values = parameters.map(({ key }) => state.values[`${id}.${key}`]);
    const key = JSON.stringify([
      id,
      state.advantage,
      state.q,
      state.scale,
      state.most,
      sequence && [state.tokens, state.other],
      values,
    ]);
    const found = this.known.get(key);
    if (found) return found;
    if (this.known.size > 200) this.known.clear();
    const curve = this.compute(state, id);
    this.known.set(key, curve);
    return curve;
  }

  /**
   * @param {State} state
   * @param {string} id
   * @returns {Curve}
   */
  compute(state, id) {
    const zeros = zerosOf(this.library, state, id);
    const edges = [...zeros.spans.flat(), ...zeros.points];
    const ratios = samplesOf(state, edges);
    return {
      zeros,
      ratios,
      gradients: gradients(this.library, state, id, ratios),
      losses: ratios.map((ratio) => lossAt(this.library, state, id, ratio)),
    };
  }
}

/** @param {State} state @returns {[number, number]} */
export const domainOf = ({ scale, most }) => (scale === "log" ? [1 / most, most] : [0, most]);

/**
 * Ratios to draw a curve through: no bound among them, but one close to each of its sides.
 * @param {State} state
 * @param {number[]} edges
 * @returns {Float64Array}
 */
function samplesOf(state, edges) {
  const [low, high] = domainOf(state);
  const count = 110;
  const even = Array.from({ length: count }, (_, i) => {
    const place = (i + 0.3713) / count;
    return state.scale === "log" ? low * (high / low) ** place : high * place;
  });
  const beside = edges
    .filter((edge) => edge > 0 && Number.isFinite(edge))
    .flatMap((edge) => [edge * (1 - 1e-7), edge * (1 + 1e-7)]);
  const limit = Math.min(high, reach(state.q) * (1 - 1e-9));
  return Float64Array.from(
    [low || 1e-3, ...even, ...beside, limit].filter((ratio) => ratio >= (low || 1e-3) && ratio <= limit),
  ).sort();
}
