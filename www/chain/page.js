// The chain on the page: one state, its numbers, and the parts that draw them.

import { NotLoaded } from "../engine.js";
import { compute } from "./compute/compute.js";
import { Controls } from "./edit/controls.js";
import { ancestors, dependents } from "./explain/dependents.js";
import { differencesOf, otherwise } from "./compare/differences.js";
import { drawDifferences } from "./compare/view.js";
import { withChosen, withGroup, withNextRole, withParameters, withProfile } from "./edit/edits.js";
import { copyNumber } from "../parts/copy.js";
import { chainExports } from "./exports/index.js";
import { ChainGrid } from "./grid/grid.js";
import { examples, findPreset } from "./examples/presets.js";
import { changes, firstPlace, isShown } from "./grid/places.js";
import { Reading } from "./explain/reading.js";
import { readState } from "./state.js";
import { drawIntro, drawStory, isEdited } from "./examples/story.js";
import { refusalText } from "../parts/refusals.js";
import { drawStep } from "./examples/step-view.js";
import { drawLegend } from "./grid/legend.js";
import { drawSummary } from "./explain/summary.js";
import { tableOf } from "./grid/table.js";
import { reshaped, Toolbar } from "./edit/toolbar.js";
import { TourStrip } from "./tours/strip.js";
import { findTour, stateAt, tourOf } from "./tours/tours.js";
import { readCell, storedAt } from "./edit/typing.js";
import { byId, html } from "../parts/dom.js";
import { full } from "../parts/format.js";
import { idOf } from "../parts/grid.js";
import { Later } from "../parts/later.js";
import { t } from "../i18n/index.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./edit/edits.js").Place} Place */

/** At most this many sequences are expanded at first. */
const OPEN = 2;

