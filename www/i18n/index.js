// One catalogue per language, flat keys, {name} for what is filled in.

import en from "./en.js";
import zh from "./zh.js";

/** @type {Record<string, Record<string, string>>} */
export const catalogues = { en, zh };

let language = "en";

/** @param {string} wanted */
export function setLanguage(wanted) {
  language = wanted in catalogues ? wanted : "en";
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
}

/** @returns {string} */
export const currentLanguage = () => language;

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
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
