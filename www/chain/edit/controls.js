// The line of fields: which example, whose conventions, and the numbers and choices that matter for the visible rows.

import { html } from "../../parts/dom.js";
import { choiceField, numberField } from "../../parts/fields.js";
import { t } from "../../i18n/index.js";
import { math, symbol } from "../../parts/math.js";
import { examples } from "../examples/presets.js";
import { visibleRows } from "../rows.js";
import { choiceOptions, isKept, parameterNames, profileNames } from "../state.js";
import { tours } from "../tours/tours.js";
import { traps } from "../examples/traps.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../state.js").Choices} Choices */
/** @typedef {import("../state.js").Parameter} Parameter */

const STEPS = {
  gamma: 0.01,
  lambda: 0.01,
  beta: 0.01,
  clipLow: 0.01,
  clipHigh: 0.01,
  dualClip: 0.1,
  lastK: 1,
  scale: 1,
};

/** Fields in groups, in the order of the chain. */
const GROUPS = [
  ["placement", "kl", "beta"],
  ["advantage", "gamma", "lambda", "lastK", "across", "spread", "weight"],
  ["loss", "clipLow", "clipHigh", "dual", "dualClip", "aggregate", "scale"],
];

/** @type {Record<string, (state: State, rows: string[]) => boolean>} where a field is of use */
const useful = {
  placement: (_, rows) => rows.includes("reward"),
  kl: (state, rows) => state.choices.placement !== "off" && rows.includes("kl"),
  beta: (state, rows) => state.choices.placement !== "off" && (rows.includes("reward") || rows.includes("klTerm")),
  advantage: (_, rows) => rows.includes("advantage"),
  gamma: (_, rows) => rows.includes("delta") || rows.includes("discountedReturn"),
  lambda: (_, rows) => rows.includes("delta"),
  lastK: (state) => state.choices.advantage === "last-k",
  across: (state, rows) =>
    (rows.includes("delta") || rows.includes("discountedReturn")) &&
    (state.choices.across !== "profile" || hasGaps(state)),
  spread: (state, rows) => rows.includes("whitened") || ["grpo", "best-of-group"].includes(state.choices.advantage),
  weight: (_, rows) => rows.includes("lossTerm"),
  loss: (_, rows) => rows.includes("lossTerm"),
  clipLow: (state, rows) => rows.includes("lossTerm") && ["ppo", "gspo", "cispo"].includes(state.choices.loss),
  clipHigh: (state, rows) => rows.includes("lossTerm") && ["ppo", "gspo", "cispo"].includes(state.choices.loss),
  dual: (state, rows) => rows.includes("lossTerm") && state.choices.loss === "ppo",
  dualClip: (state, rows) =>
    rows.includes("lossTerm") && state.choices.loss === "ppo" && ["negative", "both"].includes(state.choices.dual),
  aggregate: (_, rows) => rows.includes("tokenWeight"),
  scale: (state, rows) => rows.includes("tokenWeight") && state.choices.aggregate.endsWith("-norm"),
};

/** @param {State} state */
const hasGaps = (state) => state.sequences.some((sequence) => sequence.tokens.some((_, i) => !isKept(sequence, i)));

/**
 * @typedef {object} Actions
 * @property {(id: string) => void} load an example
 * @property {() => void} reset gives back the example as it was
 * @property {(id: string) => void} start a tour
 * @property {(profile: any) => void} profile
 * @property {(profile: any) => void} against
 * @property {(choice: Partial<Choices>) => void} choose
 * @property {(name: Parameter, value: number, continued: boolean) => string | null} set
 * @property {(name: Parameter) => void} look at what hangs on it
 */

export class Controls {
  /**
   * @param {HTMLElement} container
   * @param {Actions} actions
   */
  constructor(container, actions) {
    this.container = container;
    this.actions = actions;
    /** @type {Map<string, import("../../parts/fields.js").NumberField>} */
    this.fields = new Map();
    /** @type {Map<string, HTMLSelectElement>} */
    this.selects = new Map();
    this.shape = "";
    this.edited = false;
    /** @type {HTMLButtonElement | null} */
    this.reset = null;
    /** @type {unknown[]} */
    this.seen = [];
  }

  /**
   * @param {State} state
   * @param {import("../compute/conventions.js").Settings} settings
   * @param {boolean} edited whether the example is no longer as it was
   */
  draw(state, settings, edited) {
    this.edited = edited;
    if (this.reset) this.reset.disabled = !edited;
    const { choices, parameters, profile: name, against: other, preset: example, tour, only } = state;
    // most edits change a number in the grid, which changes nothing here
    const seen = [choices, parameters, name, other, example, tour, only, hasGaps(state), t("preset.label")];
    if (seen.every((one, at) => one === this.seen[at])) return;
    this.seen = seen;
    const rows = visibleRows(state).map((row) => row.key);
    const groups = GROUPS.map((names) => names.filter((name) => useful[name](state, rows)));
    const shape = JSON.stringify([
      t("preset.label"),
      groups,
      state.profile,
      settings.across,
      settings.whiten.spread,
      settings.group.spread,
      settings.dual,
    ]);
    if (shape !== this.shape) this.build(state, settings, groups);
    this.shape = shape;
    for (const [name, field] of this.fields) field.show(state.parameters[/** @type {Parameter} */ (name)]);
    for (const [name, select] of this.selects)
      if (name in state.choices) select.value = state.choices[/** @type {keyof Choices} */ (name)];
    const preset = this.selects.get("preset");
    if (preset) preset.value = state.tour ? `tour:${state.tour.id}` : state.preset;
    const [profile, against] = [this.selects.get("profile"), this.selects.get("against")];
    if (profile) profile.value = state.profile;
    if (against) against.value = state.against ?? "none";
  }

