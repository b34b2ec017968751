// Why the focused cell holds what it holds: formula, the same with numbers, the value, where it belongs, where it comes from.

import { html } from "../parts/dom.js";
import { full, short } from "../parts/format.js";
import { withNumbers, withSymbols } from "./formulas.js";
import { t } from "../i18n/index.js";
import { math, symbol } from "../parts/math.js";
import { copyText as copy } from "../parts/save.js";
import { rowByKey, sourcesOf, weightRow } from "./rows.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./compute.js").Result} Result */
/** @typedef {import("../parts/grid.js").Place} Place */

const STEPPING = ["delta", "advantage", "discountedReturn"];

export class Explanation {
  /**
   * @param {HTMLElement} container
   * @param {(id: string) => void} follow goes to a cell or a parameter
   */
  constructor(container, follow) {
    this.container = container;
    this.follow = follow;
    // on a phone the panel is a sheet from below: its title is enough until it is asked for
    this.open = !window.matchMedia("(max-width: 40rem)").matches;
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {Place} place
   */
  draw(state, result, place) {
    const row = rowByKey.get(place.row);
    if (!row) return;
    const { index } = place;
    const kind = row.kind(state);
    const value = result.rows[row.key]?.[index];
    const dropped = index < state.mask.length && !state.mask[index];
    const formula = dropped || kind !== "result" ? null : withSymbols(state, row.key, index);
    this.container.replaceChildren(
      this.title(state, place, value, kind),
      html(
        "div", { class: "body", id: "explain-body" },
        formula && html("div", { class: "formula" }, html("div", {}, formula), value === undefined ? null : html("div", {}, withNumbers(state, result, row.key, index))),
        value !== undefined && this.value(value),
        html("p", { class: "meaning" }, t(row.key === "value" && index === state.tokens.length ? "meaning.valueEnd" : `meaning.${row.key}`)),
        html("p", { class: "notes" }, notes(state, result, place).join(" ")),
        this.sources(state, place),
      ),
    );
    this.container.classList.toggle("open", this.open);
  }

  /**
   * @param {State} state
   * @param {Place} place
   * @param {number | undefined} value
   * @param {string} kind
   */
  title(state, place, value, kind) {
    const shown = place.row === "mask" ? t(state.mask[place.index] ? "grid.kept" : "grid.dropped") : value === undefined ? "—" : short(value);
    const text = t(kind === "result" ? "explain.title" : "explain.titleInput", { value: shown });
    const toggle = html("button", { type: "button", class: "sheet", "aria-expanded": this.open, "aria-controls": "explain-body", "aria-label": t("explain.open") }, "▾");
    toggle.addEventListener("click", () => {
      this.open = !this.open;
      this.container.classList.toggle("open", this.open);
      toggle.setAttribute("aria-expanded", String(this.open));
    });
    const sign = math("inline", symbol(place.row, place.index));
    return html("h2", {}, html("span", { class: "sign" }, sign), html("span", { class: "what" }, t(`row.${place.row}`)), html("span", { class: "why" }, text), toggle);
  }

  /** @param {number} value */
  value(value) {
    const text = full(value);
    const copy = html("button", { type: "button", class: "small" }, t("explain.copy"));
    copy.addEventListener("click", async () => {
      await copyText(text);
      copy.textContent = t("explain.copied");
    });
    return html("p", { class: "digits" }, html("span", { class: "quiet" }, `${t("explain.value")} `), html("output", {}, text), " ", copy);
  }

  /**
   * @param {State} state
   * @param {Place} place
   */
  sources(state, place) {
    const row = rowByKey.get(place.row);
    const sources = row ? sourcesOf(row, state, place.index).filter((id) => !id.startsWith("mask.")) : [];
    if (sources.length === 0) return null;
    const links = sources.map((id) => {
      const [key, index] = id.split(".");
      const sign = index === undefined ? symbol(key) : symbol(key, Number(index));
      const words = index === undefined ? t(`parameter.${key}`) : `${t(`row.${key}`)} ${Number(index) + 1}`;
      return html("button", { type: "button", class: "source", "data-source": id, onclick: () => this.follow(id) }, html("span", { "aria-hidden": "true" }, math("inline", sign)), html("span", { class: "unseen" }, words));
    });
    return html("p", { class: "from" }, html("span", { class: "quiet" }, t("explain.from")), ...links);
  }
}

/**
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 * @returns {string[]}
 */
function notes(state, result, place) {
  const row = rowByKey.get(place.row);
  const { index } = place;
  const words = { number: index + 1, token: `“${state.tokens[index] ?? ""}”`, index };
  const atEnd = index === state.tokens.length;
  const align = row?.align === "action" ? "explain.alignAction" : atEnd ? "explain.alignEnd" : "explain.alignState";
  const found = [t(align, words)];
  const kind = row?.kind(state);
  if (kind === "mask") return [...found, t("explain.givenMask")];
  if (!atEnd && !state.mask[index]) return [...found, t(kind === "input" ? "explain.droppedInput" : "explain.dropped")];
  if (kind === "input") return [...found, t("explain.given")];
  if (result.rows[place.row] === undefined) return [...found, t("explain.missing")];
  found.push(t(maskRule(place.row)));
  const weight = result.rows[weightRow(state)]?.[index];
  if (place.row === "gradient" && result.rows.gradient?.[index] === 0 && weight !== 0) found.push(t("explain.clipped"));
  return found;
}

/** @param {string} row */
function maskRule(row) {
  if (STEPPING.includes(row)) return "explain.maskStep";
  if (row === "whitened") return "explain.maskMean";
  if (row === "gradient") return "explain.maskCount";
  return "explain.maskKept";
}

/**
 * The typographic minus is for reading, programs want the plain one.
 * @param {string} text
 */
export const copyText = (text) => copy(text.replaceAll("−", "-"));
