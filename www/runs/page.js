// Recorded runs side by side: every metric over the steps, runs compared, and a step opened to the tokens that were
// sampled there.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { choiceField } from "../parts/fields.js";
import { full, short } from "../parts/format.js";
import { RunsFrame } from "../parts/runs-frame.js";
import { csv } from "../labs/csv.js";
import { keysOf, pointsOf, valueAt } from "./curves.js";
import { loadExample } from "./example.js";
import { RunIntake } from "./intake.js";
import { domainOf, Pictures } from "./pictures.js";
import { Rollouts } from "./rollouts.js";
import {
  dataOf,
  initial,
  isExample,
  looksOf,
  MOST_RUNS,
  read,
  remember,
  withLoaded,
  without,
  withRun,
} from "./state.js";

/** @typedef {import("./state.js").State} State */

/** @type {import("../pages.js").Page} */
export const page = {
  texts: ["runs", "data"],
  styles: ["labs", "intake", "runs"],
  initial,
  read,
  mount: (container, context) => new RunsView(container, context),
};

/** Runs and keys in the table of a step. */
const COLUMNS = 8;
const ROWS = 80;

class RunsView extends RunsFrame {
  /**
   * @param {HTMLElement} container
   * @param {import("../pages.js").Context} context
   */
  constructor(container, context) {
    super(container, context, { id: "runs", first: "runs-folder", withLoaded, without, withRun });
    const part = (/** @type {string} */ id, /** @type {string} */ kind, more = {}) =>
      html("section", { class: kind, id: `runs-${id}`, ...more });
    this.lead = part("lead", "lab-lead");
    this.intakePart = part("intake", "file-intake");
    this.listPart = part("list", "runs-list");
    this.controls = part("controls", "lab-fields");
    this.stepPart = part("step", "runs-step", { "aria-live": "polite" });
    this.picturesPart = part("pictures", "runs-pictures");
    this.note = html("p", { class: "lab-note", id: "runs-note" });
    this.rollouts = new Rollouts((state, place) => this.context.open("chain", state, place));
    container.append(
      html(
        "div",
        { class: "lab" },
        this.lead,
        this.intakePart,
        this.listPart,
        this.controls,
        this.stepPart,
        this.picturesPart,
        this.note,
      ),
    );
    this.intake = new RunIntake(this.intakePart, container, {
      add: (loaded) => this.add(loaded),
      room: () => MOST_RUNS - this.state.runs.filter((run) => !isExample(run)).length,
      example: () => this.context.change({ ...this.state, ...initial() }),
    });
    this.pictures = new Pictures(this.picturesPart, {
      zoom: (zoom) => this.setZoom(zoom),
      choose: (step) => this.choose(step),
      fold: (prefix, closed) => {
        const others = this.state.closed.filter((one) => one !== prefix);
        this.context.change({ ...this.state, closed: closed ? [...others, prefix] : others });
      },
    });
  }

  /** @override @returns {State} */
  get state() {
    return this.context.state();
  }

  /** @override */
  get domain() {
    return domainOf(this.state);
  }

  /** Goes to the step nearest to where the reader pointed. @param {number} x */
  choose(x) {
    const state = this.state;
    const steps = state.runs.flatMap((run) => (run.off ? [] : [dataOf(run)?.metrics.steps ?? new Float64Array()]));
    let best = NaN;
    for (const own of steps) for (const step of own) if (!(Math.abs(step - x) >= Math.abs(best - x))) best = step;
    if (Number.isNaN(best)) return;
    const withRollouts = state.runs.find((run) => !run.off && dataOf(run)?.rollouts);
    this.context.change({ ...state, at: best, chosen: state.chosen || (withRollouts?.key ?? "") });
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    remember(state);
    if (anew) this.build();
    this.drawControls(state);
    this.drawList(state);
    this.pictures.draw(state, anew);
    this.drawStep(state);
    const lost = state.runs.some((run) => !dataOf(run) && !isExample(run));
    const note = state.runs.some(isExample) ? "runs.note.example" : lost ? "runs.note.lost" : "runs.note.link";
    this.note.textContent = state.runs.length === 0 ? "" : t(note);
    loadExample(state)?.then(() => this.draw(this.state, false), console.error);
    if (anew) this.addPending();
  }

  build() {
    this.lead.replaceChildren(html("p", {}, t("runs.lead")), html("p", { class: "quiet" }, t("runs.format")));
    this.intake.build();
    const search = html("input", {
      type: "search",
      id: "runs-search",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "entropy",
    });
    let typing = false;
    search.addEventListener("input", () => {
      this.context.change({ ...this.state, search: search.value }, typing);
      typing = true;
    });
    search.addEventListener("change", () => {
      typing = false;
    });
    this.search = search;
    const bands = html("input", {
      type: "checkbox",
      id: "runs-bands",
      onchange: () => this.context.change({ ...this.state, bands: bands.checked }),
    });
    this.bands = bands;
    this.controls.replaceChildren(
      html("div", { class: "field" }, html("label", { for: "runs-search" }, t("runs.search")), search),
      ...this.smoothFields(),
      html("div", { class: "lab-check" }, bands, html("label", { for: "runs-bands" }, t("runs.bands"))),
      html("div", { class: "runs-zoom", role: "group", "aria-label": t("runs.zoom") }, ...this.zoomTools()),
    );
    this.controls.setAttribute("aria-label", t("runs.controls"));
    this.listPart.setAttribute("aria-label", t("runs.list"));
    this.picturesPart.setAttribute("aria-label", t("runs.pictures"));
    this.stepPart.setAttribute("aria-label", t("runs.step.label"));
  }

