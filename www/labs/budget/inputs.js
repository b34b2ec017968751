// The inputs of the controllers in the present step; each can be overridden, and reset to the script.

import { refusalText } from "../../parts/refusals.js";
import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { numberField } from "../../parts/fields.js";
import { full } from "../../parts/format.js";
import { withInput } from "./state.js";
import { inputNames } from "./world.js";

/** @typedef {import("../../parts/refusals.js").Refusal} Refusal */
/** @typedef {import("./state.js").State} State */

/** @type {Record<string, number>} */
const STEPS = {
  whSum: 10,
  tokenCount: 100,
  kl: 0.01,
  rewardStd: 0.05,
  rewardSumMean: 0.05,
  entropyMean: 0.01,
  covarianceMean: 0.01,
  correlation: 0.05,
};

export class Inputs {
  /**
   * @param {HTMLElement} container
   * @param {{ state: () => State, attempt: (next: State, continued: boolean) => Refusal | null }} owner
   */
  constructor(container, owner) {
    this.container = container;
    this.owner = owner;
    /** @type {Map<string, { field: import("../../parts/fields.js").NumberField, back: HTMLButtonElement }>} */
    this.fields = new Map();
  }

  build() {
    this.fields.clear();
    const parts = inputNames.map((name) => {
      const field = numberField(`budget-input-${name}`, {
        label: [html("span", {}, t(`budget.input.${name}`))],
        step: STEPS[name],
        set: (value, continued) => this.set(name, value, continued),
      });
      const back = html(
        "button",
        { type: "button", class: "small", hidden: true, onclick: () => this.give(name) },
        t("budget.input.back"),
      );
      back.setAttribute("aria-label", t("budget.input.backLabel", { name: t(`budget.input.${name}`) }));
      field.element.append(back);
      this.fields.set(name, { field, back });
      return field.element;
    });
    this.note = html("p", { class: "quiet" }, t("budget.inputs.note"));
    this.container.replaceChildren(html("div", { class: "fields" }, ...parts), this.note);
  }

  /**
   * @param {string} name
   * @param {number} value
   * @param {boolean} continued
   */
  set(name, value, continued) {
    const state = this.owner.state();
    const old = full(this.shown?.[name] ?? NaN);
    if (!Number.isFinite(value)) return t("budget.bad.finite", { old });
    if (name === "tokenCount" && !Number.isSafeInteger(value)) return t("budget.bad.whole", { old });
    const refusal = this.owner.attempt(withInput(state, state.at, name, value), continued);
    return refusal ? t("bad.refused", { reason: refusalText(refusal), old }) : null;
  }

  /** @param {string} name */
  give(name) {
    const state = this.owner.state();
    this.owner.attempt(withInput(state, state.at, name, null), false);
    this.fields.get(name)?.field.input.focus();
  }

  /**
   * @param {State} state
   * @param {import("./run.js").Step | undefined} step
   */
  draw(state, step) {
    this.shown = step?.input;
    this.container.hidden = step === undefined;
    if (!step) return;
    for (const [name, { field, back }] of this.fields) {
      field.show(step.input[name]);
      const edited = state.edits[step.step]?.[name] !== undefined;
      back.hidden = !edited;
      field.element.classList.toggle("edited", edited);
    }
  }
}
