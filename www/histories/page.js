// Entropy histories side by side: files in, curves, statistics, collapses, pictures out.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { short } from "../parts/format.js";
import { PlotView, sample } from "../parts/plot.js";
import { RunsFrame } from "../parts/runs-frame.js";
import { slider } from "../parts/slider.js";
import { smoothed, thinned } from "./curve.js";
import { HistoryIntake } from "./intake.js";
import { savePicture } from "./picture.js";
import { initial, isSample, leftOut, MOST_RUNS, moved, pointsOf, read, withLoaded, without, withRun } from "./state.js";
import { collapseStep, RunTable, statisticsCsv } from "./table.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Run} Run */

/** @type {import("../pages.js").Page} */
export const page = {
  texts: ["histories"],
  styles: ["labs", "intake", "histories"],
  initial,
  read,
  mount: (container, context) => new HistoriesView(container, context),
};

/** Points drawn of all curves together; more cannot be seen. */
const DRAWN = 24_000;

class HistoriesView extends RunsFrame {
  /**
   * @param {HTMLElement} container
   * @param {import("../pages.js").Context} context
   */
  constructor(container, context) {
    super(container, context, { id: "histories", first: "histories-choose", withLoaded, without, withRun });
    const part = (/** @type {string} */ id, /** @type {string} */ kind, more = {}) =>
      html("section", { class: kind, id: `histories-${id}`, ...more });
    this.lead = part("lead", "lab-lead");
    this.intakePart = part("intake", "file-intake");
    this.controls = part("controls", "lab-fields");
    this.tools = html("div", { class: "histories-tools", role: "toolbar" });
    this.plotPart = part("plot", "lab-view");
    this.legend = html("div", { class: "legend", id: "histories-legend" });
    this.tablePart = part("table", "lab-scroll", { tabindex: 0, role: "region" });
    this.note = html("p", { class: "lab-note", id: "histories-note" });
    container.append(
      html(
        "div",
        { class: "lab" },
        this.lead,
        this.intakePart,
        this.controls,
        this.plotPart,
        this.tablePart,
        this.note,
      ),
    );
    this.plotPart.append(this.tools);
    this.plot = new PlotView(this.plotPart);
    this.plotPart.append(this.legend);
    this.intake = new HistoryIntake(this.intakePart, container, {
      add: (loaded) => this.add(loaded),
      room: (files) => Math.min(files, MOST_RUNS - this.state.runs.filter((run) => !isSample(run)).length),
      samples: () => this.context.change({ ...this.state, runs: initial().runs, zoom: null }),
    });
    this.table = new RunTable(this.tablePart, context.library, {
      rename: (key, label) => this.context.change(withRun(this.state, key, { label })),
      recolour: (key) =>
        this.context.change(
          withRun(this.state, key, { colour: ((this.state.runs.find((run) => run.key === key)?.colour ?? 0) + 1) % 8 }),
        ),
      move: (key, by) => moved(this.state, key, by) !== this.state && this.context.change(moved(this.state, key, by)),
      remove: (key) => this.remove(key),
    });
    /** @type {Map<string, Float64Array>} */
    this.smooth = new Map();
  }

  /** @override @returns {State} */
  get state() {
    return this.context.state();
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    if (anew) this.build(state);
    this.drawControls(state);
    this.drawPlot(state);
    this.drawLegend(state);
    this.table.draw(state, anew);
    const samples = state.runs.some(isSample) ? t("histories.note.sample") : "";
    this.note.textContent = [samples, leftOut(state) ? t("histories.note.link") : ""].filter(Boolean).join(" ");
    if (anew) this.addPending();
  }

  /** @param {State} state */
  build(state) {
    this.lead.replaceChildren(html("p", {}, t("histories.lead")), html("p", { class: "quiet" }, t("histories.format")));
    this.intake.build();
    this.share = slider("histories-share", t("histories.share"), [1, 99, 1], (value, continued) =>
      this.context.change({ ...this.state, share: value / 100 }, continued),
    );
    const marked = html("input", {
      type: "checkbox",
      id: "histories-marked",
      onchange: () => this.context.change({ ...this.state, marked: marked.checked }),
    });
    this.marked = marked;
    this.controls.replaceChildren(
      ...this.smoothFields(),
      html("div", { class: "lab-check" }, marked, html("label", { for: "histories-marked" }, t("histories.mark"))),
      this.share.element,
    );
    this.controls.setAttribute("aria-label", t("histories.controls"));
    this.tablePart.setAttribute("aria-label", t("histories.table.caption"));
    const tool = (/** @type {string} */ id, /** @type {() => void} */ press) =>
      html("button", { type: "button", id: `histories-${id}`, onclick: press }, t(`histories.tool.${id}`));
    this.tools.setAttribute("aria-label", t("histories.tools"));
    this.tools.replaceChildren(
      html("span", { class: "group" }, ...this.zoomTools()),
      html(
        "span",
        { class: "group" },
        tool("png", () => this.save("png")),
        tool("svg", () => this.save("svg")),
      ),
    );
    this.drawControls(state);
  }

