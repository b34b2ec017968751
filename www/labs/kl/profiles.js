// What the frameworks do by default, as the library's profiles have it.

import { html } from "../../parts/dom.js";
import { t } from "../../i18n/index.js";

/** @type {import("../../chain/state.js").ProfileName[]} */
const PROFILES = ["paper", "verl-0.9.1", "trl-1.16", "openrlhf-0.11"];
/** @type {Record<string, string>} */
const BOUNDS = { Unbounded: "unbounded", K3Only: "k3-only", Every: "every" };

/** @param {import("../../engine.js").Library} library */
export function profileTable(library) {
  const all = PROFILES.map((profile) => library.conventions(profile));
  const lines = [
    { name: t("kl.profiles.estimator"), texts: all.map((one) => one["kl_loss.estimator"].toLowerCase()) },
    { name: t("kl.profiles.bounds"), texts: all.map((one) => t(`kl.bounds.${BOUNDS[one["kl.bounds"]]}`)) },
    { name: t("kl.profiles.beta"), texts: all.map((one) => one["kl_reward.beta"]) },
  ];
  const head = [t("kl.profiles.what"), ...PROFILES.map((profile) => t(`kl.profile.${profile}`))];
  return html(
    "div",
    { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": t("kl.profiles.label") },
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
      html(
        "tbody",
        {},
        ...lines.map(({ name, texts }) =>
          html("tr", {}, html("th", { scope: "row" }, name), ...texts.map((text) => html("td", {}, text))),
        ),
      ),
    ),
  );
}
