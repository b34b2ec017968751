// The answers of the last update to one prompt, letter by letter, with what each of them was worth.

import { t } from "../../i18n/index.js";
import { html, setText } from "../../parts/dom.js";
import { short, signed } from "../../parts/format.js";
import { largest } from "../cells.js";

/** @typedef {import("./run.js").Run} Run */
/** @typedef {import("./update.js").Samples} Samples */

/** Answers shown of one group. */
const SHOWN = 16;

/** @param {number} value */
const brief = (value) => Number(value.toPrecision(3));

export class SamplesView {
  /** @param {HTMLElement} container */
  constructor(container) {
    this.body = html("tbody");
    this.head = html("tr");
    this.caption = html("caption");
    this.none = html("p", { class: "quiet" });
    this.table = html(
      "table",
      { class: "lab-table learn-samples" },
      this.caption,
      html("thead", {}, this.head),
      this.body,
    );
    container.append(this.none, this.table);
    this.shape = "";
    /** @type {{ row: HTMLElement, chips: HTMLElement[], score: HTMLElement, mean: HTMLElement }[]} */
    this.rows = [];
  }

  build() {
    this.head.replaceChildren(
      ...["answer", "score", "advantage"].map((key) => html("th", { scope: "col" }, t(`learn.samples.${key}`))),
    );
    this.none.textContent = t("learn.samples.none");
  }

  /**
   * @param {Run} run
   * @param {number} prompt
   */
  draw({ samples, world, at }, prompt) {
    this.none.hidden = samples !== null;
    this.table.hidden = samples === null;
    if (!samples) return;
    const { group, tokens, mask, scores, advantages, right, logProbs } = samples;
    const { positions, letters } = world;
    const shown = Math.min(SHOWN, group);
    const shape = `${shown} ${positions}`;
    if (shape !== this.shape) this.make(shown, positions);
    this.shape = shape;
    setText(
      this.caption,
      t(group > shown ? "learn.samples.some" : "learn.samples.all", {
        update: at,
        shown,
        group,
        word: world.words[prompt].map((v) => letters[v]).join(""),
      }),
    );
    const most = largest(advantages);
    for (const [i, { row, chips, score, mean }] of this.rows.entries()) {
      const answer = prompt * group + i;
      let [sum, count] = [0, 0];
      for (const [position, chip] of chips.entries()) {
        const slot = answer * positions + position;
        chip.hidden = mask[slot] === 0;
        if (mask[slot] === 0) continue;
        const advantage = advantages[slot];
        sum += advantage;
        count += 1;
        setText(/** @type {HTMLElement} */ (chip.firstChild), letters[tokens[slot]]);
        setText(/** @type {HTMLElement} */ (chip.lastChild), signed(brief(advantage)));
        chip.title = t("learn.samples.token", { logProb: short(logProbs[slot]), advantage: signed(advantage) });
        chip.className = `learn-token ${advantage > 0 ? "plus" : advantage < 0 ? "minus" : ""}`;
        chip.style.setProperty("--strength", (most > 0 ? Math.abs(advantage) / most : 0).toFixed(3));
      }
      setText(score, short(brief(scores[answer])) + (right[answer] ? " ✓" : ""));
      setText(mean, signed(brief(sum / count)));
      mean.className = sum > 0 ? "plus" : sum < 0 ? "minus" : "";
      row.classList.toggle("learn-right", right[answer] === 1);
    }
  }

  /** @param {number} shown @param {number} positions */
  make(shown, positions) {
    this.rows = Array.from({ length: shown }, () => {
      const chips = Array.from({ length: positions }, () =>
        html("span", { class: "learn-token" }, html("b", {}, "·"), html("small", {}, "·")),
      );
      const [score, mean] = [html("td", {}, "·"), html("td", {}, "·")];
      return { row: html("tr", {}, html("th", { scope: "row" }, ...chips), score, mean), chips, score, mean };
    });
    this.body.replaceChildren(...this.rows.map(({ row }) => row));
  }
}
