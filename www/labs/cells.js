// What the tables of the laboratories share: a cell with its tint, a number typed into it, and a list of threads.

import { html } from "../parts/dom.js";
import { full, parse } from "../parts/format.js";
import { t } from "../i18n/index.js";

/**
 * A number for the grid: tinted by sign and by its size against the largest of its kind.
 * @param {number | undefined} value
 * @param {{ kind: "input" | "result", label: string, most?: number, text?: string, dropped?: boolean }} options
 * @returns {import("../parts/grid.js").Cell}
 */
export function numberCell(value, { kind, label, most = 0, text, dropped = false }) {
  const tone =
    kind === "input" || value === undefined || value === 0 || Number.isNaN(value) ? "" : value > 0 ? "plus" : "minus";
  const strength = value !== undefined && Number.isFinite(value) && most > 0 ? Math.min(1, Math.abs(value) / most) : 0;
  return {
    text: text ?? (value === undefined ? "—" : full(value)),
    label: () => label,
    kind,
    tone,
    strength,
    dropped,
    faint: false,
    editText: value === undefined ? "" : full(value),
  };
}

/**
 * The largest finite size among numbers.
 * @param {ArrayLike<number>} values
 */
export const largest = (values) =>
  Array.from(values)
    .filter(Number.isFinite)
    .reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** @typedef {[thread: string, address: string]} Thread a name such as verl#593, and where it is */

/** @param {[Thread, string][]} threads each with what was said there */
export const threadList = (threads) =>
  html(
    "ul",
    { class: "lab-threads" },
    ...threads.map(([[name, address], words]) =>
      html("li", {}, html("a", { href: address, rel: "noreferrer", target: "_blank" }, name), ` — ${words}`),
    ),
  );

/**
 * Reads a number typed into a cell; a whole one between bounds if these are given.
 * @param {string} text
 * @param {number} old
 * @param {[number, number]} [bounds]
 * @returns {{ value: number } | { problem: string }}
 */
export function readNumber(text, old, bounds) {
  const parsed = parse(text);
  if ("problem" in parsed) return { problem: t(`bad.${parsed.problem}`, { text, old: full(old) }) };
  if (bounds && !whole(parsed.value, bounds))
    return { problem: t("tables.whole", { low: bounds[0], high: bounds[1], old: full(old) }) };
  return parsed;
}

/**
 * @param {unknown} value
 * @param {[number, number]} bounds
 * @returns {value is number}
 */
export const whole = (value, [low, high]) =>
  Number.isInteger(value) && /** @type {number} */ (value) >= low && /** @type {number} */ (value) <= high;
