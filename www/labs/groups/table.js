// The samples as columns, the estimators as rows, and what each group adds up to.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { csv } from "../csv.js";
import { largest, numberCell } from "../cells.js";
import { estimators } from "./estimators.js";
import { placeOf, samplesOf } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */
/** @typedef {import("./estimators.js").Estimator} Estimator */

/**
 * Seven digits: the estimators differ in the seventh, which the table has to show.
 * @param {number} value
 */
export const seven = (value) =>
  Number.isFinite(value) && value !== 0 && Math.abs(value) >= 1e-4
    ? String(Number(value.toPrecision(7))).replace("-", "−")
    : short(value);

/** @param {number} value */
const fourDigits = (value) => short(Number.isFinite(value) && value !== 0 ? Number(value.toPrecision(4)) : value);

/** @type {Record<ReturnType<typeof verdict>, string>} what stands behind a sum */
const MARKS = { zero: " ✓", off: " ✗", free: "" };

/**
 * Whether the advantages of a group add up to 0, up to rounding.
 * @param {number} sum
 * @param {ArrayLike<number>} parts
 */
export const isZero = (sum, parts) => Math.abs(sum) <= 1e-9 * (1 + largest(parts));

/**
 * What a sum says: "zero" or "off" where it must be 0, "free" where it need not be.
 * @param {Estimator} estimator
 * @param {State} state
 * @param {Result} result
 * @param {number} p
 */
export function verdict(estimator, state, result, p) {
  const sum = result.sums[estimator.id]?.[p];
  if (sum === undefined || estimator.sum !== "group") return "free";
  const from = state.prompts.slice(0, p).reduce((all, { samples }) => all + samples.length, 0);
  return isZero(sum, result.advantages[estimator.id].slice(from, from + state.prompts[p].samples.length))
    ? "zero"
    : "off";
}

/** @param {State} state @returns {import("../../parts/columns.js").Span[]} */
export const headingsOf = (state) => [
  ...state.prompts.map(({ samples }, p) => ({ text: t("groups.prompt", { number: p + 1 }), count: samples.length })),
  { text: t("groups.sums"), count: state.prompts.length },
];

/**
 * @param {State} state
 * @param {Result} result
 * @returns {import("../../parts/columns.js").Table}
 */
export function tableOf(state, result) {
  const samples = samplesOf(state);
  const label = (/** @type {string} */ row, /** @type {number} */ i, /** @type {string} */ value) => {
    if (i >= samples.length) return t("groups.cell.sum", { row, prompt: i - samples.length + 1, value });
    const [p, place] = placeOf(state, i);
    return t("groups.cell", { row, prompt: p + 1, sample: place + 1, value });
  };
  /** @type {(keyof import("./state.js").Sample)[]} */
  const keys = state.second ? ["score", "format", "length"] : ["score", "length"];
  const inputs = keys.map((key) => {
    const name = t(`groups.row.${key}`);
    const cells = samples.map((sample, i) => {
      const text = short(sample[key]);
      return numberCell(sample[key], { kind: "input", text, label: label(name, i, text) });
    });
    return { key, name, symbol: null, first: false, cells };
  });
  const total = {
    key: "total",
    name: t("groups.row.total"),
    symbol: null,
    first: false,
    cells: Array.from(result.scores, (value, i) =>
      numberCell(value, { kind: "result", text: short(value), label: label(t("groups.row.total"), i, short(value)) }),
    ),
  };
  const results = estimators.map((estimator, order) => {
    const { id } = estimator;
    const name = t(`groups.name.${id}`);
    const values = result.advantages[id];
    const most = values ? largest(values) : 0;
    const cells = samples.map((_, i) =>
      numberCell(values?.[i], {
        kind: "result",
        most,
        text: values ? seven(values[i]) : "—",
        label: label(name, i, values ? seven(values[i]) : t("groups.nothing")),
      }),
    );
    const sums = state.prompts.map((_, p) => {
      const sum = result.sums[id]?.[p];
      const rounded = sum !== undefined && isZero(sum, values) ? 0 : sum;
      const says = verdict(estimator, state, result, p);
      const text = rounded === undefined ? "—" : `${fourDigits(rounded)}${MARKS[says]}`;
      return {
        ...numberCell(rounded, { kind: "result", text, label: label(name, samples.length + p, text) }),
        tone: says === "off" ? /** @type {const} */ ("minus") : /** @type {const} */ (""),
        strength: says === "off" ? 1 : 0,
      };
    });
    const epsilon = estimator.epsilon === undefined ? null : html("span", {}, `ε ${short(estimator.epsilon)}`);
    return {
      key: id,
      name,
      symbol: epsilon,
      first: order === 0 || order === 7 || order === 13,
      cells: [...cells, ...sums],
    };
  });
  const heads = [
    ...samples.map((_, i) => String(placeOf(state, i)[1] + 1)),
    ...state.prompts.map((_, p) => `Σ ${p + 1}`),
  ];
  return {
    label: t("groups.table"),
    corner: t("groups.sample"),
    heads,
    rows: [...inputs, ...(state.second ? [total] : []), ...results],
  };
}

/**
 * @param {State} state
 * @param {Result} result
 * @param {Estimator[]} all
 */
export function asCsv(state, result, all) {
  const lines = samplesOf(state).map(({ score, format, length }, i) => {
    const [p, place] = placeOf(state, i);
    return [
      p + 1,
      place + 1,
      score,
      ...(state.second ? [format, result.scores[i]] : []),
      length,
      ...all.map(({ id }) => result.advantages[id]?.[i] ?? NaN),
    ];
  });
  return csv(
    [
      "prompt",
      "sample",
      "score",
      ...(state.second ? ["second source", "total"] : []),
      "length",
      ...all.map(({ id }) => id),
    ],
    lines,
  );
}
