// The fields of the laboratory.

import { html } from "../../parts/dom.js";
import { choiceField, numberField } from "../../parts/fields.js";
import { full, short } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { logitsOf } from "./compute.js";
import {
  boundsNames,
  forms,
  LEAST,
  MOST,
  presetOf,
  presets,
  sampleSizes,
  togetherSizes,
  withActions,
  withDistribution,
} from "./state.js";

/** @typedef {import("./state.js").State} State */
/**
 * @typedef {{ state: () => State, change: (next: State, continued?: boolean) => void,
 *   library: import("../../engine.js").Library }} Access
 */

/**
 * @param {Access} access
 * @returns {{ elements: HTMLElement[], show: (state: State) => void }}
 */
export function mainFields({ state, change, library }) {
  const preset = choiceField("kl-preset", {
    label: t("kl.preset"),
    options: ["", ...presets.map(({ id }) => id)].map((id) => ({ value: id, text: t(`kl.preset.${id || "own"}`) })),
    set: (id) => {
      const found = presets.find((one) => one.id === id);
      if (found) change(found.state);
    },
  });
  const bounds = choiceField("kl-bounds", {
    label: t("kl.bounds"),
    options: boundsNames.map((value) => ({ value, text: t(`kl.bounds.${value}`) })),
    set: (value) => change({ ...state(), bounds: /** @type {any} */ (value) }),
  });
  const written = (/** @type {import("./state.js").Side} */ side) =>
    choiceField(`kl-form-${side}`, {
      label: t(`kl.form.${side}`),
      options: forms.map((value) => ({ value, text: t(`kl.form.${value}`) })),
      set: (form) =>
        change(
          withDistribution(state(), side, {
            form: /** @type {any} */ (form),
            values: rewritten(library, state()[side], form),
          }),
        ),
    });
  const [policy, reference] = [written("policy"), written("reference")];
  const add = html(
    "button",
    { type: "button", id: "kl-add", onclick: () => change(withActions(state(), state().policy.values.length + 1)) },
    t("kl.add"),
  );
  const remove = html(
    "button",
    { type: "button", id: "kl-remove", onclick: () => change(withActions(state(), state().policy.values.length - 1)) },
    t("kl.remove"),
  );
  return {
    elements: [preset.element, bounds.element, policy.element, reference.element, add, remove],
    show: (now) => {
      preset.select.value = presetOf(now);
      // "own numbers" is what a state becomes, not something to choose
      preset.select.options[0].disabled = true;
      bounds.select.value = now.bounds;
      policy.select.value = now.policy.form;
      reference.select.value = now.reference.form;
      add.disabled = now.policy.values.length >= MOST;
      remove.disabled = now.policy.values.length <= LEAST;
    },
  };
}

/**
 * The same distribution in the other form.
 * @param {import("../../engine.js").Library} library
 * @param {import("./state.js").Distribution} distribution
 * @param {string} form
 * @returns {number[]}
 */
function rewritten(library, distribution, form) {
  if (form === distribution.form) return distribution.values;
  const logits = logitsOf(library, distribution);
  if (form === "logits") return Array.from(logits);
  const count = logits.length;
  const batch = library.Batch.padded(count, 1, new Uint8Array(count).fill(1));
  const repeated = Float64Array.from({ length: count * count }, (_, i) => logits[i % count]);
  const logProbs = library.tokenLogProbsF64(batch, {
    logits: repeated,
    tokens: Uint32Array.from(logits, (_, i) => i),
    vocab: count,
  });
  batch.free();
  return Array.from(logProbs, (one) => Math.max(1e-12, library.expF64(one)));
}

/**
 * @param {Access} access
 * @returns {{ elements: HTMLElement[], show: (state: State) => void }}
 */
export function curveFields({ state, change }) {
  const ratio = numberField("kl-ratio", {
    label: [t("kl.curves.ratio")],
    step: 0.1,
    set: (value, continued) => {
      if (!(value > 0 && value <= 100)) return t("kl.bad.ratio", { old: full(state().ratio) });
      change({ ...state(), ratio: value }, continued);
      return null;
    },
  });
  return { elements: [ratio.element], show: (now) => ratio.show(now.ratio) };
}

/**
 * @param {Access} access
 * @returns {{ elements: HTMLElement[], show: (state: State) => void }}
 */
export function sampleFields({ state, change }) {
  const amount = html("output", { for: "kl-samples", class: "kl-amount" });
  const slider = html("input", { type: "range", id: "kl-samples", min: 0, max: sampleSizes.length - 1, step: 1 });
  let moving = false;
  slider.addEventListener("pointerdown", () => {
    moving = false;
  });
  slider.addEventListener("change", () => {
    moving = false;
  });
  slider.addEventListener("input", () => {
    const samples = sampleSizes[Number(slider.value)];
    if (samples === state().samples) return;
    change({ ...state(), samples }, moving);
    moving = true;
  });
  const together = choiceField("kl-together", {
    label: t("kl.samples.together"),
    options: togetherSizes.map((size) => ({ value: String(size), text: t(`kl.samples.together.${size}`) })),
    set: (value) => change({ ...state(), together: Number(value) }),
  });
  const seed = numberField("kl-seed", {
    label: [t("kl.samples.seed")],
    step: 1,
    set: (value, continued) => {
      if (!Number.isInteger(value) || value < 0 || value > 0xffffffff)
        return t("kl.bad.seed", { old: full(state().seed) });
      change({ ...state(), seed: value }, continued);
      return null;
    },
  });
  const again = html(
    "button",
    { type: "button", id: "kl-again", onclick: () => change({ ...state(), seed: (state().seed + 1) % 0x100000000 }) },
    t("kl.samples.again"),
  );
  const count = html(
    "div",
    { class: "field" },
    html("label", { for: "kl-samples" }, t("kl.samples.count"), " ", amount),
    slider,
  );
  return {
    elements: [count, together.element, seed.element, again],
    show: (now) => {
      slider.value = String(sampleSizes.indexOf(now.samples));
      slider.setAttribute("aria-valuetext", short(now.samples));
      amount.textContent = short(now.samples);
      together.select.value = String(now.together);
      seed.show(now.seed);
    },
  };
}
