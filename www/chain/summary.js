// The numbers over all kept tokens, on one line, and what the library refused.

import { html } from "../parts/dom.js";
import { full, short } from "../parts/format.js";
import { t } from "../i18n/index.js";
import { visibleRows } from "./rows.js";

/** Each number with the row it belongs to: it is shown where that row is. */
const numbers = [
  ["mean", "whitened"], ["variance", "whitened"], ["deviation", "whitened"], ["loss", "lossTerm"], ["clipFraction", "lossTerm"],
  ["entropyPerTokenMean", "weightedEntropy"], ["covarianceMean", "weightedEntropy"], ["whSum", "weightedEntropy"],
  ["whPerToken", "weightedEntropy"], ["rewardSumMean", "weightedEntropy"],
];

/**
 * @param {HTMLElement} container
 * @param {import("./state.js").State} state
 * @param {import("./compute.js").Result} result
 */
export function drawSummary(container, state, result) {
  const shown = visibleRows(state).map((row) => row.key);
  const pairs = numbers
    .filter(([, row]) => shown.includes(row))
    .map(([key]) => {
      const value = result.summary[key];
      const text = value === undefined ? "—" : short(value);
      return html("div", {}, html("dt", {}, t(`summary.${key}`)), html("dd", { "data-number": key, title: value === undefined ? null : full(value) }, text));
    });
  const relevant = result.refusals.filter((refusal) => shown.includes(refusal.step) || !state.only);
  const refusals = relevant.map((refusal) => html("p", { class: "refusal" }, `${t(`refused.step.${refusal.step}`)}: ${refusalText(refusal)}`));
  container.replaceChildren(
    html("h2", {}, t("summary.label")),
    html("dl", {}, ...pairs),
    html("div", { role: "alert" }, ...refusals),
  );
}

const CODES = ["config", "entry", "empty_mask", "too_few", "length"];

/**
 * @param {import("./compute.js").Refusal} refusal
 * @returns {string} the library's own message, with a sentence around it
 */
export const refusalText = ({ code, message }) => t(`refused.${CODES.includes(code) ? code : "unknown"}`, { message });
