// What the library refused, in words.

import { t } from "../i18n/index.js";

const CODES = ["config", "entry", "empty_mask", "too_few", "length"];

/** @typedef {{ code: string, message: string }} Refusal */

/**
 * @param {unknown} error what a call of the library threw
 * @returns {Refusal}
 */
export function refusalOf(error) {
  const { code = "unknown", message = String(error) } = /** @type {Partial<Refusal>} */ (error);
  return { code, message };
}

/**
 * @param {Refusal} refusal
 * @returns {string} the library's own message, with a sentence around it
 */
export const refusalText = ({ code, message }) => t(`refused.${CODES.includes(code) ? code : "unknown"}`, { message });
