// Why a row of the table holds its numbers: formula, the actions behind it, meaning, who uses it.

import { html } from "../../parts/dom.js";
import { full } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { definition, expected, logRatio, withNumbers } from "./formulas.js";
import { action, four, fourSigned, rowKind, rowName, tone, verdictText } from "./words.js";

const THREADS = [
  { name: "TRL#4967", address: "https://github.com/huggingface/trl/issues/4967" },
  { name: "TRL#6503", address: "https://github.com/huggingface/trl/pull/6503" },
];

/** The rows those threads are about. */
const DISCUSSED = ["loss.k3", "loss.ratio-k3", "reward.k1", "truth.forward"];

/**
 * @param {import("./compute.js").Result} result
 * @param {import("./compute.js").Enumeration} each
 * @returns {(HTMLElement | string)[]}
 */
export function explanation(result, each) {
  const { row } = each;
  const used = row.place === "truth" ? "kl.used.truth" : row.straight ? "kl.used.loss.straight" : `kl.used.${row.id}`;
  const average = expected(row);
  const title = [
    rowName(row),
    html("span", { class: "kl-in" }, [t(`kl.in.${row.place}`), rowKind(row)].filter(Boolean).join(" · ")),
  ];
  const verdict = html("p", { class: `kl-verdict ${each.verdict.kind}` }, verdictText(each));
  return [
    html("h2", {}, ...title),
    verdict,
    formulas(
      ...definition(row).map((one) => html("div", {}, one)),
      row.place !== "truth" && html("div", { class: "quiet" }, logRatio()),
    ),
    html("p", {}, t(`kl.means.${row.id}`)),
    ...(average ? [html("h3", {}, t("kl.why.average")), formulas(html("div", {}, average), sum(result, each))] : []),
    html("h3", {}, t("kl.why.each")),
    actions(result, each),
    html("p", {}, html("b", {}, `${t("kl.why.used")}: `), t(used)),
    html("p", { class: "lab-note" }, html("b", {}, `${t("kl.why.bounds")}: `), t("kl.bounds.why")),
    ...(DISCUSSED.includes(row.id) ? [threads()] : []),
  ];
}

/** A long formula scrolls by itself. @param {import("../../parts/dom.js").Child[]} lines */
const formulas = (...lines) =>
  html("div", { class: "lab-formula", tabindex: 0, role: "group", "aria-label": t("kl.why.formula") }, ...lines);

const threads = () => {
  const links = THREADS.map(({ name, address }) =>
    html("a", { href: address, rel: "noreferrer", target: "_blank" }, name),
  );
  return html("p", {}, html("b", {}, `${t("kl.why.threads")}: `), links[0], ", ", links[1]);
};

/**
 * @param {import("./compute.js").Result} result
 * @param {import("./compute.js").Enumeration} each
 */
const sum = (result, { values, value }) =>
  values && html("div", {}, withNumbers(Array.from(result.p, four), Array.from(values, four), four(value)));

/**
 * @param {import("./compute.js").Result} result
 * @param {import("./compute.js").Enumeration} each
 */
function actions(result, { row, values, slopes }) {
  const head = [
    t("kl.why.action"),
    "π",
    "ref",
    "d",
    ...(values ? [t("kl.why.value")] : []),
    ...(slopes && row.place === "loss" ? [t("kl.why.slope")] : []),
  ];
  const columns = [
    result.p,
    result.q,
    result.d,
    ...(values ? [values] : []),
    ...(slopes && row.place === "loss" ? [slopes] : []),
  ];
  const lines = Array.from({ length: result.count }, (_, i) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, action(i)),
      ...columns.map((column, place) =>
        html(
          "td",
          { title: full(column[i]), class: place < 2 ? null : tone(column[i]) },
          place < 2 ? four(column[i]) : fourSigned(column[i]),
        ),
      ),
    ),
  );
  return html(
    "div",
    { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": t("kl.why.each.label") },
    html(
      "table",
      { class: "lab-table" },
      html(
        "thead",
        {},
        html(
          "tr",
          {},
          ...head.map((text, i) => html("th", { scope: "col", class: i === 0 ? "kl-first" : null }, text)),
        ),
      ),
      html("tbody", {}, ...lines),
    ),
  );
}
