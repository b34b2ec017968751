// The losses at the token's ratio, side by side.

import { html } from "../../parts/dom.js";
import { full, short, signed } from "../../parts/format.js";
import { sample } from "../../parts/plot.js";
import { t } from "../../i18n/index.js";
import { lookOf } from "./losses.js";

/** Bounds are found by halving; what is left of that is not shown. @param {number} value */
const round = (value) => short(Number(value.toPrecision(6)));

/** @param {import("./compute.js").Zeros} zeros */
export function zerosText({ spans, points }) {
  const parts = [
    ...spans.map(([from, to]) => {
      if (from === 0 && to === Infinity) return t("clip.zero.always");
      if (from === 0) return t("clip.zero.below", { to: round(to) });
      return to === Infinity
        ? t("clip.zero.above", { from: round(from) })
        : t("clip.zero.between", { from: round(from), to: round(to) });
    }),
    ...points.map((at) => t("clip.zero.at", { at: round(at) })),
  ];
  return parts.length === 0 ? t("clip.zero.never") : parts.join(t("clip.zero.and"));
}

/**
 * @param {{ id: string, loss: number, gradient: number, zeros: import("./compute.js").Zeros }[]} lines
 * @param {string} chosen
 * @param {(id: string) => void} choose
 */
export function lossTable(lines, chosen, choose) {
  const head = [t("clip.col.loss"), t("clip.col.value"), t("clip.col.gradient"), t("clip.col.zero")];
  const rows = lines.map(({ id, loss, gradient, zeros }) => {
    const { colour, dash } = lookOf(id);
    const pick = html(
      "button",
      {
        type: "button",
        class: "lab-pick",
        id: `clip-pick-${id}`,
        "aria-pressed": String(id === chosen),
        onclick: () => choose(id),
      },
      t(`clip.loss.${id}`),
    );
    return html(
      "tr",
      { class: id === chosen ? "chosen" : null, "data-loss": id },
      html("th", { scope: "row" }, sample(colour, dash), " ", pick),
      html("td", { "data-column": "loss", title: full(loss), class: tone(loss) }, signed(loss)),
      html(
        "td",
        { "data-column": "gradient", title: full(gradient), class: tone(gradient) },
        gradient === 0 ? "0" : signed(gradient),
      ),
      html("td", { "data-column": "zero", class: "words" }, zerosText(zeros)),
    );
  });
  return html(
    "div",
    { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": t("clip.table.label"), id: "clip-losses" },
    html(
      "table",
      { class: "lab-table clip-table" },
      html(
        "thead",
        {},
        html(
          "tr",
          {},
          ...head.map((text, i) => html("th", { scope: "col", class: i === 0 || i === 3 ? "words" : null }, text)),
        ),
      ),
      html("tbody", {}, ...rows),
    ),
  );
}

/** @param {number} value */
const tone = (value) => (value > 0 ? "plus" : value < 0 ? "minus" : null);
