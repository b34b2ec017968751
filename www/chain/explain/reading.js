// What is shown beside the grid: why the focused cell holds its number, and its row as a chart.

import { causesText } from "../compare/view.js";
import { otherwise } from "../compare/differences.js";
import { Explanation } from "./explain.js";
import { rowByKey } from "../rows.js";
import { drawChart } from "../../parts/bars.js";
import { html } from "../../parts/dom.js";
import { full, short } from "../../parts/format.js";
import { Later } from "../../parts/later.js";
import { t } from "../../i18n/index.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {import("../edit/edits.js").Place} Place */
/** @typedef {import("../compare/differences.js").Difference} Difference */

export class Reading {
  /**
   * @param {HTMLElement} explain
   * @param {HTMLElement} chart
   * @param {import("../../engine.js").Library} library
   * @param {(id: string) => void} follow
   */
  constructor(explain, chart, library, follow) {
    this.chart = chart;
    this.later = new Later(chart);
    /** what the chart shows, to be drawn again in another width */
    this.drawn = () => {};
    let before = 0;
    new ResizeObserver(
      ([
        {
          contentRect: { width },
        },
      ]) => {
        if (width === 0 || width === before) return;
        before = width;
        this.later.run(() => this.drawn());
      },
    ).observe(chart);
    this.library = library;
    this.explanation = new Explanation(explain, library, follow);
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {Place} place
   * @param {Difference[]} differences
   */
  draw(state, result, place, differences) {
    if (!state.sequences[place.sequence]) return;
    const other = otherwise(this.library, state);
    this.explanation.draw(state, result, place, [elsewhere(state, result, other, place, differences)]);
    const { row: key, sequence: s, index } = place;
    const row = rowByKey.get(key);
    const plain = !row || key === "mask";
    this.chart.hidden = plain;
    if (plain) {
      this.later.stop();
      return;
    }
    const { tokens, roles } = state.sequences[s];
    const whole = row.align === "sequence";
    const pick = (/** @type {Result | null} */ from) =>
      whole ? from?.rows[key]?.map((values) => values[0]) : from?.rows[key]?.[s];
    // the chart may be drawn a moment after the numbers
    this.drawn = () =>
      drawChart(this.chart, {
        title: t(whole ? "chart.labelSequences" : "chart.label", { row: t(`row.${key}`) }),
        name: t(`row.${key}`),
        align: row.align === "state" ? "state" : "action",
        values: pick(result),
        chosen: whole ? s : index,
        tokens: whole ? state.sequences.map((_, at) => String(at + 1)) : tokens,
        mask: whole ? state.sequences.map(() => true) : roles.map((role) => role === "policy"),
        ghost: row.kind(state) === "result" ? pick(other) : undefined,
        ghostName: state.against ? t(`profile.${state.against}`) : "",
      });
    this.later.run(() => this.drawn());
  }
}

/**
 * What the other framework has in this cell, and why.
 * @param {State} state
 * @param {Result} result
 * @param {Result | null} other
 * @param {Place} place
 * @param {Difference[]} differences
 */
function elsewhere(state, result, other, { row, sequence, index }, differences) {
  const [mine, theirs] = [result.rows[row]?.[sequence]?.[index], other?.rows[row]?.[sequence]?.[index]];
  const difference = differences.find((one) => one.row === row);
  if (mine === undefined || theirs === undefined || Object.is(mine, theirs) || !difference || !state.against)
    return null;
  const said = t("grid.otherwise", {
    profile: t(`profile.${state.against}`),
    value: short(theirs) === short(mine) ? full(theirs) : short(theirs),
  });
  return html("p", { class: "elsewhere" }, `≠ ${said} · ${causesText(difference.causes)}`);
}
