// Group advantages: the scores of one prompt's samples, and what every estimator makes of them.

import { t } from "../../i18n/index.js";
import { Columns } from "../../parts/columns.js";
import { html } from "../../parts/dom.js";
import { choiceField, numberField } from "../../parts/fields.js";
import { copyNumber } from "../../parts/copy.js";
import { full } from "../../parts/format.js";
import { idOf } from "../../parts/grid.js";
import { PlotView } from "../../parts/plot.js";
import { compute } from "./compute.js";
import { estimatorById, estimators } from "./estimators.js";
import { Reading } from "./explain.js";
import { asCsv, headingsOf, tableOf } from "./table.js";
import { LIMITS, longer, presets, read, samplesOf, shorter, withMore, withPrompt, withSample } from "./state.js";
import { readNumber } from "../cells.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("../../parts/grid.js").Place} Place */

/** What is drawn as curves, with the estimator that is being read. */
const CURVES = ["grpo-verl", "grpo-trl", "grpo-openrlhf", "grpo-population", "dr-grpo", "rloo", "rf-baseline"];

/** @type {import("../../pages.js").Page} */
export const page = {
  texts: ["tables", "groups"],
  styles: ["labs"],
  initial: presets.winner,
  read,
  mount: (container, context) => new GroupsView(container, context),
};

/** @param {State} state */
const exampleOf = (state) =>
  Object.keys(presets).find((id) => JSON.stringify(presets[id]()) === JSON.stringify(state)) ?? "";

class GroupsView {
  /**
   * @param {HTMLElement} container
   * @param {import("../../pages.js").Context} context
   */
  constructor(container, context) {
    this.context = context;
    this.lead = html("section", { class: "lab-lead" });
    this.fields = html("section", { class: "lab-fields" });
    this.prompts = html("section", { class: "groups-prompts" });
    const grid = html("div", { class: "lab-grid" });
    const why = html("section", { class: "lab-why" });
    const picture = html("div", {});
    this.notes = html("div", { class: "lab-part" });
    const bench = html("div", { class: "lab-bench groups-bench" }, grid, why);
    container.append(html("div", { class: "lab" }, this.lead, this.fields, this.prompts, bench, this.notes, picture));
    /** @type {Place} what is explained */
    this.place = { row: "grpo-verl", index: 0 };
    this.grid = new Columns(grid, {
      focus: (place) => this.choose(place),
      toggle: () => {},
      commit: (place, text) => this.commit(place, text),
      preview: (place, text) => this.preview(place, text),
      cancel: () => this.show(this.present),
      copy: ({ row, index }) => copyNumber(full(this.valueAt(row, index))),
    });
    this.plot = new PlotView(picture);
    this.reading = new Reading(why);
    // the explanation is long: only what it explains is read out
    this.status = html("p", { class: "unseen", role: "status" });
    why.after(this.status);
    this.shape = "";
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
    if (anew) this.build();
    this.show(state);
  }

  /** Draws what changes only with the language. */
  build() {
    this.lead.replaceChildren(html("p", {}, t("groups.lead")), html("p", { class: "lab-note" }, t("groups.keys")));
    const options = [
      ...Object.keys(presets).map((id) => ({ value: id, text: t(`groups.preset.${id}`) })),
      { value: "", text: t("tables.own") },
    ];
    this.preset = choiceField("groups-preset", {
      label: t("tables.preset"),
      options,
      set: (id) => id && this.context.change(presets[id]()),
    });
    this.second = html("input", { type: "checkbox", id: "groups-second" });
    this.second.addEventListener("change", () =>
      this.context.change({ ...this.present, second: /** @type {HTMLInputElement} */ (this.second).checked }),
    );
    this.weight = numberField("groups-weight", {
      label: [t("groups.weight")],
      step: 0.1,
      set: (value, continued) => {
        if (!Number.isFinite(value)) return t("groups.finite", { old: full(this.present.weight) });
        this.context.change({ ...this.present, weight: value }, continued);
        return null;
      },
    });
    this.more = html(
      "button",
      { type: "button", onclick: () => this.context.change(withMore(this.present)) },
      t("groups.addPrompt"),
    );
    this.less = html(
      "button",
      {
        type: "button",
        onclick: () => this.context.change({ ...this.present, prompts: this.present.prompts.slice(0, -1) }),
      },
      t("groups.removePrompt"),
    );
    const check = html("label", { class: "groups-check", for: "groups-second" }, this.second, t("groups.second"));
    this.fields.replaceChildren(this.preset.element, check, this.weight.element, this.more, this.less);
    this.notes.replaceChildren(
      html("p", { class: "lab-note" }, t("groups.sumNote")),
      html("p", { class: "lab-note" }, t("groups.inputsNote")),
    );
    this.shape = "";
  }

  /** One line of controls per prompt, built anew when their number changes. @param {State} state */
  buildPrompts(state) {
    this.shape = String(state.prompts.length);
    /**
     * @type {{ greedy: import("../../parts/fields.js").NumberField, more: HTMLButtonElement, less: HTMLButtonElement,
     *   told: HTMLElement }[]}
     */
    this.lines = state.prompts.map((_, p) => {
      const change = (/** @type {(prompt: import("./state.js").Prompt) => import("./state.js").Prompt} */ how) =>
        this.context.change(withPrompt(this.present, p, how));
      const greedy = numberField(`groups-greedy-${p}`, {
        label: [t("groups.greedy", { number: p + 1 })],
        step: 0.1,
        set: (value, continued) => {
          this.context.change(
            withPrompt(this.present, p, (prompt) => ({ ...prompt, greedy: value })),
            continued,
          );
          return null;
        },
      });
      const named = (/** @type {string} */ key) => ({ "aria-label": t(`groups.${key}.aria`, { number: p + 1 }) });
      return {
        greedy,
        told: html("span", { class: "lab-note" }),
        more: html(
          "button",
          { type: "button", "data-more": p, ...named("addSample"), onclick: () => change(longer) },
          t("groups.addSample"),
        ),
        less: html(
          "button",
          { type: "button", "data-less": p, ...named("removeSample"), onclick: () => change(shorter) },
          t("groups.removeSample"),
        ),
      };
    });
    this.prompts.replaceChildren(
      ...this.lines.map(({ greedy, more, less, told }, p) =>
        html(
          "div",
          { class: "lab-fields" },
          html("strong", {}, t("groups.prompt", { number: p + 1 })),
          more,
          less,
          greedy.element,
          told,
        ),
      ),
    );
  }

