// A step cut into micro-batches and ranks: what local counts make of it,
// and what the counts of the whole step make of it.

import { t } from "../../i18n/index.js";
import { refusalText } from "../../parts/refusals.js";
import { html } from "../../parts/dom.js";
import { full, short } from "../../parts/format.js";
import { PlotView } from "../../parts/plot.js";
import { threadList } from "../cells.js";
import { split } from "./compute.js";
import { fitted, mostMicro } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Whole} Whole */
/** @typedef {import("./compute.js").Outcome} Outcome */

export class SplitView {
  /**
   * @param {HTMLElement} container
   * @param {{ set: (changes: Partial<State>, continued: boolean) => void }} handlers
   */
  constructor(container, handlers) {
    this.handlers = handlers;
    this.head = html("div", { class: "lab-part" });
    this.sliders = html("div", { class: "lab-fields" });
    this.verdict = html("p", { class: "agg-verdict", role: "status" });
    this.scroller = html("div", { class: "lab-scroll", role: "region", tabindex: 0 });
    const plots = html("div", { class: "agg-plots" });
    const [left, right] = [html("div"), html("div")];
    plots.append(left, right);
    this.weights = new PlotView(left);
    this.losses = new PlotView(right);
    this.threads = html("div", {});
    container.append(this.head, this.sliders, this.verdict, this.scroller, plots, this.threads);
  }

  /** Draws what changes only with the language. */
  build() {
    this.head.replaceChildren(
      html("h2", {}, t("aggregate.split")),
      html("p", { class: "lab-note" }, t("aggregate.split.note")),
    );
    this.micro = this.slider("micro");
    this.ranks = this.slider("ranks");
    this.sliders.replaceChildren(this.micro.element, this.ranks.element);
    this.scroller.setAttribute("aria-label", t("aggregate.split.table"));
    this.threads.replaceChildren(
      threadList([
        [["prime-rl#583", "https://github.com/PrimeIntellect-ai/prime-rl/pull/583"], t("aggregate.thread.583")],
        [["ms-swift#10117", "https://github.com/modelscope/ms-swift/issues/10117"], t("aggregate.thread.10117")],
        [["TRL#6024", "https://github.com/huggingface/trl/pull/6024"], t("aggregate.thread.6024")],
        [["verl#3741", "https://github.com/verl-project/verl/issues/3741"], t("aggregate.thread.3741.split")],
      ]),
    );
  }

  /** @param {"micro" | "ranks"} key */
  slider(key) {
    const input = html("input", { type: "range", min: 1, max: 1, step: 1, id: `slider-${key}` });
    const output = html("output", { for: `slider-${key}`, class: "agg-count" });
    let moving = false;
    input.addEventListener("input", () => {
      this.handlers.set({ [key]: Number(input.value) }, moving);
      moving = true;
    });
    // one movement is one step of undo
    input.addEventListener("change", () => {
      moving = false;
    });
    const element = html(
      "div",
      { class: "field agg-slider" },
      html("label", { for: `slider-${key}` }, t(`aggregate.${key}`)),
      html("span", {}, input, output),
    );
    const show = (/** @type {number} */ value, /** @type {number} */ most) => {
      input.max = String(most);
      input.value = String(value);
      input.disabled = most === 1;
      output.textContent = `${value} / ${most}`;
    };
    return { element, show };
  }

  /**
   * @param {import("../../engine.js").Library} library
   * @param {State} state
   * @param {Whole} whole
   */
  show(library, state, whole) {
    this.micro?.show(state.micro, mostMicro(state));
    this.ranks?.show(state.ranks, state.answers.length);
    const outcome = whole.modes[state.mode];
    if ("refused" in outcome) {
      this.verdict.textContent = refusalText(outcome.refused);
      this.scroller.replaceChildren();
      return;
    }
    const parts = split(library, state, whole.totals);
    this.verdict.replaceChildren(...verdict(outcome.loss, parts));
    this.scroller.replaceChildren(table(state, whole, parts, outcome.loss));
    this.drawWeights(state, outcome, parts);
    this.drawLosses(library, state, whole, outcome.loss);
  }

  /**
   * @param {State} state
   * @param {{ weights: Float64Array }} whole
   * @param {import("./compute.js").Split} parts
   */
  drawWeights(state, { weights }, parts) {
    const kept = state.answers
      .flatMap((answer) => answer.kept)
      .map((keep, k) => (keep ? k : -1))
      .filter((k) => k >= 0);
    const x = kept.map((_, i) => i + 1);
    const pick = (/** @type {ArrayLike<number> | null} */ all) => kept.map((k) => (all ? all[k] : NaN));
    // where an answer ends, between two tokens
    const ends = state.answers
      .map(({ kept: slots }) => slots.filter(Boolean).length)
      .reduce((/** @type {number[]} */ all, n) => [...all, (all[all.length - 1] ?? 0) + n], []);
    const marks = state.answers.flatMap((answer, i) =>
      answer.kept.some(Boolean) ? [{ x: (ends[i - 1] ?? 0) + 0.5, text: `#${i + 1}` }] : [],
    );
    this.weights.draw({
      label: t("aggregate.plot.weights.aria", { mode: state.mode }),
      x: { label: t("aggregate.plot.token"), domain: [0.5, Math.max(1, kept.length) + 0.5] },
      y: { label: t("aggregate.plot.weight") },
      series: [
        {
          id: "right",
          name: t("aggregate.plot.right"),
          x,
          y: pick(parts.rightWeights ?? weights),
          kind: "bars",
          colour: 0,
        },
        {
          id: "naive",
          name: t("aggregate.plot.naive"),
          x,
          y: pick(parts.naiveWeights),
          kind: "points",
          colour: 1,
          dash: 0,
        },
      ],
      marks,
    });
  }

