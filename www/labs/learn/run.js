// A run of updates. What each update measured is kept; of the policy every so many updates a copy, from which those
// between are computed again when the reader goes back. A fingerprint over all bits of the policy tells whether the
// second time was like the first.

import { refusalOf } from "../../parts/refusals.js";
import { Random } from "./random.js";
import { settingsOf } from "./state.js";
import { Bench, Diverged, update } from "./update.js";
import { worldOf } from "./world.js";

/** @typedef {import("./update.js").Table} Table */
/** @typedef {import("./update.js").Metrics} Metrics */

/** A copy of the policy is kept after every so many updates. */
const EVERY = 25;

/**
 * Two FNV-1a hashes side by side over the bits of the numbers.
 * @param {Float64Array[]} arrays
 */
function fingerprint(arrays) {
  let [a, b] = [0x811c9dc5, 0x2f0b4c47];
  for (const array of arrays) {
    for (const word of new Uint32Array(array.buffer, array.byteOffset, array.length * 2)) {
      a = Math.imul(a ^ word, 0x01000193) ^ (a >>> 15);
      b = Math.imul(b ^ word, 0x5bd1e995) ^ (b >>> 13);
    }
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}

/**
 * After how many updates two lists of phases differ for the first time.
 * @param {import("./state.js").State["phases"]} a
 * @param {import("./state.js").State["phases"]} b
 */
function agreement(a, b) {
  const edges = [...a, ...b].map(({ from }) => from).sort((x, y) => x - y);
  const differs = (/** @type {number} */ edge) =>
    JSON.stringify(settingsOf(a, edge + 1)) !== JSON.stringify(settingsOf(b, edge + 1));
  return edges.find(differs) ?? Infinity;
}

export class Run {
  /**
   * @param {import("../../engine.js").Library} library
   * @param {Record<string, any>} settings of the world
   * @param {import("./state.js").State["phases"]} phases
   * @param {Run | null} [before] another run: what the two have in common is taken over
   */
  constructor(library, settings, phases, before = null) {
    this.settings = settings;
    this.phases = phases;
    this.seed = settings.seed;
    this.world = worldOf(/** @type {any} */ (settings));
    const { rows, letters } = this.world;
    const random = Random.of(settings.seed, 0);
    // the policy before it learns: every logit evenly within ±spread
    const start = Float64Array.from(
      { length: rows * letters.length },
      () => (2 * random.uniform() - 1) * settings.spread,
    );
    this.bench = new Bench(library, this.world, start);
    /** @type {Table} */
    this.table = { logits: start, values: new Float64Array(rows) };
    this.at = 0;
    /** @type {import("./update.js").Samples | null} of the last update */
    this.samples = null;
    /** @type {Metrics[]} of every update made so far, also of those after the present one */
    this.metrics = [];
    /** @type {string[]} of the policy before the first update, after it, … */
    this.prints = [fingerprint([start, this.table.values])];
    /** @type {Table[]} after every 25 updates */
    this.copies = [this.table];
    /** how many updates were made a second time, and how many of those came out otherwise */
    this.repeated = 0;
    this.differing = 0;
    /** @type {import("../../parts/refusals.js").Refusal | null} why the next update cannot be made */
    this.refusal = null;
    this.diverged = false;
    /** the update that cannot be made, Infinity while there is none */
    this.end = Infinity;
    if (before && JSON.stringify(before.settings) === JSON.stringify(settings)) this.adopt(before);
  }

  /** Takes over the updates that were made under the same settings. @param {Run} before */
  adopt(before) {
    const common = Math.min(agreement(before.phases, this.phases), before.metrics.length);
    this.metrics = before.metrics.slice(0, common);
    this.prints = before.prints.slice(0, common + 1);
    this.copies = before.copies.slice(0, Math.floor(common / EVERY) + 1);
    this.table = /** @type {Table} */ (this.copies.at(-1));
    this.at = (this.copies.length - 1) * EVERY;
  }

  get print() {
    return this.prints[this.at];
  }

  /** The curves up to the present update. */
  get shown() {
    return this.metrics.slice(0, this.at);
  }

  /** Whether this is where the state wants it, or as far as it can go. @param {number} at */
  isAt(at) {
    return this.at === Math.min(at, this.end - 1);
  }

  /**
   * Goes towards an update: back by a copy, forward by the library.
   * @param {number} at
   * @param {() => boolean} [stop] whether there is no more time
   * @returns {boolean} whether it has arrived
   */
  goTo(at, stop = () => false) {
    const goal = Math.min(at, this.end - 1);
    if (goal < this.at) {
      // one update before, so that its answers are there as well
      const copy = Math.floor(Math.max(0, goal - 1) / EVERY);
      this.table = this.copies[copy];
      this.at = copy * EVERY;
      this.samples = null;
    }
    while (this.at < Math.min(at, this.end - 1)) {
      this.step();
      if (stop()) break;
    }
    return this.isAt(at);
  }

  step() {
    const number = this.at + 1;
    try {
      const made = update(this.bench, this.table, settingsOf(this.phases, number), Random.of(this.seed, number));
      this.table = made.table;
      this.samples = made.samples;
      this.metrics[number - 1] = made.metrics;
      this.at = number;
      if (number % EVERY === 0) this.copies[number / EVERY] = made.table;
      const print = fingerprint([made.table.logits, made.table.values]);
      const first = this.prints[number];
      if (first === undefined) this.prints[number] = print;
      else {
        this.repeated += 1;
        if (first !== print) this.differing += 1;
      }
    } catch (error) {
      if (!(error instanceof Error) || error instanceof TypeError) throw error;
      this.end = number;
      this.diverged = error instanceof Diverged;
      this.refusal = this.diverged ? null : refusalOf(error);
    }
  }

  free() {
    this.bench.free();
  }
}
