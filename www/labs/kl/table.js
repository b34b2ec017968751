// The table of expectations: one row per estimate and placement, each of which can be chosen.

import { html } from "../../parts/dom.js";
import { full } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { places } from "./estimates.js";
import { action, four, fourSigned, rowKind, rowName, tone, verdictText } from "./words.js";

/**
 * @param {import("./compute.js").Result} result
 * @param {string} chosen
 * @param {(id: string) => void} choose
 * @returns {HTMLElement}
 */
export function expectations(result, chosen, choose) {
  const tall = { scope: "col", rowspan: 2 };
  const head = [
    html(
      "tr",
      {},
      html("th", { ...tall, class: "kl-first" }, t("kl.col.estimate")),
      html("th", { ...tall, class: "words" }, t("kl.col.verdict")),
      html("th", tall, t("kl.col.value")),
      html("th", tall, t("kl.col.bias")),
      html("th", { scope: "colgroup", colspan: result.count, class: "kl-gradient" }, t("kl.col.gradient")),
    ),
    html("tr", {}, ...Array.from({ length: result.count }, (_, i) => html("th", { scope: "col" }, action(i)))),
  ];
  const bodies = places.map((place) =>
    html(
      "tbody",
      {},
      html(
        "tr",
        { class: "kl-place" },
        html("th", { scope: "rowgroup", colspan: result.count + 4 }, t(`kl.place.${place}`)),
      ),
      ...result.rows.filter(({ row }) => row.place === place).map((each) => line(each, each.row.id === chosen, choose)),
    ),
  );
  return html(
    "div",
    { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": t("kl.table.label"), id: "kl-expectations" },
    html("table", { class: "lab-table kl-table" }, html("thead", {}, ...head), ...bodies),
  );
}

/**
 * @param {import("./compute.js").Enumeration} each
 * @param {boolean} chosen
 * @param {(id: string) => void} choose
 */
function line(each, chosen, choose) {
  const { row, value, bias, gradient, verdict } = each;
  const kind = rowKind(row);
  const pick = html(
    "button",
    {
      type: "button",
      class: "lab-pick",
      id: `kl-pick-${row.id}`,
      "aria-pressed": String(chosen),
      onclick: () => choose(row.id),
    },
    rowName(row),
  );
  const number = (
    /** @type {number} */ one,
    /** @type {string} */ text,
    /** @type {string | null} */ look,
    /** @type {string} */ column,
  ) => html("td", { class: look, title: full(one), "data-column": column }, text);
  return html(
    "tr",
    { class: chosen ? "chosen" : null, "data-row": row.id },
    html("th", { scope: "row" }, pick, kind && html("span", { class: "kl-kind" }, kind)),
    html("td", { class: `words kl-verdict ${verdict.kind}`, "data-column": "verdict" }, verdictText(each)),
    number(value, four(value), null, "value"),
    row.place === "truth" ? html("td", {}, "") : number(bias, fourSigned(bias), tone(bias), "bias"),
    ...Array.from(gradient, (one) => number(one, fourSigned(one), tone(one), "gradient")),
  );
}
