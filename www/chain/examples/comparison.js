// The published numbers of an example, compared with what its formulas give.

import { compute } from "../compute/compute.js";
import { withChoices, withParameters } from "../edit/edits.js";
import { html } from "../../parts/dom.js";
import { short, subscript } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { rowByKey } from "../rows.js";

/** @typedef {import("./presets.js").Comparison} Comparison */
/** @typedef {import("./presets.js").Example} Example */

/** @typedef {import("../state.js").State} State */

/**
 * @param {HTMLElement} container
 * @param {import("../../engine.js").Library} library
 * @param {Example} preset
 * @param {State} state the example as it is now
 */
export function drawComparison(container, library, preset, state) {
  const tables = preset.comparisons.map((comparison) => tableOf(library, preset, comparison, state));
  container.replaceChildren(
    html("h2", {}, t("compare.title")),
    html("p", { class: "quiet about" }, t("compare.about")),
    html("p", { class: "why" }, t(`compare.why.${preset.id}`)),
    html("div", { class: "tables" }, ...tables),
  );
}

/**
 * The exact numbers under the conditions of the comparison, with the sign of the published ones.
 * @param {import("../../engine.js").Library} library
 * @param {State} example
 * @param {Comparison} comparison
 * @returns {number[]}
 */
export function exactOf(library, example, comparison) {
  const state = withChoices(withParameters(example, comparison.parameters ?? {}), comparison.choices ?? {});
  const result = compute(library, state);
  const raw = comparison.row
    ? Array.from(result.rows[comparison.row]?.[0] ?? [])
    : [result.summary[comparison.number ?? ""] ?? NaN];
  return comparison.negated ? raw.map((value) => -value) : raw;
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {Example} preset
 * @param {Comparison} comparison
 * @param {State} state
 */
function tableOf(library, preset, comparison, state) {
  const [{ tokens }] = state.sequences;
  const exact = exactOf(library, state, comparison);
  const verdict = verdictOf(comparison, exact);
  const title = t(comparison.row ? `row.${comparison.row}` : `summary.${comparison.number}`);
  const caption = html(
    "caption",
    {},
    html("strong", {}, title),
    ` ${conditions(preset, comparison)}`,
    html("span", { class: `verdict ${verdict}` }, t(`compare.verdict.${verdict}`)),
  );
  const align = comparison.row ? rowByKey.get(comparison.row)?.align : undefined;
  const heads = exact.map((_, index) => {
    const head = align === "action" ? tokens[index] : align === "state" ? `s${subscript(index + 1)}` : t("compare.all");
    return html("th", { scope: "col" }, head);
  });
  const said = exact.map((_, index) => {
    const value = comparison.document[index] ?? null;
    return html("td", {}, value === null ? "—" : short(value));
  });
  const found = exact.map((value, index) => {
    const off = isOff(comparison, value, comparison.document[index] ?? null);
    return html("td", off ? { class: "off" } : {}, short(value));
  });
  return html(
    "div",
    {
      class: "scroller",
      tabindex: 0,
      role: "region",
      "aria-label": `${title} ${conditions(preset, comparison)}`.trim(),
      "data-comparison": comparison.row ?? comparison.number,
    },
    html(
      "table",
      {},
      caption,
      html("thead", {}, html("tr", {}, html("td", {}), ...heads)),
      html(
        "tbody",
        {},
        html("tr", {}, html("th", { scope: "row" }, t("compare.document")), ...said),
        html("tr", {}, html("th", { scope: "row" }, t("compare.exact")), ...found),
      ),
    ),
  );
}

/**
 * @param {Example} preset
 * @param {Comparison} comparison
 */
function conditions(preset, comparison) {
  const found = [];
  if (comparison.parameters?.gamma !== undefined)
    found.push(t("compare.with", { what: `γ = ${comparison.parameters.gamma}` }));
  if (comparison.row === "whitened") {
    const population = comparison.choices?.spread === "population";
    found.push(t("compare.divisor", { divisor: t(`choice.spread.${population ? "population" : "sample"}`) }));
  }
  const advantage = comparison.choices?.advantage ?? preset.state.choices.advantage;
  if (comparison.row === "advantage" && preset.id === "credit-assignments")
    found.push(t(`choice.advantage.${advantage}`));
  if (comparison.negated) found.push(t("compare.negated"));
  return found.join(", ");
}

/**
 * More than half a unit of the last printed digit away; the small allowance is for the decimal itself.
 * @param {Comparison} comparison
 * @param {number} exact
 * @param {number | null} said
 */
const isOff = (comparison, exact, said) =>
  said !== null && Math.abs(exact - said) > 0.5 * 10 ** -comparison.digits + 1e-12;

/**
 * @param {Comparison} comparison
 * @param {number[]} exact
 * @returns {"agrees" | "rounding" | "differs"}
 */
export function verdictOf(comparison, exact) {
  const units = comparison.document.map((said, index) =>
    said === null || index >= exact.length ? 0 : Math.abs(exact[index] - said) * 10 ** comparison.digits,
  );
  if (units.every((unit) => unit <= 0.5 + 1e-9)) return "agrees";
  return units.every((unit) => unit <= 1) ? "rounding" : "differs";
}
