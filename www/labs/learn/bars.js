// The policy as bars: for each prompt and position how likely each letter is, over all that may stand before it.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { rowOf } from "./world.js";

/** @typedef {import("./world.js").World} World */

/**
 * The probability of each letter at each position: where the policy looks at the letter before, the mean over these.
 * An answer that has ended has no further letter.
 * @param {World} world
 * @param {Float64Array} probabilities of every row
 * @param {number} prompt
 * @returns {Float64Array[]} of each position
 */
export function marginals(world, probabilities, prompt) {
  const count = world.letters.length;
  /** @type {Float64Array[]} */
  const found = [];
  for (let t = 0; t < world.lengths[prompt]; t += 1) {
    const here = new Float64Array(count);
    for (let previous = -1; previous < count; previous += 1) {
      const before = t === 0 ? (previous < 0 ? 1 : 0) : previous < 0 ? 0 : found[t - 1][previous];
      if (before === 0 || (previous === world.stop && previous >= 0)) continue;
      const row = rowOf(world, prompt, t, previous);
      for (let v = 0; v < count; v += 1) here[v] += before * probabilities[row * count + v];
    }
    found.push(here);
  }
  return found;
}

/** Three digits beside a bar. @param {number} p */
const brief = (p) => short(Number(p.toPrecision(3)));

export class Bars {
  /**
   * @param {HTMLElement} container
   * @param {(prompt: number) => void} choose
   */
  constructor(container, choose) {
    this.container = container;
    this.choose = choose;
    this.shape = "";
    /** @type {{ cell: HTMLElement, bars: HTMLElement[] }[][]} */
    this.cells = [];
    /** @type {HTMLElement[]} */
    this.rows = [];
  }

  /**
   * @param {World} world
   * @param {Float64Array} probabilities
   * @param {number} chosen the prompt whose answers are shown
   * @param {{ anew: boolean, playing: boolean }} how
   */
  draw(world, probabilities, chosen, { anew, playing }) {
    const shape = JSON.stringify([world.letters, world.words, world.lengths]);
    if (anew || shape !== this.shape) this.build(world);
    this.shape = shape;
    for (const [prompt, cells] of this.cells.entries()) {
      const letters = marginals(world, probabilities, prompt);
      this.rows[prompt].setAttribute("aria-pressed", String(prompt === chosen));
      for (const [t_, { cell, bars }] of cells.entries()) {
        for (const [v, bar] of bars.entries()) bar.style.setProperty("--p", letters[t_][v].toFixed(4));
        // read when it stands still
        if (!playing) cell.setAttribute("aria-label", this.words(world, prompt, t_, letters[t_]));
      }
    }
  }

  /** @param {World} world @param {number} prompt @param {number} position @param {Float64Array} p */
  words({ letters }, prompt, position, p) {
    const order = Array.from(p.keys()).sort((a, b) => p[b] - p[a]);
    const values = order.map((v) => `${letters[v]} ${brief(p[v])}`).join(", ");
    return t("learn.bars.cell", { prompt: prompt + 1, position: position + 1, values });
  }

  /** @param {World} world */
  build(world) {
    const held = this.container.contains(document.activeElement) ? document.activeElement?.id : "";
    this.cells = world.words.map((word, prompt) =>
      Array.from({ length: world.lengths[prompt] }, (_, position) => {
        const bars = world.letters.map((letter, v) =>
          html(
            "span",
            { class: v === word[position] ? "learn-bar wanted" : "learn-bar" },
            html("i"),
            html("b", {}, letter),
          ),
        );
        return { cell: html("div", { class: "learn-cell", role: "img" }, ...bars), bars };
      }),
    );
    this.rows = world.words.map((word, prompt) =>
      html(
        "button",
        {
          type: "button",
          class: "learn-word",
          id: `learn-prompt-${prompt}`,
          title: t("learn.bars.choose"),
          onclick: () => this.choose(prompt),
        },
        word.map((v) => world.letters[v]).join(""),
      ),
    );
    this.container.replaceChildren(
      ...this.cells.map((cells, prompt) =>
        html("div", { class: "learn-row" }, this.rows[prompt], ...cells.map(({ cell }) => cell)),
      ),
    );
    this.container.style.setProperty("--letters", String(world.letters.length));
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
  }
}
