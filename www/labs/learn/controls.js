// The settings of the world and of the method, each beside what it belongs to; those without effect are hidden.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { choiceField, numberField } from "../../parts/fields.js";
import { full } from "../../parts/format.js";
import { math, name, op, sub, sup, upright } from "../../parts/math.js";
import { matters } from "./methods.js";
import { choices, fits, present, rangeOf, withSettings, withWorld, worldDefaults } from "./state.js";
import { LIMITS, problemOf } from "./world.js";

/** @typedef {import("./state.js").State} State */

/** @type {Record<string, string[]>} */
const GROUPS = {
  task: ["words", "extra", "rule", "stop", "memory", "spread", "seed"],
  advantage: ["group", "estimator", "gamma", "lambda", "criticRate"],
  loss: ["loss", "clipLow", "clipHigh", "aggregate", "epochs", "rate"],
  brakes: ["klPlace", "klKind", "beta", "entropy"],
};

/** How far one press of an arrow key goes; 1 where nothing is said. @type {Record<string, number>} */
const STEPS = {
  spread: 0.5,
  gamma: 0.05,
  lambda: 0.05,
  criticRate: 0.1,
  clipLow: 0.05,
  clipHigh: 0.05,
  beta: 0.1,
  entropy: 0.05,
};

/** @type {Record<string, () => Element>} */
const SIGNS = {
  group: () => name("G"),
  gamma: () => name("γ"),
  lambda: () => name("λ"),
  criticRate: () => sub(name("η"), name("V")),
  clipLow: () => sup(name("ε"), op("−")),
  clipHigh: () => sup(name("ε"), op("+")),
  epochs: () => name("E"),
  rate: () => name("η"),
  beta: () => name("β"),
  entropy: () => sub(name("c"), upright("H")),
  spread: () => name("σ"),
};

export class Controls {
  /**
   * @param {HTMLElement} container
   * @param {{ state: () => State, change: (next: State, continued?: boolean) => void }} owner
   */
  constructor(container, owner) {
    this.container = container;
    this.owner = owner;
    /** @type {Map<string, { element: HTMLElement, show: (value: any) => void }>} */
    this.fields = new Map();
  }

  build() {
    this.fields.clear();
    const live = html("input", {
      type: "checkbox",
      id: "learn-live",
      onchange: () => this.owner.change({ ...this.owner.state(), live: live.checked }),
    });
    this.live = live;
    this.container.replaceChildren(
      html(
        "p",
        { class: "learn-live" },
        live,
        html("label", { for: "learn-live" }, t("learn.live")),
        html("span", { class: "quiet" }, t("learn.live.note")),
      ),
      ...Object.entries(GROUPS).map(([group, names]) =>
        html(
          "fieldset",
          {},
          html("legend", {}, t(`learn.group.${group}`)),
          html("div", { class: "fields" }, ...names.map((field) => this.field(field))),
        ),
      ),
    );
  }

  /** @param {string} field */
  field(field) {
    const made = choices[field]
      ? this.choice(field)
      : typeof worldDefaults[field] === "string"
        ? this.text(field)
        : this.number(field);
    this.fields.set(field, made);
    return made.element;
  }

  /** @param {string} field @param {any} value @param {boolean} [continued] */
  set(field, value, continued) {
    const state = this.owner.state();
    const change = { [field]: value };
    this.owner.change(field in worldDefaults ? withWorld(state, change) : withSettings(state, change), continued);
  }

  /** @param {string} field */
  choice(field) {
    const { element, select } = choiceField(`learn-${field}`, {
      label: t(`learn.setting.${field}`),
      options: choices[field].map((value) => ({ value, text: t(`learn.${field}.${value}`) })),
      set: (value) => this.set(field, value),
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
    return numberField(`learn-${field}`, {
      label: [...sign, html("span", {}, t(`learn.setting.${field}`))],
      step: STEPS[field] ?? 1,
      set: (value, continued) => {
        const { low, high, whole } = rangeOf(field);
        const old = full(valueOf(this.owner.state(), field));
        if (!fits(field, value)) return t(whole ? "learn.bad.whole" : "learn.bad.range", { low, high, old });
        this.set(field, value, continued);
        return null;
      },
    });
  }

  /** @param {string} field */
  text(field) {
    const input = html("input", {
      type: "text",
      id: `field-learn-${field}`,
      maxlength: 80,
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      "aria-describedby": `problem-learn-${field}`,
    });
    const problem = html("span", { class: "problem", id: `problem-learn-${field}`, role: "alert" });
    const typed = () => {
      const { world } = this.owner.state();
      const next = { ...world, [field]: input.value.trim() };
      const reason = problemOf(next.words, next.extra);
      problem.textContent = reason ? t(`learn.bad.words.${reason}`, LIMITS) : "";
      input.setAttribute("aria-invalid", String(reason !== null));
      if (!reason && next[field] !== world[field]) this.set(field, next[field]);
    };
    input.addEventListener("change", typed);
    return {
      element: html(
        "div",
        { class: "field wide" },
        html("label", { for: `field-learn-${field}` }, t(`learn.setting.${field}`)),
        input,
        problem,
      ),
      show: (/** @type {string} */ value) => {
        // what was refused stays until it is corrected
        if (input.getAttribute("aria-invalid") !== "true" && input.value !== value) input.value = value;
      },
    };
  }

  /** @param {State} state */
  draw(state) {
    const settings = present(state);
    if (this.live) this.live.checked = state.live;
    for (const [field, { element, show }] of this.fields) {
      element.hidden = matters[field] ? !matters[field](settings) : false;
      show(valueOf(state, field));
    }
  }
}

/** @param {State} state @param {string} field */
const valueOf = (state, field) => (field in worldDefaults ? state.world[field] : present(state)[field]);
