// What surrounds the numbers of an example: its text above, its published numbers or the demonstration of a trap below.

import { drawComparison } from "./comparison.js";
import { findPreset } from "./presets.js";
import { drawTrap } from "./trap-view.js";
import { html } from "../../parts/dom.js";
import { t } from "../../i18n/index.js";

/** @typedef {import("../state.js").State} State */

/**
 * @param {HTMLElement} container
 * @param {State} state
 */
export function drawIntro(container, { preset, sequences }) {
  const [{ prompt, tokens }] = sequences;
  const dialogue =
    prompt &&
    sequences.length === 1 &&
    html(
      "p",
      { class: "dialogue", lang: "zh" },
      html("span", {}, prompt),
      html("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      html("span", {}, tokens.join("")),
    );
  container.replaceChildren(
    html("div", { class: "words" }, html("p", {}, t("page.lead")), html("p", { class: "quiet" }, t("page.keys"))),
    html(
      "div",
      { class: "example" },
      dialogue || null,
      findPreset(preset) && html("p", { class: "quiet" }, t(`preset.note.${preset}`)),
    ),
  );
}

/**
 * @param {HTMLElement} container
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {(state: State) => void} load
 */
export function drawStory(container, library, state, load) {
  const preset = findPreset(state.preset);
  if (!preset) container.replaceChildren();
  else if ("cases" in preset) drawTrap(container, library, preset, load);
  else drawComparison(container, library, preset);
}
