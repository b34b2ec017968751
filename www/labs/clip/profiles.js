// Which numbers the frameworks start with, as the library's profiles have it; and taking them over.

import { html } from "../../parts/dom.js";
import { t } from "../../i18n/index.js";
import { losses } from "./losses.js";

/** @typedef {import("./state.js").State} State */

/** @type {import("../../chain/state.js").ProfileName[]} */
const PROFILES = ["paper", "verl-0.9.1", "trl-1.16", "openrlhf-0.11"];
const CONVENTIONS = [
  "dual_clip.bound",
  "dual_clip.signs",
  "log_ratio_bound",
  "gspo.clip",
  "gspo.form",
  "gspo.mode",
  "gspo.log_ratio_cap",
  "gmpo.clip",
  "cispo.bounds",
];

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
  const numbers = (/** @type {string} */ key) => numbersIn(conventions[key]);
  /** @type {Record<string, number>} */
  const values = {};
  for (const { id, fromProfile } of losses)
    for (const [key, value] of Object.entries(fromProfile?.(numbers) ?? {}))
      if (value !== undefined) values[`${id}.${key}`] = value;
  return values;
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {{ state: () => State, change: (next: State) => void }} access
 */
export function profileTable(library, { state, change }) {
  const all = PROFILES.map((profile) => ({ profile, conventions: library.conventions(profile) }));
  const take = (/** @type {Record<string, string>} */ conventions) =>
    change({ ...state(), values: { ...state().values, ...valuesFrom(conventions) } });
  const head = all.map(({ profile }) => html("th", { scope: "col" }, t(`clip.profile.${profile}`)));
  const lines = CONVENTIONS.map((key) =>
    html(
      "tr",
      { "data-convention": key },
      html("th", { scope: "row" }, t(`clip.convention.${key}`)),
      ...all.map(({ conventions }) => html("td", {}, plainly(conventions[key]))),
    ),
  );
  const buttons = all.map(({ profile, conventions }) =>
    html(
      "td",
      {},
      html(
        "button",
        {
          type: "button",
          class: "small",
          id: `clip-take-${profile}`,
          onclick: () => take(conventions),
          "aria-label": `${t("clip.take")}: ${t(`clip.profile.${profile}`)}`,
        },
        t("clip.take"),
      ),
    ),
  );
  return html(
    "div",
    { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": t("clip.profiles.label") },
    html(
      "table",
      { class: "lab-table" },
      html("thead", {}, html("tr", {}, html("th", { scope: "col", class: "words" }, t("clip.profiles.what")), ...head)),
      html("tbody", {}, ...lines, html("tr", {}, html("th", { scope: "row" }, t("clip.take.row")), ...buttons)),
    ),
  );
}
