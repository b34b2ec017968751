// Style sheets that come with the first page that needs them, and count only while such a page is in front: a page
// looks the same whatever was opened before it.

import { html } from "./dom.js";

/** @type {Map<string, { link: HTMLLinkElement, loaded: Promise<void> }>} */
const sheets = new Map();

/**
 * If one fails to load, the page is unstyled, not empty.
 * @param {string} name
 * @returns {Promise<void>}
 */
export function addStyle(name) {
  const found = sheets.get(name);
  if (found) return found.loaded;
  const link = html("link", { rel: "stylesheet", href: `styles/${name}.css` });
  /** @type {Promise<void>} */
  const loaded = new Promise((resolve) => {
    link.addEventListener("load", () => resolve());
    link.addEventListener("error", () => resolve());
  });
  sheets.set(name, { link, loaded });
  document.head.append(link);
  return loaded;
}

/** @param {string[]} names the only ones that count from now on */
export function wear(names) {
  for (const [name, { link }] of sheets) if (link.sheet) link.sheet.disabled = !names.includes(name);
}
