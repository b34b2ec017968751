// The chain on the page: one state, its numbers, and the parts that draw them.

import { compute } from "./compute.js";
import { tableOf } from "./table.js";
import { drawChart } from "../parts/bars.js";
import { drawComparison } from "./comparison.js";
import { byId, html } from "../parts/dom.js";
import { copyText, Explanation } from "./explain.js";
import { choiceField, numberField } from "../parts/fields.js";
import { full, parse } from "../parts/format.js";
import { Grid } from "../parts/grid.js";
import { t } from "../i18n/index.js";
import { math, symbol } from "../parts/math.js";
import { presetById, presets } from "./presets.js";
import { dependents, rowByKey, rows, visibleRows } from "./rows.js";
import { drawSummary, refusalText } from "./summary.js";
import { choiceOptions, parameterNames, withChoices, withInput, withMaskToggled, withParameters } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("../parts/grid.js").Place} Place */

const STEPS = { gamma: 0.01, lambda: 0.01, beta: 0.01, clipLow: 0.01, clipHigh: 0.01 };

/** Which choice and parameter is of use where only some rows are shown. */
const ROW_OF = { kl: "kl", advantage: "delta", spread: "whitened", weight: "lossTerm", gamma: "reward", lambda: "reward", beta: "reward", clipLow: "lossTerm", clipHigh: "lossTerm" };

/** @type {import("../pages.js").Page} */
export const page = {
  texts: ["chain"],
  initial: () => presetById(new URLSearchParams(location.search).get("preset") ?? "").state,
  read: () => null,
  mount: (container, context) => new ChainView(container, context),
};

/** The chain of one response: its numbers, and the parts that draw them. */
class ChainView {
  /**
   * @param {HTMLElement} container
   * @param {import("../pages.js").Context} context
   */
  constructor(container, context) {
    this.context = context;
    this.library = context.library;
    container.append(
      html("section", { class: "intro", id: "intro" }),
      html("section", { class: "controls", id: "controls" }),
      html("section", { class: "chain", id: "chain" }),
      html("section", { class: "summary", id: "summary" }),
      html("div", { class: "reading", id: "reading" }, html("section", { class: "explain", id: "explain" }), html("section", { class: "chart", id: "chart" })),
      html("section", { class: "comparison", id: "comparison" }),
    );
    /** @type {State} what is on the screen: the present, or a number still being typed */
    this.shown = context.state();
    this.result = compute(this.library, this.shown);
    /** the numbers of the present, while others are only tried */
    this.settled = this.result;
    /** @type {Place} */
    this.place = firstPlace(this.shown);
    /** @type {Map<string, import("../parts/fields.js").NumberField>} */
    this.fields = new Map();
    this.grid = new Grid(byId("chain"), {
      focus: (place) => this.choose(place),
      toggle: (place) => this.keep(withMaskToggled(this.present, place.index)),
      commit: (place, text) => this.commit(place, text),
      preview: (place, text) => this.preview(place, text),
      cancel: () => this.show(this.present),
      copy: (place) => copyText(full(this.result.rows[place.row]?.[place.index] ?? NaN)),
    });
    this.explanation = new Explanation(byId("explain"), (id) => this.follow(id));
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
    this.show(state);
    if (anew) this.drawAll();
  }

  /** Everything anew: at the start, for another example, in another language. */
  drawAll() {
    this.drawIntro();
    this.drawControls();
    drawComparison(byId("comparison"), this.library, presetById(this.shown.preset));
    if (!visibleRows(this.shown).some((row) => row.key === this.place.row)) this.place = firstPlace(this.shown);
    this.grid.setPlace(this.place);
    this.drawNumbers();
    this.grid.setPlace(this.place);
  }

  /** What a changed number can change. */
  drawNumbers() {
    this.grid.draw(tableOf(this.shown, this.result));
    drawSummary(byId("summary"), this.shown, this.result);
    for (const name of parameterNames) this.fields.get(name)?.show(this.shown.parameters[name]);
    this.drawReading();
  }

  drawReading() {
    const row = rowByKey.get(this.place.row);
    if (!row) return;
    this.explanation.draw(this.shown, this.result, this.place);
    const values = row.key === "mask" ? this.shown.mask.map(Number) : this.result.rows[row.key];
    const { tokens, mask } = this.shown;
    drawChart(byId("chart"), { name: t(`row.${row.key}`), align: row.align, tokens, mask, values, chosen: this.place.index });
  }

  drawIntro() {
    const { prompt, tokens, preset } = this.shown;
    const dialogue = prompt && html("p", { class: "dialogue", lang: "zh" }, html("span", {}, prompt), html("span", { class: "arrow", "aria-hidden": "true" }, "→"), html("span", {}, tokens.join("")));
    byId("intro").replaceChildren(
      html("div", { class: "words" }, html("p", {}, t("page.lead")), html("p", { class: "quiet" }, t("page.keys"))),
      html("div", { class: "example" }, dialogue || null, html("p", { class: "quiet" }, t(`preset.note.${preset}`))),
    );
  }

