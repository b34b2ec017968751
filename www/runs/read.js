// Reads what trainers log: JSON Lines of `{"step": n, "key": number, …}`, verl's `{"step": n, "data": {…}}`, a list
// of such objects, or the `log_history` of a Transformers trainer. Lines of one step are put together, a later value
// takes the place of an earlier one: a run that was resumed has written some steps twice. No imports: a worker runs
// this as well.

/** @typedef {{ steps: Float64Array, keys: string[], columns: Float64Array[] }} Metrics NaN where nothing was logged */
/** @typedef {{ problem: string, values: Record<string, string | number> }} Fault the end of a key of the catalogue */

export const MOST_STEPS = 1_000_000;
export const MOST_KEYS = 2_000;
const STEP_NAMES = ["step", "global_step", "_step", "training/global_step", "train/global_step"];
/** What is passed over: the number of the step under another name, and clocks. */
const NO_METRICS = new Set([...STEP_NAMES, "_timestamp", "_runtime", "timestamp", "time"]);

/** Numbers that JSON does not have, as Python writes them. */
const BARE = /([:,[]\s*)(-?Infinity|NaN)(?=\s*[,}\]])/g;

/** @param {string} problem @param {Record<string, string | number>} [values] @returns {Fault} */
const fault = (problem, values = {}) => ({ problem, values });

/** @param {string} line */
const near = (line) => (line.trim().length > 40 ? `${line.trim().slice(0, 39)}…` : line.trim());

/** @param {string} line @returns {any} undefined if it is no JSON */
function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    try {
      return JSON.parse(line.replace(BARE, "$1null"));
    } catch {
      return undefined;
    }
  }
}

/** Rows that grow, one for each step. */
export class Collector {
  constructor() {
    /** @type {Map<number, number>} step to row */
    this.rows = new Map();
    /** @type {number[]} */
    this.steps = [];
    /** @type {Map<string, Float64Array>} */
    this.columns = new Map();
    this.room = 1024;
    this.line = 0;
    /** @type {Fault | null} */
    this.fault = null;
    /** what came after the last end of a line */
    this.rest = "";
    /** lines that had no step */
    this.without = 0;
  }

  /** A part of the text, cut anywhere. @param {string} text */
  add(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.take(line, false);
  }

  /** @param {string} line @param {boolean} last may be cut off: its writer may still be at it */
  take(line, last) {
    this.line += 1;
    if (this.fault || line.trim() === "") return;
    const record = parsed(line);
    if (record === undefined) {
      if (!last || this.steps.length === 0) this.fault = fault("line", { line: this.line, near: near(line) });
    } else if (!isRecord(record)) this.fault = fault("object", { line: this.line, near: near(line) });
    else this.put(record);
  }

  /** @param {Record<string, any>} record */
  put(record) {
    const name = STEP_NAMES.find((one) => typeof record[one] === "number");
    const step = name === undefined ? NaN : record[name];
    if (!Number.isFinite(step)) {
      this.without += 1;
      return;
    }
    let row = this.rows.get(step);
    if (row === undefined) {
      row = this.steps.length;
      if (row >= MOST_STEPS) {
        this.fault ??= fault("long", { most: MOST_STEPS });
        return;
      }
      this.rows.set(step, row);
      this.steps.push(step);
      if (row >= this.room) this.grow();
    }
    this.entries(isRecord(record.data) ? record.data : record, row, "", 0);
  }

  /** @param {Record<string, any>} record @param {number} row @param {string} prefix @param {number} depth */
  entries(record, row, prefix, depth) {
    for (const [key, value] of Object.entries(record)) {
      if (depth === 0 && NO_METRICS.has(key)) continue;
      const name = prefix + key;
      if (typeof value === "number" || value === null) {
        let column = this.columns.get(name);
        if (!column) {
          if (value === null) continue;
          if (this.columns.size >= MOST_KEYS) {
            this.fault ??= fault("keys", { most: MOST_KEYS });
            return;
          }
          column = new Float64Array(this.room).fill(NaN);
          this.columns.set(name, column);
        }
        column[row] = value ?? NaN;
      } else if (isRecord(value) && depth < 4) this.entries(value, row, `${name}/`, depth + 1);
    }
  }

