// Why a cell holds its number: formula, numbers, meaning, who computes it this way,
// and what happens where a group says nothing.

import { t } from "../../i18n/index.js";
import { refusalText } from "../../parts/refusals.js";
import { html } from "../../parts/dom.js";
import { full, short } from "../../parts/format.js";
import { estimatorById } from "./estimators.js";
import { alone, formula, withNumbers } from "./formulas.js";
import { seven, verdict } from "./table.js";
import { placeOf, samplesOf } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */
/** @typedef {import("./estimators.js").Estimator} Estimator */

/** The estimators that divide by the deviation of the group. */
const DIVIDED = ["grpo-verl", "grpo-trl", "grpo-openrlhf", "areal"];

export class Reading {
  /** @param {HTMLElement} container */
  constructor(container) {
    this.container = container;
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {import("../../parts/grid.js").Place} place
   */
  draw(state, result, place) {
    const estimator = estimatorById.get(place.row);
    const count = samplesOf(state).length;
    if (!estimator) return this.input(state, place);
    if (place.index >= count) return this.sum(state, result, estimator, place.index - count);
    const value = result.advantages[estimator.id]?.[place.index];
    const [p, i] = placeOf(state, place.index);
    const single = state.prompts[p].samples.length === 1 && estimator.single !== "own";
    const shown = value === undefined ? "—" : seven(value);
    const numbers =
      value === undefined
        ? null
        : single
          ? alone(shown)
          : withNumbers(estimator.id, caseOf(state, result, estimator, place.index), shown);
    const refused = result.refused[estimator.id];
    this.container.replaceChildren(
      ...[
        html("h2", {}, t("groups.why", { value: shown, name: t(`groups.name.${estimator.id}`) })),
        html("p", { class: "lab-note" }, t("groups.where", { prompt: p + 1, sample: i + 1, peers: estimator.peers })),
        html(
          "div",
          { class: "lab-formula", role: "region", tabindex: 0, "aria-label": t("groups.formula") },
          html("div", {}, formula(estimator.id)),
          numbers && html("div", {}, numbers),
        ),
        value === undefined
          ? html("p", { class: "refusal" }, refusalText(refused))
          : html(
              "p",
              { class: "digits" },
              html("span", { class: "quiet" }, `${t("groups.digits")} `),
              html("output", {}, full(value)),
            ),
        html("p", {}, t(`groups.meaning.${estimator.id}`)),
        ...notes(state, result, estimator, p).map((text) => html("p", { class: "lab-note" }, text)),
      ],
    );
  }

  /**
   * @param {State} state
   * @param {import("../../parts/grid.js").Place} place
   */
  input(state, { row, index }) {
    const [p, i] = placeOf(state, index);
    this.container.replaceChildren(
      html("h2", {}, t(`groups.row.${row}`)),
      html("p", { class: "lab-note" }, t("groups.place", { prompt: p + 1, sample: i + 1 })),
      html("p", {}, t(`groups.input.${row}`)),
    );
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {Estimator} estimator
   * @param {number} p
   */
  sum(state, result, estimator, p) {
    const sum = result.sums[estimator.id]?.[p];
    const says = verdict(estimator, state, result, p);
    this.container.replaceChildren(
      html(
        "h2",
        {},
        t("groups.sum", {
          prompt: p + 1,
          value: sum === undefined ? "—" : short(sum),
          name: t(`groups.name.${estimator.id}`),
        }),
      ),
      html("p", {}, t(`groups.rule.${estimator.sum}`)),
      html(
        "p",
        { class: says === "off" ? "agg-bad" : "lab-note" },
        says === "off"
          ? t(state.prompts[p].samples.length === 1 ? "groups.off.single" : "groups.off")
          : t(says === "zero" ? "groups.zero" : "groups.free"),
      ),
    );
  }
}

/**
 * The numbers a formula needs. Differences and quotients made here are for display only;
 * the advantage is the library's.
 * @param {State} state
 * @param {Result} result
 * @param {Estimator} estimator
 * @param {number} index
 * @returns {import("./formulas.js").Case}
 */
function caseOf(state, result, estimator, index) {
  const [p, i] = placeOf(state, index);
  const from = index - i;
  const own = Array.from(result.scores.slice(from, from + state.prompts[p].samples.length));
  const score = own[i];
  const ranked = [...own].sort((a, b) => b - a);
  const nonzero = Array.from(result.scores).filter((each) => each !== 0).length;
  const sample = samplesOf(state)[index];
  const whitening = result.whitening[estimator.id];
  const advantage = result.advantages[estimator.id][index];
  return {
    score,
    group: result.groups[p],
    rest: result.rest[index],
    batch: result.batch,
    epsilon: estimator.epsilon ?? 0,
    alpha: result.scores.length / Math.max(nonzero, 1),
    second: ranked[1],
    best: own.indexOf(ranked[0]) === i,
    greedy: state.prompts[p].greedy,
    sources: state.second
      ? [
          { weight: 1, score: sample.score, group: result.sources[0][p] },
          { weight: state.weight, score: sample.format, group: result.sources[1][p] },
        ]
      : [{ weight: 1, score, group: result.groups[p] }],
    whitening: whitening && { mean: whitening.mean, variance: whitening.variance, value: whitening.values[index] },
    baseline: score - advantage,
  };
}

/**
 * @param {State} state
 * @param {Result} result
 * @param {Estimator} estimator
 * @param {number} p
 */
function notes(state, result, estimator, p) {
  const { sample, mean } = result.groups[p];
  const { epsilon = 0 } = estimator;
  const size = state.prompts[p].samples.length;
  if (size === 1) return [t("groups.single"), t(`groups.single.${estimator.single}`)];
  const words = {
    mean: short(mean),
    sample: short(sample),
    population: short(result.groups[p].population),
    count: size,
    epsilon: short(epsilon),
  };
  const found = [t("groups.statistics", words)];
  if (sample === 0) found.push(t("groups.equal"));
  // ε is meant to be a safeguard; where it is as large as the spread, it decides the advantage
  else if (DIVIDED.includes(estimator.id) && epsilon / sample > 1e-3)
    found.push(
      t("groups.tied", { ...words, share: short(Number(((100 * epsilon) / (sample + epsilon)).toPrecision(3))) }),
    );
  const kind = result.whitening[estimator.id];
  if (kind) found.push(t("groups.whitening", { mean: short(kind.mean), variance: short(kind.variance) }));
  return found;
}
