// CSV: one sequence a row, with lists in brackets, or one token a row.

import { excerpt, Fault } from "./fault.js";
import { COLUMNS } from "./fields.js";

/** @typedef {import("./feeder.js").Feeder} Feeder */
/** @typedef {import("./fields.js").Field} Field */

/**
 * Rows of cells, one at a time, blank lines left out.
 * @param {string} text
 * @returns {Generator<{ cells: string[], line: number, at: number }>}
 */
export function* rowsOf(text) {
  let at = 0;
  let line = 1;
  while (at < text.length) {
    /** @type {string[]} */
    const cells = [];
    const first = line;
    const start = at;
    for (let more = true; more;) {
      let cell = "";
      if (text[at] === '"') {
        // up to the quote that is not doubled; without one, to the end
        for (at += 1; ;) {
          const close = text.indexOf('"', at);
          const end = close < 0 ? text.length : close;
          cell += text.slice(at, end);
          for (let next = text.indexOf("\n", at); next >= 0 && next < end; next = text.indexOf("\n", next + 1)) line += 1;
          at = end + 1;
          if (text[at] !== '"' || close < 0) break;
          cell += '"';
          at += 1;
        }
      }
      let end = at;
      while (end < text.length && text[end] !== "," && text[end] !== "\n" && text[end] !== "\r") end += 1;
      cell += text.slice(at, end);
      cells.push(cell.trim());
      more = text[end] === ",";
      at = end + 1;
      if (text[end] === "\r" && text[at] === "\n") at += 1;
      if (text[end] === "\n" || text[at - 1] === "\n") line += 1;
    }
    const blank = cells.length === 1 && cells[0] === "" && text[start] !== '"';
    if (!blank) yield { cells, line: first, at: Math.min(at, text.length) };
  }
}

/**
 * @param {string} text
 * @param {Feeder} feeder
 * @param {(name: string) => Field | undefined} find
 * @param {(at: number) => void} step called after every row
 */
export function readCsv(text, feeder, find, step) {
  /** @type {(Field | undefined)[]} */
  let fields = [];
  let sequence = -1;
  let width = -1;
  /** @type {{ id: string, tokens: number, texts: string[] } | null} */
  let current = null;
  let last = 1;
  const close = () => {
    if (!current) return;
    const has = (/** @type {Field["kind"]} */ kind) => fields.some((field) => field?.kind === kind);
    for (const column of COLUMNS) {
      if (fields.some((field) => field?.kind === "column" && field.column === column)) feeder.rowAdded(column, current.tokens);
    }
    if (has("mask")) feeder.maskAdded(current.tokens);
    if (has("text") || has("id")) feeder.record.texts.push(current.texts);
    current = null;
    feeder.end();
  };
  for (const { cells, line, at } of rowsOf(text)) {
    if (width < 0) {
      width = cells.length;
      fields = cells.map(find);
      sequence = fields.findIndex((field) => field?.kind === "sequence");
      for (const [index, name] of cells.entries()) if (!fields[index] && name !== "" && index < 40) feeder.passedOver.add(excerpt(name));
      continue;
    }
    last = line;
    inLine(line, () => {
      if (cells.length !== width) throw new Fault("csvWidth", { expected: width, got: cells.length });
      if (sequence < 0) {
        feeder.place = line;
        readCells(cells, fields, feeder);
        feeder.end();
        return;
      }
      if (current && current.id !== cells[sequence]) close();
      if (!current) feeder.place = line;
      const text = readToken(cells, fields, feeder, current === null);
      current ??= { id: cells[sequence], tokens: 0, texts: [] };
      current.tokens += 1;
      current.texts.push(text);
    });
    step(at);
  }
  inLine(last, close);
}

/**
 * @param {number} line
 * @param {() => void} work
 */
function inLine(line, work) {
  try {
    work();
  } catch (error) {
    if (error instanceof Fault) error.place = { line };
    throw error;
  }
}

/**
 * A row that is a sequence.
 * @param {string[]} cells
 * @param {(Field | undefined)[]} fields
 * @param {Feeder} feeder
 */
function readCells(cells, fields, feeder) {
  for (const [index, cell] of cells.entries()) {
    const field = fields[index];
    if (!field || cell === "") continue;
    if (field.kind === "column" && cell.startsWith("[")) {
      const numbers = listOf(cell, field);
      const out = feeder.numbers(field.column);
      for (const x of numbers) out.push(x);
      feeder.rowAdded(field.column, numbers.length);
    } else if (field.kind === "mask") {
      const numbers = listOf(cell, field);
      for (const x of numbers) feeder.part.keep.push(flag(x));
      feeder.maskAdded(numbers.length);
    } else if (field.kind === "prompt" || field.kind === "group") feeder.text(field, cell);
    else if (!["inside", "list", "sequence", "text", "id"].includes(field.kind)) feeder.scalar(field, numberOf(cell, field));
  }
}

/**
 * A row that is a token.
 * @param {string[]} cells
 * @param {(Field | undefined)[]} fields
 * @param {Feeder} feeder
 * @param {boolean} first of its sequence
 * @returns {string} what it reads like
 */
function readToken(cells, fields, feeder, first) {
  let text = "";
  for (const [index, cell] of cells.entries()) {
    const field = fields[index];
    switch (field?.kind) {
      case "column": feeder.numbers(field.column).push(cell === "" ? NaN : numberOf(cell, field)); break;
      case "mask": feeder.part.keep.push(flag(numberOf(cell, field))); break;
      case "prompt": case "group": if (first) feeder.text(field, cell); break;
      case "score": case "step": case "truncated": case "length": case "promptLength":
        if (cell !== "") feeder.scalar(field, numberOf(cell, field));
        break;
      case "text": text = cell; break;
      case "id": text ||= `#${cell}`; break;
      default:
    }
  }
  return text;
}

/** @param {number} x */
function flag(x) {
  if (x !== 0 && x !== 1) throw new Fault("notAMask", { found: String(x) });
  return x === 1;
}

const DECIMAL = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
const INFINITE = /^([+-]?)inf(?:inity)?$/i;

/** @param {string} cell @returns {number | undefined} */
function parsed(cell) {
  if (DECIMAL.test(cell)) return Number(cell);
  if (cell === "true" || cell === "True" || cell === "TRUE") return 1;
  if (cell === "false" || cell === "False" || cell === "FALSE") return 0;
  if (cell === "None" || cell === "null" || /^[+-]?nan$/i.test(cell)) return NaN;
  const infinite = INFINITE.exec(cell);
  return infinite ? (infinite[1] === "-" ? -Infinity : Infinity) : undefined;
}

/** @param {string} cell @param {Field} field */
function numberOf(cell, field) {
  const x = parsed(cell);
  if (x === undefined) throw new Fault("notANumber", { field: field.name, found: excerpt(cell) });
  return x;
}

/** `[1, 2.5, NaN]`, with commas or blanks between. @param {string} cell @param {Field} field */
function listOf(cell, field) {
  if (!cell.startsWith("[") || !cell.endsWith("]")) throw new Fault("notAList", { field: field.name, found: excerpt(cell) });
  return cell.slice(1, -1).split(/[, \n]/).filter((part) => part !== "").map((part) => numberOf(part, field));
}
