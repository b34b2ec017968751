// Steps, plays and rewinds a run of many steps: buttons, a slider over the steps, and the fingerprint of the current
// one. How it plays is for the laboratory that extends it to say.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { choiceField } from "../parts/fields.js";

/**
 * @typedef {object} Kind
 * @property {string} id begins the ids of the elements and the keys of the texts
 * @property {{ value: string, text: () => string }[]} speeds
 * @property {HTMLElement[]} before what stands before the buttons
 */

/**
 * @typedef {object} Shown
 * @property {number} at
 * @property {number} last of the slider
 * @property {string} words where it is
 * @property {boolean} ended whether no step comes after this one
 * @property {number} speed
 * @property {{ print: string, repeated: number, differing: number }} run
 */

/**
 * @typedef {object} Owner
 * @property {(at: number, continued: boolean) => boolean | void} go false if the library refused
 * @property {(speed: number) => void} setSpeed
 * @property {() => void} stopped
 */

export class Player {
  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} page hidden while another page is in front
   * @param {Owner} owner
   * @param {Kind} kind
   */
  constructor(container, page, owner, kind) {
    this.container = container;
    this.page = page;
    this.owner = owner;
    this.kind = kind;
    /** whether the next step of playing belongs to the same step of undo */
    this.continued = false;
    document.addEventListener("visibilitychange", () => document.hidden && this.pause());
    // the shell closes pages by hiding them
    new MutationObserver(() => page.hidden && this.pause()).observe(page, {
      attributes: true,
      attributeFilter: ["hidden"],
    });
  }

  /** @returns {boolean} */
  get playing() {
    return false;
  }

  /** The step shown. @returns {number} */
  get at() {
    return 0;
  }

  start() {}

  pause() {}

  build() {
    const { id, speeds, before } = this.kind;
    const button = (/** @type {string} */ name, /** @type {() => void} */ press) =>
      html("button", { type: "button", id: `${id}-${name}`, onclick: press }, t(`${id}.player.${name}`));
    this.rewind = button("rewind", () => this.move(0));
    this.back = button("back", () => this.move(this.at - 1));
    this.play = button("play", () => (this.playing ? this.pause() : this.start()));
    this.forward = button("forward", () => this.move(this.at + 1));
    this.slider = html("input", {
      type: "range",
      id: `${id}-at`,
      min: 0,
      step: 1,
      "aria-label": t(`${id}.player.at`),
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
    this.speed = choiceField(`${id}-speed`, {
      label: t(`${id}.player.speed`),
      options: speeds.map(({ value, text }) => ({ value, text: text() })),
      set: (value) => this.owner.setSpeed(Number(value)),
    });
    this.where = html("output", { class: "where", id: `${id}-where` });
    this.print = html("code", { id: `${id}-print` });
    this.proof = html("span", { id: `${id}-proof` });
    const buttons = [this.rewind, this.back, this.play, this.forward, this.speed.element];
    this.container.replaceChildren(
      html("div", { class: "buttons" }, ...before, ...buttons),
      html("div", { class: "track" }, this.slider, this.where),
      html(
        "p",
        { class: "quiet print" },
        html("span", { title: t(`${id}.print.what`) }, t(`${id}.print`)),
        " ",
        this.print,
        " ",
        this.proof,
      ),
    );
    this.label();
  }

  /** @param {number} at */
  move(at) {
    this.pause();
    this.owner.go(at, false);
  }

  label() {
    if (this.play) this.play.textContent = t(`${this.kind.id}.player.${this.playing ? "pause" : "play"}`);
    // a screen reader cannot keep up with sixty numbers a second
    this.where?.setAttribute("aria-live", this.playing ? "off" : "polite");
  }

  /** @param {Shown} shown */
  show({ at, last, words, ended, speed, run: { print, repeated, differing } }) {
    const { slider, where, rewind, back, forward } = this;
    if (!slider || !where || !rewind || !back || !forward || !this.print || !this.proof || !this.speed) return;
    slider.max = String(last);
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", words);
    where.textContent = words;
    // a button that was just pressed keeps its focus: it is marked as disabled, not disabled
    for (const button of [rewind, back]) button.setAttribute("aria-disabled", String(at === 0));
    forward.setAttribute("aria-disabled", String(ended));
    this.speed.select.value = String(speed);
    this.print.textContent = print;
    const key = differing > 0 ? "differs" : repeated > 0 ? "same" : "first";
    this.proof.textContent = t(`${this.kind.id}.print.${key}`, { count: differing > 0 ? differing : repeated });
    this.proof.className = differing > 0 ? "differs" : "";
    this.label();
  }
}
