// Entropy from logits: a distribution over a small vocabulary, its exact entropy,
// and what stands in for it where only one token is seen.

import { EngineSwitch } from "../../engines/switch.js";
import { t } from "../../i18n/index.js";
import { refusalOf, refusalText } from "../../parts/refusals.js";
import { find, html } from "../../parts/dom.js";
import { choiceField, numberField } from "../../parts/fields.js";
import { full, short } from "../../parts/format.js";
import { tellBehind } from "../../parts/later.js";
import { math, name } from "../../parts/math.js";
import { csv } from "../csv.js";
import { byEngine } from "./by-engine.js";
import { compute } from "./compute.js";
import { formula, quantities, valueOf, withNumbers } from "./formulas.js";
import { Plots } from "./plots.js";
import { EntryTable } from "./table.js";
import { LIMITS, presets, read, withEntry, withLess, withMore } from "./state.js";
import { threadList, whole } from "../cells.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */

/** @type {import("../../pages.js").Page} */
export const page = {
  texts: ["tables", "logits", "engines"],
  styles: ["labs", "engines"],
  initial: presets.six,
  read,
  mount: (container, context) => new LogitsView(container, context),
};

const key = (/** @type {State} */ { entries, rest }) =>
  JSON.stringify([entries.map(({ text, logit }) => [text, String(logit)]), rest]);
/** Another temperature or token is still the same example. @param {State} state */
const exampleOf = (state) => Object.keys(presets).find((id) => key(presets[id]()) === key(state)) ?? "";

class LogitsView {
  /**
   * @param {HTMLElement} container
   * @param {import("../../pages.js").Context} context
   */
  constructor(container, context) {
    this.context = context;
    this.quantity = "entropy";
    this.lead = html("section", { class: "lab-lead" });
    this.fields = html("section", { class: "lab-fields" });
    this.numbers = html("section", { class: "lab-part" });
    const entries = html("section", { class: "lab-part" });
    this.why = html("section", { class: "lab-why" });
    const pictures = html("section", { class: "lab-part" });
    this.buttons = html("div", { class: "lab-fields" });
    /** counts drawings, so that a late answer does not cover a newer one */
    this.turn = 0;
    this.engines = new EngineSwitch("logits", {
      choose: () => this.show(this.present, false),
      nameOf: (key) => t(`logits.engine.${key}`),
    });
    // the explanation is long: only its result is read out
    this.status = html("p", { class: "unseen", role: "status" });
    container.append(
      html(
        "div",
        { class: "lab" },
        this.lead,
        this.fields,
        this.engines.element,
        this.numbers,
        html(
          "div",
          { class: "lab-bench logits-bench" },
          html("div", { class: "lab-view" }, entries, this.buttons),
          this.why,
        ),
        this.status,
        pictures,
      ),
    );
    this.table = new EntryTable(entries, {
      change: (index, changes, continued) => this.context.change(withEntry(this.present, index, changes), continued),
      choose: (index) => this.context.change({ ...this.present, chosen: index }),
      state: () => this.present,
    });
    this.pictures = new Plots(pictures, {
      setTemperature: (value, continued) => this.context.change({ ...this.present, temperature: value }, continued),
    });
  }

  /** @returns {State} */
  get present() {
    return this.context.state();
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    if (anew) this.build();
    this.show(state, anew);
  }

  /** Draws what changes only with the language. */
  build() {
    this.lead.replaceChildren(html("p", {}, t("logits.lead")), html("p", { class: "lab-note" }, t("logits.keys")));
    const options = [
      ...Object.keys(presets).map((id) => ({ value: id, text: t(`logits.preset.${id}`) })),
      { value: "", text: t("tables.own") },
    ];
    this.preset = choiceField("logits-preset", {
      label: t("tables.preset"),
      options,
      set: (id) => id && this.context.change(presets[id]()),
    });
    this.temperature = numberField("logits-temperature", {
      label: [math("inline", name("τ")), " ", html("span", { class: "words" }, t("logits.temperature"))],
      step: 0.05,
      set: (value, continued) => this.attempt({ temperature: value }, full(this.present.temperature), continued),
    });
    this.count = numberField("logits-count", {
      label: [t("logits.count")],
      step: 1,
      set: (value, continued) => {
        const [low, high] = LIMITS.rest;
        if (!whole(value, LIMITS.rest)) return t("tables.whole", { low, high, old: this.present.rest.count });
        return this.attempt({ rest: { ...this.present.rest, count: value } }, "", continued);
      },
    });
    this.rest = numberField("logits-rest", {
      label: [t("logits.rest")],
      step: 0.1,
      set: (value, continued) =>
        this.attempt({ rest: { ...this.present.rest, logit: value } }, full(this.present.rest.logit), continued),
    });
    this.fields.replaceChildren(this.preset.element, this.temperature.element, this.count.element, this.rest.element);
    this.more = html(
      "button",
      { type: "button", onclick: () => this.context.change(withMore(this.present)) },
      t("logits.add"),
    );
    this.less = html(
      "button",
      { type: "button", onclick: () => this.context.change(withLess(this.present)) },
      t("logits.remove"),
    );
    this.buttons.replaceChildren(this.more, this.less);
    const pairs = quantities.map((quantity) =>
      html(
        "div",
        { "data-quantity": quantity },
        html(
          "dt",
          {},
          html(
            "button",
            { type: "button", class: "lab-pick", "aria-pressed": "false", onclick: () => this.choose(quantity) },
            t(`logits.quantity.${quantity}`),
          ),
        ),
        html("dd", {}),
      ),
    );
    const plain = ["bound", "expectedTerm"].map((id) =>
      html("div", { "data-quantity": id }, html("dt", {}, t(`logits.quantity.${id}`)), html("dd", {})),
    );
    this.numbers.replaceChildren(
      html("h2", {}, t("logits.numbers")),
      html("dl", { class: "lab-numbers logits-numbers" }, ...pairs, ...plain),
    );
    this.pictures.build();
    this.engines.build();
  }

