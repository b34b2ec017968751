// The chain on the page: one state, its numbers, and the parts that draw them.

import { compute } from "./compute.js";
import { drawComparison } from "./comparison.js";
import { Controls } from "./controls.js";
import { ancestors, dependents } from "./dependents.js";
import { differencesOf, otherwise } from "./differences.js";
import { causesText, drawDifferences } from "./differences-view.js";
import {
  withChoices, withGroup, withInput, withNextRole, withParameters, withProfile, withSequenceAdded, withSequenceRemoved, withToken, withTokenAdded,
  withTokenRemoved,
} from "./edits.js";
import { copyText, Explanation } from "./explain.js";
import { chainExports } from "./exports/index.js";
import { Grid, idOf } from "./grid.js";
import { examples, findPreset } from "./presets.js";
import { changes, firstPlace, isShown } from "./places.js";
import { rowByKey } from "./rows.js";
import { readState } from "./state.js";
import { drawSummary, refusalText } from "./summary.js";
import { tableOf } from "./table.js";
import { Toolbar } from "./toolbar.js";
import { TourStrip } from "./tour-strip.js";
import { findTour, stateAt, tourOf } from "./tours.js";
import { drawTrap } from "./trap.js";
import { drawChart } from "../parts/bars.js";
import { byId, html } from "../parts/dom.js";
import { full, parse, short } from "../parts/format.js";
import { t } from "../i18n/index.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./edits.js").Place} Place */

/** So many sequences are open at first. */
const OPEN = 4;

/** What the library says of a number it cannot work with; the edit is then not taken. */
const REFUSING = ["config", "entry", "type", "choice"];

/** @returns {State} */
function initial() {
  const query = new URLSearchParams(location.search);
  const tour = findTour(query.get("tour") ?? "");
  return tour ? stateAt(tour, 0) : (findPreset(query.get("preset") ?? "") ?? examples[0]).state;
}

/** @type {import("../pages.js").Page} */
export const page = {
  texts: ["chain", "traps", "tours"],
  initial,
  read: readState,
  mount: (container, context) => new ChainView(container, context),
};