/** The errors of the library about a number it cannot work with; the edit is then refused. */
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
      html("section", { class: "legend", id: "legend" }),
      html("section", { class: "shape", id: "shape" }),
      html("section", { class: "summary", id: "summary" }),
      html("section", { class: "differences", id: "differences" }),
      html(
        "div",
        { class: "reading", id: "reading" },
        html("section", { class: "explain", id: "explain" }),
        html("section", { class: "chart", id: "chart" }),
      ),
      html("section", { class: "step", id: "step", hidden: true }),
      html("section", { class: "comparison", id: "comparison" }),
    );
    /** @type {State} what is on the screen: the present, or a number still being typed */
    this.shown = context.state();
    this.result = compute(this.library, this.shown);
    /** the current numbers, while others are tried */
    this.settled = this.result;
    /** @type {Place} */
    this.place = tourOf(this.shown)?.place ?? firstPlace(this.shown);
    /** @type {Set<number>} sequences folded or unfolded by hand */
    this.folded = new Set();
    /** @type {import("./compare/differences.js").Difference[]} */
    this.differences = [];
    this.comparing = new Later(byId("differences"));
    this.telling = new Later(byId("comparison"));
    this.grid = new ChainGrid(byId("chain"), {
      focus: (place) => this.choose(place),
      toggle: (place) => this.toggle(place),
      commit: (place, text) => this.commit(place, text),
      preview: (place, text) => this.preview(place, text),
      cancel: () => this.show(this.present),
      copy: (place) =>
        copyNumber(
          place.row === "token"
            ? this.shown.sequences[place.sequence].tokens[place.index]
            : full(this.result.rows[place.row]?.[place.sequence]?.[place.index] ?? NaN),
        ),
      shape: (command) => this.reshape(command),
    });
    this.reading = new Reading(byId("explain"), byId("chart"), this.library, (id) => this.follow(id));
    this.toolbar = new Toolbar(
      byId("shape"),
      (command) => this.reshape(command),
      (group) => this.keep(withGroup(this.present, this.place.sequence, group)),
    );
    this.strip = new TourStrip(byId("tour"), {
      go: (step) => this.tell(step),
      end: () => this.keep({ ...this.present, tour: null }),
      left: () => this.grid.focus(this.place),
    });
    this.controls = new Controls(byId("controls"), {
      load: (id) => this.load(findPreset(id)?.state ?? this.present),
      reset: () => this.load(findPreset(this.present.preset)?.state ?? this.present),
      start: (id) => this.load(stateAt(/** @type {import("./tours/tours.js").Tour} */ (findTour(id)), 0)),
      profile: (profile) => this.keep(withProfile(this.present, profile)),
      against: (against) => this.keep({ ...this.present, against }),
      choose: (choices) => this.keep(withChosen(this.present, choices)),
      set: (name, value, continued) =>
        this.attempt(withParameters(this.present, { [name]: value }), this.present.parameters[name], continued),
      look: (name) => this.mark(name),
    });
    container.addEventListener("keydown", (event) => this.strip.key(event, this.present));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /**
   * T starts the tour, from anywhere but a field being typed in.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const { target } = event;
    const typing = target instanceof HTMLElement && target.matches("input, select, textarea, [contenteditable]");
    if (event.key.toLowerCase() !== "t" || event.ctrlKey || event.metaKey || event.altKey || typing) return;
    if (this.present.tour || byId("intro").closest("[hidden]")) return;
    event.preventDefault();
    this.begin();
  }

  /** The tour for newcomers. */
  begin() {
    this.folded.clear();
    this.keep(stateAt(/** @type {import("./tours/tours.js").Tour} */ (findTour("story")), 0));
    byId("tour-next").focus();
  }

  /** Where a reader who skips the header wants to be. */
  enter() {
    this.grid.focus(this.place);
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

  /** Draws everything: at the start, for another example, in another language. */
  drawAll() {
    drawIntro(byId("intro"), this.shown, () => this.begin());
    drawLegend(byId("legend"), this.shown);
    if (!isShown(this.shown, this.place)) this.place = firstPlace(this.shown);
    this.drawNumbers();
    this.grid.setPlace(this.place);
  }

  /** What a changed number can change. */
  drawNumbers() {
    const other = otherwise(this.library, this.shown);
    this.controls.draw(this.shown, this.result.settings, isEdited(this.present));
    this.strip.draw(this.shown);
    this.grid.draw(tableOf(this.shown, this.result, other, (s) => this.folded.has(s) !== s < OPEN));
    this.toolbar.draw(this.shown, this.place);
    drawSummary(byId("summary"), this.shown, this.result, other);
    this.reading.draw(this.shown, this.result, this.place, this.differences);
    this.drawDifferences();
    this.drawStory();
  }

  /** The published numbers beside those of the state; below the fold, so after the numbers have been drawn. */
  drawStory() {
    this.telling.run(() => {
      drawStep(byId("step"), this.library, this.shown, this.result);
      drawStory(byId("comparison"), this.library, this.shown, (state) =>
        this.keep({ ...state, tour: this.present.tour }),
      );
    });
  }

  /** Finding the causes takes one run per convention, so it follows after the numbers have been drawn. */
  drawDifferences() {
    const legend = byId("legend");
    // the legend explains the mark of differences only while something is compared
    if ((legend.querySelector(".differs") !== null) !== (this.shown.against !== null)) drawLegend(legend, this.shown);
    if (!this.shown.against) this.differences = [];
    if (this.shown.against) {
      this.comparing.run(() => {
        this.differences = differencesOf(this.library, this.shown);
        drawDifferences(byId("differences"), this.shown, this.differences);
        this.reading.draw(this.shown, this.result, this.place, this.differences);
      });
    } else {
      this.comparing.stop();
      drawDifferences(byId("differences"), this.shown, []);
    }
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
    if (this.shown.tour) this.grid.mark("here", new Set([idOf(this.place)]));
    this.toolbar.draw(this.shown, this.place);
    this.reading.draw(this.shown, this.result, this.place, this.differences);
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

  /** @param {import("./edit/toolbar.js").Command} command */
  reshape(command) {
    const { state, place } = reshaped(this.present, this.place, command, t("shape.newToken"));
    if (state === this.present) return;
    this.place = place;
    this.grid.place = place;
    this.keep(state);
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
   * @returns {string | null}
   */
  commit(place, text) {
    const read = readCell(this.present, place, text, this.settled.rows[place.row]?.[place.sequence]?.[place.index]);
    if ("problem" in read) return read.problem;
    const now = this.settled.rows[place.row]?.[place.sequence]?.[place.index];
    // opening a cell and leaving it unchanged is not an edit
    if (Object.is(storedAt(this.present, place) ?? now, storedAt(read.state, place))) {
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
    const read = readCell(this.present, place, text, this.settled.rows[place.row]?.[place.sequence]?.[place.index]);
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
    const refusal = this.refusalsOf(next).find(
      ({ step, code }) => REFUSING.includes(code) && !known.has(`${step}.${code}`),
    );
    if (refusal) return t("bad.refused", { reason: refusalText(refusal), old: full(old) });
    this.keep(next, continued);
    return null;
  }

  /**
   * @param {State} state
   * @returns {import("./compute/compute.js").Result["refusals"]} none while the formulas it needs are being loaded
   */
  refusalsOf(state) {
    try {
      return compute(this.library, state).refusals;
    } catch (error) {
      if (error instanceof NotLoaded) return [];
      throw error;
    }
  }

  /**
   * @param {State} next
   * @param {boolean} [continued]
   */
  keep(next, continued = false) {
    this.context.change(next, continued);
  }

  /**
   * The cell that a tour tells of, between the strip above and the panel below. Where the reader is to edit it, it gets
   * the focus: Enter then edits instead of going on.
   * @param {State} state
   */
  bring(state) {
    const strip = byId("tour");
    const cell = this.grid.elements.get(idOf(this.place));
    if (!cell) return;
    cell.style.scrollMarginTop = `${strip.offsetHeight + 60}px`;
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    cell.style.scrollMarginTop = "";
    const held = strip.contains(document.activeElement) || document.activeElement === document.body;
    if (held && tourOf(state)?.waiting) this.grid.focus(this.place);
  }

  /**
   * Focuses a cell, unfolding its sequence first.
   * @param {Place} place
   */
  goTo(place) {
    if (isShown(this.shown, place)) this.follow(idOf(place));
  }

  /** @param {State} next */
  show(next) {
    const { result: before, settled, shown } = this;
    this.result = compute(this.library, next);
    this.shown = next;
    if (next === this.present) this.settled = this.result;
    const told = next.tour && (next.tour.id !== shown.tour?.id || next.tour.step !== shown.tour?.step);
    if (told) this.place = tourOf(next)?.place ?? this.place;
    else if (shown.preset !== next.preset) this.place = firstPlace(next);
    if (shown.preset !== next.preset || told) this.drawAll();
    else {
      if (!isShown(next, this.place)) this.place = firstPlace(next);
      this.drawNumbers();
    }
    this.grid.mark("here", new Set(next.tour ? [idOf(this.place)] : []));
    if (told) this.mark(idOf(this.place));
    if (told) this.bring(next);
    // marked: what the edit changes in all; moving: what its last keystroke did
    const moved = changes(before, this.result);
    this.grid.pulse(new Set((before === settled ? moved : changes(settled, this.result)).keys()), moved);
  }
}
