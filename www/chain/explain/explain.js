// Why the focused cell holds its number: formula, the same with numbers, the value, where it belongs,
// where it comes from.

import { html } from "../../parts/dom.js";
import { full, short } from "../../parts/format.js";
import { cellSymbol, withNumbers, withSymbols } from "../formulas/formulas.js";
import { t } from "../../i18n/index.js";
import { math, name, symbol } from "../../parts/math.js";
import { notesOf } from "./notes.js";
import { firstNotFinite } from "./not-finite.js";
import { copyNumber } from "../../parts/copy.js";
import { idOf } from "../../parts/grid.js";
import { rowByKey, sourcesOf, totalSources } from "../rows.js";
import { isKept } from "../state.js";
import { remember, remembered } from "../../parts/storage.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {import("../edit/edits.js").Place} Place */

/** At most this many sources are listed one by one; for more, their sum is shown. */
const FEW = 12;

export class Explanation {
  /**
   * @param {HTMLElement} container
   * @param {import("../../engine.js").Library} library
   * @param {(id: string) => void} follow goes to a cell or a parameter
   */
  constructor(container, library, follow) {
    this.container = container;
    this.library = library;
    this.follow = follow;
    // on a phone the panel is a sheet from below: only its title is shown until it is opened
    this.open = !window.matchMedia("(max-width: 40rem)").matches && remembered("explanation") !== "folded";
    // beside the grid where there is room for both: below it would cover half of the rows
    const place =
      remembered("explanation.place") ?? (window.matchMedia("(min-width: 82rem)").matches ? "side" : "below");
    this.docked = place === "side";
    this.show();
  }

