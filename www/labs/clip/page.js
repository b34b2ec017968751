// The clip laboratory: loss and gradient of one token over its ratio,
// for every rule of how a token counts when its ratio leaves 1.

import { html } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { PlotView } from "../../parts/plot.js";
import { extent } from "../../parts/scale.js";
import { t } from "../../i18n/index.js";
import { CurveCache, domainOf, gradients, lossAt, valuesOf } from "./compute.js";
import { LossFields, mainFields } from "./controls.js";
import { explanation } from "./explain.js";
import { lookOf, lossOf } from "./losses.js";
import { profileTable } from "./profiles.js";
import { initial, LIMITS, presetOf, reach, read } from "./state.js";
import { lossTable } from "./table.js";
import { csv } from "../csv.js";
import { redraw } from "../redraw.js";

/** @typedef {import("./state.js").State} State */

/** @type {import("../../pages.js").Page} */
export const page = {
  texts: ["clip"],
  styles: ["labs"],
  initial,
  read,
  mount: (container, context) => new ClipView(container, context),
};

class ClipView {
  /**
   * @param {HTMLElement} container
   * @param {import("../../pages.js").Context} context
   */
  constructor(container, context) {
    this.library = context.library;
    this.curves = new CurveCache(context.library);
    const state = () => /** @type {State} */ (context.state());
    this.access = { state, change: (/** @type {State} */ next, continued = false) => context.change(next, continued) };
    const part = (/** @type {string} */ name) => html("section", { class: name });
    this.lead = part("lab-lead");
    this.fields = part("lab-fields");
    this.switches = html("section", { class: "clip-switches" });
    this.parameters = html("section", { class: "lab-fields clip-parameters" });
    this.why = html("section", { class: "lab-why clip-why" });
    this.status = html("p", { class: "unseen", role: "status" });
    this.table = part("lab-part");
    this.profiles = part("lab-part");
    this.lossWords = html("h2");
    this.gradientWords = html("h2");
    const [lossPlot, gradientPlot] = [
      html("div", { class: "lab-part" }, this.lossWords),
      html("div", { class: "lab-part" }, this.gradientWords),
    ];
    this.hint = html("p", { class: "lab-note" });
    container.append(
      html(
        "div",
        { class: "lab" },
        this.lead,
        this.fields,
        this.switches,
        this.parameters,
        html(
          "div",
          { class: "lab-bench" },
          html("div", { class: "lab-view" }, lossPlot, gradientPlot, this.hint),
          html("div", { class: "lab-view" }, this.table, this.why),
        ),
        this.status,
        this.profiles,
      ),
    );
    this.lossView = new PlotView(lossPlot);
    this.gradientView = new PlotView(gradientPlot);
    this.lossFields = new LossFields(this.switches, this.parameters, this.access);
    /** @type {{ show: (state: State) => void } | null} */
    this.main = null;
  }

  /** Every loss that is on, at the token's ratio. @param {State} state */
  lines(state) {
    return state.on.map((id) => ({
      id,
      curve: this.curves.of(state, id),
      zeros: this.curves.of(state, id).zeros,
      loss: lossAt(this.library, state, id, state.ratio),
      gradient: gradients(this.library, state, id, [state.ratio])[0],
    }));
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    if (anew) this.drawFrame();
    this.main?.show(state);
    this.lossFields.draw(state, anew);
    this.lead.lastElementChild?.replaceChildren(t(`clip.note.${presetOf(state) || "own"}`));
    const lines = this.lines(state);
    this.drawPlots(state, lines);
    redraw(
      this.table,
      html("h2", {}, t("clip.table", { ratio: short(state.ratio) })),
      lossTable(lines, state.chosen, (id) => this.choose(id)),
    );
    const chosen = lines.find(({ id }) => id === state.chosen) ?? lines[0];
    redraw(this.why, ...explanation(this.library, state, chosen));
    this.status.textContent = t("clip.status", {
      name: t(`clip.loss.${chosen.id}`),
      ratio: short(state.ratio),
      loss: short(chosen.loss),
      gradient: short(chosen.gradient),
    });
  }

  /** Draws what changes only with the language. */
  drawFrame() {
    this.main = mainFields(this.access);
    this.fields.replaceChildren(.../** @type {any} */ (this.main).elements);
    this.lead.replaceChildren(html("p", {}, t("clip.lead")), html("p", { class: "quiet", "aria-live": "polite" }));
    this.lossWords.textContent = t("clip.plot.loss");
    this.gradientWords.textContent = t("clip.plot.gradient");
    this.hint.textContent = t("clip.hint");
    this.profiles.replaceChildren(
      html("h2", {}, t("clip.profiles")),
      profileTable(this.library, this.access),
      html("p", { class: "lab-note" }, t("clip.profiles.note")),
    );
  }