  /**
   * @param {Partial<State>} changes
   * @param {string} old
   * @param {boolean} continued
   * @returns {string | null}
   */
  attempt(changes, old, continued) {
    const next = { ...this.present, ...changes };
    try {
      compute(this.context.library, next);
    } catch (error) {
      return t("bad.refused", { reason: refusalText(refusalOf(error)), old });
    }
    this.context.change(next, continued);
    return null;
  }

  /** @param {string} quantity */
  choose(quantity) {
    this.quantity = quantity;
    this.show(this.present, false);
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  show(state, anew) {
    this.turn += 1;
    const result = compute(this.context.library, state);
    this.paint(state, result, anew);
    this.pictures.draw(this.context.library, state, result);
    this.ask(state, this.turn);
  }

  /**
   * The numbers of the engine chosen, in place of those drawn at once.
   * @param {State} state
   * @param {number} turn
   */
  async ask(state, turn) {
    const { engine, chosen } = this.engines;
    tellBehind(this.engines.element, true);
    // a value that is being dragged is drawn many times
    await new Promise((done) => {
      setTimeout(done, 60);
    });
    if (turn !== this.turn) return;
    const found = await byEngine(engine, chosen, state).finally(() => {
      if (turn === this.turn) tellBehind(this.engines.element, false);
    });
    if (turn !== this.turn) return;
    if ("problem" in found) this.engines.failed(engine, found.problem);
    else {
      this.engines.show(found);
      if (engine === "webgpu") this.paint(state, found.result, false);
    }
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {boolean} anew
   */
  paint(state, result, anew) {
    if (this.preset) this.preset.select.value = exampleOf(state);
    this.temperature?.show(state.temperature);
    this.count?.show(state.rest.count);
    this.rest?.show(state.rest.logit);
    if (this.rest) this.rest.element.hidden = state.rest.count === 0;
    if (this.more) this.more.disabled = state.entries.length >= LIMITS.entries[1];
    if (this.less) this.less.disabled = state.entries.length <= LIMITS.entries[0];
    for (const quantity of [...quantities, "bound", "expectedTerm"]) {
      const pair = find(this.numbers, `[data-quantity=${quantity}]`);
      const value =
        quantity === "bound"
          ? result.bound
          : quantity === "expectedTerm"
            ? result.expectedTerm
            : valueOf(quantity, state, result);
      const shown = find(pair, "dd");
      shown.textContent = short(value);
      shown.title = full(value);
      pair.querySelector("button")?.setAttribute("aria-pressed", String(quantity === this.quantity));
    }
    this.table.draw(state, result, anew);
    this.explain(state, result);
  }

  /**
   * @param {State} state
   * @param {Result} result
   */
  explain(state, result) {
    const { quantity } = this;
    const value = valueOf(quantity, state, result);
    const entry = `“${state.entries[state.chosen].text}”`;
    const notes = [t("logits.ofToken", { token: entry, vocabulary: result.vocabulary, support: result.support })];
    if (quantity === "proxy")
      notes.push(
        t("logits.note.proxy", {
          term: short(value),
          entropy: short(result.entropy),
          average: short(result.expectedTerm),
        }),
      );
    if (quantity === "surprise")
      notes.push(
        t("logits.note.surprise", { average: short(result.expectedSurprise), entropy: short(result.entropy) }),
      );
    if (result.support < result.vocabulary)
      notes.push(t("logits.note.masked", { careless: short(result.careless), entropy: short(result.entropy) }));
    if (Number.isNaN(result.entropy)) notes.push(t("logits.note.nan"));
    const title = t("logits.why", { value: short(value), quantity: t(`logits.quantity.${quantity}`) });
    this.status.textContent = title;
    this.why.replaceChildren(
      html("h2", {}, title),
      html(
        "div",
        { class: "lab-formula", role: "region", tabindex: 0, "aria-label": t("logits.formula") },
        html("div", {}, formula(quantity)),
        html("div", {}, withNumbers(quantity, state, result)),
      ),
      html(
        "p",
        { class: "digits" },
        html("span", { class: "quiet" }, `${t("logits.digits")} `),
        html("output", {}, full(value)),
      ),
      html("p", {}, t(`logits.meaning.${quantity}`)),
      ...notes.map((text) => html("p", { class: "lab-note" }, text)),
      threadList([
        [["TRL#7221", "https://github.com/huggingface/trl/issues/7221"], t("logits.thread.7221")],
        [["SkyRL#2259", "https://github.com/NovaSky-AI/SkyRL/pull/2259"], t("logits.thread.2259")],
      ]),
    );
  }

  /** @param {State} state */
  exports(state) {
    const make = () => {
      const { logits, counts, probs, logProbs, terms, gradLogProb, gradEntropy } = compute(this.context.library, state);
      const rows = logits.map((logit, i) => [
        state.entries[i]?.text ?? "(rest)",
        counts[i],
        logit,
        i === state.chosen ? 1 : 0,
        probs[i],
        logProbs[i],
        terms[i],
        gradLogProb[i],
        gradEntropy[i],
      ]);
      return csv(
        ["entry", "count", "logit", "chosen", "p", "log p", "-p log p", "d log p(chosen) / d logit", "d H / d logit"],
        rows,
      );
    };
    return [
      { id: "logits-csv", label: t("tables.save"), how: /** @type {"save"} */ ("save"), file: "logits.csv", make },
    ];
  }
}