  /** Folded or not, below the grid or beside it. */
  show() {
    this.container.classList.toggle("open", this.open);
    this.container.parentElement?.classList.toggle("folded", !this.open);
    this.container.closest(".page")?.classList.toggle("docked", this.docked);
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {Place} place
   * @param {(HTMLElement | null)[]} [more] what else is to be said
   */
  draw(state, result, place, more = []) {
    const row = rowByKey.get(place.row);
    const { sequence: s, index } = place;
    const kind = row?.kind(state) ?? "input";
    const value = row ? result.rows[row.key]?.[s]?.[index] : undefined;
    const sequence = state.sequences[s];
    const dropped = row?.align !== "sequence" && index < sequence.tokens.length && !isKept(sequence, index);
    const formula = withSymbols(this.library, state, result, place);
    const meaning =
      place.row === "value" && index === sequence.tokens.length ? "meaning.valueEnd" : meaningOf(state, place.row);
    this.container.replaceChildren(
      this.title(state, place, value, kind),
      html(
        "div",
        { class: "body", id: "explain-body" },
        formula &&
          html(
            "div",
            { class: "formula" },
            html("div", {}, formula),
            value === undefined ? null : html("div", {}, withNumbers(this.library, state, result, place)),
          ),
        value !== undefined && this.value(value),
        kind === "result" && !dropped && this.notFinite(state, result, place),
        html("p", { class: "meaning" }, t(meaning)),
        html("p", { class: "notes" }, notesOf(state, result, place).join(" ")),
        row && this.sources(state, result, place),
        ...more,
      ),
    );
  }

  /**
   * @param {State} state
   * @param {Place} place
   * @param {number | undefined} value
   * @param {string} kind
   */
  title(state, place, value, kind) {
    const { sequence: s, index } = place;
    const text =
      place.row === "mask"
        ? t(`role.${state.sequences[s].roles[index]}`)
        : place.row === "token"
          ? `“${state.sequences[s].tokens[index]}”`
          : value === undefined
            ? "—"
            : short(value);
    const title = t(kind === "result" ? "explain.title" : "explain.titleInput", { value: text });
    const toggle = html(
      "button",
      {
        type: "button",
        class: "sheet",
        "aria-expanded": String(this.open),
        "aria-controls": "explain-body",
        "aria-label": t("explain.open"),
      },
      "▾",
    );
    toggle.addEventListener("click", () => {
      this.open = !this.open;
      remember("explanation", this.open ? "open" : "folded");
      this.show();
      toggle.setAttribute("aria-expanded", String(this.open));
    });
    const dock = html(
      "button",
      { type: "button", class: "dock", id: "explain-dock" },
      t(this.docked ? "explain.below" : "explain.dock"),
    );
    dock.addEventListener("click", () => {
      this.docked = !this.docked;
      remember("explanation.place", this.docked ? "side" : "below");
      this.show();
      dock.textContent = t(this.docked ? "explain.below" : "explain.dock");
    });
    const sign = place.row === "token" ? null : math("inline", cellSymbol(state, place.row, s, index));
    return html(
      "h2",
      {},
      sign && html("span", { class: "sign" }, sign),
      html("span", { class: "what" }, t(`row.${place.row}`)),
      html("span", { class: "why" }, title),
      dock,
      toggle,
    );
  }

  /** @param {number} value */
  value(value) {
    const text = full(value);
    const copy = html("button", { type: "button", class: "small" }, t("explain.copy"));
    copy.addEventListener("click", async () => {
      await copyNumber(text);
      copy.textContent = t("explain.copied");
    });
    return html(
      "p",
      { class: "digits" },
      html("span", { class: "quiet" }, `${t("explain.value")} `),
      html("output", {}, text),
      " ",
      copy,
    );
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {Place} place
   */
  sources(state, result, place) {
    const row = rowByKey.get(place.row);
    const { settings } = result;
    const near = row ? sourcesOf(row, { state, settings, s: place.sequence, i: place.index }) : [];
    const sources = near.flatMap((id) => {
      if (!id.startsWith("total.")) return [id];
      const far = totalSources(state, settings, id).filter((source) => !source.startsWith("mask."));
      return far.length <= FEW
        ? far
        : id.split(".").length === 2 && ["mean", "variance"].includes(id.split(".")[1])
          ? [id]
          : [];
    });
    const shown = [...new Set(sources)].filter((id) => !id.startsWith("mask."));
    if (shown.length === 0) return null;
    return html(
      "p",
      { class: "from" },
      html("span", { class: "quiet" }, t("explain.from")),
      ...shown.map((id) => this.link(state, id)),
    );
  }

  /**
   * @param {State} state
   * @param {string} id
   */
  link(state, id) {
    return html(
      "button",
      { type: "button", class: "source", "data-source": id, onclick: () => this.follow(id) },
      html("span", { "aria-hidden": "true" }, math("inline", signOf(state, id))),
      html("span", { class: "unseen" }, wordsOf(state, id)),
    );
  }

  /**
   * @param {State} state
   * @param {Result} result
   * @param {Place} place
   */
  notFinite(state, result, place) {
    const first = firstNotFinite(state, result, idOf(place));
    if (!first) return null;
    if (first.id === idOf(place)) return html("p", { class: "not-finite" }, t("explain.notFinite.here"));
    const told = t(first.given ? "explain.notFinite.given" : "explain.notFinite.made");
    return html(
      "p",
      { class: "not-finite" },
      t("explain.notFinite.first"),
      " ",
      this.link(state, first.id),
      ` = ${short(first.value)} ${told}`,
    );
  }
}

/**
 * @param {State} state
 * @param {string} id
 */
function signOf(state, id) {
  const [key, sequence, index] = id.split(".");
  if (key === "total") return name(sequence === "mean" ? "μ" : "σ²");
  return sequence === undefined ? symbol(key) : cellSymbol(state, key, Number(sequence), Number(index));
}

/**
 * @param {State} state
 * @param {string} id
 */
function wordsOf(state, id) {
  const [key, sequence, index] = id.split(".");
  if (key === "total") return t(`summary.${sequence}`);
  if (sequence === undefined) return t(`parameter.${key}`);
  const ofSequence = rowByKey.get(key)?.align === "sequence";
  const word = `${t(`row.${key}`)} ${Number(ofSequence ? sequence : index) + 1}`;
  return state.sequences.length > 1 && !ofSequence
    ? t("grid.cell.within", { sequence: Number(sequence) + 1, cell: word })
    : word;
}

/** Rows whose meaning depends on a choice. */
const BY_CHOICE = { advantage: "advantage", lossTerm: "loss", tokenWeight: "aggregate", groupAdvantage: "advantage" };

/**
 * @param {State} state
 * @param {string} row
 */
function meaningOf(state, row) {
  const choice = BY_CHOICE[/** @type {keyof typeof BY_CHOICE} */ (row)];
  return choice
    ? `meaning.${choice}.${state.choices[/** @type {keyof State["choices"]} */ (choice)]}`
    : `meaning.${row}`;
}