  /**
   * @param {State} state
   * @param {import("../compute/conventions.js").Settings} settings
   * @param {string[][]} groups
   */
  build(state, settings, groups) {
    const focused =
      document.activeElement instanceof HTMLElement && this.container.contains(document.activeElement)
        ? document.activeElement.id
        : null;
    this.fields.clear();
    this.selects.clear();
    this.reset = html(
      "button",
      { type: "button", id: "reset", disabled: !this.edited, onclick: () => this.actions.reset() },
      t("preset.reset"),
    );
    const first = html(
      "div",
      { class: "fields" },
      this.presets(),
      this.reset,
      this.profile("profile"),
      this.profile("against"),
    );
    const rest = groups
      .filter((names) => names.length > 0)
      .map((names) => html("div", { class: "fields" }, ...names.map((name) => this.field(name, state, settings))));
    // on a phone the fields are folded, so that the numbers come first
    const more = html(
      "button",
      {
        type: "button",
        class: "more",
        id: "controls-more",
        "aria-expanded": String(this.container.classList.contains("open")),
      },
      t("choice.more"),
    );
    more.addEventListener("click", () =>
      more.setAttribute("aria-expanded", String(this.container.classList.toggle("open"))),
    );
    this.container.replaceChildren(first, ...rest, more);
    if (focused) document.getElementById(focused)?.focus();
  }

  presets() {
    const field = choiceField("preset", {
      label: t("preset.label"),
      options: [],
      set: (value) => (value.startsWith("tour:") ? this.actions.start(value.slice(5)) : this.actions.load(value)),
    });
    /** @param {string} label @param {{ value: string, text: string }[]} options */
    const group = (label, options) =>
      html("optgroup", { label }, ...options.map(({ value, text }) => html("option", { value }, text)));
    field.select.append(
      group(
        t("preset.examples"),
        examples.map(({ id }) => ({ value: id, text: t(`preset.${id}`) })),
      ),
      group(
        t("preset.traps"),
        traps.map(({ id }) => ({ value: id, text: t(`preset.${id}`) })),
      ),
      group(
        t("preset.tours"),
        tours.map(({ id }) => ({ value: `tour:${id}`, text: t(`tour.name.${id}`) })),
      ),
    );
    this.selects.set("preset", field.select);
    return field.element;
  }

  /** @param {"profile" | "against"} name */
  profile(name) {
    const options = profileNames.map((value) => ({
      value: /** @type {string} */ (value),
      text: t(`profile.${value}`),
    }));
    if (name === "against") options.unshift({ value: "none", text: t("profile.none") });
    const field = choiceField(name, {
      label: t(`choice.${name}`),
      options,
      set: (value) => this.actions[name](value === "none" ? null : value),
    });
    this.selects.set(name, field.select);
    return field.element;
  }

  /**
   * @param {string} name
   * @param {State} state
   * @param {import("../compute/conventions.js").Settings} settings
   */
  field(name, state, settings) {
    const parameter = /** @type {Parameter} */ (name);
    if (parameterNames.includes(parameter)) {
      const field = numberField(name, {
        label: signed(name, t(`parameter.${name}`)),
        step: STEPS[parameter],
        set: (value, continued) => this.actions.set(parameter, value, continued),
        focus: () => this.actions.look(parameter),
      });
      this.fields.set(name, field);
      return field.element;
    }
    const choice = /** @type {keyof Choices} */ (name);
    const own = {
      across: settings.across,
      spread: state.choices.advantage === "grpo" ? settings.group.spread : settings.whiten.spread,
      dual: settings.dual,
    };
    const options = choiceOptions[choice].map((value) => {
      const text =
        value === "profile"
          ? t("choice.asProfile", { value: t(`choice.${name}.${own[/** @type {keyof typeof own} */ (name)]}`) })
          : t(`choice.${name}.${value}`);
      return { value, text };
    });
    const field = choiceField(name, {
      label: t(`choice.${name}`),
      options,
      set: (value) => this.actions.choose({ [name]: value }),
    });
    this.selects.set(name, field.select);
    return field.element;
  }
}

/**
 * A sign and its words; where the words contain the sign, it stands in its place.
 * @param {string} name
 * @param {string} words
 */
function signed(name, words) {
  const sign = math("inline", symbol(name));
  const [before, after] = words.split(sign.textContent ?? "");
  const span = (/** @type {string} */ text) => html("span", { class: "words" }, text);
  return after === undefined ? [sign, " ", span(words)] : [span(before), sign, span(after)];
}
