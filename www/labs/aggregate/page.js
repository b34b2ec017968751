// Aggregation: how the losses of the tokens become one number, mode by mode,
// and what a split into micro-batches does to it.

import { t } from "../../i18n/index.js";
import { Columns } from "../../parts/columns.js";
import { copyNumber } from "../../parts/copy.js";
import { html } from "../../parts/dom.js";
import { choiceField, numberField } from "../../parts/fields.js";
import { full } from "../../parts/format.js";
import { math, name } from "../../parts/math.js";
import { readNumber, whole } from "../cells.js";
import { Cards } from "./cards.js";
import { compute } from "./compute.js";
import { explanation, headline } from "./explain.js";
import { SplitView } from "./split-view.js";
import { fitted, LIMITS, presets, read, width, withAnswer, withChanged, withWidth } from "./state.js";
import { asCsv, tableOf } from "./table.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("../../parts/grid.js").Place} Place */

/** @type {import("../../pages.js").Page} */
export const page = {
  texts: ["tables", "aggregate"],
  styles: ["labs"],
  initial: presets["verl-593"],
  read,
  mount: (container, context) => new AggregateView(container, context),
};

/** Which example the batch is; a different mode or split is still the same example. @param {State} state */
const exampleOf = (state) => {
  const key = (/** @type {State} */ { answers, scale, perPrompt }) => JSON.stringify([answers, scale, perPrompt]);
  return Object.keys(presets).find((id) => key(presets[id]()) === key(state)) ?? "";
};

class AggregateView {
  /**
   * @param {HTMLElement} container
   * @param {import("../../pages.js").Context} context
   */
  constructor(container, context) {
    this.context = context;
    this.lead = html("section", { class: "lab-lead" });
    this.fields = html("section", { class: "lab-fields" });
    this.table = html("section", { class: "lab-part agg-table" });
    this.cards = new Cards((mode) => this.change({ mode }, null, false));
    this.why = html("section", { class: "lab-why" });
    // the explanation is long: only its result is read out
    this.status = html("p", { class: "unseen", role: "status" });
    this.splitting = html("section", { class: "lab-part" });
    const bench = html(
      "div",
      { class: "lab-bench agg-bench" },
      html("div", { class: "lab-view" }, this.cards.element),
      this.why,
    );
    container.append(
      html("div", { class: "lab" }, this.lead, this.fields, this.table, bench, this.status, this.splitting),
    );
    this.buttons = html("div", { class: "lab-fields" });
    const grid = html("div", { class: "lab-grid" });
    this.table.append(grid, this.buttons);
    this.grid = new Columns(grid, {
      focus: () => {},
      toggle: ({ row, index }) => this.toggle(Number(row.slice(4)), index),
      commit: (place, text) => this.commit(place, text),
      preview: (place, text) => this.preview(place, text),
      cancel: () => this.show(this.present),
      copy: ({ row, index }) => copyNumber(full(this.present.answers[Number(row.slice(4))].losses[index])),
    });
    this.split = new SplitView(this.splitting, {
      set: (changes, continued) => this.context.change(fitted({ ...this.present, ...changes }), continued),
    });
  }

  /** @returns {State} */
  get present() {
    return this.context.state();
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    if (anew) this.build(state);
    this.show(state);
  }

  /** Draws what changes only with the language. @param {State} state */
  build(state) {
    this.lead.replaceChildren(
      html("p", {}, t("aggregate.lead")),
      html("p", { class: "lab-note" }, t("aggregate.keys")),
    );
    const options = [
      ...Object.keys(presets).map((id) => ({ value: id, text: t(`aggregate.preset.${id}`) })),
      { value: "", text: t("tables.own") },
    ];
    this.preset = choiceField("aggregate-preset", {
      label: t("tables.preset"),
      options,
      set: (id) => id && this.context.change(presets[id]()),
    });
    this.scale = numberField("aggregate-scale", {
      label: [math("inline", name("F")), " ", html("span", { class: "words" }, t("aggregate.scale"))],
      step: 1,
      set: (value, continued) =>
        this.change(
          { scale: value },
          value > 0 && Number.isFinite(value) ? null : t("tables.positive", { old: full(this.present.scale) }),
          continued,
        ),
    });
    const bounds = LIMITS.perPrompt;
    this.perPrompt = numberField("aggregate-prompt", {
      label: [t("aggregate.perPrompt")],
      step: 1,
      set: (value, continued) =>
        this.change(
          { perPrompt: value },
          whole(value, bounds)
            ? null
            : t("tables.whole", { low: bounds[0], high: bounds[1], old: this.present.perPrompt }),
          continued,
        ),
    });
    const choice = (/** @type {"emptyRows" | "divisor"} */ key, /** @type {string[]} */ values) =>
      choiceField(`aggregate-${key}`, {
        label: t(`aggregate.${key}`),
        options: values.map((value) => ({ value, text: t(`aggregate.${key}.${value}`) })),
        set: (value) => this.change({ [key]: value }, null, false),
      });
    this.emptyRows = choice("emptyRows", ["excluded", "counted"]);
    this.divisor = choice("divisor", ["count", "count-plus-epsilon"]);
    this.fields.replaceChildren(
      ...[this.preset, this.scale, this.perPrompt, this.emptyRows, this.divisor].map(({ element }) => element),
    );
    this.buildButtons();
    this.cards.build(state);
    this.split.build();
  }

