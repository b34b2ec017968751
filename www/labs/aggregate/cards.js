// The modes side by side, a card each: the loss, who aggregates this way, and the weight of each token.

import { t } from "../../i18n/index.js";
import { find, html } from "../../parts/dom.js";
import { full, short } from "../../parts/format.js";
import { refusalText } from "../../parts/refusals.js";
import { modes } from "./state.js";
import { strip } from "./strip.js";
import { bias, weightOf } from "./table.js";

/** @typedef {import("./compute.js").Whole} Whole */
/** @typedef {import("./state.js").State} State */

/** Which frameworks aggregate in this mode, and what they call it. */
const PEERS = /** @type {Record<string, string>} */ ({
  "token-mean": "verl token-mean · TRL dapo, bnpo, cispo · OpenRLHF token",
  "seq-mean-token-mean": "verl seq-mean-token-mean · TRL grpo, sapo · OpenRLHF sample · slime",
  "seq-mean-token-sum": "verl seq-mean-token-sum · TRL luspo",
  "seq-mean-token-sum-norm": "Dr. GRPO: verl 0.9.1 seq-mean-token-sum-norm · TRL dr_grpo · SkyRL",
  "sum-norm-without-mean": "verl seq-mean-token-sum-norm (2026-01) · ROLL",
  "token-sum": "verl 0.9.1 token-sum · Tinker",
  "prompt-mean": "SkyRL prompt_mean",
});

export class Cards {
  /** @param {(mode: State["mode"]) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.element = html("section", { class: "agg-cards" });
  }

  /** @param {State} state */
  build(state) {
    this.element.replaceChildren(
      html("h2", {}, t("aggregate.cards")),
      html(
        "div",
        { class: "agg-deck" },
        ...modes.map((mode) =>
          html(
            "article",
            { class: "agg-card", "data-mode": mode },
            html(
              "h3",
              {},
              html(
                "button",
                {
                  type: "button",
                  class: "lab-pick",
                  "aria-pressed": String(mode === state.mode),
                  onclick: () => this.choose(mode),
                },
                t(`aggregate.mode.${mode}`),
              ),
            ),
            html("output", { class: "agg-loss" }),
            html("p", { class: "agg-peers" }, PEERS[mode]),
            html("div", { class: "agg-picture" }),
            html("p", { class: "agg-bias" }),
          ),
        ),
      ),
    );
  }

  /**
   * @param {State} state
   * @param {Whole} whole
   */
  show(state, whole) {
    for (const mode of modes) this.showOne(state, whole, mode);
  }

  /**
   * @param {State} state
   * @param {Whole} whole
   * @param {string} mode
   */
  showOne(state, whole, mode) {
    const card = find(this.element, `[data-mode="${mode}"]`);
    const outcome = whole.modes[mode];
    const part = (/** @type {string} */ selector) => find(card, selector);
    card.classList.toggle("chosen", mode === state.mode);
    part("button").setAttribute("aria-pressed", String(mode === state.mode));
    part(".agg-loss").textContent = "loss" in outcome ? short(outcome.loss) : "—";
    part(".agg-loss").title = "loss" in outcome ? full(outcome.loss) : "";
    if ("refused" in outcome) {
      part(".agg-picture").replaceChildren();
      part(".agg-bias").textContent = refusalText(outcome.refused);
      return;
    }
    const each = state.answers
      .map((_, i) => (whole.lengths[i] > 0 ? `#${i + 1} ${short(weightOf(state, outcome.weights, i))}` : `#${i + 1} —`))
      .join(", ");
    part(".agg-picture").replaceChildren(
      strip(
        state.answers.map(({ kept }) => kept),
        outcome.weights,
        t("aggregate.strip", { mode, weights: each }),
      ),
    );
    part(".agg-bias").textContent = bias(state, whole, outcome.weights);
  }
}