  /**
   * The loss for every number of micro-batches: one of the curves must be flat.
   * @param {import("../../engine.js").Library} library
   * @param {State} state
   * @param {Whole} whole
   * @param {number} loss
   */
  drawLosses(library, state, whole, loss) {
    const x = Array.from({ length: mostMicro(state) }, (_, k) => k + 1);
    const splits = x.map((micro) => split(library, fitted({ ...state, micro }), whole.totals));
    this.losses.draw({
      label: t("aggregate.plot.losses.aria", { mode: state.mode }),
      x: { label: t("aggregate.plot.micro"), domain: [0.5, x.length + 0.5] },
      y: { label: t("aggregate.plot.loss") },
      series: [
        { id: "right", name: t("aggregate.plot.right"), x, y: splits.map(({ right }) => right), colour: 0 },
        { id: "naive", name: t("aggregate.plot.naive"), x, y: splits.map(({ naive }) => naive), colour: 1 },
        { id: "twice", name: t("aggregate.plot.twice"), x, y: splits.map(({ twice }) => twice), colour: 2 },
      ],
      marks: [
        { x: state.micro, text: t("aggregate.plot.now") },
        { y: loss, text: t("aggregate.plot.whole") },
      ],
    });
  }
}

/** Whether two losses are the same but for the last bits of a sum. @param {number} a @param {number} b */
const same = (a, b) => Math.abs(a - b) <= 1e-12 * Math.max(1, Math.abs(b));

/**
 * @param {number} loss of the whole
 * @param {import("./compute.js").Split} parts
 */
function verdict(loss, { naive, right, local }) {
  const words = { naive: short(naive), right: short(right), loss: short(loss), factor: short(naive / loss) };
  const refused = local.find((outcome) => "refused" in outcome);
  const first =
    refused && "refused" in refused
      ? t("aggregate.verdict.refused", { reason: refusalText(refused.refused) })
      : same(naive, loss)
        ? t("aggregate.verdict.same", words)
        : loss === 0
          ? t("aggregate.verdict.offZero", words)
          : t("aggregate.verdict.off", words);
  return [
    html("span", { class: same(naive, loss) ? "agg-good" : "agg-bad" }, first),
    " ",
    html("span", { class: "agg-good" }, t("aggregate.verdict.right", words)),
  ];
}

/**
 * @param {State} state
 * @param {Whole} whole
 * @param {import("./compute.js").Split} split
 * @param {number} loss
 */
function table(state, whole, { parts, local, global, naive, right, twice }, loss) {
  const cell = (/** @type {Outcome} */ outcome) =>
    "loss" in outcome
      ? html("td", { title: full(outcome.loss) }, short(outcome.loss))
      : html("td", { class: "off", title: outcome.refused.message }, "—");
  const rows = parts.map((part, p) => {
    const answers = Array.from({ length: part.to - part.from }, (_, i) => `#${part.from + i + 1}`).join(" ");
    const tokens = whole.lengths.slice(part.from, part.to).reduce((all, n) => all + n, 0);
    const title =
      state.ranks > 1
        ? t("aggregate.part.rank", { rank: part.rank + 1, micro: part.micro + 1 })
        : t("aggregate.part", { micro: part.micro + 1 });
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, title),
      html("td", {}, answers),
      html("td", {}, String(tokens)),
      cell(local[p]),
      cell(global[p]),
    );
  });
  const total = (/** @type {string} */ key, /** @type {number} */ value, /** @type {boolean} */ left) => {
    const number = html(
      "td",
      { "data-total": key, class: same(value, loss) ? "" : "off", title: full(value) },
      short(value),
    );
    return html(
      "tr",
      { class: "agg-total" },
      html("th", { scope: "row", colspan: 3 }, t(`aggregate.total.${key}`)),
      left ? number : html("td"),
      left ? html("td") : number,
    );
  };
  const head = [
    "aggregate.column.part",
    "aggregate.column.answers",
    "aggregate.column.tokens",
    "aggregate.column.local",
    "aggregate.column.global",
  ];
  return html(
    "table",
    { class: "lab-table" },
    html("thead", {}, html("tr", {}, ...head.map((key) => html("th", { scope: "col" }, t(key))))),
    html(
      "tbody",
      {},
      ...rows,
      total("naive", naive, true),
      total("right", right, false),
      ...(state.micro > 1 ? [total("twice", twice, false)] : []),
    ),
  );
}
