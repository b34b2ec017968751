// The description of a trap: what happens, what is right, why, the numbers of both, and where it was reported.

import { compute } from "../compute/compute.js";
import { html } from "../../parts/dom.js";
import { full, short, subscript } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { rowByKey } from "../rows.js";

/** @typedef {import("./traps.js").Trap} Trap */
/** @typedef {import("../state.js").State} State */

/**
 * @param {HTMLElement} container
 * @param {import("../../engine.js").Library} library
 * @param {Trap} trap
 * @param {(state: State) => void} load shows one of the ways in the grid
 */
export function drawTrap(container, library, trap, load) {
  container.replaceChildren(
    html("h2", {}, t("trap.title")),
    html(
      "dl",
      { class: "story" },
      ...["happens", "right", "why"].map((part) =>
        html("div", {}, html("dt", {}, t(`trap.${part}`)), html("dd", {}, t(`trap.${part}.${trap.id}`))),
      ),
    ),
    tableOf(library, trap, load),
    (trap.links.length > 0 &&
      html(
        "p",
        { class: "threads" },
        html("span", { class: "quiet" }, t("trap.links")),
        ...trap.links.map(([name, address]) =>
          html("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, name),
        ),
      )) ||
      "",
  );
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {Trap} trap
 * @param {(state: State) => void} load
 */
function tableOf(library, trap, load) {
  const { row, number } = trap.shows;
  const title = t(row ? `row.${row}` : `summary.${number}`);
  const lines = trap.cases.map((one) => {
    const state = one.of ? one.of(trap.state) : trap.state;
    const cells = numbersOf(library, state, trap).map((value) =>
      html("td", {}, value === undefined ? "—" : eight(value)),
    );
    const show = html(
      "button",
      { type: "button", class: "small", "data-case": one.id, onclick: () => load(state) },
      t("trap.show"),
    );
    return html(
      "tr",
      { "data-way": one.id },
      html(
        "th",
        { scope: "row" },
        html("span", { class: `verdict ${one.verdict}` }, t(`trap.verdict.${one.verdict}`)),
        t(`case.${one.id}`),
      ),
      ...cells,
      html("td", {}, show),
    );
  });
  return html(
    "div",
    { class: "scroller", tabindex: 0, role: "region", "aria-label": title, "data-trap": trap.id },
    html(
      "table",
      { class: "ways" },
      html("caption", {}, html("strong", {}, title)),
      html(
        "thead",
        {},
        html(
          "tr",
          {},
          html("td", {}),
          ...headsOf(trap).map((head) => html("th", { scope: "col" }, head)),
          html("td", {}),
        ),
      ),
      html("tbody", {}, ...lines),
    ),
  );
}

/** Some frameworks differ only after the sixth digit. */
const eight = (/** @type {number} */ value) =>
  Number.isFinite(value) && Math.abs(value) >= 1e-4 ? full(Number(value.toPrecision(8))) : short(value);

/** @param {Trap} trap */
function headsOf(trap) {
  const { row } = trap.shows;
  if (!row) return [t("compare.all")];
  return trap.state.sequences.flatMap(({ tokens }, s) =>
    rowByKey.get(row)?.align === "sequence" ? [`${tokens.join("")} (${subscript(s + 1)})`] : tokens,
  );
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Trap} trap
 * @returns {(number | undefined)[]}
 */
export function numbersOf(library, state, trap) {
  const result = compute(library, state);
  const { row, number } = trap.shows;
  return row ? (result.rows[row] ?? []).flatMap((values) => [...values]) : [result.summary[number ?? ""]];
}
