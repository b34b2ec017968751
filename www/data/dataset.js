// The sequences of a file laid end to end, with every quantity; in the worker. Answers what the page asks: which rows, in which order,
// which bars.

import { COLUMNS } from "./fields.js";
import { QUANTITIES, quantities, scaleOf } from "./quantities.js";

/** @typedef {import("./read.js").Read} Read */
/** @typedef {import("./state.js").Settings} Settings */

const NONE = 0xffffffff;
const BINS = 40;
const MOST_FINDINGS = 300;

export class Dataset {
  /**
   * @param {import("../engine.js").Library} library
   * @param {Read} file
   */
  constructor(library, file) {
    this.library = library;
    this.file = file;
    const { parts, tokens, sequences } = file;
    this.tokens = tokens;
    this.sequences = sequences;
    const rows = parts.flatMap((part) => part.rows);
    /** @type {Map<string, number>} */
    const groups = new Map();
    /** @type {Map<string, number>} */
    const prompts = new Map();
    /** @param {Map<string, number>} map @param {string | undefined} key */
    const numbered = (map, key) => {
      if (key === undefined) return NONE;
      if (!map.has(key)) map.set(key, map.size);
      return map.get(key) ?? NONE;
    };
    this.groupOf = (/** @type {string | undefined} */ key) => numbered(groups, key);
    this.place = Uint32Array.from(rows, (row) => row.place);
    this.step = Float64Array.from(rows, (row) => row.step ?? NaN);
    this.score = Float64Array.from(rows, (row) => row.score ?? NaN);
    this.scored = Uint8Array.from(rows, (row) => Number(row.score !== undefined));
    this.firstUpdate = Uint8Array.from(rows, (row) => Number(row.firstUpdate));
    this.group = Uint32Array.from(rows, (row) => this.groupOf(row.group));
    this.prompt = Uint32Array.from(rows, (row) => numbered(prompts, row.prompt || undefined));
    this.prompts = [...prompts.keys()];
    this.groupNames = [...groups.keys()].map((key) => key.slice(1, 80));
    this.offsets = new Uint32Array(sequences + 1);
    this.keep = new Uint8Array(tokens);
    this.sequence = new Uint32Array(tokens);
    this.token = new Uint32Array(tokens);
    /** @type {string[]} */
    const texts = [];
    let [slot, sequence] = [0, 0];
    for (const part of parts) {
      for (let row = 0; row < part.rows.length; row += 1) {
        for (let i = part.offsets[row]; i < part.offsets[row + 1]; i += 1) {
          this.keep[slot] = Number(part.keep[i]);
          this.sequence[slot] = sequence;
          this.token[slot] = i - part.offsets[row];
          texts.push(part.texts[i] ?? "");
          slot += 1;
        }
        sequence += 1;
        this.offsets[sequence] = slot;
      }
    }
    // one long text and where each piece ends: a hundred thousand small ones would take a while to hand over
    this.textEnds = new Uint32Array(tokens);
    let end = 0;
    for (const [i, text] of texts.entries()) {
      end += text.length;
      this.textEnds[i] = end;
    }
    this.text = texts.join("");
    this.batch = library.Batch.packed(this.offsets, this.keep);
    /** @type {Record<string, Float64Array>} */
    this.columns = {};
    /** @type {Record<string, Float64Array>} of each sequence */
    this.means = {};
  }

  /**
   * Every quantity under these settings.
   * @param {Settings} settings
   * @param {(share: number) => void} progress
   */
  compute(settings, progress) {
    const { parts } = this.file;
    this.columns = {};
    /** @type {Map<string, { quantity: string, code: string, message: string }>} */
    const refused = new Map();
    let at = 0;
    for (const [index, part] of parts.entries()) {
      const { columns, refusals } = quantities(this.library, part, settings, this.groupOf);
      for (const refusal of refusals) refused.set(refusal.quantity, refusal);
      for (const [key, values] of Object.entries(columns)) {
        this.columns[key] ??= new Float64Array(this.tokens).fill(NaN);
        this.columns[key].set(values, at);
      }
      at += part.keep.length;
      progress((index + 1) / parts.length);
    }
    this.refusals = [...refused.values()];
    this.means = {};
    const kept = this.library.rowSumsF64(this.batch, Float64Array.from(this.keep));
    for (const [key, values] of Object.entries(this.columns)) {
      // a sequence without a kept token has no mean
      this.means[key] = this.library.rowMeansF64(this.batch, values).map((/** @type {number} */ mean, /** @type {number} */ i) => (kept[i] === 0 ? NaN : mean));
    }
    return this.lint(settings);
  }

  /** @param {Settings} settings */
  lint({ tolerance, firstUpdate }) {
    // the page still works with a library that has no lint
    if (typeof this.library.lint !== "function") return null;
    /** @type {Record<string, any>} */
    const input = { scores: this.score, scored: this.scored, firstUpdate: this.firstUpdate };
    for (const column of COLUMNS) if (this.columns[column]) input[column] = this.columns[column];
    // the same prompt in two steps is two groups
    const seen = new Map();
    input.groups = this.group.map((group, i) => {
      if (group === NONE) return NONE;
      const key = `${this.step[i]} ${group}`;
      if (!seen.has(key)) seen.set(key, seen.size);
      return seen.get(key);
    });
    return this.library.lint(this.batch, input, { tolerance, firstUpdate, limit: MOST_FINDINGS });
  }