  /** @param {State} state */
  drawControls({ smooth, share, marked }) {
    if (!this.share || !this.marked) return;
    this.showSmooth(smooth);
    this.share.element.hidden = !marked;
    this.share.show(Math.round(share * 100), `${short(share * 100)} %`);
    this.marked.checked = marked;
  }

  /** @override @returns {[number, number]} */
  get domain() {
    const ends = this.drawn(this.state).map(({ points: { steps } }) => [steps[0], steps[steps.length - 1]]);
    const [low, high] = [Math.min(...ends.map(([first]) => first)), Math.max(...ends.map(([, last]) => last))];
    return ends.length === 0 ? [0, 1] : low === high ? [low - 0.5, high + 0.5] : [low, high];
  }

  /** @param {State} state */
  drawn({ runs }) {
    return runs.flatMap((run) => {
      const points = pointsOf(run);
      return points && !run.off ? [{ run, points }] : [];
    });
  }

  /** @param {State} state */
  drawPlot(state) {
    const drawn = this.drawn(state);
    const curves = drawn.length * (state.smooth.kind === "none" ? 1 : 2);
    const most = Math.max(120, Math.min(1600, Math.floor(DRAWN / Math.max(1, curves))));
    /** @type {Map<string, Float64Array>} */
    const kept = new Map();
    const line = (
      /** @type {Run} */ run,
      /** @type {Float64Array} */ steps,
      /** @type {Float64Array} */ values,
      quiet = false,
    ) => ({
      id: `${quiet ? "raw-" : ""}${run.key}`,
      name: run.label,
      colour: run.colour,
      quiet,
      ...(quiet ? { dash: 0 } : {}),
      kind: /** @type {"points" | "line"} */ (steps.length === 1 ? "points" : "line"),
      ...thinned(steps, values, state.zoom, most),
    });
    const raw =
      state.smooth.kind === "none"
        ? []
        : drawn.map(({ run, points }) => line(run, points.steps, points.entropies, true));
    const main = drawn.map(({ run, points }) => {
      const key = JSON.stringify([run.data, state.smooth]);
      const values = kept.get(key) ?? this.smooth.get(key) ?? smoothed(points.entropies, state.smooth);
      kept.set(key, values);
      return line(run, points.steps, values);
    });
    this.smooth = kept;
    const collapses = state.marked
      ? drawn.flatMap(({ run }) => {
          const step = collapseStep(state, run);
          return step === null ? [] : [{ x: step, label: run.label }];
        })
      : [];
    this.plot.draw({
      label: t("histories.plot", { count: drawn.length }),
      x: { label: t("histories.axis.step"), domain: this.domain },
      y: { label: t("histories.axis.entropy") },
      series: [...raw, ...main],
      // the words of many marks would cover the curves; the table has them all
      marks: collapses.map(({ x, label }) => ({
        x,
        text:
          collapses.length <= 6
            ? t("histories.mark.collapse", { label: label.length > 28 ? `${label.slice(0, 27)}…` : label, step: x })
            : "",
      })),
      zoom: state.zoom,
      setZoom: (zoom) => this.setZoom(zoom),
      legend: false,
    });
  }

  /** @param {State} state */
  drawLegend(state) {
    const focus = document.activeElement?.id ?? "";
    this.legend.replaceChildren(...state.runs.filter((run) => pointsOf(run)).map((run) => this.keyOf(run, run.colour)));
    if (focus.startsWith("histories-key-")) document.getElementById(focus)?.focus();
  }

  /** @param {"png" | "svg"} kind */
  save(kind) {
    const { state } = this;
    const legend = this.drawn(state).map(({ run }) => {
      const step = state.marked ? collapseStep(state, run) : null;
      return {
        sample: sample(run.colour),
        text:
          step === null
            ? run.label
            : t("histories.legend.collapse", { label: run.label, share: short(state.share * 100), step }),
      };
    });
    return savePicture(/** @type {SVGSVGElement} */ (this.plot.picture), legend, kind, "policy_entropy");
  }

  /** @param {State} state @returns {import("../pages.js").Export[]} */
  exports(state) {
    return [
      {
        id: "histories-statistics",
        label: t("histories.export.statistics"),
        how: "save",
        make: () => statisticsCsv(this.context.library, state),
        file: "policy_entropy.csv",
      },
    ];
  }
}
