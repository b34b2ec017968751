// The KL laboratory: what each estimate of the KL does on average, as a loss and as a reward,
// over a policy small enough to enumerate.

import { html } from "../../parts/dom.js";
import { t } from "../../i18n/index.js";
import { csv } from "../csv.js";
import { ActionCards } from "./actions.js";
import { compute, curvesOf } from "./compute.js";
import { curveFields, mainFields, sampleFields } from "./controls.js";
import { explanation } from "./explain.js";
import { Curves, Samples } from "./plots.js";
import { profileTable } from "./profiles.js";
import { rowIds, rows } from "./estimates.js";
import { initial, presetOf, read } from "./state.js";
import { expectations } from "./table.js";
import { four, rowName, verdictText } from "./words.js";
import { redraw } from "../redraw.js";

/** @typedef {import("./state.js").State} State */

/** @type {import("../../pages.js").Page} */
export const page = {
  texts: ["kl"],
  styles: ["labs"],
  initial,
  read: (data) => read(data, rowIds),
  mount: (container, context) => new KlView(container, context),
};

class KlView {
  /**
   * @param {HTMLElement} container
   * @param {import("../../pages.js").Context} context
   */
  constructor(container, context) {
    this.context = context;
    this.library = context.library;
    const part = (/** @type {string} */ name) => html("section", { class: name });
    this.lead = part("lab-lead");
    this.fields = part("lab-fields");
    this.cards = html("div", { class: "kl-actions" });
    this.actionWords = html("div", { class: "lab-part" });
    this.table = part("lab-part");
    this.why = html("section", { class: "lab-why kl-why" });
    // the explanation is long: only its result is read out when it changes
    this.status = html("p", { class: "unseen", role: "status" });
    this.curveWords = html("div", { class: "lab-part" });
    this.curveFields = html("div", { class: "lab-fields" });
    this.curves = html("div", { class: "kl-pair" });
    this.sampleWords = html("div", { class: "lab-part" });
    this.sampleFields = html("div", { class: "lab-fields" });
    this.pictures = html("div", { class: "kl-pair" });
    this.statistics = html("div", { class: "lab-part" });
    this.profiles = part("lab-part");
    container.append(
      html(
        "div",
        { class: "lab" },
        this.lead,
        this.fields,
        html("section", { class: "lab-part" }, this.actionWords, this.cards),
        html("div", { class: "lab-bench kl-bench" }, this.table, this.why),
        this.status,
        html("section", { class: "lab-part" }, this.curveWords, this.curveFields, this.curves),
        html("section", { class: "lab-part" }, this.sampleWords, this.sampleFields, this.pictures, this.statistics),
        this.profiles,
      ),
    );
    const state = () => /** @type {State} */ (context.state());
    this.access = {
      state,
      change: (/** @type {State} */ next, continued = false) => context.change(next, continued),
      library: this.library,
    };
    this.actions = new ActionCards(this.cards, state, this.access.change);
    this.curveView = new Curves(this.curves);
    this.sampleView = new Samples(this.pictures, this.statistics);
    /** @type {{ show: (state: State) => void }[]} */
    this.shown = [];
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    const result = compute(this.library, state);
    if (anew) this.drawFrame();
    for (const fields of this.shown) fields.show(state);
    this.lead.lastElementChild?.replaceChildren(t(`kl.note.${presetOf(state) || "own"}`));
    this.actions.draw(state, result, anew);
    redraw(
      this.table,
      html("h2", {}, t("kl.table")),
      expectations(result, state.chosen, (id) => this.choose(id)),
      html("p", { class: "lab-note" }, t("kl.table.note")),
    );
    const chosen = result.rows.find(({ row }) => row.id === state.chosen) ?? result.rows[0];
    redraw(this.why, ...explanation(result, chosen));
    const subject = `${rowName(chosen.row)}, ${t(`kl.in.${chosen.row.place}`)}`;
    this.status.textContent = `${subject}: ${four(chosen.value)}. ${verdictText(chosen)}`;
    this.curveView.draw(this.library, state, result);
    this.sampleView.draw(this.library, state, result);
  }

  /** Draws what changes only with the language. */
  drawFrame() {
    const [main, curves, samples] = [mainFields(this.access), curveFields(this.access), sampleFields(this.access)];
    this.shown = [main, curves, samples];
    this.lead.replaceChildren(html("p", {}, t("kl.lead")), html("p", { class: "quiet", "aria-live": "polite" }));
    this.fields.replaceChildren(...main.elements);
    this.actionWords.replaceChildren(
      html("h2", {}, t("kl.actions")),
      html("p", { class: "lab-note" }, t("kl.actions.note")),
    );
    this.curveWords.replaceChildren(
      html("h2", {}, t("kl.curves")),
      html("p", { class: "lab-note" }, t("kl.curves.note")),
    );
    this.curveFields.replaceChildren(...curves.elements);
    this.sampleWords.replaceChildren(
      html("h2", {}, t("kl.samples")),
      html("p", { class: "lab-note" }, t("kl.samples.note")),
    );
    this.sampleFields.replaceChildren(...samples.elements);
    this.profiles.replaceChildren(html("h2", {}, t("kl.profiles")), profileTable(this.library));
  }

  /** @param {string} id */
  choose(id) {
    if (id !== this.access.state().chosen) this.access.change({ ...this.access.state(), chosen: id });
    // where the explanation stands below the table, it is brought into sight
    if (window.matchMedia("(max-width: 60rem)").matches) this.why.scrollIntoView({ block: "nearest" });
  }

  /**
   * @param {State} state
   * @returns {import("../../pages.js").Export[]}
   */
  exports(state) {
    const result = compute(this.library, state);
    const table = () =>
      csv(
        [
          "placement",
          "estimate",
          "expected",
          "bias",
          ...Array.from({ length: result.count }, (_, i) => `gradient_${i + 1}`),
          "verdict",
        ],
        result.rows.map((each) => [
          each.row.place,
          rowName(each.row),
          each.value,
          each.bias,
          ...each.gradient,
          verdictText(each),
        ]),
      );
    const curves = () => {
      const wanted = rows.filter(({ place }) => place === "loss");
      const { d, curves: all } = curvesOf(this.library, state, wanted, result.d);
      const head = ["d", ...all.flatMap(({ row }) => [`value ${rowName(row)}`, `slope ${rowName(row)}`])];
      return csv(
        head,
        Array.from(d, (x, i) => [x, ...all.flatMap(({ values, slopes }) => [values[i], slopes[i]])]),
      );
    };
    const samples = () => {
      const { estimates } = this.sampleView.of(this.library, state, result);
      const bins = estimates.flatMap(({ row, middles, shares }) =>
        Array.from(middles, (middle, i) => [rowName(row), "bin", middle, shares[i]]),
      );
      const numbers = estimates.flatMap(({ row, mean, error, variance }) => [
        [rowName(row), "mean", "", mean],
        [rowName(row), "standard error", "", error],
        [rowName(row), "variance", "", variance],
      ]);
      return csv(["estimate", "what", "at", "value"], [...numbers, ...bins]);
    };
    return [
      { id: "csv", label: t("kl.export.table"), how: "save", make: table, file: "kl-expectations.csv" },
      { id: "csv-curves", label: t("kl.export.curves"), how: "save", make: curves, file: "kl-curves.csv" },
      { id: "csv-samples", label: t("kl.export.samples"), how: "save", make: samples, file: "kl-samples.csv" },
    ];
  }
}
