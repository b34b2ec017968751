// The table as CSV, and the sequences as JSON Lines that the command and this page read again.

import { fileName } from "./fields.js";
import { textOf } from "./flow.js";

/** @typedef {import("./types.js").Loaded} Loaded */

/** Every digit, in the words of Python for what is not finite. @param {number} x */
const digits = (x) =>
  Number.isNaN(x)
    ? "NaN"
    : x === Infinity
      ? "Infinity"
      : x === -Infinity
        ? "-Infinity"
        : Object.is(x, -0)
          ? "-0.0"
          : String(x);

/**
 * A cell: quoted where needed; what a spreadsheet would run as a formula gets an apostrophe (a lone "=" or "-" is
 * none).
 * @param {string} text
 */
function quoted(text) {
  const safe = /^[=+\-@\t\r]../.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * A field of the file under its usual name; what was computed under one that is not read as a field again.
 * @param {Loaded} data
 * @param {string} key
 */
const columnName = (data, key) => (data.fields.includes(key) ? fileName(key) : `computed_${key}`);

/**
 * One token a row, in the order of the table.
 * @param {Loaded} data
 * @param {ArrayLike<number>} order
 * @param {string[]} keys
 */
export function toCsv(data, order, keys) {
  const head = [
    "sequence",
    "t",
    "token",
    "mask",
    "step",
    "group",
    "score",
    ...keys.map((key) => columnName(data, key)),
  ];
  const lines = [head.join(",")];
  for (let row = 0; row < order.length; row += 1) {
    const slot = order[row];
    const sequence = data.sequence[slot];
    const step = data.step[sequence];
    lines.push(
      [
        sequence + 1,
        data.token[slot] + 1,
        quoted(textOf(data, slot)),
        data.keep[slot],
        Number.isNaN(step) ? "" : step,
        quoted(data.groupNames[data.group[sequence]] ?? ""),
        data.scored[sequence] === 1 ? digits(data.score[sequence]) : "",
        ...keys.map((key) => digits(data.columns[key][slot])),
      ].join(","),
    );
  }
  return `${lines.join("\n")}\n`;
}

/**
 * One sequence a line, with all that was read and computed; fields of the file under their usual names.
 * @param {Loaded} data
 */
export function toJsonLines(data) {
  const lines = [];
  for (let sequence = 0; sequence < data.sequences; sequence += 1) {
    const [start, end] = [data.offsets[sequence], data.offsets[sequence + 1]];
    /** @type {string[]} */
    const parts = [];
    const add = (/** @type {string} */ name, /** @type {string} */ text) =>
      parts.push(`${JSON.stringify(name)}:${text}`);
    if (!Number.isNaN(data.step[sequence])) add("step", digits(data.step[sequence]));
    if (data.groupNames[data.group[sequence]] !== undefined) add("group", String(data.group[sequence]));
    if (data.scored[sequence] === 1) add("score", digits(data.score[sequence]));
    if (end > start) {
      const slots = Array.from({ length: end - start }, (_, i) => start + i);
      add("mask", `[${slots.map((slot) => data.keep[slot]).join(",")}]`);
      if (data.textEnds[end - 1] > (start === 0 ? 0 : data.textEnds[start - 1]))
        add("token_strings", JSON.stringify(slots.map((slot) => textOf(data, slot))));
      for (const key of data.keys)
        add(columnName(data, key), `[${slots.map((slot) => digits(data.columns[key][slot])).join(",")}]`);
    }
    lines.push(`{${parts.join(",")}}`);
  }
  return `${lines.join("\n")}\n`;
}
