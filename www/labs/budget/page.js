// The dual controllers as a sandbox: a toy world, the library's controllers, and every number of the current step.

import { refusalText } from "../../parts/refusals.js";
import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { numberField } from "../../parts/fields.js";
import { full } from "../../parts/format.js";
import { brackets, group, math, name, number, op, sub, upright } from "../../parts/math.js";
import { drawUpdates } from "./formulas.js";
import { Inputs } from "./inputs.js";
import { BudgetPlayer } from "./player.js";
import { Plots } from "./plots.js";
import { Run } from "./run.js";
import { SettingsView } from "./controls.js";
import { fits, initial, rangeOf, read, withSettings } from "./state.js";
import { drawTable, entries } from "./table.js";
import { drawTokens } from "./token.js";

/** @typedef {import("./state.js").State} State */

/** @type {import("../../pages.js").Page} */
export const page = {
  texts: ["budget"],
  styles: ["labs", "sim", "budget"],
  initial,
  read,
  mount: (container, context) => new BudgetView(container, context),
};

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/** What the world does, its two rules set as formulas. @returns {(string | Element)[]} */
function toy() {
  const rule = (/** @type {Element} */ left, /** @type {string} */ price) =>
    math(
      "inline",
      left,
      op("="),
      upright(t("budget.toy.script")),
      op("/"),
      brackets(number("1"), op("+"), sub(name("k"), name(price)), op("·"), name(price)),
    );
  const rules = { wh: rule(group(name("w"), name("H")), "λ"), kl: rule(upright("KL"), "β") };
  return t("budget.toy")
    .split(/\{(wh|kl)\}/)
    .map((part) => (part === "wh" || part === "kl" ? rules[part] : part));
}

/** What a run depends on. @param {State} state */
const keyOf = (state) => JSON.stringify([state.settings, state.edits]);

class BudgetView {
  /**
   * @param {HTMLElement} container
   * @param {import("../../pages.js").Context} context
   */
  constructor(container, context) {
    this.context = context;
    const part = (/** @type {keyof HTMLElementTagNameMap} */ tag, /** @type {string} */ id, more = {}) =>
      html(tag, { class: id, id, ...more });
    this.intro = html("section", { class: "intro" });
    this.settingsPart = part("section", "budget-settings", { class: "sim-settings budget-settings" });
    this.playerPart = part("section", "budget-player", { class: "sim-player budget-player" });
    this.problem = html("p", { class: "refusal", role: "alert" });
    this.story = html("p", { class: "story", id: "budget-story" });
    this.plotsPart = part("section", "budget-plots", { class: "sim-plots" });
    this.stepHead = html("h2", {});
    this.inputsPart = part("div", "budget-inputs");
    this.updates = part("div", "budget-updates");
    this.keys = part("div", "budget-keys", { tabindex: 0, role: "region" });
    this.keysNote = html("p", { class: "quiet keys-note" });
    this.tokensHead = html("h2", {});
    this.gainPart = html("div", { class: "gain" });
    this.tokens = part("div", "budget-tokens", { tabindex: 0, role: "region" });
    const stepPart = html("section", { class: "budget-step" }, this.stepHead, this.inputsPart, this.updates);
    const tokensPart = html("section", {}, this.tokensHead, this.gainPart, this.tokens);
    container.append(
      this.intro,
      html(
        "div",
        { class: "sim-columns" },
        html(
          "div",
          { class: "sim-body" },
          this.playerPart,
          this.problem,
          this.story,
          this.plotsPart,
          stepPart,
          html("section", {}, this.keys, this.keysNote),
          tokensPart,
        ),
        this.settingsPart,
      ),
    );
    const state = () => /** @type {State} */ (context.state());
    const attempt = (/** @type {State} */ next, /** @type {boolean} */ continued) => this.attempt(next, continued);
    this.scenario = html("div", {});
    this.settings = new SettingsView(this.settingsPart, this.scenario, { state, attempt });
    this.inputs = new Inputs(this.inputsPart, { state, attempt });
    this.plots = new Plots(this.plotsPart);
    this.player = new BudgetPlayer(this.playerPart, this.scenario, container, {
      state,
      go: (at, continued) => this.go(at, continued),
      setSpeed: (speed) => this.context.change({ ...state(), speed }),
      stopped: () => this.run && this.drawPlots(state(), this.run),
    });
    /** @type {Run | null} */
    this.run = null;
    this.key = "";
  }

