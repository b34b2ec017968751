// The strip of a guided tour, above the grid: what to look at, and buttons for back, next and end.

import { html } from "../../parts/dom.js";
import { t } from "../../i18n/index.js";
import { tourOf } from "./tours.js";

/** @typedef {import("../state.js").State} State */

export class TourStrip {
  /**
   * @param {HTMLElement} container
   * @param {{ go: (step: number) => void, end: () => void, left: () => void }} owner `left`: the strip is gone,
   *   and the focus was in it
   */
  constructor(container, { go, end, left }) {
    this.container = container;
    this.go = go;
    this.end = end;
    this.left = left;
    this.shown = "";
    this.step = 0;
    this.last = false;
    const button = (/** @type {string} */ id, /** @type {() => void} */ run) =>
      html("button", { type: "button", id, onclick: run });
    // built once: a button keeps the focus, and what is read out is a text that changes, not another paragraph
    this.heading = html("h2");
    this.say = html("p", { class: "say", "aria-live": "polite" });
    this.back = button("tour-back", () => this.go(this.step - 1));
    this.next = button("tour-next", () => (this.last ? this.end() : this.go(this.step + 1)));
    this.out = button("tour-end", () => this.end());
    this.keys = html("span", { class: "quiet" });
    container.append(
      this.heading,
      this.say,
      html("div", { class: "steps" }, this.back, this.next, this.out, this.keys),
    );
  }

  /** @param {State} state */
  draw(state) {
    const at = tourOf(state);
    const shown = at ? `${at.tour.id}|${at.step}|${at.waiting}|${t("tour.next")}` : "";
    if (shown === this.shown) return;
    this.shown = shown;
    const held = document.activeElement;
    const within = this.container.contains(held);
    this.container.hidden = at === null;
    if (!at) {
      if (within) this.left();
      return;
    }
    const { tour, step, waiting } = at;
    this.step = step;
    this.last = step === tour.steps.length - 1;
    const gated = tour.steps[step].gate !== undefined;
    this.heading.replaceChildren(
      t(`tour.name.${tour.id}`),
      html("span", { class: "quiet" }, ` ${step + 1} / ${tour.steps.length}`),
    );
    this.say.replaceChildren(
      t(`tour.${tour.id}.${step + 1}`),
      ...(gated && !waiting ? [html("span", { class: "done" }, ` ✓ ${t("tour.done")}`)] : []),
    );
    this.back.textContent = t("tour.back");
    this.back.disabled = step === 0;
    this.next.textContent = t(this.last ? "tour.finish" : waiting ? "tour.skip" : "tour.next");
    this.out.textContent = t("tour.end");
    this.out.hidden = this.last;
    this.keys.textContent = t("tour.keys");
    // a button that was disabled while focused
    if ((held === this.back && this.back.disabled) || (held === this.out && this.last)) this.next.focus();
  }

  /**
   * Page Down goes on, Page Up back, from wherever the focus is on the page.
   * @param {KeyboardEvent} event
   * @param {State} state
   */
  key(event, state) {
    const at = tourOf(state);
    if (!at || event.target instanceof HTMLInputElement || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key !== "PageDown" && event.key !== "PageUp") return;
    event.preventDefault();
    const step = at.step + (event.key === "PageDown" ? 1 : -1);
    if (step >= 0 && step < at.tour.steps.length) this.go(step);
    else if (step > 0) this.end();
  }
}
