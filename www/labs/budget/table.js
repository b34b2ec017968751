// Every key a trainer would log in this step, under its name, with what it means.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { full, short } from "../../parts/format.js";

/** @typedef {import("./run.js").Step} Step */

/** @type {{ key: string, word: string, of: (step: Step) => number | null }[]} */
const KEYS = [
  { key: "analysis/entropy_per_token_mean", word: "entropy", of: ({ input }) => input.entropyMean },
  { key: "analysis/covariance_mean", word: "covariance", of: ({ input }) => input.covarianceMean },
  { key: "analysis/corr", word: "corr", of: ({ input }) => input.correlation },
  { key: "analysis/wH_sum", word: "whSum", of: ({ input }) => input.whSum },
  { key: "analysis/wH_per_token", word: "whPerToken", of: ({ report }) => report.whPerToken },
  { key: "analysis/reward_sum_mean", word: "rewardMean", of: ({ input }) => input.rewardSumMean },
  { key: "dual_game/lambda", word: "lambda", of: ({ report }) => report.lambda },
  { key: "dual_game/beta", word: "beta", of: ({ beta }) => beta },
  { key: "dual_game/B_token", word: "budgetToken", of: ({ report }) => report.budgetPerToken },
  { key: "dual_game/KL_per_token", word: "kl", of: ({ input }) => input.kl },
  { key: "dual_game/usage_ratio", word: "usage", of: ({ report }) => report.usageRatio },
  { key: "dual_game/per_token_budget_Bt", word: "budgetTokenAgain", of: ({ report }) => report.budgetPerToken },
  { key: "dual_game/wH_per_token", word: "whPerTokenAgain", of: ({ report }) => report.whPerToken },
  { key: "dual_game/token_entropy_mean", word: "entropyAgain", of: ({ input }) => input.entropyMean },
  { key: "dual_game/reward_std", word: "rewardStd", of: ({ input }) => input.rewardStd },
  { key: "dual_game/token_count", word: "tokenCount", of: ({ input }) => input.tokenCount },
];

/**
 * What is known of a step, as a trainer logs it.
 * @param {Step} step
 * @returns {Record<string, number>}
 */
export function entries(step) {
  const known = KEYS.map(({ key, of }) => [key, of(step)]).filter(([, value]) => value !== null);
  return { step: step.step, ...Object.fromEntries(known) };
}

/**
 * @param {HTMLElement} container
 * @param {Step | undefined} step
 */
export function drawTable(container, step) {
  const rows = KEYS.map(({ key, word, of }) => {
    const value = step ? of(step) : null;
    const shown = value === null ? t("budget.unknown") : short(value);
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, html("code", {}, key)),
      html("td", { class: "number", "data-key": key, title: value === null ? null : full(value) }, shown),
      html("td", {}, t(`budget.key.${word}`)),
    );
  });
  container.replaceChildren(
    html(
      "table",
      {},
      html("caption", {}, t("budget.keys.caption")),
      html(
        "thead",
        {},
        html(
          "tr",
          {},
          ...["key", "value", "meaning"].map((head) => html("th", { scope: "col" }, t(`budget.keys.${head}`))),
        ),
      ),
      html("tbody", {}, ...rows),
    ),
  );
}
