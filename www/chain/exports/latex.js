// The formula of the chosen cell, with symbols and with numbers, and the table of all rows, for a paper. Formulas are
// read off the mathematics on the page, so that there is one spelling of each.

import { short } from "../../parts/format.js";
import { symbol } from "../../parts/math.js";
import { withNumbers, withSymbols } from "../formulas/formulas.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {import("../edit/edits.js").Place} Place */

/** @type {Record<string, string>} */
const SIGNS = {
  "−": "-",
  "·": "\\cdot ",
  "×": "\\times ",
  "≤": "\\le ",
  "≥": "\\ge ",
  "<": "<",
  ">": ">",
  "≠": "\\ne ",
  "∈": "\\in ",
  "Σ": "\\sum ",
  "∑": "\\sum ",
  "∂": "\\partial ",
  "∞": "\\infty ",
  "…": "\\dots ",
  "→": "\\to ",
  "′": "'",
  "ℓ": "\\ell ",
  "α": "\\alpha ",
  "β": "\\beta ",
  "γ": "\\gamma ",
  "δ": "\\delta ",
  "ε": "\\varepsilon ",
  "λ": "\\lambda ",
  "μ": "\\mu ",
  "π": "\\pi ",
  "ρ": "\\rho ",
  "σ": "\\sigma ",
  "τ": "\\tau ",
  "—": "\\text{---}",
  "%": "\\%",
  "{": "\\{",
  "}": "\\}",
  "_": "\\_",
  "#": "\\#",
  "&": "\\&",
  "$": "\\$",
  "\\": "\\backslash ",
};

/** @param {string} text */
const signs = (text) => Array.from(text, (letter) => SIGNS[letter] ?? letter).join("");

/** @type {Record<string, string>} */
const ACCENTS = { "~": "tilde", "^": "hat", "¯": "bar", "‾": "bar", "˜": "tilde", "ˆ": "hat" };
const FUNCTIONS = new Set(["exp", "log", "min", "max", "ln"]);

/** @type {Record<string, (parts: string[], element: Element) => string>} */
const ELEMENTS = {
  mfrac: ([above, below]) => `\\frac{${above}}{${below}}`,
  msqrt: (parts) => `\\sqrt{${parts.join("")}}`,
  msub: ([base, index]) => `${base.trimEnd()}_{${index}}`,
  msup: ([base, exponent]) => `${base.trimEnd()}^{${exponent}}`,
  msubsup: ([base, index, exponent]) => `${base.trimEnd()}_{${index}}^{${exponent}}`,
  mover: ([base], element) => {
    const accent = ACCENTS[element.children[1]?.textContent ?? ""];
    return accent ? `\\${accent}{${base}}` : `\\overset{${element.children[1]?.textContent ?? ""}}{${base}}`;
  },
  munder: ([base, below]) => `${base.trimEnd()}_{${below}}`,
  munderover: ([base, below, above]) => `${base.trimEnd()}_{${below}}^{${above}}`,
  mtext: (_, element) => `\\text{${escaped(element.textContent ?? "")}}`,
  mspace: () => "\\;",
};

/**
 * @param {Element} element of MathML
 * @returns {string}
 */
export function latexOf(element) {
  const tag = element.localName;
  const text = element.textContent ?? "";
  if (tag === "mi" || tag === "mo" || tag === "mn") {
    if (FUNCTIONS.has(text)) return `\\${text} `;
    // words are upright, exponents are written as powers of ten
    if (
      tag === "mi" &&
      (element.getAttribute("mathvariant") === "normal" || text.length > 1) &&
      /^[A-Za-z]{2,}$/.test(text)
    )
      return `\\mathrm{${text}}`;
    return tag === "mn" ? power(text) : signs(text);
  }
  const parts = Array.from(element.children, latexOf);
  return ELEMENTS[tag]?.(parts, element) ?? parts.join("");
}

/** @param {string} text a number as the page prints it */
function power(text) {
  if (text === "NaN") return "\\mathrm{NaN}";
  const found = /^(.*)e(−?\d+)$/.exec(text);
  return found ? `${signs(found[1])}\\times 10^{${signs(found[2])}}` : signs(text);
}

/** Someone's words, as nothing but words. @param {string} text */
const escaped = (text) =>
  text
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ")
    .replace(
      /[\\{}$&#%_^~]/g,
      (letter) =>
        ({ "\\": "\\textbackslash{}", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}" })[letter] ?? `\\${letter}`,
    );

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Result} result
 * @param {Place} place the chosen cell
 * @param {string[]} keys the rows of the table
 * @returns {string}
 */
export function latex(library, state, result, place, keys) {
  const symbols = withSymbols(library, state, result, place);
  const numbers = symbols && withNumbers(library, state, result, place);
  const value = result.rows[place.row]?.[place.sequence]?.[place.index];
  const formula = symbols
    ? [
        "\\[",
        `\\begin{aligned}`,
        `  ${aligned(latexOf(symbols))} \\\\`,
        ...(numbers ? [`  &${latexOf(numbers)} \\\\`] : []),
        ...(value === undefined ? [] : [`  &= ${power(short(value))}`]),
        "\\end{aligned}",
        "\\]",
        "",
      ]
    : [];
  const tables = state.sequences.map((_, s) => table(state, result, s, keys));
  return [
    "% needs amsmath; tokens that are not ASCII need a font that has them (XeLaTeX or LuaLaTeX, with ctex for Chinese)",
    ...formula,
    ...tables,
  ].join("\n");
}

/** The first sign of equality is where lines meet. @param {string} formula */
const aligned = (formula) => formula.replace("=", "&= ");

/**
 * @param {State} state
 * @param {Result} result
 * @param {number} s
 * @param {string[]} keys
 */
function table(state, result, s, keys) {
  const { tokens, roles } = state.sequences[s];
  const wanted = keys.filter((key) => key !== "mask" && (result.rows[key]?.[s].length ?? 0) >= tokens.length);
  const head = tokens.map((token, i) =>
    roles[i] === "policy" ? escaped(token) : `\\textcolor{gray}{${escaped(token)}}`,
  );
  const lines = wanted.map((key) => {
    const numbers = Array.from(/** @type {Float64Array[]} */ (result.rows[key])[s]).slice(0, tokens.length);
    const cells = [latexOf(symbol(key)).trim(), ...numbers.map((value) => power(short(value)))];
    return `  ${cells.map((cell) => `$${cell}$`).join(" & ")} \\\\`;
  });
  const grey = roles.every((role) => role === "policy") ? "" : "% dropped tokens are grey: needs xcolor\n";
  const rule = "  \\hline";
  const begin = `\\begin{tabular}{l${"r".repeat(tokens.length)}}`;
  const rows = [rule, `   & ${head.join(" & ")} \\\\`, rule, ...(lines.length > 0 ? lines : [""]), rule];
  return `${grey}${[begin, ...rows, "\\end{tabular}"].join("\n")}\n`;
}
