// A short message beside the cell it is about.

import { html } from "./dom.js";

export class Bubble {
  constructor() {
    this.element = html("p", { class: "bubble", role: "alert", hidden: true });
    document.addEventListener("pointerdown", () => this.hide());
  }

  hide() {
    this.element.hidden = true;
    this.element.textContent = "";
  }

  /**
   * @param {string} text
   * @param {HTMLElement} beside
   */
  show(text, beside) {
    this.element.hidden = false;
    this.element.textContent = text;
    const frame = this.element.offsetParent?.getBoundingClientRect();
    if (!frame) return;
    const cell = beside.getBoundingClientRect();
    const left = Math.max(0, Math.min(cell.left - frame.left, frame.width - this.element.offsetWidth));
    this.element.style.left = `${left}px`;
    this.element.style.top = `${cell.bottom - frame.top + 4}px`;
  }
}
