// Entropy and its stand-ins as the temperature changes, and as one entry takes over.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { PlotView } from "../../parts/plot.js";
import { overSharpness, overTemperature, TEMPERATURES } from "./compute.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */
/** @typedef {import("./compute.js").Sweep} Sweep */

export class Plots {
  /**
   * @param {HTMLElement} container
   * @param {{ setTemperature: (value: number, continued: boolean) => void }} handlers
   */
  constructor(container, handlers) {
    this.handlers = handlers;
    this.head = html("div", { class: "lab-part" });
    const [left, right] = [html("div"), html("div")];
    this.captions = [html("h3", {}), html("h3", {})];
    container.append(
      this.head,
      html(
        "div",
        { class: "agg-plots" },
        html("div", { class: "lab-part" }, this.captions[0], left),
        html("div", { class: "lab-part" }, this.captions[1], right),
      ),
    );
    this.temperature = new PlotView(left);
    this.sharpness = new PlotView(right);
    this.entries = 0;
  }

  /** Draws what changes only with the language. */
  build() {
    this.head.replaceChildren(
      html("h2", {}, t("logits.pictures")),
      html("p", { class: "lab-note" }, t("logits.pictures.note")),
    );
    this.captions[0].textContent = t("logits.plot.temperature");
    this.captions[1].textContent = t("logits.plot.sharpness");
  }

  /**
   * @param {import("../../engine.js").Library} library
   * @param {State} state
   * @param {Result} result
   */
  draw(library, state, result) {
    const sweep = overTemperature(library, state);
    const [low, high] = TEMPERATURES;
    const inside = Math.min(high, Math.max(low, state.temperature));
    this.temperature.draw({
      label: t("logits.plot.temperature"),
      x: { label: t("logits.plot.tau"), domain: TEMPERATURES, log: true },
      y: { label: t("logits.plot.nats"), domain: range(result.bound) },
      series: [
        ...common(sweep),
        { id: "surprise", name: t("logits.series.surprise"), x: sweep.x, y: sweep.surprise, colour: 3 },
      ],
      marks: [{ y: result.bound, text: "ln V" }],
      movable: {
        x: inside,
        name: "τ",
        set: (value, continued) => this.handlers.setTemperature(Number(value.toPrecision(3)), continued),
      },
    });
    // the second picture depends on nothing but how many entries can be drawn
    const entries = Math.max(2, result.support);
    if (this.entries !== entries) this.sharp = overSharpness(library, entries);
    this.entries = entries;
    const { sharp } = this;
    if (!sharp) return;
    const p = result.probs[state.chosen];
    this.sharpness.draw({
      label: t("logits.plot.sharpness"),
      x: { label: t("logits.plot.p"), domain: [0, 1] },
      y: { label: t("logits.plot.nats"), domain: range(library.lnF64(entries)) },
      series: common(sharp),
      marks: [
        { x: library.expF64(-1), text: "1/e" },
        ...(Number.isFinite(p) ? [{ x: p, text: t("logits.plot.now") }] : []),
      ],
    });
  }
}

/** From 0 to a little above the bound. @param {number} bound @returns {[number, number]} */
const range = (bound) => [0, Math.max(0.8, Number.isFinite(bound) ? bound * 1.08 : 0.8)];

/** @param {Sweep} sweep */
const common = (sweep) => [
  { id: "entropy", name: t("logits.series.entropy"), x: sweep.x, y: sweep.entropy, colour: 0 },
  // the same curve by another way: dots, so that both can be seen
  {
    id: "expectedSurprise",
    name: t("logits.series.expectedSurprise"),
    x: sweep.x.filter((_, k) => k % 4 === 0),
    y: sweep.expectedSurprise.filter((_, k) => k % 4 === 0),
    kind: /** @type {const} */ ("points"),
    colour: 2,
    dash: 0,
  },
  { id: "term", name: t("logits.series.term"), x: sweep.x, y: sweep.term, colour: 1 },
  { id: "expectedTerm", name: t("logits.series.expectedTerm"), x: sweep.x, y: sweep.expectedTerm, colour: 4 },
];
