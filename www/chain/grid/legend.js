// What the marks of the grid mean.

import { html } from "../../parts/dom.js";
import { t } from "../../i18n/index.js";

/** Each with the look that a cell would have. */
const MARKS = ["input", "depends", "comes", "changed", "faint", "dropped", "differs"];

/**
 * @param {HTMLElement} container
 * @param {import("../state.js").State} state
 */
export function drawLegend(container, state) {
  const shown = MARKS.filter((mark) => mark !== "differs" || state.against !== null);
  container.replaceChildren(
    html("h2", { class: "unseen" }, t("legend.label")),
    html(
      "ul",
      {},
      html("li", {}, html("span", { class: "plus-key", "aria-hidden": "true" }, "+"), t("legend.plus")),
      html("li", {}, html("span", { class: "minus-key", "aria-hidden": "true" }, "−"), t("legend.minus")),
      ...shown.map((mark) =>
        html("li", {}, html("span", { class: `cell ${mark}`, "aria-hidden": "true" }, "1"), t(`legend.${mark}`)),
      ),
    ),
  );
}
