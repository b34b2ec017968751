// Breaks formulas that are wider than their box: MathML does not do so by itself.

/** What stands close to its neighbours. */
const TIGHT = new Set(["(", "[", "|", "Σ", "∂", "/"]);
/** What no line begins with, and what no line ends with. */
const CLOSING = new Set([")", "]", ","]);
const OPENING = new Set(["(", "["]);
/** Groups of at most this many letters stay together. */
const SHORT = 11;

/** @type {WeakMap<Element, Node[]>} what a broken formula was made of */
const whole = new WeakMap();

/** @param {Element} math */
function mend(math) {
  const parts = whole.get(math);
  if (!parts) return;
  math.classList.remove("broken");
  math.parentElement?.classList.remove("breaks");
  for (const sign of math.querySelectorAll(".tight")) sign.classList.remove("tight");
  math.replaceChildren(...parts);
  whole.delete(math);
}

/**
 * The parts between which a line may end.
 * @param {Element} element
 * @returns {Element[]}
 */
const partsOf = (element) =>
  Array.from(element.children).flatMap((child) =>
    child.localName === "mrow" && (child.textContent ?? "").length > SHORT ? partsOf(child) : [child],
  );

/** @param {Element | undefined} part @param {Set<string>} signs */
const isSign = (part, signs) => part?.localName === "mo" && signs.has(part.textContent ?? "");

/**
 * Brackets and commas stay with what they belong to, which also keeps them on its line of writing.
 * @param {Element[]} parts
 * @returns {Element[]}
 */
function together(parts) {
  /** @type {Element[][]} */
  const groups = [];
  for (const [index, part] of parts.entries()) {
    const before = parts[index - 1];
    // a bracket after a name is that of its arguments
    const ofName = isSign(part, OPENING) && before !== undefined && before.localName !== "mo";
    if (index > 0 && (isSign(part, CLOSING) || isSign(before, OPENING) || ofName)) groups[groups.length - 1].push(part);
    else groups.push([part]);
  }
  return groups.map((group) => {
    if (group.length === 1) return group[0];
    const row = document.createElementNS("http://www.w3.org/1998/Math/MathML", "mrow");
    row.append(...group);
    return row;
  });
}

/** @param {Element} math */
function split(math) {
  whole.set(
    math,
    Array.from(math.childNodes, (node) => node.cloneNode(true)),
  );
  const parts = together(partsOf(math));
  for (const part of parts)
    if (part.localName === "mo" && TIGHT.has(part.textContent ?? "")) part.classList.add("tight");
  math.replaceChildren(...parts);
  math.classList.add("broken");
  math.parentElement?.classList.add("breaks");
}

/** @param {Element} box */
function fit(box) {
  const all = [...box.querySelectorAll("math")];
  for (const math of all) mend(math);
  const { right } = box.getBoundingClientRect();
  for (const math of all.filter((one) => one.getBoundingClientRect().right > right + 0.5)) split(math);
}

/**
 * From now on, breaks the formulas in every box that is added inside an element.
 * @param {HTMLElement} root
 * @param {string} boxes which elements hold formulas
 */
export function breakFormulas(root, boxes) {
  // called after layout and before painting: measuring costs nothing there
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) fit(target);
  });
  new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) {
        if (!(node instanceof HTMLElement)) continue;
        if (node.matches(boxes)) sizes.observe(node);
        for (const box of node.querySelectorAll(boxes)) sizes.observe(box);
      }
    }
  }).observe(root, { childList: true, subtree: true });
}
