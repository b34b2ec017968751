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
];

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
    .map(([key]) => {
      const value = result.summary[key];
      const text = value === undefined ? "—" : short(value);
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
        html("dt", {}, t(`summary.${key}`)),
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