  /** What the page is told once. */
  about() {
    const kept = this.keep.reduce((sum, keep) => sum + keep, 0);
    const steps = [...new Set(this.step)].filter((step) => !Number.isNaN(step)).sort((a, b) => a - b);
    const { kind, passedOver } = this.file;
    const { tokens, sequences, place, step, score, scored, group, groupNames, prompt, prompts, offsets, keep, sequence, token, text, textEnds } = this;
    const fields = COLUMNS.filter((column) => this.columns[column]);
    const keys = QUANTITIES.filter((key) => this.columns[key]);
    return {
      kind, passedOver, tokens, sequences, kept, steps, place, step, score, scored, group, groupNames, prompt, prompts, offsets, keep, sequence, token, text, textEnds,
      fields, keys, columns: this.columns, means: this.means, refusals: this.refusals ?? [],
    };
  }

  /**
   * The rows of a table, in order.
   * @param {"tokens" | "sequences" | "text"} view
   * @param {import("./state.js").Filter} filter
   * @param {{ key: string, descending: boolean }} sort
   */
  order(view, filter, sort) {
    const bySequence = view === "sequences";
    const passes = (/** @type {number} */ s) =>
      (filter.sequence === null || s === filter.sequence) && (filter.step === null || this.step[s] === filter.step) && (filter.group === null || this.group[s] === filter.group);
    const count = bySequence ? this.sequences : this.tokens;
    const chosen = new Uint32Array(count);
    let length = 0;
    for (let i = 0; i < count; i += 1) {
      if (!passes(bySequence ? i : this.sequence[i]) || (filter.kept && !bySequence && this.keep[i] === 0)) continue;
      chosen[length] = i;
      length += 1;
    }
    const order = chosen.subarray(0, length).slice();
    const values = this.values(bySequence, sort.key);
    if (!values || (sort.key === "sequence" && !sort.descending)) return order;
    const sign = sort.descending ? -1 : 1;
    // NaN last, whichever way; equals stay in the order of the file
    return order.sort((a, b) => {
      const [x, y] = [values[a], values[b]];
      if (x === y) return a - b;
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) ? (Number.isNaN(y) ? a - b : 1) : -1;
      return sign * (x - y < 0 ? -1 : 1);
    });
  }

  /**
   * What a table is sorted by.
   * @param {boolean} bySequence
   * @param {string} key
   * @returns {ArrayLike<number> | undefined}
   */
  values(bySequence, key) {
    const ofSequence = /** @type {Record<string, ArrayLike<number>>} */ ({ place: this.place, step: this.step, group: this.group, score: this.score });
    if (bySequence) {
      if (key === "sequence") return Uint32Array.from(this.place, (_, i) => i);
      if (key === "length") return this.place.map((_, i) => this.offsets[i + 1] - this.offsets[i]);
      if (key === "kept") return this.library.rowSumsF64(this.batch, Float64Array.from(this.keep));
      return ofSequence[key] ?? this.means[key];
    }
    if (key === "sequence") return this.sequence;
    if (key === "token") return this.token;
    if (key === "kept") return this.keep;
    if (ofSequence[key]) return Float64Array.from(this.sequence, (s) => ofSequence[key][s]);
    return this.columns[key];
  }

  /**
   * The kept tokens of the rows chosen, counted; and how the colours of the quantity are scaled.
   * @param {string} key
   * @param {import("./state.js").Filter} filter
   */
  histogram(key, filter) {
    const values = this.columns[key];
    if (!values) return null;
    const rows = this.order("tokens", { ...filter, kept: true }, { key: "sequence", descending: false });
    const finite = Float64Array.from(rows, (i) => values[i]).filter(Number.isFinite);
    const left = rows.length - finite.length;
    if (finite.length === 0) return { count: 0, notFinite: left, x: [], y: [], domain: [0, 1], outside: 0, statistics: null, scale: 1 };
    const { library } = this;
    const batch = library.Batch.padded(1, finite.length, new Uint8Array(finite.length).fill(1));
    const level = (/** @type {number} */ share) => library.quantileF64(batch, finite, share);
    const [low, q1, median, q99, high] = [0, 0.01, 0.5, 0.99, 1].map(level);
    const moments = library.momentsF64(batch, finite);
    const deviation = finite.length > 1 ? library.sqrtF64(library.momentsVariance(moments, { spread: "sample" })) : NaN;
    const centre = scaleOf(key) === "one" ? 1 : 0;
    const sizes = finite.map((x) => Math.abs(x - centre));
    const scale = library.quantileF64(batch, sizes, 0.98) || 1;
    batch.free();
    // a few far away would press the others into one bar
    const [from, to] = high - low > 20 * (q99 - q1) && q99 > q1 ? [q1, q99] : [low, high];
    return { count: finite.length, notFinite: left, scale, statistics: { mean: moments.mean, deviation, low, median, high }, ...bars(finite, from, to) };
  }
}

/**
 * @param {Float64Array} values
 * @param {number} from
 * @param {number} to
 */
function bars(values, from, to) {
  // divided first: the whole range may be more than a number holds; or so small that nothing divides it
  const part = to / BINS - from / BINS;
  const bins = part > 0 ? BINS : 1;
  const width = part > 0 ? part : Math.abs(from) / 10 || 0.1;
  const start = part > 0 ? from : from - width / 2;
  const y = new Array(bins).fill(0);
  let outside = 0;
  for (const value of values) {
    if (value < from || value > to) outside += 1;
    else y[Math.max(0, Math.min(bins - 1, Math.floor((value - start) / width)))] += 1;
  }
  return { x: y.map((_, i) => start + (i + 0.5) * width), y, outside, domain: [start, start + bins * width] };
}
