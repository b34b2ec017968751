// The rows in which two frameworks differ, each with the conventions that cause it.

import { html } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { t } from "../../i18n/index.js";

/** @typedef {import("./differences.js").Difference} Difference */
/** @typedef {import("./differences.js").Cause} Cause */
/** @typedef {import("../state.js").State} State */

/**
 * @param {HTMLElement} container
 * @param {State} state
 * @param {Difference[]} differences
 */
export function drawDifferences(container, state, differences) {
  if (!state.against || state.against === state.profile) return container.replaceChildren();
  const names = { profile: t(`profile.${state.profile}`), against: t(`profile.${state.against}`) };
  const seen = differences.filter(({ count }) => count > 0);
  const slight = differences.filter(({ count }) => count === 0);
  const count = seen.reduce((sum, difference) => sum + difference.count, 0);
  // rows with the same causes are told together
  /** @type {Map<string, Difference[]>} */
  const byCause = new Map();
  for (const one of seen) {
    const cause = causesText(one.causes);
    byCause.set(cause, [...(byCause.get(cause) ?? []), one]);
  }
  const lines = [...byCause].map(([cause, rows]) =>
    html(
      "li",
      { "data-difference": rows.map(({ row }) => row).join(" ") },
      ...rows.flatMap(({ row, count: cells }, at) => [
        at === 0 ? "" : t("differ.and"),
        html("strong", {}, t(`row.${row}`)),
        ` ${t("differ.cells", { count: cells })}`,
      ]),
      ": ",
      html("span", {}, cause),
    ),
  );
  container.replaceChildren(
    html("h2", {}, count === 0 ? t("differ.none", names) : t("differ.title", { ...names, count })),
    html("ul", {}, ...lines),
    slight.length > 0
      ? html(
          "p",
          { class: "quiet" },
          t("differ.slight", {
            rows: slight.map(({ row }) => t(`row.${row}`)).join(t("differ.comma")),
            causes: causesText(unique(slight.flatMap(({ causes }) => causes))),
          }),
        )
      : "",
  );
}

/** @param {Cause[]} causes */
const unique = (causes) => [...new Map(causes.map((cause) => [cause.convention, cause])).values()];

/** @param {Cause[]} causes */
export const causesText = (causes) =>
  causes.length === 0
    ? t("differ.together")
    : causes
        .map(({ convention, values }) =>
          t("differ.cause", {
            convention: t(`convention.${convention}`),
            one: valueText(values[0]),
            other: valueText(values[1]),
          }),
        )
        .join(t("differ.comma"));

/** @param {string} value as the library prints it */
function valueText(value) {
  const inner = value.replace(/^Some\((.*)\)$/, "$1");
  const cap = /^Absolute \{ high: (.*) \}$/.exec(inner);
  if (cap) return t("convention.is.Absolute", { high: cap[1] });
  if (inner.startsWith("Relative")) return t("convention.is.Relative");
  if (inner === "inf") return "∞";
  if (inner !== "" && Number.isFinite(Number(inner))) return short(Number(inner));
  return t(`convention.is.${inner}`);
}