  /**
   * @param {string} row
   * @param {number} index
   */
  valueAt(row, index) {
    const count = samplesOf(this.present).length;
    if (index >= count) return this.result?.sums[row]?.[index - count] ?? NaN;
    if (row === "total") return this.result?.scores[index] ?? NaN;
    return this.result?.advantages[row]?.[index] ?? /** @type {any} */ (samplesOf(this.present)[index])[row] ?? NaN;
  }

  /** @param {Place} place */
  choose(place) {
    this.place = place;
    this.read();
  }

  /**
   * @param {Place} place
   * @param {string} text
   * @returns {{ state: State } | { problem: string }}
   */
  typed({ row, index }, text) {
    const key = /** @type {"score" | "format" | "length"} */ (row);
    const found = readNumber(text, samplesOf(this.present)[index][key], key === "length" ? LIMITS.length : undefined);
    return "problem" in found ? found : { state: withSample(this.present, index, { [key]: found.value }) };
  }

  /**
   * @param {Place} place
   * @param {string} text
   */
  commit(place, text) {
    const found = this.typed(place, text);
    if ("problem" in found) return found.problem;
    const at = (/** @type {State} */ state) => /** @type {any} */ (samplesOf(state)[place.index])[place.row];
    // opening a cell and leaving it unchanged is not an edit
    if (Object.is(at(found.state), at(this.present))) this.show(this.present);
    else this.context.change(found.state);
    return null;
  }

  /**
   * @param {Place} place
   * @param {string} text
   */
  preview(place, text) {
    const found = this.typed(place, text);
    if ("state" in found) this.show(found.state, true);
  }

  /**
   * @param {State} state
   * @param {boolean} [trial] a number is still being typed
   */
  show(state, trial = false) {
    this.shown = state;
    this.result = compute(this.context.library, state);
    if (this.shape !== String(state.prompts.length)) this.buildPrompts(state);
    if (this.preset) this.preset.select.value = exampleOf(state);
    if (this.second) this.second.checked = state.second;
    if (this.weight) {
      this.weight.show(state.weight);
      this.weight.element.hidden = !state.second;
    }
    if (this.more) this.more.disabled = state.prompts.length >= LIMITS.prompts[1];
    if (this.less) this.less.disabled = state.prompts.length <= LIMITS.prompts[0];
    for (const [p, line] of (this.lines ?? []).entries()) {
      line.greedy.show(state.prompts[p].greedy);
      line.more.disabled = state.prompts[p].samples.length >= LIMITS.samples[1];
      line.less.disabled = state.prompts[p].samples.length <= LIMITS.samples[0];
      line.told.textContent = t(this.result.groups[p].kept ? "groups.kept" : "groups.dropped");
    }
    this.grid.draw(tableOf(state, this.result), { spans: headingsOf(state), corner: t("groups.corner"), trial });
    const last = samplesOf(state).length - 1;
    if (this.place.index > last + state.prompts.length || !this.grid.cellAt(this.place))
      this.place = { row: "grpo-verl", index: 0 };
    this.read();
  }

  /** The explanation and the curves follow the chosen cell. */
  read() {
    if (!this.shown || !this.result) return;
    this.reading.draw(this.shown, this.result, this.place);
    this.status.textContent = this.reading.container.querySelector("h2")?.textContent ?? "";
    this.grid.mark("depends", new Set([idOf(this.place)]));
    const chosen = estimatorById.has(this.place.row) ? this.place.row : CURVES[0];
    const { advantages } = this.result;
    const drawn = [...CURVES.filter((id) => id !== chosen), chosen].filter((id) => advantages[id]);
    const count = samplesOf(this.shown).length;
    // side by side in the order of the legend, because several estimators give the same number
    const beside = (/** @type {number} */ place) => (place - (drawn.length - 1) / 2) * (0.4 / CURVES.length);
    let start = 0;
    const marks = this.shown.prompts.map(({ samples }, p) => {
      const mark = { x: start + 0.5, text: t("groups.prompt", { number: p + 1 }) };
      start += samples.length;
      return mark;
    });
    this.plot.draw({
      label: t("groups.plot.aria"),
      x: { label: t("groups.plot.sample"), domain: [0.5, count + 0.5] },
      y: { label: t("groups.plot.advantage") },
      marks,
      series: drawn.map((id, place) => ({
        id,
        name: t(`groups.name.${id}`),
        x: Array.from({ length: count }, (_, i) => i + 1 + beside(place)),
        y: advantages[id],
        // samples are no sequence: nothing lies between them
        kind: /** @type {const} */ ("points"),
        colour: id === chosen && !CURVES.includes(id) ? 7 : CURVES.indexOf(id),
      })),
    });
  }

  /** @param {State} state */
  exports(state) {
    return [
      {
        id: "groups-csv",
        label: t("tables.save"),
        how: /** @type {"save"} */ ("save"),
        file: "advantages.csv",
        make: () => asCsv(state, compute(this.context.library, state), estimators),
      },
    ];
  }
}