  drawControls() {
    const state = this.shown;
    const useful = (/** @type {string} */ name) => !state.only || state.only.includes(ROW_OF[/** @type {keyof typeof ROW_OF} */ (name)]);
    const preset = choiceField("preset", {
      label: t("preset.label"),
      options: presets.map(({ id }) => ({ value: id, text: t(`preset.${id}`) })),
      set: (id) => this.load(id),
    });
    preset.select.value = state.preset;
    const choices = /** @type {(keyof import("./state.js").Choices)[]} */ (Object.keys(choiceOptions)).filter(useful).map((name) => {
      const options = choiceOptions[name].map((value) => ({ value, text: t(`choice.${name}.${value}`) }));
      const field = choiceField(name, { label: t(`choice.${name}`), options, set: (value) => this.keep(withChoices(this.present, { [name]: value })) });
      field.select.value = state.choices[name];
      return field.element;
    });
    this.fields.clear();
    const parameters = parameterNames.filter(useful).map((name) => {
      const field = numberField(name, {
        label: [math("inline", symbol(name)), " ", html("span", { class: "words" }, t(`parameter.${name}`))],
        step: STEPS[name],
        set: (value, continued) => this.attempt(withParameters(this.present, { [name]: value }), state.parameters[name], continued),
        focus: () => this.grid.mark(dependents(this.shown, name)),
      });
      this.fields.set(name, field);
      field.show(state.parameters[name]);
      return field.element;
    });
    byId("controls").replaceChildren(preset.element, ...parameters, ...choices);
  }

  /** @param {string} id */
  load(id) {
    this.place = firstPlace(presetById(id).state);
    this.keep(presetById(id).state);
    byId("choice-preset").focus();
  }

  /** @param {Place} place */
  choose(place) {
    this.place = place;
    this.grid.mark(dependents(this.shown, `${place.row}.${place.index}`));
    this.drawReading();
  }

  /** @param {string} id */
  follow(id) {
    const [row, index] = id.split(".");
    if (index === undefined) this.fields.get(row)?.input.focus();
    else this.grid.focus({ row, index: Number(index) });
  }

  /**
   * @param {Place} place
   * @param {string} text
   * @returns {{ state: State } | { problem: string }}
   */
  read(place, text) {
    if (text.trim() === "" && place.row === "logProb") return { state: withInput(this.present, place.row, place.index, null) };
    const parsed = parse(text);
    if ("value" in parsed) return { state: withInput(this.present, place.row, place.index, parsed.value) };
    const before = this.settled.rows[place.row]?.[place.index];
    return { problem: t(`bad.${parsed.problem}`, { text, old: before === undefined ? "—" : full(before) }) };
  }

  /**
   * @param {Place} place
   * @param {string} text
   * @returns {string | null}
   */
  commit(place, text) {
    const read = this.read(place, text);
    if ("problem" in read) return read.problem;
    const now = this.settled.rows[place.row]?.[place.index];
    const stored = /** @type {any} */ (this.present.inputs)[place.row][place.index];
    // opening a cell and leaving it as it was is no edit
    if (read.state && Object.is(stored ?? now, /** @type {any} */ (read.state.inputs)[place.row][place.index])) return null;
    return this.attempt(read.state, now ?? NaN, false);
  }

  /**
   * @param {Place} place
   * @param {string} text
   */
  preview(place, text) {
    const read = this.read(place, text);
    if ("state" in read) this.show(read.state);
  }

  /**
   * Takes a new state unless the library finds a number in it that it cannot work with.
   * @param {State} next
   * @param {number} old
   * @param {boolean} continued
   * @returns {string | null}
   */
  attempt(next, old, continued) {
    const refusal = compute(this.library, next).refusals.find(({ code }) => code === "config" || code === "entry");
    if (refusal) return t("bad.refused", { reason: refusalText(refusal), old: full(old) });
    this.keep(next, continued);
    return null;
  }

  /**
   * @param {State} next
   * @param {boolean} [continued]
   */
  keep(next, continued = false) {
    this.context.change(next, continued);
  }

  /** @param {State} next */
  show(next) {
    const { result: before, settled } = this;
    const example = this.shown.preset !== next.preset;
    this.shown = next;
    this.result = compute(this.library, next);
    if (next === this.present) this.settled = this.result;
    if (example) return this.drawAll();
    this.drawNumbers();
    // marked: what the edit changes in all; moving: what its last keystroke did
    this.grid.pulse(new Set(changes(settled, this.result, next).keys()), changes(before, this.result, next));
    for (const name of /** @type {(keyof import("./state.js").Choices)[]} */ (Object.keys(choiceOptions))) {
      const select = /** @type {HTMLSelectElement | null} */ (document.getElementById(`choice-${name}`));
      if (select) select.value = next.choices[name];
    }
  }
}

/**
 * The advantage of the first token is what the page is about.
 * @param {State} state
 * @returns {Place}
 */
const firstPlace = (state) => ({ row: visibleRows(state).some((row) => row.key === "advantage") ? "advantage" : "mask", index: 0 });

/**
 * Which cells differ, and how many rows after the first of them.
 * @param {import("./compute.js").Result} before
 * @param {import("./compute.js").Result} after
 * @param {State} state
 * @returns {Map<string, number>}
 */
function changes(before, after, state) {
  /** @type {Map<string, number>} */
  const found = new Map();
  let first = -1;
  for (const [order, row] of rows.entries()) {
    const now = after.rows[row.key];
    for (let index = 0; index <= state.tokens.length; index += 1) {
      if (Object.is(before.rows[row.key]?.[index], now?.[index])) continue;
      if (first < 0) first = order;
      found.set(`${row.key}.${index}`, order - first);
    }
  }
  return found;
}
