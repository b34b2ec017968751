// All settings of the world and of the controllers, each beside what it belongs to; those without effect are hidden.

import { refusalText } from "../../parts/refusals.js";
import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { choiceField, numberField } from "../../parts/fields.js";
import { full } from "../../parts/format.js";
import { math, name, op, sub, upright } from "../../parts/math.js";
import { choices, fits, rangeOf, withSettings } from "./state.js";

/** @typedef {import("../../parts/refusals.js").Refusal} Refusal */
/** @typedef {import("./state.js").State} State */
/** @typedef {Record<string, any>} Settings */

/** @type {Record<string, string[]>} */
const GROUPS = {
  world: ["seed", "steps", "tokens", "answerLambda", "answerBeta"],
  budget: [
    "source",
    "b0",
    "warmUp",
    "rho",
    "budgetFollow",
    "budgetLength",
    "budgetFactor",
    "schedule",
    "share",
    "alpha",
    "decay",
    "minDelta",
    "patience",
    "kappa",
    "budgetMin",
  ],
  price: ["lambda", "lambdaRate", "lambdaCap", "lambdaMax", "whRange", "whLow", "whHigh", "guard"],
  kl: ["controller", "beta", "target", "betaRate", "betaMin", "klFollow", "klLength", "klFactor", "horizon", "samples"],
};

/** @type {Record<string, (s: Settings) => boolean>} */
const NEEDED = {
  b0: (s) => s.source === "given",
  warmUp: (s) => s.source === "warm-up",
  rho: (s) => s.source === "warm-up",
  budgetLength: (s) => s.budgetFollow === "on",
  budgetFactor: (s) => s.budgetFollow === "on",
  share: (s) => s.schedule === "reward-std-usage",
  alpha: (s) => s.schedule === "exponential",
  lambdaMax: (s) => s.lambdaCap === "on",
  whLow: (s) => s.whRange === "on",
  whHigh: (s) => s.whRange === "on",
  target: (s) => s.controller !== "fixed",
  ...Object.fromEntries(
    ["decay", "minDelta", "patience", "kappa", "budgetMin"].map((field) => [
      field,
      (/** @type {Settings} */ s) => s.schedule === "plateau",
    ]),
  ),
  ...Object.fromEntries(
    ["betaRate", "betaMin", "klFollow"].map((field) => [
      field,
      (/** @type {Settings} */ s) => s.controller === "linear",
    ]),
  ),
  ...Object.fromEntries(
    ["klLength", "klFactor"].map((field) => [
      field,
      (/** @type {Settings} */ s) => s.controller === "linear" && s.klFollow === "on",
    ]),
  ),
  ...Object.fromEntries(
    ["horizon", "samples"].map((field) => [field, (/** @type {Settings} */ s) => s.controller === "adaptive"]),
  ),
};

/** How far one press of an arrow key goes; 1 where nothing is said. @type {Record<string, number>} */
const STEPS = {
  steps: 10,
  tokens: 100,
  b0: 5,
  rho: 0.05,
  budgetFactor: 0.05,
  share: 0.05,
  alpha: 0.1,
  decay: 0.01,
  minDelta: 0.001,
  kappa: 0.05,
  lambda: 0.01,
  lambdaRate: 0.01,
  lambdaMax: 0.1,
  whLow: 0.01,
  whHigh: 0.01,
  beta: 0.001,
  target: 0.01,
  betaRate: 0.01,
  betaMin: 0.000001,
  klFactor: 0.05,
  horizon: 100,
};

/** @param {string} base @param {string} index */
const indexed = (base, index) => sub(name(base), name(index));
/** @type {Record<string, () => Element>} */
const SIGNS = {
  b0: () => sub(name("B"), "0"),
  warmUp: () => name("K"),
  rho: () => name("ρ"),
  share: () => name("a"),
  alpha: () => name("α"),
  kappa: () => name("κ"),
  budgetMin: () => sub(name("B"), upright("min")),
  lambda: () => name("λ"),
  lambdaRate: () => indexed("η", "λ"),
  lambdaMax: () => sub(name("λ"), upright("max")),
  beta: () => name("β"),
  target: () => name("D"),
  betaRate: () => indexed("η", "β"),
  betaMin: () => sub(name("β"), upright("min")),
  tokens: () => name("N"),
  steps: () => name("T"),
  samples: () => name("n"),
  answerLambda: () => indexed("k", "λ"),
  answerBeta: () => indexed("k", "β"),
  whLow: () => op("≥"),
  whHigh: () => op("≤"),
};

export class SettingsView {
  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} scenario where the choice of the scenario goes: beside the buttons that play it
   * @param {{ state: () => State, attempt: (next: State, continued: boolean) => Refusal | null }} owner
   */
  constructor(container, scenario, owner) {
    this.container = container;
    this.scenario = scenario;
    this.owner = owner;
    /** @type {Map<string, { element: HTMLElement, show: (value: any) => void }>} */
    this.fields = new Map();
  }

  /** In the current language. */
  build() {
    this.fields.clear();
    const groups = Object.entries(GROUPS).map(([group, names]) =>
      html(
        "fieldset",
        { class: `settings-${group}` },
        html("legend", {}, t(`budget.group.${group}`)),
        html("p", { class: "quiet" }, t(`budget.group.${group}.note`)),
        html("div", { class: "fields" }, ...names.map((field) => this.field(field))),
      ),
    );
    this.container.replaceChildren(...groups);
    this.scenario.replaceChildren(this.field("scenario"));
  }

  /** @param {string} field */
  field(field) {
    const made = choices[field] ? this.choice(field) : this.number(field);
    this.fields.set(field, made);
    return made.element;
  }

  /** @param {string} field */
  choice(field) {
    const options = choices[field].map((value) => ({
      value,
      text: t(
        field === "scenario"
          ? `budget.scenario.${value}`
          : value === "on" || value === "off"
            ? `budget.${value}`
            : `budget.option.${value}`,
      ),
    }));
    const { element, select } = choiceField(`budget-${field}`, {
      label: t(`budget.setting.${field}`),
      options,
      set: (value) => {
        // a choice that the library refuses together with the other settings goes back
        if (this.owner.attempt(withSettings(this.owner.state(), { [field]: value }), false))
          select.value = this.owner.state().settings[field];
      },
    });
    element.classList.add("wide");
    return {
      element,
      show: (/** @type {string} */ value) => {
        select.value = value;
      },
    };
  }

  /** @param {string} field */
  number(field) {
    const sign = SIGNS[field] ? [math("inline", SIGNS[field]()), " "] : [];
    return numberField(`budget-${field}`, {
      label: [...sign, html("span", {}, t(`budget.setting.${field}`))],
      step: STEPS[field] ?? 1,
      set: (value, continued) => {
        const state = this.owner.state();
        const old = full(state.settings[field]);
        if (!fits(field, value)) {
          const { low, high, whole } = rangeOf(field);
          if (!Number.isFinite(value)) return t("budget.bad.finite", { old });
          if (Number.isFinite(low)) return t(whole ? "budget.bad.wholeRange" : "budget.bad.range", { low, high, old });
          return t("budget.bad.whole", { old });
        }
        const refusal = this.owner.attempt(withSettings(state, { [field]: value }), continued);
        return refusal ? t("bad.refused", { reason: refusalText(refusal), old }) : null;
      },
    });
  }

  /** @param {Settings} settings */
  draw(settings) {
    for (const [field, { element, show }] of this.fields) {
      element.hidden = NEEDED[field] ? !NEEDED[field](settings) : false;
      show(settings[field]);
    }
  }
}