  /**
   * The run of a state; the one at hand if it is of the same settings and inputs.
   * @param {State} state
   */
  runOf(state) {
    if (!this.run || keyOf(state) !== this.key)
      this.adopt(state, new Run(this.context.library, state.settings, state.edits));
    return /** @type {Run} */ (this.run).goTo(state.at);
  }

  /**
   * @param {State} state
   * @param {Run} run
   */
  adopt(state, run) {
    this.run?.free();
    this.run = run;
    this.key = keyOf(state);
  }

  /**
   * Takes a new state unless the library refuses a number in it.
   * @param {State} next
   * @param {boolean} continued
   */
  attempt(next, continued) {
    const trial = new Run(this.context.library, next.settings, next.edits).goTo(next.at);
    if (trial.refusal) {
      trial.free();
      return trial.refusal;
    }
    if (keyOf(next) === this.key) trial.free();
    else this.adopt(next, trial);
    this.context.change(next, continued);
    return null;
  }

  /**
   * @param {number} at
   * @param {boolean} continued
   */
  go(at, continued) {
    const state = /** @type {State} */ (this.context.state());
    if (at < 0 || at > state.settings.steps || at === state.at) return false;
    this.context.change({ ...state, at }, continued);
    return this.run?.refusal === null;
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    if (anew) this.build();
    const run = this.runOf(state);
    const last = run.steps[run.steps.length - 1];
    this.problem.textContent = run.refusal ? refusalText(run.refusal) : "";
    this.settings.draw(state.settings);
    this.player.draw(state, run);
    this.story.textContent = t(`budget.story.${state.settings.scenario}`);
    this.stepHead.textContent = t("budget.step", { at: state.at });
    this.inputs.draw(state, last);
    drawUpdates(this.updates, state.settings, run.steps);
    drawTable(this.keys, last);
    this.gain?.show(state.settings.gain);
    // a link may carry prices that the library refuses; that is said above
    if (run.machines.length > 0)
      drawTokens(this.tokens, this.context.library, { ...run.prices, gamma: state.settings.gain });
    else this.tokens.replaceChildren();
    // growing curves are motion (prefers-reduced-motion), changing numbers are not
    if (anew || !(this.player.playing && reducedMotion.matches)) this.drawPlots(state, run);
  }

  /**
   * @param {State} state
   * @param {Run} run
   */
  drawPlots(state, run) {
    this.plots.draw(run.steps, state.settings.steps);
  }

  build() {
    this.intro.replaceChildren(
      html(
        "div",
        { class: "words" },
        html("p", {}, t("budget.lead")),
        html("p", { class: "quiet" }, t("budget.keyboard")),
      ),
      html("p", { class: "toy" }, html("strong", {}, t("budget.toy.title")), " ", ...toy()),
    );
    this.settingsPart.setAttribute("aria-label", t("budget.settings"));
    this.playerPart.setAttribute("aria-label", t("budget.player"));
    this.plotsPart.setAttribute("aria-label", t("budget.plots"));
    this.keys.setAttribute("aria-label", t("budget.keys.caption"));
    this.tokens.setAttribute("aria-label", t("budget.tokens.title"));
    this.keysNote.textContent = t("budget.keys.note");
    this.tokensHead.textContent = t("budget.tokens.title");
    this.settings.build();
    this.player.build();
    this.inputs.build();
    this.gain = numberField("budget-gain", {
      label: [math("inline", name("γ")), " ", html("span", {}, t("budget.setting.gain"))],
      step: 0.1,
      set: (value, continued) => {
        const state = /** @type {State} */ (this.context.state());
        const { low, high } = rangeOf("gain");
        if (!fits("gain", value)) return t("budget.bad.range", { low, high, old: full(state.settings.gain) });
        this.context.change(withSettings(state, { gain: value }), continued);
        return null;
      },
    });
    this.gainPart.replaceChildren(this.gain.element, html("p", { class: "quiet" }, t("budget.tokens.note")));
  }

  /** @param {State} state @returns {import("../../pages.js").Export[]} */
  exports(state) {
    const log = () =>
      this.runOf(state)
        .steps.map((step) => `${JSON.stringify(entries(step))}\n`)
        .join("");
    return [{ id: "budget-log", label: t("budget.export.log"), how: "save", make: log, file: "dual_game.jsonl" }];
  }
}
