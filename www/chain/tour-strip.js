// The strip of a guided tour, above the grid: what to look at, back, on, out.

import { html } from "../parts/dom.js";
import { t } from "../i18n/index.js";
import { tourOf } from "./tours.js";

/** @typedef {import("./state.js").State} State */

export class TourStrip {
  /**
   * @param {HTMLElement} container
   * @param {(step: number) => void} go
   * @param {() => void} end
   */
  constructor(container, go, end) {
    this.container = container;
    this.go = go;
    this.end = end;
    this.shown = "";
  }

  /** @param {State} state */
  draw(state) {
    const at = tourOf(state);
    const shown = at ? `${at.tour.id}|${at.step}|${at.waiting}|${t("tour.next")}` : "";
    if (shown === this.shown) return;
    this.shown = shown;
    this.container.hidden = at === null;
    if (!at) return this.container.replaceChildren();
    const { tour, step, waiting } = at;
    const focused = this.container.contains(document.activeElement) ? document.activeElement?.id : null;
    const last = step === tour.steps.length - 1;
    const gated = tour.steps[step].gate !== undefined;
    const button = (/** @type {string} */ id, /** @type {string} */ text, /** @type {() => void} */ run, disabled = false) => html("button", { type: "button", id, disabled, onclick: run }, text);
    this.container.replaceChildren(
      html("h2", {}, t(`tour.name.${tour.id}`), html("span", { class: "quiet" }, ` ${step + 1} / ${tour.steps.length}`)),
      html("p", { class: "say", "aria-live": "polite" }, t(`tour.${tour.id}.${step + 1}`), gated && !waiting ? html("span", { class: "done" }, ` ✓ ${t("tour.done")}`) : null),
      html(
        "div", { class: "steps" },
        button("tour-back", t("tour.back"), () => this.go(step - 1), step === 0),
        last ? button("tour-next", t("tour.finish"), this.end) : button("tour-next", t(waiting ? "tour.skip" : "tour.next"), () => this.go(step + 1)),
        last ? null : button("tour-end", t("tour.end"), this.end),
        html("span", { class: "quiet" }, t("tour.keys")),
      ),
    );
    if (focused) (document.getElementById(focused) ?? document.getElementById("tour-next"))?.focus();
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
