// One catalogue per language, flat keys, {name} for what is filled in. A catalogue is written in areas: the shell's is
// always there, a page's comes with the page.

import en from "./en/shell.js";
import zh from "./zh/shell.js";

/** @type {Record<string, Record<string, string>>} */
export const catalogues = { en: { ...en }, zh: { ...zh } };

/** @type {Set<string>} */
const areas = new Set();
/** @type {Set<string>} */
const loaded = new Set();
let language = "en";

/**
 * Makes the texts of an area known, in the language of the moment and in whichever is chosen later.
 * @param {string[]} names
 */
export async function addTexts(names) {
  for (const name of names) areas.add(name);
  await load(language);
}

/** @param {string} wanted */
async function load(wanted) {
  const missing = [...areas].filter((area) => !loaded.has(`${wanted}/${area}`));
  const modules = await Promise.all(missing.map((area) => import(`./${wanted}/${area}.js`)));
  for (const [index, area] of missing.entries()) {
    Object.assign(catalogues[wanted], modules[index].default);
    loaded.add(`${wanted}/${area}`);
  }
}

/** @param {string} wanted */
export async function setLanguage(wanted) {
  const next = wanted in catalogues ? wanted : "en";
  await load(next);
  language = next;
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
}

/** @returns {string} */
export const currentLanguage = () => language;

/** Whether there is a text. @param {string} key */
export const hasText = (key) => key in catalogues[language];

/**
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 * @returns {string}
 */
export function t(key, values = {}) {
  const text = catalogues[language][key];
  if (text === undefined) {
    console.error(`no text for ${key} in ${language}`);
    return key;
  }
  // {count|sequence|sequences}: the first word for one, the second for any other number
  return text.replace(/\{(\w+)(?:\|([^|{}]*)\|([^|{}]*))?\}/g, (whole, name, one, many) => {
    if (!(name in values)) return whole;
    return one === undefined ? String(values[name]) : String(values[name]) === "1" ? one : many;
  });
}
