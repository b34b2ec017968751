// From the fields of records, in whatever order they come, to parts: the sequences of one step, column by column. As the command does it.

import { Fault } from "./fault.js";
import { COLUMNS, fileName } from "./fields.js";

/** @typedef {import("./fields.js").Column} Column */
/** @typedef {import("./fields.js").Field} Field */

/**
 * @typedef {object} Row what there is once a sequence
 * @property {number} place line, row or record of the file, counted from 1
 * @property {number | undefined} score
 * @property {number | undefined} step
 * @property {string | undefined} group the same for all samples of a prompt
 * @property {string} prompt the beginning of its text, "" if there is none
 * @property {boolean | undefined} truncated
 * @property {boolean} firstUpdate
 */

/**
 * @typedef {object} Part
 * @property {number[]} offsets where each sequence begins; one more than there are sequences
 * @property {boolean[]} keep
 * @property {Record<Column, number[]>} columns empty if the part has none
 * @property {(string | null)[]} texts what each token reads like
 * @property {Row[]} rows
 */

/** More could not be shown: a scroller is only so high. */
export const MOST_TOKENS = 500_000;
export const MOST_SEQUENCES = 200_000;

/** @returns {Part} */
const newPart = () => ({
  offsets: [0], keep: [], texts: [], rows: [],
  columns: /** @type {any} */ (Object.fromEntries(COLUMNS.map((column) => [column, []]))),
});

const newRecord = () => ({
  /** @type {Map<Column, number[]>} lengths of the rows added to each column */
  lengths: new Map(),
  /** @type {Map<Column, number>} one number for all tokens */
  constants: new Map(),
  /** @type {number[]} */
  mask: [],
  /** @type {number[]} */
  scores: [],
  /** @type {number[]} */
  steps: [],
  /** @type {string[]} */
  groups: [],
  /** @type {{ key: string, text: string } | undefined} */
  prompt: undefined,
  /** @type {number[]} */
  truncated: [],
  firstUpdate: false,
  /** @type {string[][]} */
  texts: [],
  /** @type {string[][]} */
  ids: [],
  any: false,
});

export class Feeder {
  constructor() {
    /** @type {Part[]} */
    this.parts = [newPart()];
    this.record = newRecord();
    /** @type {{ step?: number, prompt?: { key: string, text: string }, firstUpdate: boolean }[]} fields of the objects around a record */
    this.inherited = [{ firstUpdate: false }];
    this.place = 0;
    /** whether places are records: then they are counted here */
    this.countsRecords = false;
    this.sequences = 0;
    this.tokens = 0;
    /** @type {Set<string>} names of numbers that were passed over */
    this.passedOver = new Set();
  }

  get part() {
    return this.parts[this.parts.length - 1];
  }

  /** Where the numbers of a row of a column go; call `rowAdded` after them. @param {Column} column */
  numbers(column) {
    return this.part.columns[column];
  }

  /** @param {Column} column @param {number} length */
  rowAdded(column, length) {
    this.record.any = true;
    const lengths = this.record.lengths.get(column);
    if (lengths) lengths.push(length);
    else this.record.lengths.set(column, [length]);
  }

  /** @param {number} length */
  maskAdded(length) {
    this.record.any = true;
    this.record.mask.push(length);
  }

  /** A number that stands alone; under two names, the first counts. @param {Field} field @param {number} x */
  scalar(field, x) {
    const { scores, steps, groups } = this.record;
    const known = field.kind === "score" ? scores : field.kind === "step" ? steps : field.kind === "group" ? groups : [];
    if (known.length === 0) this.listed(field, x);
  }

  /** A number of a list with one entry a sequence. @param {Field} field @param {number} x */
  listed(field, x) {
    const { record } = this;
    switch (field.kind) {
      case "column": record.constants.set(field.column, x); break;
      case "score": record.scores.push(x); break;
      case "step": record.steps.push(x); break;
      case "group": record.groups.push(`n${x}`); break;
      case "truncated": record.truncated.push(x); break;
      case "firstUpdate": record.firstUpdate = x !== 0; break;
      case "length": case "promptLength": break;
      default: return;
    }
    // a step alone is no sequence
    if (field.kind !== "step" && field.kind !== "firstUpdate") record.any = true;
  }

  /** @param {Field} field @param {string} text */
  text(field, text) {
    if (field.kind === "group") this.record.groups.push(`t${text}`);
    if (field.kind === "prompt") this.record.prompt = { key: `t${text}`, text };
  }

  /** Begins a list inside the record: what was read so far holds for each of its entries. */
  enter() {
    const outer = this.inherited[this.inherited.length - 1];
    const { record } = this;
    this.record = newRecord();
    this.inherited.push({
      step: record.steps.length > 0 ? whole(record.steps[0]) : outer.step,
      prompt: record.prompt ?? outer.prompt,
      firstUpdate: record.firstUpdate || outer.firstUpdate,
    });
  }

  leave() {
    this.inherited.pop();
    this.record = newRecord();
  }

