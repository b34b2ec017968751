// Plays the run: the updates of a frame are made together and drawn once.

import { t } from "../../i18n/index.js";
import { Player } from "../player.js";
import { MOST_UPDATES, speeds } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Owner
 * @property {() => State} state
 * @property {(at: number, continued: boolean) => void} go changes the state
 * @property {(count: number, time: number) => boolean} advance makes updates, for at most that many milliseconds, and
 *   draws them; false if there are no more to be made
 * @property {(speed: number) => void} setSpeed
 * @property {() => number} reached the update shown
 * @property {() => void} stopped
 */

/** Milliseconds of a frame for updates: a frame has 16.7, and what was computed must be drawn too. */
const BUDGET = 7;
/** The longest pause that is made up for: a window that was covered does not race afterwards. */
const PATIENCE = 100;
/** Milliseconds between two entries of the state while it plays. */
const SETTLE = 400;

export class LearnPlayer extends Player {
  #playing = false;

  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} page hidden while another page is in front
   * @param {Owner} owner
   */
  constructor(container, page, owner) {
    super(container, page, owner, {
      id: "learn",
      speeds: speeds.map((speed) => ({
        value: String(speed),
        text: () => (speed === 0 ? t("learn.player.fastest") : t("learn.player.perSecond", { speed })),
      })),
      before: [],
    });
    /** @override */
    this.owner = owner;
    this.due = 0;
  }

  /** @override */
  get playing() {
    return this.#playing;
  }

  /** @override */
  get at() {
    return this.owner.reached();
  }

  /**
   * @override
   * @param {number} at
   */
  move(at) {
    this.pause();
    if (at >= 0 && at <= MOST_UPDATES && at !== this.at) this.owner.go(at, false);
  }

  /** @override */
  start() {
    if (this.playing) return;
    if (this.owner.reached() >= MOST_UPDATES) this.owner.go(0, false);
    this.#playing = true;
    this.continued = false;
    this.due = 0;
    let before = performance.now();
    let settled = before;
    const frame = (/** @type {number} */ now) => {
      if (!this.playing) return;
      const { speed } = this.owner.state();
      // the first frame may have begun before the button was pressed
      const passed = Math.max(0, Math.min(PATIENCE, now - before));
      before = Math.max(before, now);
      this.due = speed === 0 ? Infinity : this.due + (passed / 1000) * speed;
      const at = this.owner.reached();
      const wanted = Math.min(MOST_UPDATES - at, Math.floor(this.due));
      const more = wanted === 0 || this.owner.advance(wanted, BUDGET);
      // what there was no time for is not made up for
      this.due = Math.min(1, this.due - (this.owner.reached() - at));
      if (now - settled > SETTLE) {
        settled = now;
        this.settle();
      }
      if (!more || this.owner.reached() >= MOST_UPDATES) this.pause();
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    this.label();
  }

  /** Enters what was played into the state, all of it as one step of undo. */
  settle() {
    if (this.owner.reached() === this.owner.state().at) return;
    this.owner.go(this.owner.reached(), this.continued);
    this.continued = true;
  }

  /** @override */
  pause() {
    // while another page is in front nothing may be entered: it would come to the front again
    if (this.playing && !this.page.hidden) this.settle();
    this.halt();
  }

  /** Stops where the state is. */
  halt() {
    if (!this.playing) return;
    this.#playing = false;
    this.label();
    this.owner.stopped();
  }

  /**
   * @param {State} state
   * @param {import("./run.js").Run} run
   * @param {number} goal the update it is on its way to
   */
  draw(state, run, goal) {
    const { at } = run;
    const made = Math.max(goal, run.metrics.length);
    const words =
      at < goal && at < run.end - 1 ? t("learn.player.catching", { at, goal }) : t("learn.player.where", { at, made });
    this.show({ at, last: made, words, ended: at >= Math.min(MOST_UPDATES, run.end - 1), speed: state.speed, run });
  }
}
