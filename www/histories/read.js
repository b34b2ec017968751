// Reading an entropy history, by the rules of the command line: a JSON array of objects with a whole `step`, larger
// than the one before, and a finite `entropy`; other keys are left alone. Or metrics in JSON Lines, whose
// `policy/entropy` is taken. Every fault names its record or line. No imports: a worker runs this as well.

/**
 * @typedef {{ steps: Float64Array, entropies: Float64Array }} Points
 * @typedef {{ problem: string, values: Record<string, string | number> }} Fault `problem` is the end of a key of the
 *   catalogue
 */

export const MOST_RECORDS = 1_000_000;

/**
 * @param {string} problem
 * @param {Record<string, string | number>} [values]
 * @returns {Fault}
 */
const fault = (problem, values = {}) => ({ problem, values });

/**
 * @param {ArrayBuffer} bytes
 * @param {boolean} [lines] JSON Lines
 * @returns {Points | Fault}
 */
export function readBytes(bytes, lines = false) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return lines ? readLines(text) : readText(text);
  } catch (error) {
    if (error instanceof TypeError) return fault("encoding");
    throw error;
  }
}

/**
 * @param {string} text
 * @returns {Points | Fault}
 */
export function readText(text) {
  if (text.trim() === "") return fault("nothing");
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    return locate(text);
  }
  if (!Array.isArray(data)) return fault("array", { got: shown(data) });
  if (data.length === 0) return fault("empty");
  if (data.length > MOST_RECORDS) return fault("long", { count: data.length, most: MOST_RECORDS });
  const steps = new Float64Array(data.length);
  const entropies = new Float64Array(data.length);
  for (let i = 0; i < data.length; i += 1) {
    const wrong = check(data[i], i > 0 ? steps[i - 1] : -1);
    if (wrong) return { ...wrong, values: { ...wrong.values, record: i + 1 } };
    steps[i] = data[i].step;
    entropies[i] = data[i].entropy;
  }
  return { steps, entropies };
}

/**
 * The entropy of a metrics file; lines without it are passed over.
 * @param {string} text
 * @returns {Points | Fault}
 */
export function readLines(text) {
  /** @type {number[]} */
  const steps = [];
  /** @type {number[]} */
  const entropies = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const at = { line: index + 1 };
    let data;
    try {
      data = JSON.parse(line);
    } catch {
      return fault("line", { ...at, near: near(line, 0) });
    }
    if (
      typeof data !== "object" ||
      data === null ||
      !Object.hasOwn(data, "step") ||
      !Object.hasOwn(data, "policy/entropy")
    )
      continue;
    const { step, "policy/entropy": entropy } = data;
    if (![step, entropy].every((value) => typeof value === "number" && Number.isFinite(value)))
      return fault("lineNumbers", { ...at, step: shown(step), got: shown(entropy) });
    if (steps.length > 0 && steps[steps.length - 1] >= step) return fault("lineOrder", { ...at, step });
    steps.push(step);
    entropies.push(entropy);
  }
  if (steps.length === 0) return fault("noLines");
  return { steps: Float64Array.from(steps), entropies: Float64Array.from(entropies) };
}

/**
 * @param {any} record
 * @param {number} previous the step before; −1 if there is none
 * @returns {Fault | null}
 */
function check(record, previous) {
  if (typeof record !== "object" || record === null || Array.isArray(record))
    return fault("object", { got: shown(record) });
  for (const field of ["step", "entropy"]) if (!Object.hasOwn(record, field)) return fault("missing", { field });
  const { step, entropy } = record;
  // some programs write whole numbers as floats: 2.0 is 2
  if (typeof step !== "number" || !Number.isInteger(step) || step < 0 || step >= 9e15)
    return fault("step", { got: shown(step) });
  if (typeof entropy !== "number" || !Number.isFinite(entropy)) return fault("entropy", { got: shown(entropy) });
  if (step === previous) return fault("twice", { step });
  if (step < previous) return fault("order", { step, previous });
  return null;
}

/** @param {unknown} value */
function shown(value) {
  const text = value === Infinity || value === -Infinity ? String(value) : (JSON.stringify(value) ?? "undefined");
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}

const NOT_JSON = /[:,[\s]\s*(-?(?:NaN|nan|Infinity|inf))\b/;

/**
 * The record where a text stops being JSON.
 * @param {string} text
 * @returns {Fault}
 */
function locate(text) {
  const lineAt = (/** @type {number} */ at) => text.slice(0, at).split("\n").length;
  const start = text.search(/\S/);
  if (text[start] !== "[") return fault("malformed", { line: lineAt(start), record: 1, near: near(text, start) });
  let record = 0;
  for (let from = start + 1; from <= text.length;) {
    record += 1;
    const { end, open } = elementEnd(text, from);
    const element = text.slice(from, end);
    const begins = from + Math.max(0, element.search(/\S/));
    const alone = !open && text[end] === "]" && record === 1 && element.trim() === "";
    if (!alone && !parses(element)) {
      const bare = NOT_JSON.exec(` ${element}`);
      if (
        bare &&
        parses(
          ` ${element}`.replaceAll(new RegExp(NOT_JSON, "g"), (whole, word) => whole.replace(word, "0")) +
            (open ? "}" : ""),
        )
      ) {
        return fault("nan", { line: lineAt(from + bare.index), record, got: bare[1] });
      }
      if (open) return fault("early", { line: lineAt(text.trimEnd().length), record });
      return fault("malformed", { line: lineAt(begins), record, near: near(text, begins) });
    }
    if (open) return fault("early", { line: lineAt(text.trimEnd().length), record });
    if (text[end] === "]") {
      const rest = text.slice(end + 1).search(/\S/);
      const after = rest < 0 ? end : end + 1 + rest;
      return fault("after", { line: lineAt(after), near: near(text, after) });
    }
    from = end + 1;
  }
  return fault("early", { line: lineAt(text.length), record });
}

/** @param {string} text */
function parses(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Where an element of the array ends.
 * @param {string} text
 * @param {number} from
 * @returns {{ end: number, open: boolean }} open if the text ends first
 */
function elementEnd(text, from) {
  let depth = 0;
  let quoted = false;
  for (let i = from; i < text.length; i += 1) {
    const letter = text[i];
    if (quoted) {
      if (letter === "\\") i += 1;
      else if (letter === '"') quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === "{" || letter === "[") depth += 1;
    else if (depth === 0 && (letter === "," || letter === "]")) return { end: i, open: false };
    else if (letter === "}" || letter === "]") depth -= 1;
  }
  return { end: text.length, open: true };
}

/**
 * @param {string} text
 * @param {number} at
 */
const near = (text, at) =>
  text
    .slice(at, at + 30)
    .split("\n")[0]
    .trim();
