// Numbers to text and back. The minus is the typographic one (U+2212) on the page; typing accepts both.

/**
 * @param {string} text what JavaScript prints
 * @returns {string}
 */
const typographic = (text) => text.replaceAll("-", "−").replace("e+", "e");

/**
 * @param {number} value
 * @param {(finite: number) => string} finite
 * @returns {string}
 */
function special(value, finite) {
  if (Number.isNaN(value)) return "NaN";
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  if (Object.is(value, -0)) return "−0";
  return typographic(finite(value));
}

/**
 * Six significant digits, without trailing zeros. Small numbers get an exponent: leading zeros would make columns wide.
 * @param {number} value
 * @returns {string}
 */
export const short = (value) =>
  special(value, (x) =>
    x !== 0 && Math.abs(x) < 1e-4 ? x.toExponential(5).replace(/\.?0+e/, "e") : String(Number(x.toPrecision(6))),
  );

/**
 * Every digit needed to get the same number back.
 * @param {number} value
 * @returns {string}
 */
export const full = (value) => special(value, String);

/**
 * Six digits with the sign always printed, because colour alone must not carry it.
 * @param {number} value
 * @returns {string}
 */
export const signed = (value) => (value > 0 ? "+" : "") + short(value);

/** @typedef {{ value: number } | { problem: "empty" | "comma" | "text" }} Parsed */

/**
 * @param {string} text
 * @returns {Parsed}
 */
export function parse(text) {
  const plain = text.trim().replaceAll("−", "-").replaceAll("－", "-").replaceAll("．", ".");
  if (plain === "") return { problem: "empty" };
  const word = plain.toLowerCase().replace(/^[+-]/, "");
  const sign = plain.startsWith("-") ? -1 : 1;
  if (word === "nan") return { value: NaN };
  if (word === "inf" || word === "infinity" || word === "∞") return { value: sign * Infinity };
  if (/^[+-]?\d+[,，]\d+$/.test(plain)) return { problem: "comma" };
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return { problem: "text" };
  return { value: Number(plain) };
}

/**
 * @param {number} number
 * @returns {string} the number in subscript digits
 */
export const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]);
