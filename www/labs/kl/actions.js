// The two distributions: one card per action, with a field for each side and the results.

import { html } from "../../parts/dom.js";
import { numberField } from "../../parts/fields.js";
import { full } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { fits, withEntry } from "./state.js";
import { action, four, fourSigned, tone } from "./words.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Side} Side */

/** @type {Side[]} */
const sides = ["policy", "reference"];

export class ActionCards {
  /**
   * @param {HTMLElement} container
   * @param {() => State} state
   * @param {(next: State, continued: boolean) => void} change
   */
  constructor(container, state, change) {
    this.container = container;
    this.state = state;
    this.change = change;
    /** what the cards were built for */
    this.built = "";
    /**
     * @type {{ fields: Record<Side, import("../../parts/fields.js").NumberField>, shares: Record<Side, HTMLElement>,
     *   bars: Record<Side, HTMLElement>, ratio: HTMLElement }[]}
     */
    this.cards = [];
  }

  /**
   * @param {State} state
   * @param {import("./compute.js").Result} result
   * @param {boolean} anew
   */
  draw(state, result, anew) {
    const wanted = [result.count, state.policy.form, state.reference.form].join();
    if (anew || wanted !== this.built) {
      this.built = wanted;
      this.cards = [];
      this.container.replaceChildren(...Array.from({ length: result.count }, (_, i) => this.card(state, i)));
    }
    for (const [i, card] of this.cards.entries()) {
      for (const side of sides) {
        const share = (side === "policy" ? result.p : result.q)[i];
        card.fields[side].show(state[side].values[i]);
        card.shares[side].textContent = four(share);
        card.shares[side].title = full(share);
        card.bars[side].style.setProperty("--share", String(share));
      }
      card.ratio.textContent = fourSigned(result.d[i]);
      card.ratio.className = tone(result.d[i]) ?? "";
      card.ratio.title = full(result.d[i]);
    }
  }

  /**
   * @param {State} state
   * @param {number} index
   */
  card(state, index) {
    const name = action(index);
    const line = (/** @type {Side} */ side) => {
      const { form } = state[side];
      const field = numberField(`kl-${side}-${index}`, {
        label: [html("span", { "aria-hidden": "true" }, t(`kl.entry.${side}`))],
        step: form === "logits" ? 0.1 : 0.01,
        set: (value, continued) => {
          if (!fits(form, value)) return t(`kl.bad.${form}`, { old: full(this.state()[side].values[index]) });
          this.change(withEntry(this.state(), side, index, value), continued);
          return null;
        },
      });
      field.input.setAttribute(
        "aria-label",
        t("kl.entry.label", { side: t(`kl.entry.${side}`), form: t(`kl.form.${form}`), action: name }),
      );
      const share = html("output", { "data-share": `${side}-${index}` });
      const bar = html("span", { class: `kl-bar ${side}`, "aria-hidden": "true" });
      return {
        field,
        share,
        bar,
        element: html(
          "div",
          { class: "kl-entry" },
          field.element,
          html("span", { class: "kl-share" }, side === "policy" ? "π " : "ref ", share),
          bar,
        ),
      };
    };
    const [policy, reference] = sides.map(line);
    const ratio = html("output", { "data-ratio": index });
    this.cards.push({
      fields: { policy: policy.field, reference: reference.field },
      shares: { policy: policy.share, reference: reference.share },
      bars: { policy: policy.bar, reference: reference.bar },
      ratio,
    });
    return html(
      "div",
      { class: "kl-action" },
      html("h3", {}, name, html("span", { class: "kl-ratio" }, "d ", ratio)),
      policy.element,
      reference.element,
    );
  }
}
