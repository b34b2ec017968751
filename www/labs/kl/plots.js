// The plots of the laboratory: value and slope over the log-ratio, histograms of samples;
// and the statistics beside them.

import { html } from "../../parts/dom.js";
import { full, short } from "../../parts/format.js";
import { PlotView } from "../../parts/plot.js";
import { t } from "../../i18n/index.js";
import { curvesOf } from "./compute.js";
import { rowOf } from "./estimates.js";
import { sample, sampled } from "./sample.js";
import { action, four, fourSigned, rowName, tone } from "./words.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */

const drawn = ["loss.k1", "loss.abs", "loss.k2", "loss.k3", "loss.ratio-k3"].map(rowOf);

export class Curves {
  /** @param {HTMLElement} container */
  constructor(container) {
    this.values = new PlotView(container.appendChild(html("div")));
    this.slopes = new PlotView(container.appendChild(html("div")));
  }

  /**
   * @param {import("../../engine.js").Library} library
   * @param {State} state
   * @param {Result} result
   */
  draw(library, state, result) {
    const { d, curves, reach } = curvesOf(library, state, drawn, result.d);
    const marks = Array.from(result.d, (x, i) => ({ x, text: action(i) }));
    const x = { label: t("kl.axis.d"), domain: /** @type {[number, number]} */ ([-reach, reach]) };
    // fixed heights: e^−d would flatten all the others
    this.values.draw({
      label: t("kl.curves.values"),
      x,
      marks,
      y: { label: t("kl.axis.value"), domain: [-reach, 2 * reach] },
      series: curves.map(({ row, values }) => ({ id: row.id, name: rowName(row), x: d, y: values })),
    });
    this.slopes.draw({
      label: t("kl.curves.slopes"),
      x,
      marks,
      y: { label: t("kl.axis.slope"), domain: [-1.25 * reach, 1.25 * reach] },
      series: curves.map(({ row, slopes }) => ({
        id: row.id,
        name: row.id === "loss.k2" ? t("kl.curve.k2slope") : rowName(row),
        x: d,
        y: slopes,
      })),
    });
  }
}

export class Samples {
  /**
   * @param {HTMLElement} pictures
   * @param {HTMLElement} statistics
   */
  constructor(pictures, statistics) {
    this.statistics = statistics;
    this.views = sampled.map(() => new PlotView(pictures.appendChild(html("div")), { compact: true }));
    this.key = "";
    /** @type {ReturnType<typeof sample> | null} */
    this.last = null;
  }

  /**
   * The samples of a state; a hundred thousand are not drawn again for a choice that does not change them.
   * @param {import("../../engine.js").Library} library
   * @param {State} state
   * @param {Result} result
   */
  of(library, state, result) {
    const key = JSON.stringify([
      state.policy,
      state.reference,
      state.bounds,
      state.samples,
      state.seed,
      state.together,
    ]);
    if (this.last === null || key !== this.key) this.last = sample(library, state, result);
    this.key = key;
    return this.last;
  }

  /**
   * @param {import("../../engine.js").Library} library
   * @param {State} state
   * @param {Result} result
   */
  draw(library, state, result) {
    const { estimates, counts } = this.of(library, state, result);
    for (const [i, { row, mean, middles, shares }] of estimates.entries()) {
      const half = (middles[1] - middles[0]) / 2;
      this.views[i].draw({
        label: t("kl.samples.picture", { name: rowName(row) }),
        x: { label: rowName(row), domain: [middles[0] - half, middles[middles.length - 1] + half] },
        y: { label: t("kl.samples.share"), domain: [0, 1.2 * Math.max(...shares)] },
        series: [{ id: row.id, name: rowName(row), kind: "bars", x: middles, y: shares, colour: i }],
        marks: [
          { x: result.kl, text: t("kl.samples.true") },
          { x: mean, text: t("kl.samples.mean") },
        ],
      });
    }
    const head = [
      t("kl.col.estimate"),
      t("kl.samples.col.mean"),
      t("kl.samples.col.miss"),
      t("kl.samples.col.variance"),
      t("kl.samples.col.negative"),
    ];
    const lines = estimates.map(({ row, mean, error, variance, negative }) => {
      // how far the sampled mean is off: a difference of two of the library's numbers
      const miss = mean - result.kl;
      return html(
        "tr",
        { "data-sampled": row.id },
        html("th", { scope: "row" }, rowName(row)),
        html("td", { title: full(mean), "data-column": "mean" }, `${four(mean)} ± ${four(error)}`),
        html("td", { title: full(miss), class: tone(miss) }, fourSigned(miss)),
        html("td", { title: full(variance), "data-column": "variance" }, four(variance)),
        html("td", {}, `${short(Number((negative * 100).toPrecision(4)))}%`),
      );
    });
    this.statistics.replaceChildren(
      html(
        "div",
        { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": t("kl.samples.label") },
        html(
          "table",
          { class: "lab-table" },
          html(
            "thead",
            {},
            html(
              "tr",
              {},
              ...head.map((text, i) => html("th", { scope: "col", class: i === 0 ? "kl-first" : null }, text)),
            ),
          ),
          html("tbody", {}, ...lines),
        ),
      ),
      html(
        "p",
        { class: "lab-note", "aria-live": "polite" },
        t("kl.samples.drawn", { counts: counts.map((count, i) => `${action(i)} × ${count}`).join(", ") }),
      ),
    );
  }
}