/** The chain of some responses: their numbers, and the parts that draw them. */
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
      html("section", { class: "tour", id: "tour", hidden: true }),
      html("section", { class: "chain", id: "chain" }),
      html("section", { class: "shape", id: "shape" }),
      html("section", { class: "summary", id: "summary" }),
      html("section", { class: "differences", id: "differences" }),
      html("div", { class: "reading", id: "reading" }, html("section", { class: "explain", id: "explain" }), html("section", { class: "chart", id: "chart" })),
      html("section", { class: "comparison", id: "comparison" }),
    );
    /** @type {State} what is on the screen: the present, or a number still being typed */
    this.shown = context.state();
    this.result = compute(this.library, this.shown);
    /** the numbers of the present, while others are only tried */
    this.settled = this.result;
    /** @type {Place} */
    this.place = tourOf(this.shown)?.place ?? firstPlace(this.shown);
    /** @type {Set<number>} sequences folded or unfolded by hand */
    this.folded = new Set();
    /** @type {import("./differences.js").Difference[]} */
    this.differences = [];
    this.waiting = 0;
    this.grid = new Grid(byId("chain"), {
      focus: (place) => this.choose(place),
      toggle: (place) => this.toggle(place),
      commit: (place, text) => this.commit(place, text),
      preview: (place, text) => this.preview(place, text),
      cancel: () => this.show(this.present),
      copy: (place) => copyText(place.row === "token" ? this.shown.sequences[place.sequence].tokens[place.index] : full(this.result.rows[place.row]?.[place.sequence]?.[place.index] ?? NaN)),
      shape: (command) => this.reshape(command),
    });
    this.explanation = new Explanation(byId("explain"), this.library, (id) => this.follow(id));
    this.toolbar = new Toolbar(byId("shape"), (command) => this.reshape(command), (group) => this.keep(withGroup(this.present, this.place.sequence, group)));
    this.strip = new TourStrip(byId("tour"), (step) => this.tell(step), () => this.keep({ ...this.present, tour: null }));
    this.controls = new Controls(byId("controls"), {
      load: (id) => this.load(findPreset(id)?.state ?? this.present),
      start: (id) => this.load(stateAt(/** @type {import("./tours.js").Tour} */ (findTour(id)), 0)),
      profile: (profile) => this.keep(withProfile(this.present, profile)),
      against: (against) => this.keep({ ...this.present, against }),
      choose: (choices) => this.keep(withChoices(this.present, choices)),
      set: (name, value, continued) => this.attempt(withParameters(this.present, { [name]: value }), this.present.parameters[name], continued),
      look: (name) => this.mark(name),
    });
    container.addEventListener("keydown", (event) => this.strip.key(event, this.present));
  }

  /** @returns {State} */
  get present() {
    return this.context.state();
  }

  /** @param {State} state */
  exports(state) {
    return chainExports(this.library, state, this.place);
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
    this.drawStory();
    if (!isShown(this.shown, this.place)) this.place = firstPlace(this.shown);
    this.drawNumbers();
    this.grid.setPlace(this.place);
  }

  /** What a changed number can change. */
  drawNumbers() {
    const other = otherwise(this.library, this.shown);
    this.controls.draw(this.shown, this.result.settings);
    this.strip.draw(this.shown);
    this.grid.draw(tableOf(this.shown, this.result, other, (s) => this.folded.has(s) !== s < OPEN));
    this.toolbar.draw(this.shown, this.place);
    drawSummary(byId("summary"), this.shown, this.result, other);
    this.drawReading();
    this.drawDifferences();
  }

  /** The causes take as many runs as there are conventions: they follow the numbers, in a moment of their own. */
  drawDifferences() {
    if (!this.shown.against) this.differences = [];
    clearTimeout(this.waiting);
    if (this.shown.against) {
      this.waiting = window.setTimeout(() => {
        this.differences = differencesOf(this.library, this.shown);
        drawDifferences(byId("differences"), this.shown, this.differences);
        this.drawReading();
      });
    } else drawDifferences(byId("differences"), this.shown, []);
  }

  drawReading() {
    const { row: key, sequence: s, index } = this.place;
    const row = rowByKey.get(key);
    const sequence = this.shown.sequences[s];
    if (!sequence) return;
    const other = otherwise(this.library, this.shown);
    this.explanation.draw(this.shown, this.result, this.place, [this.elsewhere(other)]);
    const mask = sequence.roles.map((role) => role === "policy");
    const ofSequence = row?.align === "sequence";
    const pick = (/** @type {import("./compute.js").Result | null} */ result) => {
      const all = result?.rows[key];
      return key === "mask" || key === "token" ? (result ? mask.map(Number) : undefined) : ofSequence ? all?.map((values) => values[0]) : all?.[s];
    };
    drawChart(byId("chart"), {
      name: t(`row.${key}`), align: row?.align === "state" ? "state" : "action", values: pick(this.result), chosen: ofSequence ? s : index,
      tokens: ofSequence ? this.shown.sequences.map((_, at) => String(at + 1)) : sequence.tokens,
      mask: ofSequence ? this.shown.sequences.map(() => true) : mask,
      ghost: row?.kind(this.shown) === "result" ? pick(other) : undefined,
      ghostName: this.shown.against ? t(`profile.${this.shown.against}`) : "",
    });
  }

  /**
   * What the other framework has in this cell, and why.
   * @param {import("./compute.js").Result | null} other
   */
  elsewhere(other) {
    const { row, sequence, index } = this.place;
    const [mine, theirs] = [this.result.rows[row]?.[sequence]?.[index], other?.rows[row]?.[sequence]?.[index]];
    const difference = this.differences.find((one) => one.row === row);
    if (mine === undefined || theirs === undefined || Object.is(mine, theirs) || !difference || !this.shown.against) return null;
    const said = t("grid.otherwise", { profile: t(`profile.${this.shown.against}`), value: short(theirs) === short(mine) ? full(theirs) : short(theirs) });
    return html("p", { class: "elsewhere" }, `≠ ${said}. ${causesText(difference.causes)}`);
  }

  drawIntro() {
    const { preset, sequences } = this.shown;
    const [{ prompt, tokens }] = sequences;
    const dialogue = prompt && sequences.length === 1 && html("p", { class: "dialogue", lang: "zh" }, html("span", {}, prompt), html("span", { class: "arrow", "aria-hidden": "true" }, "→"), html("span", {}, tokens.join("")));
    byId("intro").replaceChildren(
      html("div", { class: "words" }, html("p", {}, t("page.lead")), html("p", { class: "quiet" }, t("page.keys"))),
      html("div", { class: "example" }, dialogue || null, findPreset(preset) && html("p", { class: "quiet" }, t(`preset.note.${preset}`))),
    );
  }

  drawStory() {
    const preset = findPreset(this.shown.preset);
    if (!preset) byId("comparison").replaceChildren();
    else if ("cases" in preset) drawTrap(byId("comparison"), this.library, preset, (state) => this.keep({ ...state, tour: this.present.tour }));
    else drawComparison(byId("comparison"), this.library, preset);
  }

  /** @param {State} state */
  load(state) {
    this.folded.clear();
    this.keep(state);
    byId("choice-preset").focus();
  }

  /** @param {number} step */
  tell(step) {
    const at = tourOf(this.present);
    if (!at) return;
    const { tour } = at;
    const state = tour.steps[step].of ? stateAt(tour, step) : { ...this.present, tour: { id: tour.id, step } };
    this.keep(step < at.step ? stateAt(tour, step) : state, true);
  }

  /** @param {Place} place */
  choose(place) {
    // the line of a sequence holds no number of its own
    this.place = place.row === "sequence" ? { ...this.place, sequence: place.sequence } : place;
    if (!isShown(this.shown, this.place)) this.place = firstPlace(this.shown);
    this.mark(idOf(this.place));
    this.toolbar.draw(this.shown, this.place);
    this.drawReading();
  }

  /** @param {string} id */
  mark(id) {
    this.grid.mark("depends", dependents(this.shown, this.result.settings, id));
    this.grid.mark("comes", ancestors(this.shown, this.result.settings, id));
  }

  /** @param {Place} place */
  toggle(place) {
    if (place.row === "mask") return this.keep(withNextRole(this.present, place));
    if (this.folded.has(place.sequence)) this.folded.delete(place.sequence);
    else this.folded.add(place.sequence);
    this.drawNumbers();
    this.grid.focus(place);
  }

  /** @param {import("./toolbar.js").Command} command */
  reshape(command) {
    const { present } = this;
    const s = Math.min(this.place.sequence, present.sequences.length - 1);
    const index = Math.min(this.place.index, present.sequences[s].tokens.length - 1);
    /** @type {Record<import("./toolbar.js").Command, () => State>} */
    const commands = {
      before: () => withTokenAdded(present, s, index, t("shape.newToken")),
      after: () => withTokenAdded(present, s, index + 1, t("shape.newToken")),
      remove: () => withTokenRemoved(present, s, index),
      new: () => withSequenceAdded(present, s, false),
      copy: () => withSequenceAdded(present, s, true),
      drop: () => withSequenceRemoved(present, s),
    };
    const next = commands[command]();
    if (next === present) return;
    if (command === "after") this.place = { ...this.place, index: index + 1 };
    if (command === "new" || command === "copy") this.place = { ...this.place, sequence: s + 1 };
    if (command === "drop") this.place = { ...this.place, sequence: Math.max(0, s - 1) };
    this.grid.place = this.place;
    this.keep(next);
  }

  /** @param {string} id */
  follow(id) {
    const [row, sequence, index] = id.split(".");
    if (row === "total") byId(`number-${sequence}`).focus();
    else if (index === undefined) this.controls.fields.get(row)?.input.focus();
    else {
      if (!this.grid.elements.has(id)) this.toggle({ row: "sequence", sequence: Number(sequence), index: 0 });
      this.grid.focus({ row, sequence: Number(sequence), index: Number(index) });
    }
  }

  /**
   * @param {Place} place
   * @param {string} text
   * @returns {{ state: State } | { problem: string }}
   */
  read(place, text) {
    if (place.row === "token") return { state: withToken(this.present, place, text) };
    if (text.trim() === "" && place.row === "logProb") return { state: withInput(this.present, place, null) };
    const parsed = parse(text);
    if ("value" in parsed) return { state: withInput(this.present, place, parsed.value) };
    const before = this.settled.rows[place.row]?.[place.sequence]?.[place.index];
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
    const stored = (/** @type {State} */ { sequences }) => {
      const { tokens, inputs } = sequences[place.sequence];
      return place.row === "token" ? tokens[place.index] : /** @type {any} */ (inputs)[place.row][place.index];
    };
    const now = this.settled.rows[place.row]?.[place.sequence]?.[place.index];
    // opening a cell and leaving it as it was is no edit
    if (Object.is(stored(this.present) ?? now, stored(read.state))) {
      this.show(this.present);
      return null;
    }
    return this.attempt(read.state, now ?? NaN, false);
  }

  /**
   * @param {Place} place
   * @param {string} text
   */
  preview(place, text) {
    const read = this.read(place, text);
    if ("state" in read && place.row !== "token") this.show(read.state);
  }

  /**
   * Takes a new state unless the library finds a number in it that it cannot work with.
   * @param {State} next
   * @param {number} old
   * @param {boolean} continued
   * @returns {string | null}
   */
  attempt(next, old, continued) {
    const known = new Set(this.settled.refusals.map(({ step, code }) => `${step}.${code}`));
    const refusal = compute(this.library, next).refusals.find(({ step, code }) => REFUSING.includes(code) && !known.has(`${step}.${code}`));
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
    const { result: before, settled, shown } = this;
    this.shown = next;
    this.result = compute(this.library, next);
    if (next === this.present) this.settled = this.result;
    const told = next.tour && (next.tour.id !== shown.tour?.id || next.tour.step !== shown.tour?.step);
    if (told) this.place = tourOf(next)?.place ?? this.place;
    else if (shown.preset !== next.preset) this.place = firstPlace(next);
    if (shown.preset !== next.preset || told) this.drawAll();
    else {
      if (!isShown(next, this.place)) this.place = firstPlace(next);
      this.drawNumbers();
    }
    if (told) this.mark(idOf(this.place));
    if (told) this.grid.elements.get(idOf(this.place))?.scrollIntoView({ block: "nearest", inline: "nearest" });
    // marked: what the edit changes in all; moving: what its last keystroke did
    this.grid.pulse(new Set(changes(settled, this.result).keys()), changes(before, this.result));
  }
}
