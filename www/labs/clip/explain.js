// Why a loss has this value and gradient at this ratio: formula, the same with numbers, what it means, who uses it.

import { html } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { formulasOf } from "./formulas.js";
import { lossOf } from "./losses.js";
import { zerosText } from "./table.js";

/** @typedef {import("./state.js").State} State */

/**
 * The numbers that the symbols stand for. Probabilities and sequence ratios are the library's exponentials of sums of
 * log-probabilities.
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {string} id
 * @returns {Record<string, number>}
 */
export function numbersOf(library, state, id) {
  const { advantage: A, q, ratio: rho, tokens: n, other: o } = state;
  const d = library.lnF64(rho);
  const logp = library.lnF64(q) + d;
  const width = lossOf(id).sequence ? n : 1;
  const s = library.expF64((d + (width - 1) * o) / width);
  const { low = NaN, high = NaN } = { low: state.values[`${id}.low`], high: state.values[`${id}.high`] };
  const held = (/** @type {number} */ one) => (A < 0 ? Math.max(one, -low) : Math.min(one, high));
  const R = library.expF64((held(d) + (width - 1) * held(o)) / width);
  return { A, rho, d, logp, n, o, s, R, q, p: library.expF64(logp), w: library.expF64(d + (width - 1) * o) };
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {{ loss: number, gradient: number, zeros: import("./compute.js").Zeros }} result
 * @returns {HTMLElement[]}
 */
export function explanation(library, state, result) {
  const { chosen: id } = state;
  const { sequence } = lossOf(id);
  const { symbols, numbers } = formulasOf(state, id, result, numbersOf(library, state, id));
  const box = (/** @type {string} */ label, /** @type {Element[]} */ lines) =>
    html(
      "div",
      { class: "lab-formula", tabindex: 0, role: "group", "aria-label": label },
      ...lines.map((line) => html("div", {}, line)),
    );
  return [
    html(
      "h2",
      {},
      t(`clip.loss.${id}`),
      html(
        "span",
        { class: "clip-at" },
        t("clip.why.at", { ratio: short(state.ratio), advantage: short(state.advantage) }),
      ),
    ),
    box(t("clip.why.formula"), symbols),
    box(t("clip.why.numbers"), numbers),
    html("p", {}, t(`clip.means.${id}`)),
    html("p", {}, html("b", {}, `${t("clip.why.zero")}: `), zerosText(result.zeros)),
    ...(sequence ? [html("p", { class: "lab-note" }, t("clip.why.sequence"))] : []),
    html("p", {}, html("b", {}, `${t("clip.why.used")}: `), t(`clip.used.${id}`)),
    html("p", { class: "lab-note" }, t("clip.why.bound")),
  ];
}
