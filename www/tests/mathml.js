// Evaluates formulas as the page shows them, so that a test can compare them with the numbers of the library.

/**
 * What is shown inside elements, as trees that a test can read.
 * @param {import("playwright-core").Locator} elements
 */
export const treesOf = (elements) =>
  elements.evaluateAll((all) => {
    const tree = (node) => ({
      tag: node.localName,
      text: node.textContent.trim(),
      children: [...node.children].map(tree),
    });
    return all.map(tree);
  });

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const FUNCTIONS = {
  min: Math.min,
  max: Math.max,
  clip: (x, low, high) => Math.min(high, Math.max(low, x)),
  exp: Math.exp,
  sign: Math.sign,
  σ: sigmoid,
  sg: (x) => x,
};
const COMPARISONS = { "≤": (a, b) => a <= b, "≥": (a, b) => a >= b };

/** Rows are only grouping: brackets are shown. */
export const flat = (tree) => (["math", "mrow"].includes(tree.tag) ? tree.children.flatMap(flat) : [tree]);

/** The sides of an equation. @returns {object[][]} */
export function sidesOf(formula) {
  const sides = [[]];
  for (const token of flat(formula)) {
    if (token.text === "=") sides.push([]);
    else sides.at(-1).push(token);
  }
  return sides;
}

export const textOf = (tokens) => tokens.map(({ text }) => text).join("");

/**
 * @param {object[]} tokens
 * @param {Record<string, number>} known what the symbols stand for, by their text
 * @returns {number} conditions in square brackets are 1 or 0
 */
export function evaluate(tokens, known) {
  let at = 0;
  const next = () => tokens[at]?.text;
  const isOperator = () => tokens[at]?.tag === "mo";
  const take = (text) => {
    if (next() !== text) throw new Error(`${text} expected at ${at} of ${textOf(tokens)}`);
    at += 1;
  };

  const sum = () => {
    let value = 0;
    do {
      const sign = next() === "−" ? -1 : 1;
      if (next() === "−" || next() === "+") at += 1;
      value += sign * product();
    } while (next() === "+" || next() === "−");
    return value;
  };
  const product = () => {
    let value = factor();
    for (;;) {
      if (next() === "·") at += 1;
      else if (at >= tokens.length || next() === "or" || (isOperator() && !"([".includes(next()))) return value;
      value *= factor();
    }
  };
  const list = () => {
    take("(");
    const values = [sum()];
    while (next() === ",") {
      at += 1;
      values.push(sum());
    }
    take(")");
    return values;
  };
  const comparison = () => {
    let [left, holds] = [sum(), true];
    while (next() in COMPARISONS) {
      const compare = COMPARISONS[next()];
      at += 1;
      const right = sum();
      [left, holds] = [right, holds && compare(left, right)];
    }
    return holds;
  };
  const condition = () => {
    take("[");
    let holds = comparison();
    while (next() === "or") {
      at += 1;
      holds = comparison() || holds;
    }
    take("]");
    return Number(holds);
  };
  const factor = () => {
    const { tag, text, children } = tokens[at] ?? {};
    if (text === "(") return list()[0];
    if (text === "[") return condition();
    at += 1;
    if (text === "|") {
      const value = Math.abs(sum());
      take("|");
      return value;
    }
    if (tag === "mn") return Number(text.replaceAll("−", "-"));
    if (text === "log") return Math.log(factor());
    if (text in FUNCTIONS) return FUNCTIONS[text](...list());
    if (text in known) return known[text];
    if (text === "e") return Math.E;
    if (tag === "mfrac") return evaluate(flat(children[0]), known) / evaluate(flat(children[1]), known);
    if (tag === "msup") return evaluate(flat(children[0]), known) ** evaluate(flat(children[1]), known);
    throw new Error(`${text} is unknown in ${textOf(tokens)}`);
  };

  const value = sum();
  if (at !== tokens.length) throw new Error(`${next()} is left over in ${textOf(tokens)}`);
  return value;
}
