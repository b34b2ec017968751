// The vocabulary as a table: logits to be edited, and what follows from them, with bars in the cells.

import { t } from "../../i18n/index.js";
import { find, html } from "../../parts/dom.js";
import { numberField } from "../../parts/fields.js";
import { short, signed } from "../../parts/format.js";
import { largest } from "../cells.js";
import { LONGEST } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */

/**
 * @typedef {object} Handlers
 * @property {(index: number, changes: Partial<import("./state.js").Entry>, continued: boolean) => void} change
 * @property {(index: number) => void} choose
 * @property {() => State} state
 */

/**
 * @typedef {{ row: HTMLTableRowElement, radio: HTMLInputElement, text: HTMLInputElement,
 *   logit: import("../../parts/fields.js").NumberField, mask: HTMLButtonElement }} Line
 */

const COLUMNS = ["prob", "surprise", "term", "gradLogProb", "gradEntropy"];

/** Four digits: all of them are a title away. @param {number} value */
const brief = (value) => short(Number.isFinite(value) && value !== 0 ? Number(value.toPrecision(4)) : value);

export class EntryTable {
  /**
   * @param {HTMLElement} container
   * @param {Handlers} handlers
   */
  constructor(container, handlers) {
    this.handlers = handlers;
    this.title = html("h2", {});
    this.scroller = html("div", { class: "lab-scroll logits-scroll", role: "region", tabindex: 0 });
    container.append(this.title, this.scroller);
    /** @type {Line[]} */
    this.lines = [];
    this.shape = "";
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {boolean} anew
   */
  draw(state, result, anew) {
    const shape = `${state.entries.length} ${state.rest.count > 0}`;
    if (anew || shape !== this.shape) this.build(state);
    this.shape = shape;
    const most = {
      gradLogProb: largest(result.gradLogProb),
      gradEntropy: largest(result.gradEntropy),
      term: largest(result.terms),
    };
    for (const [i, line] of this.lines.entries()) this.drawLine(state, result, i, line, most);
    if (this.restRow) {
      const i = state.entries.length;
      find(this.restRow, "th").textContent = t("logits.others", {
        count: state.rest.count,
        logit: short(state.rest.logit),
      });
      fill(this.restRow, result, i, most);
    }
    if (this.totals) this.drawTotals(result);
  }

  /** @param {State} state */
  build(state) {
    const held = this.scroller.contains(document.activeElement) ? document.activeElement?.id : "";
    this.title.textContent = t("logits.entries");
    this.scroller.setAttribute("aria-label", t("logits.entries"));
    this.lines = state.entries.map((_, i) => this.line(i));
    const cells = () => COLUMNS.map((column) => html("td", { class: `logits-cell ${column}`, "data-column": column }));
    this.restRow =
      state.rest.count > 0
        ? html("tr", { class: "logits-rest" }, html("th", { scope: "row", colspan: 3 }), ...cells())
        : null;
    this.totals = html(
      "tr",
      { class: "agg-total" },
      html("th", { scope: "row", colspan: 3 }, t("logits.total")),
      ...cells(),
    );
    const head = [
      "logits.column.chosen",
      "logits.column.token",
      "logits.column.logit",
      ...COLUMNS.map((column) => `logits.column.${column}`),
    ];
    this.scroller.replaceChildren(
      html(
        "table",
        { class: "lab-table logits-table" },
        html("thead", {}, html("tr", {}, ...head.map((key) => html("th", { scope: "col" }, t(key))))),
        html("tbody", {}, ...this.lines.map(({ row }) => row), this.restRow),
        html("tfoot", {}, this.totals),
      ),
    );
    // a table rebuilt while it is being edited keeps the focus
    if (held) document.getElementById(held)?.focus();
  }

  /** @param {number} i @returns {Line} */
  line(i) {
    const number = i + 1;
    const entry = () => this.handlers.state().entries[i];
    const radio = html("input", {
      type: "radio",
      name: "logits-chosen",
      id: `logits-chosen-${i}`,
      "aria-label": t("logits.choose", { number }),
      onchange: () => this.handlers.choose(i),
    });
    const text = html("input", {
      type: "text",
      class: "logits-text",
      id: `logits-text-${i}`,
      maxlength: LONGEST,
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": t("logits.text", { number }),
    });
    text.addEventListener(
      "change",
      () => text.value !== entry().text && this.handlers.change(i, { text: text.value }, false),
    );
    const logit = numberField(`logits-z-${i}`, {
      label: [t("logits.logit", { number })],
      step: 0.1,
      set: (value, continued) => {
        this.handlers.change(i, { logit: value }, continued);
        return null;
      },
    });
    const mask = html(
      "button",
      {
        type: "button",
        class: "small",
        id: `logits-mask-${i}`,
        "aria-label": t("logits.mask", { number }),
        onclick: () => this.handlers.change(i, { logit: entry().logit === -Infinity ? 0 : -Infinity }, false),
      },
      "−∞",
    );
    const row = html(
      "tr",
      {},
      html("td", {}, radio),
      html("td", {}, text),
      html("td", {}, html("span", { class: "logits-logit" }, logit.element, mask)),
      ...COLUMNS.map((column) => html("td", { class: `logits-cell ${column}`, "data-column": column })),
    );
    return { row, radio, text, logit, mask };
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {number} i
   * @param {Line} line
   * @param {Record<string, number>} most
   */
  drawLine(state, result, i, { row, radio, text, logit, mask }, most) {
    const entry = state.entries[i];
    radio.checked = i === state.chosen;
    if (document.activeElement !== text || text.value !== entry.text) text.value = entry.text;
    logit.show(entry.logit);
    mask.setAttribute("aria-pressed", String(entry.logit === -Infinity));
    row.classList.toggle("chosen", i === state.chosen);
    row.classList.toggle("logits-masked", entry.logit === -Infinity);
    fill(row, result, i, most);
  }

  /**
   * Sums over the whole vocabulary; how many entries a line stands for is the page's own factor.
   * @param {Result} result
   */
  drawTotals(result) {
    const sum = (/** @type {ArrayLike<number>} */ values) =>
      Array.from(values).reduce((all, value, i) => all + result.counts[i] * value, 0);
    const rounded = (/** @type {number} */ value) => (Math.abs(value) < 1e-12 ? 0 : value);
    const texts = {
      prob: brief(rounded(sum(result.probs))),
      surprise: "",
      term: `${brief(result.expectedSurprise)} = H`,
      gradLogProb: brief(rounded(sum(result.gradLogProb))),
      gradEntropy: brief(rounded(sum(result.gradEntropy))),
    };
    for (const [column, words] of Object.entries(texts)) {
      /** @type {HTMLElement} */ (this.totals?.querySelector(`[data-column=${column}]`)).textContent = words;
    }
  }
}

/**
 * @param {HTMLElement} row
 * @param {Result} result
 * @param {number} i
 * @param {Record<string, number>} most
 */
function fill(row, result, i, most) {
  const put = (
    /** @type {string} */ column,
    /** @type {string} */ text,
    /** @type {number} */ share,
    /** @type {number} */ value,
  ) => {
    const cell = find(row, `[data-column=${column}]`);
    cell.textContent = text;
    cell.title = String(value).replace("-", "−");
    cell.style.setProperty("--share", Number.isFinite(share) ? Math.min(1, Math.abs(share)).toFixed(4) : "0");
    cell.classList.toggle("minus", value < 0);
    cell.classList.toggle("plus", value > 0);
  };
  put("prob", brief(result.probs[i]), result.probs[i], result.probs[i]);
  put("surprise", brief(0 - result.logProbs[i]), 0, 0 - result.logProbs[i]);
  put("term", brief(result.terms[i]), result.terms[i] / (most.term || 1), result.terms[i]);
  put(
    "gradLogProb",
    signed(Number(result.gradLogProb[i].toPrecision(4))),
    result.gradLogProb[i] / (most.gradLogProb || 1),
    result.gradLogProb[i],
  );
  put(
    "gradEntropy",
    signed(Number(result.gradEntropy[i].toPrecision(4))),
    result.gradEntropy[i] / (most.gradEntropy || 1),
    result.gradEntropy[i],
  );
}
