// How the laboratory writes numbers, actions and rows.

import { short, subscript } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { shortName } from "./estimates.js";

/** @param {number} index from 0 */
export const action = (index) => `a${subscript(index + 1)}`;

/** Rounding of an expectation that is zero is not shown as a number. @param {number} value */
const settled = (value) => (Math.abs(value) < 1e-13 ? 0 : value);

/**
 * Four digits after the point, so that columns line up; four significant ones where that would show little.
 * @param {number} value
 */
export function four(value) {
  const exact = settled(value);
  if (exact === 0 || !Number.isFinite(exact)) return short(exact);
  return Math.abs(exact) >= 0.01 ? exact.toFixed(4).replace("-", "−") : short(Number(exact.toPrecision(4)));
}

/** @param {number} value */
export const fourSigned = (value) => (settled(value) > 0 ? "+" : "") + four(value);

/** @param {number} value */
export const tone = (value) => (settled(value) > 0 ? "plus" : settled(value) < 0 ? "minus" : null);

/** @param {import("./estimates.js").Row} row */
export function rowName(row) {
  if (row.place === "truth") return row.other ? "KL(ref‖π)" : "KL(π‖ref)";
  return shortName(row);
}

/** What distinguishes a row from the plain estimate. @param {import("./estimates.js").Row} row */
export const rowKind = ({ weight, straight }) =>
  weight === "token" ? t("kl.kind.token") : weight ? t("kl.kind.score") : straight ? t("kl.kind.straight") : "";

/**
 * @param {import("./compute.js").Enumeration} enumeration
 * @returns {string}
 */
export function verdictText({ row, verdict: { kind, cosine, factor } }) {
  if (kind === "truth") return t(`kl.verdict.${row.id}`);
  if (kind === "against" && Number.isNaN(cosine)) return t("kl.verdict.againstNone");
  // an angle for display, from the library's cosine
  const angle = Math.round((Math.acos(Math.max(-1, Math.min(1, cosine))) * 180) / Math.PI);
  return t(`kl.verdict.${kind}`, { angle, factor: short(Number(factor.toPrecision(3))) });
}
