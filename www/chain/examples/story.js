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
 * @param {() => void} begin starts the tour for newcomers
 */
export function drawIntro(container, { preset, sequences, tour }, begin) {
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
    html(
      "div",
      { class: "words" },
      html("p", {}, t("page.lead")),
      html(
        "p",
        { class: "begin" },
        tour
          ? null
          : html(
              "button",
              { type: "button", id: "tour-start", class: "main", "aria-keyshortcuts": "t", onclick: begin },
              t("tour.start"),
              html("kbd", { "aria-hidden": "true" }, "T"),
            ),
        html("span", { class: "quiet" }, t("page.keys")),
      ),
    ),
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
  else drawComparison(container, library, preset, state);
}

/**
 * Whether anything but the tour has been changed since the example was loaded.
 * @param {State} state
 */
export function isEdited(state) {
  const { sequences, parameters, choices, profile, against } = state;
  const before = findPreset(state.preset)?.state;
  if (!before) return false;
  return (
    profile !== before.profile ||
    against !== before.against ||
    !isSame(parameters, before.parameters) ||
    !isSame(choices, before.choices) ||
    !isSame(sequences, before.sequences)
  );
}

/**
 * The same plain data; NaN is NaN.
 * @param {any} one
 * @param {any} other
 * @returns {boolean}
 */
function isSame(one, other) {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => isSame(one[key], other[key]));
}
