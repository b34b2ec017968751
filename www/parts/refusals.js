// What the library refused, in words.

import { t } from "../i18n/index.js";

const CODES = ["config", "entry", "empty_mask", "too_few", "length"];

/**
 * @param {{ code: string, message: string, [more: string]: unknown }} refusal
 * @returns {string} the library's own message, with a sentence around it
 */
export const refusalText = ({ code, message }) => t(`refused.${CODES.includes(code) ? code : "unknown"}`, { message });
