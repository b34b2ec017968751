// The runs side by side: name, look, statistics, where each collapsed; they can be renamed, reordered and removed.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { full, short } from "../parts/format.js";
import { sample } from "../parts/plot.js";
import { collapse } from "./curve.js";
import { pointsOf } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Run} Run */
/** @typedef {{ steps: number, mean: number, max: number, min: number, first: number, last: number }} Statistics */

/** @type {Map<string, Statistics>} */
const known = new Map();

/**
 * @param {import("../engine.js").Library} library
 * @param {Run} run
 * @returns {Statistics | null}
 */
export function statistics(library, run) {
  const points = pointsOf(run);
  if (!points) return null;
  const found = known.get(run.data);
  if (found) return found;
  const { entropies } = points;
  const batch = library.Batch.padded(1, entropies.length, new Uint8Array(entropies.length).fill(1));
  const mean = library.meanF64(batch, entropies);
  batch.free();
  const made = {
    steps: entropies.length,
    mean,
    max: entropies.reduce((a, b) => Math.max(a, b)),
    min: entropies.reduce((a, b) => Math.min(a, b)),
    first: entropies[0],
    last: entropies[entropies.length - 1],
  };
  known.set(run.data, made);
  return made;
}

/**
 * @param {State} state
 * @param {Run} run
 * @returns {number | null} the step of the collapse
 */
export function collapseStep({ share }, run) {
  const points = pointsOf(run);
  const at = points ? collapse(points.entropies, share) : -1;
  return points && at >= 0 ? points.steps[at] : null;
}

const NUMBERS = /** @type {const} */ (["steps", "mean", "max", "min", "first", "last"]);

/**
 * @typedef {object} Actions
 * @property {(key: string, label: string) => void} rename
 * @property {(key: string) => void} recolour
 * @property {(key: string, by: number) => void} move
 * @property {(key: string) => void} remove
 */

export class RunTable {
  /**
   * @param {HTMLElement} container
   * @param {import("../engine.js").Library} library
   * @param {Actions} actions
   */
  constructor(container, library, actions) {
    this.container = container;
    this.library = library;
    this.actions = actions;
    this.built = "";
  }

  /**
   * Built anew when there are other runs; otherwise only the numbers change, so that a name being typed is left alone.
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    const built = JSON.stringify(
      state.runs.map(({ key, data, colour }) => [
        key,
        data,
        colour,
        pointsOf(/** @type {any} */ ({ data })) !== undefined,
      ]),
    );
    if (anew || built !== this.built) {
      const focus = document.activeElement?.id ?? "";
      this.build(state);
      this.built = built;
      if (focus.startsWith("histories-")) document.getElementById(focus)?.focus();
    }
    for (const run of state.runs) {
      const field = /** @type {HTMLInputElement | null} */ (document.getElementById(`histories-label-${run.key}`));
      if (field && field.value !== run.label) field.value = run.label;
      const cell = this.container.querySelector(`[data-run="${run.key}"] [data-number="collapse"]`);
      if (!cell) continue;
      const step = collapseStep(state, run);
      cell.textContent = step === null ? t("histories.never") : t("histories.atStep", { step });
      cell.classList.toggle("collapsed", step !== null);
    }
    const head = this.container.querySelector("[data-head=collapse]");
    if (head) head.textContent = t("histories.column.collapse", { share: short(state.share * 100) });
  }

  /** @param {State} state */
  build(state) {
    const heads = ["run", ...NUMBERS, "collapse", "actions"].map((head) =>
      html("th", { scope: "col", "data-head": head }, head === "collapse" ? "" : t(`histories.column.${head}`)),
    );
    this.container.replaceChildren(
      html(
        "table",
        { class: "lab-table" },
        html("caption", {}, t("histories.table.caption")),
        html("thead", {}, html("tr", {}, ...heads)),
        html("tbody", {}, ...state.runs.map((run, index) => this.row(run, index, state.runs.length))),
      ),
    );
  }

  /**
   * @param {Run} run
   * @param {number} index
   * @param {number} count
   */
  row(run, index, count) {
    const { actions } = this;
    const { key, label, colour } = run;
    const field = html("input", {
      type: "text",
      id: `histories-label-${key}`,
      maxlength: 120,
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": t("histories.rename", { label }),
    });
    field.value = label;
    field.addEventListener("change", () => {
      const typed = field.value.trim();
      if (typed === "") field.value = label;
      else actions.rename(key, typed);
    });
    const look = html(
      "button",
      {
        type: "button",
        class: "look",
        id: `histories-look-${key}`,
        "aria-label": t("histories.recolour", { label, number: colour + 1 }),
        title: t("histories.recolour", { label, number: colour + 1 }),
        onclick: () => actions.recolour(key),
      },
      sample(colour),
    );
    const button = (
      /** @type {string} */ id,
      /** @type {string} */ sign,
      /** @type {() => void} */ press,
      useless = false,
    ) =>
      html(
        "button",
        {
          type: "button",
          class: "small",
          id: `histories-${id}-${key}`,
          "aria-label": t(`histories.${id}`, { label }),
          title: t(`histories.${id}`, { label }),
          "aria-disabled": useless ? "true" : null,
          onclick: press,
        },
        sign,
      );
    const numbers = statistics(this.library, run);
    const cells = numbers
      ? [
          ...NUMBERS.map((name) =>
            html("td", { "data-number": name, title: full(numbers[name]) }, short(numbers[name])),
          ),
          html("td", { "data-number": "collapse" }),
        ]
      : [
          html(
            "td",
            { colspan: NUMBERS.length + 1, class: "words missing" },
            t("histories.missing", { file: run.file || label }),
          ),
        ];
    return html(
      "tr",
      { "data-run": key },
      html("th", { scope: "row" }, html("span", { class: "name-cell" }, look, field)),
      ...cells,
      html(
        "td",
        { class: "actions" },
        button("up", "↑", () => actions.move(key, -1), index === 0),
        button("down", "↓", () => actions.move(key, 1), index === count - 1),
        button("remove", "✕", () => actions.remove(key)),
      ),
    );
  }
}

/**
 * @param {import("../engine.js").Library} library
 * @param {State} state
 * @returns {string} the table as CSV
 */
export function statisticsCsv(library, state) {
  const quoted = (/** @type {string} */ text) => `"${text.replaceAll('"', '""')}"`;
  const rows = state.runs.map((run) => {
    const numbers = statistics(library, run);
    return [
      quoted(run.label),
      ...NUMBERS.map((name) => (numbers ? numbers[name] : "")),
      collapseStep(state, run) ?? "",
    ].join(",");
  });
  return `${["run", ...NUMBERS, "collapse_step"].join(",")}\n${rows.join("\n")}\n`;
}
