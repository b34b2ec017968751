// A file of rollouts, whatever its kind, as parts: docs/rollout-files.md. Pure, so that it runs in a worker and under Node.

import { readCsv, rowsOf } from "./csv.js";
import { Fault } from "./fault.js";
import { Feeder } from "./feeder.js";
import { finder } from "./fields.js";
import { readDocument } from "./object.js";
import { Scanner } from "./scanner.js";

/** Texts in a browser cannot be much longer than twice this. */
export const MOST_BYTES = 200 * 1024 * 1024;

/** @typedef {"json" | "jsonl" | "csv"} Kind */

/**
 * @typedef {object} Read
 * @property {Kind} kind
 * @property {import("./feeder.js").Part[]} parts
 * @property {number} sequences
 * @property {number} tokens
 * @property {string[]} passedOver names of numbers that no field has
 */

/**
 * @param {string} name of the file, "" for a pasted text
 * @param {string} text
 * @param {{ scoreName?: string, progress?: (share: number) => void }} [options]
 * @returns {Read}
 */
export function read(name, text, { scoreName = "", progress = () => {} } = {}) {
  const kind = kindOf(name, text, scoreName);
  const feeder = new Feeder();
  const find = finder(scoreName);
  // a clock is asked rarely: a file may have a million lines
  let calls = 0;
  const step = (/** @type {number} */ at) => {
    calls += 1;
    if (calls % 16 === 0) progress(at / text.length);
  };
  if (kind === "csv") readCsv(text, feeder, find, step);
  else if (kind === "jsonl") readLines(text, feeder, find, step);
  else {
    feeder.countsRecords = true;
    const scanner = new Scanner(text);
    while (!scanner.done()) readDocument(scanner, feeder, find, () => step(scanner.at));
  }
  if (feeder.sequences === 0) throw new Fault("noRollout", {});
  return { kind, parts: feeder.parts, sequences: feeder.sequences, tokens: feeder.tokens, passedOver: [...feeder.passedOver] };
}

/**
 * @param {string} text
 * @param {Feeder} feeder
 * @param {ReturnType<typeof finder>} find
 * @param {(at: number) => void} step
 */
function readLines(text, feeder, find, step) {
  let line = 0;
  for (let start = 0; start < text.length;) {
    const found = text.indexOf("\n", start);
    const end = found < 0 ? text.length : found;
    line += 1;
    const scanner = new Scanner(text, start, end);
    if (!scanner.done()) {
      feeder.place = line;
      try {
        readDocument(scanner, feeder, find, () => {});
        if (!scanner.done()) throw scanner.unexpected("\\n");
      } catch (error) {
        if (error instanceof Fault) error.place = { line };
        throw error;
      }
    }
    step(end);
    start = end + 1;
  }
}

/**
 * @param {string} name
 * @param {string} text
 * @param {string} scoreName
 * @returns {Kind}
 */
function kindOf(name, text, scoreName) {
  const start = /\S/.exec(text.slice(0, 1 << 20))?.[0] ?? (text.trim() === "" ? "" : "x");
  if (start === "") throw new Fault("empty");
  const ending = /\.([a-z]+)$/i.exec(name)?.[1].toLowerCase() ?? "";
  if (ending === "jsonl" || ending === "ndjson") return "jsonl";
  if (ending === "json" || ending === "csv") return ending;
  if (start === "{" || start === "[") return "json";
  const find = finder(scoreName);
  const header = rowsOf(text.slice(0, 1 << 16)).next().value;
  if (header?.cells.some((/** @type {string} */ cell) => find(cell))) return "csv";
  throw new Fault("unknownKind");
}

/**
 * The text of a file; says which byte is none.
 * @param {string} name
 * @param {Uint8Array} bytes
 */
export function decode(name, bytes) {
  if (bytes.length > MOST_BYTES) throw new Fault("tooLarge", { size: Math.ceil(bytes.length / 1048576), most: MOST_BYTES / 1048576 });
  const binary = /\.(parquet|safetensors)$/i.exec(name)?.[1].toLowerCase() ?? (String.fromCharCode(...bytes.subarray(0, 4)) === "PAR1" ? "parquet" : "");
  if (binary !== "") throw new Fault("binary", { kind: binary });
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const at = firstBad(bytes);
    let line = 1;
    for (let i = 0; i < at; i += 1) if (bytes[i] === 10) line += 1;
    throw new Fault("notText", { byte: at + 1 }, { line });
  }
}

/** How many bytes from the start are text. @param {Uint8Array} bytes */
function firstBad(bytes) {
  let [good, bad] = [0, bytes.length];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    try {
      // a character cut in two is not yet wrong
      new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, middle), { stream: true });
      good = middle;
    } catch {
      bad = middle;
    }
  }
  return good;
}
