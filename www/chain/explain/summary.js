// The numbers over all kept tokens, on one line, and what the library refused.

import { html } from "../../parts/dom.js";
import { full, short } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { refusalText } from "../../parts/refusals.js";
import { hintsOf } from "./hints.js";
import { visibleRows } from "../rows.js";

/** Each number with the row it belongs to: it is shown where that row is. */
const numbers = [
  ["mean", "whitened"],
  ["variance", "whitened"],
  ["deviation", "whitened"],
  ["loss", "lossTerm"],
  ["klLoss", "klTerm"],
  ["clipFraction", "lossTerm"],
  ["entropyPerTokenMean", "weightedEntropy"],
  ["covarianceMean", "weightedEntropy"],
  ["whSum", "weightedEntropy"],
  ["whPerToken", "weightedEntropy"],
  ["rewardSumMean", "weightedEntropy"],
  ["correlation", "weightedEntropy"],
  ["entropyP50", "weightedEntropy"],
  ["entropyP90", "weightedEntropy"],
  ["covarianceP50", "weightedEntropy"],
  ["covarianceP90", "weightedEntropy"],
];

/** The names under which trainers log them. @type {Record<string, string>} */
const LOGGED = {
  entropyPerTokenMean: "analysis/entropy_per_token_mean",
  covarianceMean: "analysis/covariance_mean",
  whSum: "analysis/wH_sum",
  whPerToken: "analysis/wH_per_token",
  rewardSumMean: "analysis/reward_sum_mean",
  correlation: "analysis/corr",
  entropyP50: "analysis/H_p50",
  entropyP90: "analysis/H_p90",
  covarianceP50: "analysis/cov_p50",
  covarianceP90: "analysis/cov_p90",
};

/** Rounding errors of a sum are this small beside its terms. */
const RESIDUE = 2 ** -46;

/**
 * Whether a sum of the row is what rounding has left of 0.
 * @param {import("../compute/compute.js").Result} result
 * @param {string} row
 * @param {number} value
 */
function isResidue(result, row, value) {
  let largest = 0;
  for (const values of result.rows[row] ?? []) for (const one of values) largest = Math.max(largest, Math.abs(one));
  return Math.abs(value) <= RESIDUE * largest || value === 0;
}

/**
 * @param {HTMLElement} container
 * @param {import("../state.js").State} state
 * @param {import("../compute/compute.js").Result} result
 * @param {import("../compute/compute.js").Result | null} other
 */
export function drawSummary(container, state, result, other) {
  const shown = visibleRows(state).map((row) => row.key);
  const pairs = numbers
    .filter(
      ([key, row]) => shown.includes(row) && !(key === "clipFraction" && result.summary.clipFraction === undefined),
    )
    .map(([key, row]) => {
      const value = result.summary[key];
      const text = value === undefined ? "—" : short(isResidue(result, row, value) ? 0 : value);
      const otherwise = other?.summary[key];
      const differs = otherwise !== undefined && value !== undefined && short(otherwise) !== short(value);
      const note = differs
        ? html(
            "dd",
            { class: "otherwise" },
            t("grid.otherwise", { profile: t(`profile.${state.against}`), value: short(otherwise) }),
          )
        : null;
      return html(
        "div",
        {},
        html("dt", {}, t(`summary.${key}`), LOGGED[key] ? html("code", {}, ` ${LOGGED[key]}`) : null),
        html(
          "dd",
          { "data-number": key, id: `number-${key}`, tabindex: -1, title: value === undefined ? null : full(value) },
          text,
        ),
        note,
      );
    });
  const relevant = result.refusals.filter((refusal) => shown.includes(refusal.step) || !state.only);
  const refusals = relevant.map((refusal) =>
    html("p", { class: "refusal" }, `${t(`refused.step.${refusal.step}`)}: ${refusalText(refusal)}`),
  );
  container.replaceChildren(
    html("h2", {}, t("summary.label")),
    html("dl", {}, ...pairs),
    html("div", { role: "alert" }, ...refusals),
    ...hintsOf(state, result).map((hint) => html("p", { class: "hint" }, hint)),
  );
}
