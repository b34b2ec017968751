// What a cell of the tables says and how it is coloured. Colour never carries more than the number beside it.

import { full, within } from "../parts/format.js";
import { scaleOf } from "./quantities.js";

/** @typedef {"plus" | "minus" | "size" | ""} Tone */
/** @typedef {{ text: string, tone: Tone, strength: number, title?: string }} Cell */

/**
 * @param {string} quantity
 * @param {number} value
 * @param {number} scale the size at which the colour is deepest
 * @returns {{ tone: Tone, strength: number }}
 */
export function toneOf(quantity, value, scale) {
  if (Number.isNaN(value)) return { tone: "", strength: 0 };
  const kind = scaleOf(quantity);
  const distance = kind === "one" ? value - 1 : value;
  const strength = Math.min(1, Math.abs(distance) / scale) || 0;
  if (distance === 0) return { tone: "", strength: 0 };
  return { tone: kind === "size" ? "size" : distance > 0 ? "plus" : "minus", strength };
}

/** How many digits a column of numbers is wide. */
const ROOM = 9;

/**
 * The number as printed: with its sign where the sign is what the colour says.
 * @param {string} quantity
 * @param {number} value
 */
export const numberText = (quantity, value) => within(value, ROOM, scaleOf(quantity) === "sign");

/**
 * @param {string} quantity
 * @param {number} value
 * @param {number | null} scale null for a cell without colour
 * @returns {Cell}
 */
export const numberCell = (quantity, value, scale) => ({
  text: numberText(quantity, value),
  title: full(value),
  ...(scale === null ? { tone: /** @type {Tone} */ (""), strength: 0 } : toneOf(quantity, value, scale)),
});
