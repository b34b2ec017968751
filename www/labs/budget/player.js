// Steps, plays and rewinds: buttons, a slider over the whole run, and the fingerprint of the current step.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { choiceField } from "../../parts/fields.js";
import { speeds } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Owner
 * @property {() => State} state
 * @property {(at: number, continued: boolean) => boolean} go false if the library refused
 * @property {(speed: number) => void} setSpeed
 * @property {() => void} stopped
 */

export class Player {
  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} before what stands before the buttons
   * @param {HTMLElement} page hidden while another page is in front
   * @param {Owner} owner
   */
  constructor(container, before, page, owner) {
    this.container = container;
    this.before = before;
    this.page = page;
    this.owner = owner;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
    /** whether the next step of playing belongs to the same step of undo */
    this.continued = false;
    /** the step that playing reached; another step means that something else moved */
    this.expected = 0;
    this.ticking = false;
    document.addEventListener("visibilitychange", () => document.hidden && this.pause());
    // the shell closes pages by hiding them
    new MutationObserver(() => page.hidden && this.pause()).observe(page, {
      attributes: true,
      attributeFilter: ["hidden"],
    });
  }

  get playing() {
    return this.timer !== null;
  }

  build() {
    const button = (/** @type {string} */ id, /** @type {() => void} */ press) =>
      html("button", { type: "button", id: `budget-${id}`, onclick: press }, t(`budget.player.${id}`));
    this.rewind = button("rewind", () => this.move(0));
    this.back = button("back", () => this.move(this.owner.state().at - 1));
    this.play = button("play", () => (this.playing ? this.pause() : this.start()));
    this.forward = button("forward", () => this.move(this.owner.state().at + 1));
    this.slider = html("input", {
      type: "range",
      id: "budget-at",
      min: 0,
      step: 1,
      "aria-label": t("budget.player.at"),
    });
    let sliding = false;
    this.slider.addEventListener("input", () => {
      this.pause();
      this.owner.go(Number(this.slider?.value), sliding);
      sliding = true;
    });
    this.slider.addEventListener("change", () => {
      sliding = false;
    });
    this.speed = choiceField("budget-speed", {
      label: t("budget.player.speed"),
      options: speeds.map((speed) => ({ value: String(speed), text: t("budget.player.perSecond", { speed }) })),
      set: (value) => this.owner.setSpeed(Number(value)),
    });
    this.where = html("output", { class: "where", id: "budget-where" });
    this.print = html("code", { id: "budget-print" });
    this.proof = html("span", { id: "budget-proof" });
    this.container.replaceChildren(
      html(
        "div",
        { class: "buttons" },
        this.before,
        this.rewind,
        this.back,
        this.play,
        this.forward,
        this.speed.element,
      ),
      html("div", { class: "track" }, this.slider, this.where),
      html(
        "p",
        { class: "quiet print" },
        html("span", { title: t("budget.print.what") }, t("budget.print")),
        " ",
        this.print,
        " ",
        this.proof,
      ),
    );
  }

  /** @param {number} at */
  move(at) {
    this.pause();
    this.owner.go(at, false);
  }

  start() {
    const { at, settings } = this.owner.state();
    this.continued = false;
    // from the end it begins again
    if (at >= settings.steps && this.owner.go(0, false)) this.continued = true;
    this.expected = this.owner.state().at;
    this.schedule();
    this.label();
  }

  schedule() {
    this.timer = setTimeout(() => this.tick(), 1000 / this.owner.state().speed);
  }

  tick() {
    if (this.page.hidden || document.hidden) return this.pause();
    const { at } = this.owner.state();
    this.expected = at + 1;
    this.ticking = true;
    const went = this.owner.go(at + 1, this.continued);
    this.ticking = false;
    this.continued = true;
    // the last step, a refusal, or someone who paused meanwhile
    if (!this.playing) return;
    if (!went || at + 1 >= this.owner.state().settings.steps) this.pause();
    else this.schedule();
  }

  pause() {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.label();
    this.owner.stopped();
  }

  label() {
    if (this.play) this.play.textContent = t(this.playing ? "budget.player.pause" : "budget.player.play");
    // a screen reader cannot keep up with thirty numbers a second
    this.where?.setAttribute("aria-live", this.playing ? "off" : "polite");
  }

  /**
   * @param {State} state
   * @param {import("./run.js").Run} run
   */
  draw(state, run) {
    // an undo, a link or a jump while it plays: stop there. A setting changed meanwhile: go on, as an edit of its own.
    if (this.playing && !this.ticking) {
      this.continued = false;
      if (state.at !== this.expected) this.pause();
    }
    if (
      !this.slider ||
      !this.rewind ||
      !this.back ||
      !this.forward ||
      !this.where ||
      !this.print ||
      !this.proof ||
      !this.speed
    )
      return;
    const { at, settings } = state;
    this.slider.max = String(settings.steps);
    this.slider.value = String(at);
    const words = t("budget.player.where", { at, steps: settings.steps });
    this.slider.setAttribute("aria-valuetext", words);
    this.where.textContent = words;
    // a button that was just pressed keeps its focus: it is marked as disabled, not disabled
    for (const button of [this.rewind, this.back]) button.setAttribute("aria-disabled", String(at === 0));
    this.forward.setAttribute("aria-disabled", String(at >= settings.steps));
    this.speed.select.value = String(state.speed);
    this.print.textContent = run.print;
    const key =
      run.differing > 0 ? "budget.print.differs" : run.repeated > 0 ? "budget.print.same" : "budget.print.first";
    this.proof.textContent = t(key, { count: run.differing > 0 ? run.differing : run.repeated });
    this.proof.className = run.differing > 0 ? "differs" : "";
    this.label();
  }
}
