// Plays the controllers step by step, at a speed that can be read.

import { t } from "../../i18n/index.js";
import { Player } from "../player.js";
import { speeds } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Owner
 * @property {() => State} state
 * @property {(at: number, continued: boolean) => boolean} go false if the library refused
 * @property {(speed: number) => void} setSpeed
 * @property {() => void} stopped
 */

export class BudgetPlayer extends Player {
  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} before what stands before the buttons
   * @param {HTMLElement} page hidden while another page is in front
   * @param {Owner} owner
   */
  constructor(container, before, page, owner) {
    super(container, page, owner, {
      id: "budget",
      speeds: speeds.map((speed) => ({
        value: String(speed),
        text: () => t("budget.player.perSecond", { speed }),
      })),
      before: [before],
    });
    /** @override */
    this.owner = owner;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
    /** the step that playing reached; another step means that something else moved */
    this.expected = 0;
    this.ticking = false;
  }

  /** @override */
  get playing() {
    return this.timer !== null;
  }

  /** @override */
  get at() {
    return this.owner.state().at;
  }

  /** @override */
  start() {
    const { at, settings } = this.owner.state();
    this.continued = false;
    // from the end it begins again
    if (at >= settings.steps && this.owner.go(0, false)) this.continued = true;
    this.expected = this.at;
    this.schedule();
    this.label();
  }

  schedule() {
    this.timer = setTimeout(() => this.tick(), 1000 / this.owner.state().speed);
  }

  tick() {
    if (this.page.hidden || document.hidden) return this.pause();
    const { at } = this;
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

  /** @override */
  pause() {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.label();
    this.owner.stopped();
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
    const {
      at,
      speed,
      settings: { steps },
    } = state;
    this.show({ at, last: steps, words: t("budget.player.where", { at, steps }), ended: at >= steps, speed, run });
  }
}
