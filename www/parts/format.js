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
 * Six significant digits, without trailing zeros. Small and large numbers get an exponent: zeros would make columns
 * wide.
 * @param {number} value
 * @returns {string}
 */
export const short = (value) =>
  special(value, (x) =>
    x !== 0 && (Math.abs(x) < 1e-4 || Math.abs(x) >= 1e7)
      ? x.toExponential(5).replace(/\.?0+e/, "e")
      : String(Number(x.toPrecision(6))),
  );

/** How wide signs are, beside a digit; the widest of the usual fonts. */
const WIDTHS = new Map([
  [".", 0.6],
  [" ", 0.6],
  ["+", 1.35],
  ["−", 1.35],
  ["∞", 1.6],
  ["—", 1.7],
  ["N", 1.25],
  ["%", 1.6],
  ["/", 0.7],
]);

/**
 * @param {string} text a number as shown
 * @returns {number} its width at most, in digits
 */
export function digitsWide(text) {
  let width = 0;
  for (const sign of text) width += WIDTHS.get(sign) ?? (sign > "\u2fff" ? 1.8 : 1);
  return width;
}

/**
 * As many of the six digits as there is room for; the exponent is never what is left out.
 * @param {number} value
 * @param {number} room in digits
 * @param {boolean} [plus] whether a plus is printed too
 * @returns {string}
 */
export function within(value, room, plus = false) {
  const sign = plus && value > 0 ? "+" : "";
  for (let digits = 6; digits > 1 && Number.isFinite(value); digits -= 1) {
    const text = sign + short(Number(value.toPrecision(digits)));
    if (digitsWide(text) <= room) return text;
  }
  return sign + short(Number.isFinite(value) && value !== 0 ? Number(value.toPrecision(1)) : value);
}

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
  // full-width digits and signs, and the full stop, as Chinese keyboards write them
  const plain = text
    .trim()
    .normalize("NFKC")
    .replaceAll("−", "-")
    .replace(/(?<=\d)。(?=\d)|^。(?=\d)/, ".");
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

/**
 * Blanks and ends of lines would not be seen.
 * @param {string} text
 */
export const visible = (text) =>
  text
    .replaceAll("\n", "⏎")
    .replaceAll("\t", "⇥")
    .replace(/^ +| +$/g, (blanks) => "·".repeat(blanks.length));
