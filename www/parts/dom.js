// Building elements. Text is only ever set as text, so nothing typed or translated can become markup.

const MATHML = "http://www.w3.org/1998/Math/MathML";
const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * @template {Element} E
 * @param {E} element
 * @param {Record<string, unknown>} attributes
 * @param {Child[]} children
 * @returns {E}
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children) {
    if (child) element.append(child);
  }
  return element;
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {Child[]} children
 * @returns {Element}
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {Child[]} children
 * @returns {Element}
 */
export function mathml(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(MATHML, tag), attributes, children);
}

/**
 * @param {HTMLElement} element
 * @param {string} text
 */
export function setText(element, text) {
  const [child] = element.childNodes;
  // the same text node with other letters costs less than another one
  if (element.childNodes.length === 1 && child instanceof Text) {
    if (child.data !== text) child.data = text;
  } else element.textContent = text;
}

/**
 * @param {ParentNode} within
 * @param {string} selector of an element that is there
 * @returns {HTMLElement}
 */
export function find(within, selector) {
  const element = within.querySelector(selector);
  if (!(element instanceof HTMLElement)) throw new Error(`no element ${selector}`);
  return element;
}

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element #${id}`);
  return element;
}
