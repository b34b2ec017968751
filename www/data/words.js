// Sentences about a file: what is wrong with it, and what lint found in it.

import { t } from "../i18n/index.js";
import { short } from "../parts/format.js";
import { fileName } from "./fields.js";

/** @typedef {import("./client.js").FaultData} FaultData */

/**
 * Where, and what.
 * @param {string} name of the file, "" for a pasted text
 * @param {FaultData} fault
 */
export function faultText(name, { code, values, place }) {
  const parts = [name === "" ? t("data.pasted") : name];
  if (place.line !== undefined) parts.push(t("data.at.line", { line: place.line }));
  if (place.column !== undefined) parts.push(t("data.at.column", { column: place.column }));
  if (place.record !== undefined) parts.push(t("data.at.record", { record: place.record }));
  if (place.row !== undefined) parts.push(t("data.at.row", { row: place.row }));
  return t("data.faultIn", { place: parts.join(t("data.comma")), what: t(`data.fault.${code}`, values) });
}

/**
 * @typedef {object} Finding
 * @property {string} rule
 * @property {number} sequence
 * @property {number | null} token
 * @property {string | null} field
 * @property {Record<string, number>} numbers
 * @property {Record<string, number> | null} spoilt
 */

/** @param {Finding} finding */
export function findingText({ rule, field, numbers, spoilt, token }) {
  /** @type {Record<string, string | number>} */
  const values = Object.fromEntries(Object.entries(numbers).map(([key, value]) => [key, short(value)]));
  values.field = field ? fileName(field) : "";
  // people count from 1
  if (token !== null) values.token = token + 1;
  if (numbers.last !== undefined) values.last = numbers.last + 1;
  let text = t(`data.lint.${rule}${rule === "not-a-number" && !field ? ".score" : ""}`, values);
  if (numbers.more > 0) text += t("data.lint.more", { more: numbers.more });
  const after = Object.entries(spoilt ?? {}).map(([column, count]) => `${fileName(column)} (${count})`);
  if (after.length > 0) text += t("data.lint.spoilt", { fields: after.join(t("data.list")) });
  return text;
}

/** The name of a quantity: of the file's own columns as the file has it, of others in words. @param {string} key */
export const quantityName = (key) => t(`data.quantity.${key}`);

/** Whether it was read or computed, and from what. @param {string} key */
export const quantityMeaning = (key) => t(`data.meaning.${key}`);