  /** @param {State} state */
  drawControls({ search, smooth, bands }) {
    if (!this.search || !this.bands) return;
    if (this.search.value !== search) this.search.value = search;
    this.showSmooth(smooth);
    this.bands.checked = bands;
  }

  /** @param {State} state */
  drawList(state) {
    const held = this.listPart.contains(document.activeElement) ? document.activeElement?.id : "";
    const looks = looksOf(state);
    const chips = state.runs.map((run) => {
      const there = dataOf(run) !== undefined;
      const look = looks.get(run.key);
      return html(
        "span",
        { class: `runs-chip${there ? "" : " missing"}` },
        this.keyOf(run, look?.colour ?? 0, look?.dash, there || isExample(run) ? "" : ` ${t("runs.missing")}`),
        html(
          "button",
          {
            type: "button",
            class: "small",
            id: `runs-remove-${run.key}`,
            "aria-label": t("runs.remove", { run: run.label }),
            onclick: () => this.remove(run.key),
          },
          "×",
        ),
      );
    });
    this.listPart.replaceChildren(...chips);
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
  }

  /** @param {State} state */
  drawStep(state) {
    const held = this.stepPart.contains(document.activeElement) ? document.activeElement?.id : "";
    const { at } = state;
    const shown = state.runs.filter((run) => !run.off && dataOf(run)).slice(0, COLUMNS);
    if (at === null || shown.length === 0) {
      this.stepPart.replaceChildren(html("p", { class: "quiet" }, t("runs.step.none")));
      return;
    }
    const all = shown.map((run) => /** @type {import("./state.js").Stored} */ (dataOf(run)).metrics);
    const keys = keysOf(all, state.search).flatMap(([, own]) => own);
    const move = (/** @type {number} */ by) => () => {
      const steps = [...new Set(all.flatMap(({ steps: own }) => Array.from(own)))].sort((a, b) => a - b);
      const next = steps[steps.findIndex((step) => step >= at) + by];
      if (next !== undefined) this.context.change({ ...this.state, at: next });
    };
    const button = (/** @type {string} */ id, /** @type {() => void} */ press) =>
      html("button", { type: "button", class: "small", id: `runs-step-${id}`, onclick: press }, t(`runs.step.${id}`));
    const rows = keys.slice(0, ROWS).map((key) =>
      html(
        "tr",
        { "data-row": key },
        html("th", { scope: "row" }, key),
        ...all.map((metrics) => {
          const value = valueAt(pointsOf(metrics, key), at);
          return html("td", { title: full(value) }, Number.isNaN(value) ? "—" : short(Number(value.toPrecision(5))));
        }),
      ),
    );
    const choose = choiceField("runs-chosen", {
      label: t("runs.step.rollouts"),
      options: [
        { value: "", text: t("runs.step.noRollouts") },
        ...state.runs.filter((run) => dataOf(run)?.rollouts).map((run) => ({ value: run.key, text: run.label })),
      ],
      set: (key) => this.context.change({ ...this.state, chosen: key }),
    });
    choose.select.value = state.chosen;
    this.stepPart.replaceChildren(
      html(
        "div",
        { class: "runs-step-head" },
        html("h2", {}, t("runs.step", { step: at })),
        button("before", move(-1)),
        button("after", move(1)),
        button("close", () => this.context.change({ ...this.state, at: null, chosen: "" })),
        choose.element,
      ),
      html(
        "div",
        { class: "runs-step-body" },
        html(
          "div",
          { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": t("runs.step.table") },
          html(
            "table",
            { class: "lab-table" },
            html(
              "thead",
              {},
              html(
                "tr",
                {},
                html("th", { scope: "col" }, t("runs.step.key")),
                ...shown.map((run) => html("th", { scope: "col" }, run.label)),
              ),
            ),
            html("tbody", {}, ...rows),
          ),
        ),
        this.rollouts.element,
      ),
    );
    this.rollouts.draw(state.runs.find((run) => run.key === state.chosen) ?? null, at);
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
  }

  /** @param {State} state @returns {import("../pages.js").Export[]} */
  exports(state) {
    const table = () => {
      const rows = state.runs.flatMap((run) => {
        const metrics = run.off ? undefined : dataOf(run)?.metrics;
        if (!metrics) return [];
        const keys = keysOf([metrics], state.search).flatMap(([, own]) => own);
        return keys.flatMap((key) => {
          const points = pointsOf(metrics, key);
          return points ? Array.from(points.steps, (step, i) => [run.label, key, step, points.values[i]]) : [];
        });
      });
      return csv(["run", "key", "step", "value"], rows);
    };
    return [{ id: "runs-csv", label: t("runs.export.csv"), how: "save", make: table, file: "runs.csv" }];
  }
}
