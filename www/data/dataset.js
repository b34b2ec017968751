// The sequences of a file laid end to end, with every quantity; in the worker. Answers what the page asks: which rows,
// in which order, which bars.

import { added, largestDifference, runBy } from "../engines/run.js";
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
    this.place = file.places;
    this.step = file.steps;
    this.score = file.scores;
    this.scored = file.scored;
    this.firstUpdate = file.firstUpdate;
    this.group = file.group;
    this.groupNames = file.groupNames;
    this.prompt = file.prompt;
    this.prompts = file.prompts;
    this.offsets = file.offsets;
    this.keep = file.keep;
    // one long text and the end of each piece: transferring a hundred thousand small strings would be slow
    this.text = file.text;
    this.textEnds = file.textEnds;
    this.tokens = this.keep.length;
    this.sequences = this.place.length;
    this.sequence = new Uint32Array(this.tokens);
    this.token = new Uint32Array(this.tokens);
    for (let sequence = 0; sequence < this.sequences; sequence += 1) {
      const [from, to] = [this.offsets[sequence], this.offsets[sequence + 1]];
      this.sequence.fill(sequence, from, to);
      for (let slot = from; slot < to; slot += 1) this.token[slot] = slot - from;
    }
    this.batch = library.Batch.packed(this.offsets, this.keep);
    /** @type {Record<string, Float64Array>} */
    this.columns = {};
    /** @type {Record<string, Float64Array>} of each sequence */
    this.means = {};
  }

  /** The sequences of one step. @param {number} index */
  part(index) {
    const { parts, columns } = this.file;
    const [first, end] = [parts[index], parts[index + 1]];
    const [from, to] = [this.offsets[first], this.offsets[end]];
    /** @type {Record<string, Float64Array>} */
    const present = {};
    for (const [column, values] of Object.entries(columns)) if (to > from) present[column] = values.slice(from, to);
    return {
      from,
      offsets: this.offsets.slice(first, end + 1).map((offset) => offset - from),
      keep: this.keep.slice(from, to),
      columns: present,
      // undefined unless every sequence has one
      scores: this.scored.subarray(first, end).every(Boolean) ? this.score.slice(first, end) : undefined,
      groups: this.group.subarray(first, end).every((group) => group !== NONE)
        ? this.group.slice(first, end)
        : undefined,
    };
  }

  /**
   * Every quantity under these settings, by one of the engines.
   * @param {Settings} settings
   * @param {{ name: import("../engines/run.js").EngineName, compare: boolean }} engine
   * @param {(share: number) => void} progress
   */
  async compute(settings, engine, progress) {
    const parts = this.file.parts.length - 1;
    this.columns = {};
    /** @type {import("../engines/run.js").Cost | null} */
    let cost = null;
    /** @type {import("../engines/run.js").Difference | null} */
    let difference = null;
    /** @type {Map<string, { quantity: string, code: string, message: string }>} */
    const refused = new Map();
    for (let index = 0; index < parts; index += 1) {
      const part = this.part(index);
      // the work may be run several times, and adds columns
      const work = (/** @type {import("../engine.js").Library} */ library) =>
        quantities(library, { ...part, columns: { ...part.columns } }, settings);
      const ran = await runBy(engine.name, work);
      cost = added(cost, ran.cost);
      const { columns, refusals } = ran.value;
      if (engine.compare) {
        const core = await runBy("core", work);
        const found = largestDifference(columns, core.value.columns);
        if (difference === null || found.value > difference.value) difference = found;
      }
      for (const refusal of refusals) refused.set(refusal.quantity, refusal);
      for (const [key, values] of Object.entries(columns)) {
        this.columns[key] ??= new Float64Array(this.tokens).fill(NaN);
        this.columns[key].set(values, part.from);
      }
      progress((index + 1) / parts);
    }
    this.refusals = [...refused.values()];
    this.ran = { engine: engine.name, cost, difference };
    this.means = {};
    const kept = this.library.sequenceSumsF64(this.batch, Float64Array.from(this.keep));
    for (const [key, values] of Object.entries(this.columns)) {
      // a sequence without a kept token has no mean
      this.means[key] = this.library
        .rowMeansF64(this.batch, values)
        .map((/** @type {number} */ mean, /** @type {number} */ i) => (kept[i] === 0 ? NaN : mean));
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
    const { kind, passedOver, padded } = this.file;
    const {
      tokens,
      sequences,
      place,
      step,
      score,
      scored,
      group,
      groupNames,
      prompt,
      prompts,
      offsets,
      keep,
      sequence,
      token,
      text,
      textEnds,
    } = this;
    const fields = COLUMNS.filter((column) => this.columns[column]);
    const keys = QUANTITIES.filter((key) => this.columns[key]);
    return {
      kind,
      passedOver,
      padded,
      tokens,
      sequences,
      kept,
      steps,
      place,
      step,
      score,
      scored,
      group,
      groupNames,
      prompt,
      prompts,
      offsets,
      keep,
      sequence,
      token,
      text,
      textEnds,
      fields,
      keys,
      columns: this.columns,
      means: this.means,
      refusals: this.refusals ?? [],
      ran: this.ran ?? null,
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
      (filter.sequence === null || s === filter.sequence) &&
      (filter.step === null || this.step[s] === filter.step) &&
      (filter.group === null || this.group[s] === filter.group);
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
    const ofSequence = /** @type {Record<string, ArrayLike<number>>} */ ({
      place: this.place,
      step: this.step,
      group: this.group,
      score: this.score,
    });
    if (bySequence) {
      if (key === "sequence") return Uint32Array.from(this.place, (_, i) => i);
      if (key === "length") return this.place.map((_, i) => this.offsets[i + 1] - this.offsets[i]);
      if (key === "kept") return this.library.sequenceSumsF64(this.batch, Float64Array.from(this.keep));
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
    if (finite.length === 0)
      return { count: 0, notFinite: left, x: [], y: [], domain: [0, 1], outside: 0, statistics: null, scale: 1 };
    const { library } = this;
    const batch = library.Batch.padded(1, finite.length, new Uint8Array(finite.length).fill(1));
    const level = (/** @type {number} */ share) => library.quantileF64(batch, finite, { level: share });
    const [low, q1, median, q99, high] = [0, 0.01, 0.5, 0.99, 1].map(level);
    const moments = library.momentsF64(batch, finite);
    const deviation = finite.length > 1 ? library.sqrtF64(library.momentsVariance(moments, { spread: "sample" })) : NaN;
    const centre = scaleOf(key) === "one" ? 1 : 0;
    const sizes = finite.map((x) => Math.abs(x - centre));
    const scale = library.quantileF64(batch, sizes, { level: 0.98 }) || 1;
    batch.free();
    // a few outliers would squeeze the others into one bar
    const [from, to] = high - low > 20 * (q99 - q1) && q99 > q1 ? [q1, q99] : [low, high];
    return {
      count: finite.length,
      notFinite: left,
      scale,
      statistics: { mean: moments.mean, deviation, low, median, high },
      ...bars(finite, from, to),
    };
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
