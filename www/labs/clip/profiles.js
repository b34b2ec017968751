// Which numbers the frameworks start with, as the library's profiles have it; and taking them over.

import { html } from "../../parts/dom.js";
import { t } from "../../i18n/index.js";

/** @typedef {import("./state.js").State} State */

/** @type {import("../../chain/state.js").ProfileName[]} */
const PROFILES = ["paper", "verl-0.9.1", "trl-1.16", "openrlhf-0.11"];
const CONVENTIONS = ["dual_clip.bound", "dual_clip.signs", "log_ratio_bound", "gspo.clip", "gspo.form", "gspo.mode", "gspo.log_ratio_cap", "gmpo.clip", "cispo.bounds"];

/** The numbers in what the library says. @param {string} text */
const numbersIn = (text) => (text.match(/-?\d+(\.\d+)?(e-?\d+)?/g) ?? []).map(Number);

/** @param {string} text as the library names a choice */
function plainly(text) {
  const numbers = numbersIn(text);
  if (text.startsWith("Relative")) return `1 − ${numbers[0]} … 1 + ${numbers[1]}`;
  if (text.startsWith("Absolute")) return `≤ ${numbers[0]}`;
  if (numbers.length > 0) return numbers.join(" / ");
  return t(`clip.is.${text}`);
}

/**
 * What a profile says about the numbers on this page.
 * @param {Record<string, string>} conventions
 * @returns {Record<string, number>}
 */
function valuesFrom(conventions) {
  const [gspoLow, gspoHigh] = numbersIn(conventions["gspo.clip"]);
  const [gmpoLow, gmpoHigh] = numbersIn(conventions["gmpo.clip"]);
  const cispo = numbersIn(conventions["cispo.bounds"]);
  const [bound] = numbersIn(conventions["dual_clip.bound"]);
  return {
    "gspo.low": gspoLow, "gspo.high": gspoHigh, "gmpo.low": gmpoLow, "gmpo.high": gmpoHigh,
    ...(cispo.length === 2 ? { "cispo.low": cispo[0], "cispo.high": cispo[1] } : { "cispoCap.cap": cispo[0] }),
    ...(bound === undefined ? {} : { "dual.c": bound }),
  };
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {{ state: () => State, change: (next: State) => void }} access
 */
export function profileTable(library, { state, change }) {
  const all = PROFILES.map((profile) => ({ profile, conventions: library.conventions(profile) }));
  const take = (/** @type {Record<string, string>} */ conventions) => change({ ...state(), values: { ...state().values, ...valuesFrom(conventions) } });
  const head = all.map(({ profile }) => html("th", { scope: "col" }, t(`clip.profile.${profile}`)));
  const lines = CONVENTIONS.map((key) => html("tr", { "data-convention": key }, html("th", { scope: "row" }, t(`clip.convention.${key}`)), ...all.map(({ conventions }) => html("td", {}, plainly(conventions[key])))));
  const buttons = all.map(({ profile, conventions }) => html("td", {}, html("button", { type: "button", class: "small", id: `clip-take-${profile}`, onclick: () => take(conventions), "aria-label": `${t("clip.take")}: ${t(`clip.profile.${profile}`)}` }, t("clip.take"))));
  return html(
    "div", { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": t("clip.profiles.label") },
    html(
      "table", { class: "lab-table" },
      html("thead", {}, html("tr", {}, html("th", { scope: "col", class: "words" }, t("clip.profiles.what")), ...head)),
      html("tbody", {}, ...lines, html("tr", {}, html("th", { scope: "row" }, t("clip.take.row")), ...buttons)),
    ),
  );
}