  /**
   * @param {State} state
   * @param {ReturnType<ClipView["lines"]>} lines
   */
  drawPlots(state, lines) {
    const x = { label: t("clip.axis.ratio"), domain: domainOf(state), log: state.scale === "log" };
    const marks = marksOf(state, lines.find(({ id }) => id === state.chosen)?.zeros);
    const movable = (/** @type {"loss" | "gradient"} */ which) => ({
      x: state.ratio,
      name: "ρ",
      values: Object.fromEntries(lines.map((line) => [line.id, line[which]])),
      set: (/** @type {number} */ ratio, /** @type {boolean} */ continued) => this.move(ratio, continued),
    });
    const series = (/** @type {"losses" | "gradients"} */ which) =>
      lines.map(({ id, curve }) => ({
        id,
        name: t(`clip.loss.${id}`),
        x: curve.ratios,
        y: curve[which],
        ...lookOf(id),
      }));
    const heights = (/** @type {"losses" | "gradients"} */ which) => ({
      domain: heightsOf(
        state,
        lines.map(({ curve }) => ({ x: curve.ratios, y: curve[which] })),
      ),
    });
    this.lossView.draw({
      label: t("clip.plot.loss"),
      x,
      y: { label: t("clip.axis.loss"), ...heights("losses") },
      marks,
      series: series("losses"),
      movable: movable("loss"),
      legend: false,
    });
    this.gradientView.draw({
      label: t("clip.plot.gradient"),
      x,
      y: { label: t("clip.axis.gradient"), ...heights("gradients") },
      marks,
      series: series("gradients"),
      movable: movable("gradient"),
      legend: false,
    });
  }

  /**
   * @param {number} ratio as a hand puts it: three digits after the point, and possible
   * @param {boolean} continued
   */
  move(ratio, continued) {
    const state = this.access.state();
    const next = Math.max(
      LIMITS.ratio,
      Math.min(Number(ratio.toFixed(3)), Number((0.999 * reach(state.q)).toPrecision(6))),
    );
    if (next !== state.ratio) this.access.change({ ...state, ratio: next }, continued);
  }

  /** @param {string} id */
  choose(id) {
    if (id !== this.access.state().chosen) this.access.change({ ...this.access.state(), chosen: id });
  }

  /**
   * @param {State} state
   * @returns {import("../../pages.js").Export[]}
   */
  exports(state) {
    const lines = this.lines(state);
    const table = () =>
      csv(
        ["loss", "ratio", "advantage", "value", "gradient"],
        lines.map(({ id, loss, gradient }) => [id, state.ratio, state.advantage, loss, gradient]),
      );
    const curves = () =>
      csv(
        ["loss", "ratio", "value", "gradient"],
        lines.flatMap(({ id, curve }) =>
          Array.from(curve.ratios, (ratio, i) => [id, ratio, curve.losses[i], curve.gradients[i]]),
        ),
      );
    return [
      { id: "csv", label: t("clip.export.curves"), how: "save", make: curves, file: "clip-curves.csv" },
      { id: "csv-table", label: t("clip.export.table"), how: "save", make: table, file: "clip-token.csv" },
    ];
  }
}

/**
 * From the lowest to the highest value, with a little room; values that diverge near ρ = 0 do not set the scale.
 * @param {State} state
 * @param {{ x: Float64Array, y: Float64Array }[]} curves
 * @returns {[number, number]}
 */
function heightsOf(state, curves) {
  const from = state.scale === "log" ? 0 : 0.05 * state.most;
  const [all, most] = [0, from].map((start) =>
    extent(curves.flatMap(({ x, y }) => Array.from(y).filter((_, i) => x[i] >= start))),
  );
  const [low, high] = all[1] - all[0] > 1.4 * (most[1] - most[0]) ? most : all;
  return [low - (high - low) * 0.06, high + (high - low) * 0.06];
}

/**
 * The bounds of the loss that is explained, and where a probability ends.
 * @param {State} state
 * @param {import("./compute.js").Zeros} [zeros]
 */
function marksOf(state, zeros) {
  const { marks, zeroMarks } = lossOf(state.chosen);
  const bounds = marks?.(valuesOf(state, state.chosen), state.advantage < 0) ?? [];
  const edges = zeroMarks ? [...(zeros?.spans.flat() ?? []), ...(zeros?.points ?? [])] : [];
  return [
    ...bounds,
    ...edges.filter((edge) => edge > 0 && Number.isFinite(edge)).map((x) => ({ x, text: t("clip.mark.zero") })),
    { x: reach(state.q), text: "π = 1" },
  ];
}
