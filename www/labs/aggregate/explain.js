// Why the chosen mode gives this loss: formula, the same with numbers, what it means, and the weight of each answer.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { full, short } from "../../parts/format.js";
import { refusalText } from "../../parts/refusals.js";
import { threadList } from "../cells.js";
import { formula, weightFormula, withNumbers } from "./formulas.js";
import { weightOf } from "./table.js";

/** @typedef {import("./compute.js").Whole} Whole */
/** @typedef {import("./state.js").State} State */

/**
 * @param {State} state
 * @param {Whole} whole
 */
export function headline({ mode }, whole) {
  const outcome = whole.modes[mode];
  const value = "loss" in outcome ? short(outcome.loss) : "—";
  return t("aggregate.why", { mode: t(`aggregate.mode.${mode}`), value });
}

/**
 * @param {State} state
 * @param {Whole} whole
 */
export function explanation(state, whole) {
  const { mode } = state;
  const outcome = whole.modes[mode];
  const { totals } = whole;
  const lines = state.answers.map((_, i) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, t("tables.answer", { number: i + 1 })),
      html("td", {}, String(whole.lengths[i])),
      html(
        "td",
        { "data-weight": i },
        "weights" in outcome && whole.lengths[i] > 0 ? short(weightOf(state, outcome.weights, i)) : "—",
      ),
      html("td", { "data-share": i }, whole.shares[mode] ? short(whole.shares[mode][i]) : "—"),
    ),
  );
  const head = [
    "aggregate.column.answer",
    "aggregate.column.tokens",
    "aggregate.column.weight",
    "aggregate.column.share",
  ];
  return [
    html("h2", {}, headline(state, whole)),
    html(
      "div",
      { class: "lab-formula", role: "region", tabindex: 0, "aria-label": t("aggregate.formula") },
      html("div", {}, formula(mode)),
      html("div", {}, withNumbers(state, whole, mode)),
      html("div", {}, weightFormula(mode)),
    ),
    "loss" in outcome
      ? html(
          "p",
          { class: "digits" },
          html("span", { class: "quiet" }, `${t("aggregate.digits")} `),
          html("output", {}, full(outcome.loss)),
        )
      : html("p", { class: "refusal" }, refusalText(outcome.refused)),
    html("p", {}, t(`aggregate.meaning.${mode}`)),
    html(
      "p",
      { class: "lab-note" },
      t("aggregate.counts", {
        tokens: totals.tokens,
        sequences: totals.sequences,
        prompts: totals.prompts.length,
        scale: short(state.scale),
      }),
    ),
    html(
      "div",
      { class: "lab-scroll", role: "region", tabindex: 0, "aria-label": t("aggregate.perAnswer") },
      html(
        "table",
        { class: "lab-table" },
        html("thead", {}, html("tr", {}, ...head.map((key) => html("th", { scope: "col" }, t(key))))),
        html("tbody", {}, ...lines),
      ),
    ),
    threadList([
      [["verl#593", "https://github.com/verl-project/verl/issues/593"], t("aggregate.thread.593")],
      [["verl#3741", "https://github.com/verl-project/verl/issues/3741"], t("aggregate.thread.3741")],
    ]),
  ];
}