  grow() {
    this.room *= 2;
    for (const [key, column] of this.columns) {
      const longer = new Float64Array(this.room).fill(NaN);
      longer.set(column);
      this.columns.set(key, longer);
    }
  }

  /** @returns {Metrics | Fault} */
  end() {
    if (this.rest !== "") this.take(this.rest, true);
    this.rest = "";
    if (this.fault) return this.fault;
    if (this.line === 0 || (this.steps.length === 0 && this.without === 0)) return fault("nothing");
    if (this.steps.length === 0) return fault("noStep");
    if (this.columns.size === 0) return fault("noNumbers");
    const order = this.steps.map((_, i) => i).sort((a, b) => this.steps[a] - this.steps[b]);
    const inOrder = order.every((row, i) => row === i);
    const count = order.length;
    const sorted = (/** @type {Float64Array} */ column) =>
      inOrder ? column.slice(0, count) : Float64Array.from(order, (row) => column[row]);
    return {
      steps: Float64Array.from(order, (row) => this.steps[row]),
      keys: [...this.columns.keys()],
      columns: [...this.columns.values()].map(sorted),
    };
  }
}

/** @param {unknown} data @returns {data is Record<string, any>} */
const isRecord = (data) => typeof data === "object" && data !== null && !Array.isArray(data);

/** @param {string} text @returns {Metrics | Fault} */
export function readText(text) {
  const collector = new Collector();
  // one JSON text over several lines: a list of records, or what a trainer's state holds
  const start = text.trimStart()[0];
  if (
    start === "[" ||
    (start === "{" &&
      /^\s*\{[^\n]*\n?\s*"[^"]*"/.test(text) &&
      parsed(text.slice(0, text.indexOf("\n") + 1 || undefined)) === undefined)
  ) {
    const whole = parsed(text);
    const list = Array.isArray(whole)
      ? whole
      : isRecord(whole) && Array.isArray(whole.log_history)
        ? whole.log_history
        : null;
    if (list) {
      collector.line = 1;
      for (const record of list) if (isRecord(record)) collector.put(record);
      return collector.end();
    }
  }
  collector.add(text);
  return collector.end();
}

/**
 * Several files of one run as one.
 * @param {{ prefix: string, metrics: Metrics }[]} parts `prefix`: before all keys of a part
 * @returns {Metrics}
 */
export function merged(parts) {
  if (parts.length === 1) return parts[0].metrics;
  const steps = Float64Array.from([...new Set(parts.flatMap(({ metrics }) => Array.from(metrics.steps)))]).sort();
  const rows = new Map(Array.from(steps, (step, row) => [step, row]));
  /** @type {Map<string, Float64Array>} */
  const columns = new Map();
  for (const { prefix, metrics } of parts) {
    for (const [i, key] of metrics.keys.entries()) {
      const name = prefix + key;
      const column = columns.get(name) ?? new Float64Array(steps.length).fill(NaN);
      columns.set(name, column);
      for (const [from, step] of metrics.steps.entries()) {
        const value = metrics.columns[i][from];
        if (!Number.isNaN(value)) column[rows.get(step) ?? 0] = value;
      }
    }
  }
  return { steps, keys: [...columns.keys()], columns: [...columns.values()] };
}

const PART = 1 << 22;

/**
 * A file, part by part: it may be larger than a text can be.
 * @param {Blob} file
 * @param {(share: number) => void} [progress]
 * @returns {Promise<Metrics | Fault>}
 */
export async function readFile(file, progress = () => {}) {
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    if (file.size <= PART) return readText(decoder.decode(await file.arrayBuffer()));
    const collector = new Collector();
    for (let from = 0; from < file.size && !collector.fault; from += PART) {
      const end = from + PART >= file.size;
      collector.add(decoder.decode(await file.slice(from, from + PART).arrayBuffer(), { stream: !end }));
      progress(Math.min(1, (from + PART) / file.size));
    }
    return collector.end();
  } catch (error) {
    // bytes that are no text, or a file that may not be read
    if (error instanceof TypeError) return fault("encoding");
    if (error instanceof DOMException) return fault("unreadable");
    throw error;
  }
}
