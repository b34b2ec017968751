// The batch as a table, its numbers as text, and what one weight says against another.

import { t } from "../../i18n/index.js";
import { short } from "../../parts/format.js";
import { math, name } from "../../parts/math.js";
import { csv } from "../csv.js";
import { numberCell } from "../cells.js";
import { compute, split } from "./compute.js";
import { modes, width } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * The weight of the tokens of an answer: the same for all that are kept.
 * @param {State} state
 * @param {Float64Array} weights
 * @param {number} answer
 */
export const weightOf = (state, weights, answer) =>
  weights[answer * width(state) + state.answers[answer].kept.indexOf(true)];

/**
 * A token of the longest answer against one of the shortest. The quotient of the two weights is the page's own.
 * @param {State} state
 * @param {import("./compute.js").Whole} whole
 * @param {Float64Array} weights
 */
export function bias(state, { lengths }, weights) {
  const used = lengths.map((_, i) => i).filter((i) => lengths[i] > 0);
  if (used.length === 0) return t("aggregate.bias.nothing");
  const long = used.reduce((a, b) => (lengths[b] > lengths[a] ? b : a));
  const brief = used.reduce((a, b) => (lengths[b] < lengths[a] ? b : a));
  if (lengths[long] === lengths[brief]) return t("aggregate.bias.same");
  const ratio = weightOf(state, weights, long) / weightOf(state, weights, brief);
  const words = { long: lengths[long], short: lengths[brief], ratio: short(ratio) };
  return Math.abs(ratio - 1) < 1e-12 ? t("aggregate.bias.none", words) : t("aggregate.bias.some", words);
}

/** @param {State} state @returns {import("../../parts/columns.js").Table} */
export function tableOf(state) {
  const rows = state.answers.flatMap(({ losses, kept }, i) => {
    const answer = t("tables.answer", { number: i + 1 });
    const say = (/** @type {string} */ row, /** @type {number} */ slot, /** @type {string} */ value) =>
      t("aggregate.cell", { row, slot: slot + 1, value });
    const masks = kept.map((keep, slot) => ({
      text: keep ? "●" : "○",
      label: () => say(`${answer}, ${t("aggregate.kept")}`, slot, t(keep ? "aggregate.yes" : "aggregate.no")),
      kind: /** @type {const} */ ("mask"),
      tone: /** @type {const} */ (""),
      strength: 0,
      dropped: !keep,
      faint: false,
      editText: "",
    }));
    const numbers = losses.map((loss, slot) =>
      numberCell(loss, {
        kind: "input",
        text: short(loss),
        label: say(`${answer}, ${t("aggregate.loss")}`, slot, short(loss)),
        dropped: !kept[slot],
      }),
    );
    return [
      { key: `kept${i}`, name: `${answer} · ${t("aggregate.kept")}`, symbol: null, first: i > 0, cells: masks },
      { key: `loss${i}`, name: t("aggregate.loss"), symbol: math("inline", name("ℓ")), first: false, cells: numbers },
    ];
  });
  const heads = Array.from({ length: width(state) }, (_, slot) => String(slot + 1));
  return { label: t("aggregate.table"), corner: t("aggregate.slot"), heads, rows };
}

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 */
export function asCsv(library, state) {
  const whole = compute(library, state);
  const parts = split(library, state, whole.totals);
  const weight = (/** @type {string} */ mode, /** @type {number} */ k) => {
    const outcome = whole.modes[mode];
    return "weights" in outcome ? outcome.weights[k] : NaN;
  };
  const lines = state.answers.flatMap(({ losses, kept }, i) =>
    losses.map((loss, slot) => {
      const k = i * width(state) + slot;
      return [
        i + 1,
        slot + 1,
        kept[slot] ? 1 : 0,
        loss,
        ...modes.map((mode) => weight(mode, k)),
        parts.naiveWeights?.[k] ?? NaN,
        parts.rightWeights?.[k] ?? NaN,
      ];
    }),
  );
  const totals = modes.map((mode) => {
    const outcome = whole.modes[mode];
    return "loss" in outcome ? outcome.loss : NaN;
  });
  const head = [
    "answer",
    "slot",
    "kept",
    "loss",
    ...modes.map((mode) => `weight ${mode}`),
    `${state.mode} split naive`,
    `${state.mode} split global`,
  ];
  return csv(head, [...lines, ["total", "", "", "", ...totals, parts.naive, parts.right]]);
}