  buildButtons() {
    const button = (/** @type {string} */ key, /** @type {() => State} */ next) =>
      html(
        "button",
        { type: "button", "data-act": key, onclick: () => this.context.change(fitted(next())) },
        t(`aggregate.${key}`),
      );
    this.buttons.replaceChildren(
      button("addAnswer", () => withAnswer(this.present)),
      button("removeAnswer", () => ({ ...this.present, answers: this.present.answers.slice(0, -1) })),
      button("addSlot", () => withWidth(this.present, width(this.present) + 1)),
      button("removeSlot", () => withWidth(this.present, width(this.present) - 1)),
    );
  }

  /**
   * @param {Partial<State>} changes
   * @param {string | null} problem
   * @param {boolean} continued
   */
  change(changes, problem, continued) {
    if (problem === null) this.context.change({ ...this.present, ...changes }, continued);
    return problem;
  }

  /**
   * @param {number} answer
   * @param {number} index
   */
  toggle(answer, index) {
    const kept = this.present.answers[answer].kept.map((keep, t) => (t === index ? !keep : keep));
    this.context.change(withChanged(this.present, answer, { kept }));
  }

  /**
   * @param {Place} place
   * @param {string} text
   * @returns {{ state: State } | { problem: string }}
   */
  typed({ row, index }, text) {
    const answer = Number(row.slice(4));
    const { losses } = this.present.answers[answer];
    const found = readNumber(text, losses[index]);
    if ("problem" in found) return found;
    return {
      state: withChanged(this.present, answer, { losses: losses.map((loss, t) => (t === index ? found.value : loss)) }),
    };
  }

  /**
   * @param {Place} place
   * @param {string} text
   */
  commit(place, text) {
    const found = this.typed(place, text);
    if ("problem" in found) return found.problem;
    const answer = Number(place.row.slice(4));
    const same = Object.is(
      found.state.answers[answer].losses[place.index],
      this.present.answers[answer].losses[place.index],
    );
    if (same) this.show(this.present);
    else this.context.change(found.state);
    return null;
  }

  /**
   * @param {Place} place
   * @param {string} text
   */
  preview(place, text) {
    const found = this.typed(place, text);
    if ("state" in found) this.show(found.state);
  }

  /** @param {State} state */
  show(state) {
    const whole = compute(this.context.library, state);
    if (this.preset) this.preset.select.value = exampleOf(state);
    this.scale?.show(state.scale);
    this.perPrompt?.show(state.perPrompt);
    if (this.emptyRows) this.emptyRows.select.value = state.emptyRows;
    if (this.divisor) this.divisor.select.value = state.divisor;
    const limit = (/** @type {string} */ key, /** @type {boolean} */ off) => {
      /** @type {HTMLButtonElement} */ (this.buttons.querySelector(`[data-act=${key}]`)).disabled = off;
    };
    limit("addAnswer", state.answers.length >= LIMITS.answers[1]);
    limit("removeAnswer", state.answers.length <= LIMITS.answers[0]);
    limit("addSlot", width(state) >= LIMITS.width[1]);
    limit("removeSlot", width(state) <= LIMITS.width[0]);
    this.grid.draw(tableOf(state));
    this.cards.show(state, whole);
    this.status.textContent = headline(state, whole);
    this.why.replaceChildren(...explanation(state, whole));
    this.split.show(this.context.library, state, whole);
  }

  /** @param {State} state */
  exports(state) {
    return [
      {
        id: "aggregate-csv",
        label: t("tables.save"),
        how: /** @type {"save"} */ ("save"),
        file: "aggregation.csv",
        make: () => asCsv(this.context.library, state),
      },
    ];
  }
}
