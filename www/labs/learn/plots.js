// The run in curves, up to the present update, with the run before it in grey.

import { thinned } from "../../histories/curve.js";
import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { PlotView, sample } from "../../parts/plot.js";

/** @typedef {import("./update.js").Metrics} Metrics */
/** @typedef {{ x: number, text: string }} Mark */

/** @type {{ id: string, curves: { key: keyof Metrics, colour: number }[], unit?: boolean, topic: string }[]} */
const PLOTS = [
  {
    id: "reward",
    curves: [
      { key: "reward", colour: 0 },
      { key: "solved", colour: 2 },
    ],
    unit: true,
    topic: "reward",
  },
  { id: "entropy", curves: [{ key: "entropy", colour: 4 }], topic: "entropy" },
  { id: "kl", curves: [{ key: "kl", colour: 3 }], topic: "kl" },
  {
    id: "clipped",
    curves: [
      { key: "clipped", colour: 1 },
      { key: "tied", colour: 5 },
    ],
    unit: true,
    topic: "clip",
  },
];

/**
 * The first curve of a picture is a plain line.
 * @param {{ key: string, colour: number }[]} curves
 * @param {{ key: string, colour: number }} curve
 */
const dashOf = (curves, { key, colour }) => (curves[0].key === key ? 0 : colour);

/** Points drawn of a curve; more cannot be seen. */
const DRAWN = 240;

export class Plots {
  /**
   * @param {HTMLElement} container
   * @param {(topic: string) => void} explain
   */
  constructor(container, explain) {
    this.views = PLOTS.map(({ id, topic }) => {
      const words = html("button", {
        type: "button",
        class: "lab-pick",
        id: `learn-plot-${id}`,
        onclick: () => explain(topic),
      });
      const now = html("span", { class: "learn-now", "data-now": id });
      const section = html("section", { class: "sim-plot learn-plot", "data-plot": id }, html("h2", {}, words, now));
      container.append(section);
      const view = new PlotView(section, { compact: true });
      const key = html("p", { class: "learn-key quiet" });
      section.append(key);
      return { words, now, view, key };
    });
  }

  /** What changes only with the language. */
  build() {
    for (const [index, { id, curves }] of PLOTS.entries()) {
      const { words, key } = this.views[index];
      words.textContent = t(`learn.plot.${id}`);
      key.replaceChildren(
        ...curves.map((curve) =>
          html("span", {}, sample(curve.colour, dashOf(curves, curve)), ` ${t(`learn.curve.${curve.key}`)}`),
        ),
      );
    }
  }

  /**
   * @param {Metrics[]} metrics
   * @param {{ ghost: Metrics[], marks: Mark[], highest: number }} more `highest`: the entropy of a policy that draws
   *   evenly
   */
  draw(metrics, { ghost, marks, highest }) {
    const most = Math.max(50, Math.ceil(Math.max(metrics.length, ghost.length) / 50) * 50);
    const line = (/** @type {Metrics[]} */ list, /** @type {keyof Metrics} */ key) => {
      const steps = new Float64Array(list.length);
      const values = new Float64Array(list.length);
      for (let i = 0; i < list.length; i += 1) {
        steps[i] = i + 1;
        values[i] = list[i][key];
      }
      return thinned(steps, values, null, DRAWN);
    };
    for (const [index, { id, curves, unit }] of PLOTS.entries()) {
      const { now, view } = this.views[index];
      const last = metrics.at(-1);
      now.textContent = last ? String(Number(last[curves[0].key].toPrecision(3))).replace("-", "−") : "";
      view.draw({
        label: t(`learn.plot.${id}`),
        x: { label: t("learn.axis.update"), domain: [0, most] },
        y: {
          label: t(`learn.axis.${id}`),
          ...(unit ? { domain: [0, 1] } : id === "entropy" ? { domain: [0, highest] } : {}),
        },
        series: [
          ...curves.flatMap(({ key, colour }) =>
            ghost.length > 0
              ? [
                  {
                    id: `ghost-${key}`,
                    name: t("learn.curve.ghost", { name: t(`learn.curve.${key}`) }),
                    ...line(ghost, key),
                    colour,
                    dash: colour,
                    quiet: true,
                  },
                ]
              : [],
          ),
          ...curves.map(({ key, colour }) => ({
            id: key,
            name: t(`learn.curve.${key}`),
            ...line(metrics, key),
            colour,
            dash: dashOf(curves, { key, colour }),
          })),
        ],
        marks,
        legend: false,
      });
    }
  }
}