  /** Ends a record. */
  end() {
    const { record } = this;
    this.record = newRecord();
    if (!record.any) return;
    if (this.countsRecords) this.place += 1;
    const lengths = lengthsOf(record);
    const added = lengths.reduce((sum, length) => sum + length, 0);
    const outer = this.inherited[this.inherited.length - 1];
    const step = record.steps.length > 0 ? whole(record.steps[0]) : outer.step;
    this.tokens += added;
    this.sequences += lengths.length;
    if (this.sequences > MOST_SEQUENCES) throw new Fault("tooManySequences", { most: MOST_SEQUENCES });
    if (this.tokens > MOST_TOKENS) throw new Fault("tooManyTokens", { most: MOST_TOKENS });
    this.close(record, lengths, added);
    const prompt = record.prompt ?? outer.prompt;
    /** @template T @param {T[]} list @param {number} index */
    const one = (list, index) => list[list.length === 1 ? 0 : index];
    const rows = lengths.map((_, index) => ({
      place: this.place,
      score: one(record.scores, index),
      step,
      group: one(record.groups, index) ?? prompt?.key,
      prompt: prompt?.text.slice(0, 300) ?? "",
      truncated: record.truncated.length > 0 ? one(record.truncated, index) !== 0 : undefined,
      firstUpdate: record.firstUpdate || outer.firstUpdate,
    }));
    const { part } = this;
    const before = part.rows.length > 0 ? part.rows[part.rows.length - 1].step : step;
    for (const row of rows) part.rows.push(row);
    if (before !== step) this.split(rows.length);
  }

  /**
   * Checks that the record fits the sequences before it, and completes what it leaves out.
   * @param {ReturnType<typeof newRecord>} record
   * @param {number[]} lengths
   * @param {number} added
   */
  close(record, lengths, added) {
    const { part } = this;
    const start = part.offsets[part.offsets.length - 1];
    const end = start + added;
    for (const [column, constant] of record.constants) {
      // a list says more than a number
      if (added === 0 || record.lengths.has(column)) continue;
      record.lengths.set(column, lengths);
      for (let i = 0; i < added; i += 1) part.columns[column].push(constant);
    }
    if (record.mask.length === 0) for (let i = 0; i < added; i += 1) part.keep.push(true);
    for (const column of COLUMNS) {
      const has = part.columns[column].length;
      if (record.lengths.has(column) && has !== end) throw new Fault("newField", { field: fileName(column) });
      if (!record.lengths.has(column) && has > 0 && added > 0) throw new Fault("missingField", { field: fileName(column) });
    }
    if (part.keep.length !== end) throw new Fault("maskLength", { expected: added, got: part.keep.length - start });
    for (const [index, length] of lengths.entries()) {
      part.offsets.push(part.offsets[part.offsets.length - 1] + length);
      const texts = [record.texts[index], record.ids[index]].find((list) => list?.length === length);
      for (let i = 0; i < length; i += 1) part.texts.push(texts ? texts[i] : null);
    }
  }

  /** The last sequences begin a part of their own: another step. @param {number} count */
  split(count) {
    const { part } = this;
    const first = part.rows.length - count;
    const start = part.offsets[first];
    const next = newPart();
    next.rows = part.rows.splice(first);
    next.offsets = part.offsets.slice(first).map((offset) => offset - start);
    part.offsets.length = first + 1;
    next.keep = part.keep.splice(start);
    next.texts = part.texts.splice(start);
    for (const column of COLUMNS) next.columns[column] = part.columns[column].splice(start);
    this.parts.push(next);
  }
}

/**
 * How many tokens each sequence of the record has.
 * @param {ReturnType<typeof newRecord>} record
 */
function lengthsOf(record) {
  const all = COLUMNS.filter((column) => record.lengths.has(column)).map((column) => ({ name: fileName(column), lengths: record.lengths.get(column) ?? [] }));
  if (record.mask.length > 0) all.push({ name: "mask", lengths: record.mask });
  // nothing per token: as many sequences as scores
  if (all.length === 0) return new Array(Math.max(1, record.scores.length)).fill(0);
  const [first] = all;
  for (const { name, lengths } of all) {
    if (lengths.length !== first.lengths.length || lengths.some((length, index) => length !== first.lengths[index])) {
      throw new Fault("lengths", { field: name, got: told(lengths), first: first.name, expected: told(first.lengths) });
    }
  }
  if (record.scores.length > 1 && record.scores.length !== first.lengths.length) {
    throw new Fault("scoreCount", { got: record.scores.length, expected: first.lengths.length });
  }
  return first.lengths;
}

/** @param {number[]} lengths */
const told = (lengths) => (lengths.length === 1 ? String(lengths[0]) : `${lengths.length} × [${lengths.slice(0, 3).join(", ")}${lengths.length > 3 ? ", …" : ""}]`);

/** As Rust turns a number into a whole one. @param {number} x */
const whole = (x) => (x > 0 ? Math.trunc(x) : 0);
