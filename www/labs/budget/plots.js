// The run in curves, up to the present step.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { PlotView } from "../../parts/plot.js";

/** @typedef {import("./run.js").Step} Step */
/**
 * @typedef {{ id: string, of: (step: Step) => number | null, quiet?: boolean, colour?: number,
 *   points?: boolean }} Curve
 */

/** @type {{ id: string, curves: Curve[], events?: boolean, one?: boolean }[]} */
const PLOTS = [
  {
    id: "budget",
    events: true,
    curves: [
      { id: "used", of: (step) => step.input.whSum, colour: 0 },
      { id: "B", of: (step) => step.budget, colour: 1 },
      { id: "B0", of: (step) => step.b0, colour: 7, quiet: true },
      { id: "collapse", of: (step) => (step.report.collapse ? step.input.whSum : null), colour: 6, points: true },
    ],
  },
  { id: "usage", one: true, events: true, curves: [{ id: "usage", of: (step) => step.report.usageRatio, colour: 0 }] },
  { id: "lambda", events: true, curves: [{ id: "lambda", of: (step) => step.report.lambda, colour: 4 }] },
  { id: "beta", curves: [{ id: "beta", of: (step) => step.beta, colour: 3 }] },
  {
    id: "kl",
    curves: [
      { id: "KL", of: (step) => step.input.kl, colour: 2 },
      { id: "D", of: (step) => step.target, colour: 1 },
      { id: "betaAgain", of: (step) => step.beta, colour: 3, quiet: true },
    ],
  },
  {
    id: "reward",
    curves: [
      { id: "rewardMean", of: (step) => step.input.rewardSumMean, colour: 0 },
      { id: "rewardStd", of: (step) => step.input.rewardStd, colour: 5 },
    ],
  },
];

export class Plots {
  /** @param {HTMLElement} container */
  constructor(container) {
    this.views = PLOTS.map(({ id }) => {
      const heading = html("h2", {});
      const section = html("section", { class: "sim-plot budget-plot", "data-plot": id }, heading);
      container.append(section);
      return { heading, view: new PlotView(section, { compact: true }) };
    });
  }

  /**
   * @param {Step[]} steps
   * @param {number} total
   */
  draw(steps, total) {
    const x = steps.map(({ step }) => step);
    for (const [index, { id, curves, events, one }] of PLOTS.entries()) {
      const { heading, view } = this.views[index];
      heading.textContent = t(`budget.plot.${id}`);
      const series = curves
        .map((curve) => ({
          id: curve.id,
          name: t(`budget.curve.${curve.id}`),
          x,
          y: steps.map((step) => curve.of(step) ?? NaN),
          colour: curve.colour,
          quiet: curve.quiet,
          kind: /** @type {"points" | "line"} */ (curve.points ? "points" : "line"),
        }))
        // a curve without a point would only fill the legend
        .filter(({ y, kind }) => kind === "line" || y.some(Number.isFinite));
      view.draw({
        label: t(`budget.plot.${id}`),
        x: { label: t("budget.axis.step"), domain: [0, total] },
        y: { label: t(`budget.axis.${id}`) },
        series,
        marks: [...(one ? [{ y: 1, text: t("budget.mark.one") }] : []), ...(events ? eventMarks(steps) : [])],
      });
    }
  }
}

/**
 * Where something happened; of collapses that follow each other closely the first.
 * @param {Step[]} steps
 */
function eventMarks(steps) {
  const marks = [];
  let plateaus = 0;
  for (const [index, { step, report }] of steps.entries()) {
    if (report.warmUpFinished) marks.push({ x: step, text: t("budget.mark.warmUp") });
    if (report.plateau) {
      plateaus += 1;
      marks.push({ x: step, text: `m=${plateaus}` });
    }
    if (report.collapse && !steps.slice(Math.max(0, index - 10), index).some((earlier) => earlier.report.collapse))
      marks.push({ x: step, text: t("budget.mark.collapse") });
  }
  return marks;
}
