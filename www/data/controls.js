// The fields beside the table: what is computed how, what is shown, what is left out.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { choiceField, numberField } from "../parts/fields.js";
import { full } from "../parts/format.js";
import { KL, NUMBERS, problem } from "./state.js";
import { quantityName } from "./words.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./types.js").Loaded} Loaded */

const SYMBOLS = { gamma: "γ", lambda: "λ", beta: "β", clipLow: "ε⁻", clipHigh: "ε⁺", tolerance: "" };
const STEPS = { gamma: 0.01, lambda: 0.01, beta: 0.01, clipLow: 0.01, clipHigh: 0.01, tolerance: 0.0001 };
/** At most this many entries are listed. */
const LISTED = 300;

/** @typedef {{ get: () => State, set: (next: State, continued?: boolean) => void }} Access */

/**
 * A choice that keeps its focus when redrawn.
 * @param {string} name
 * @param {{ label: string, options: { value: string, text: string }[], value: string,
 *   set: (value: string) => void }} options
 */
function choice(name, { label, options, value, set }) {
  const { element, select } = choiceField(`data-${name}`, { label, options, set });
  select.value = value;
  return element;
}

/** @param {string} name @param {{ label: string, checked: boolean, set: (on: boolean) => void }} options */
function check(name, { label, checked, set }) {
  const box = html("input", { type: "checkbox", id: `data-${name}` });
  box.checked = checked;
  box.addEventListener("change", () => set(box.checked));
  return html("label", { class: "check" }, box, " ", label);
}

export class Controls {
  /** @param {Access} access */
  constructor(access) {
    this.access = access;
    this.numbers = html("div", { class: "controls", id: "data-settings" });
    this.shown = html("div", { class: "controls", id: "data-shown" });
    /** @type {Map<string, import("../parts/fields.js").NumberField>} */
    this.fields = new Map();
    this.drawnFor = "";
  }

  /** @param {Partial<State["settings"]>} settings @param {boolean} [continued] */
  setting(settings, continued) {
    const state = this.access.get();
    this.access.set({ ...state, settings: { ...state.settings, ...settings } }, continued);
  }

  /** Draws again in the current language. */
  build() {
    this.fields.clear();
    for (const key of NUMBERS) {
      const name = t(`data.setting.${key}`);
      const field = numberField(`data-${key}`, {
        label: [name.includes(SYMBOLS[key]) ? name : `${SYMBOLS[key]} ${name}`],
        step: STEPS[key],
        set: (value, continued) => {
          const why = problem(key, value);
          if (why !== null)
            return t("bad.refused", { reason: t(`data.bad.${why}`), old: full(this.access.get().settings[key]) });
          this.setting({ [key]: value }, continued);
          return null;
        },
      });
      this.fields.set(key, field);
    }
    this.drawnFor = "";
  }

  /** @param {State} state @param {Loaded} data @param {string} colour */
  draw(state, data, colour) {
    for (const [key, field] of this.fields) field.show(state.settings[/** @type {"gamma"} */ (key)]);
    // rebuilt only when something in it changes, so that a field being typed in stays
    const shape = JSON.stringify([
      data.key,
      data.keys,
      state.settings.kl,
      state.settings.firstUpdate,
      state.scoreName,
      state.view,
      state.filter,
      state.hidden,
      colour,
    ]);
    if (shape === this.drawnFor) return;
    this.drawnFor = shape;
    const focused = document.activeElement?.id;
    const open = this.shown.querySelector("details")?.open ?? false;
    const { settings } = state;
    const kl = choice("kl", {
      label: t("data.setting.kl"),
      value: settings.kl,
      options: KL.map((value) => ({ value, text: value === "abs" ? t("data.kl.abs") : value })),
      set: (value) => this.setting({ kl: /** @type {"k1"} */ (value) }),
    });
    const names =
      state.scoreName === "" || data.passedOver.includes(state.scoreName)
        ? data.passedOver
        : [state.scoreName, ...data.passedOver];
    const score =
      names.length === 0
        ? null
        : choice("score", {
            label: t("data.setting.score"),
            value: state.scoreName,
            options: [{ value: "", text: t("data.score.usual") }, ...names.map((value) => ({ value, text: value }))],
            set: (scoreName) => this.access.set({ ...this.access.get(), scoreName }),
          });
    const first = check("first", {
      label: t("data.setting.firstUpdate"),
      checked: settings.firstUpdate,
      set: (firstUpdate) => this.setting({ firstUpdate }),
    });
    const elements = [...this.fields].map(([key, field]) => [key, field.element]);
    this.numbers.replaceChildren(
      ...elements.filter(([key]) => key !== "tolerance").map(([, element]) => element),
      kl,
      ...(score ? [score] : []),
      ...elements.filter(([key]) => key === "tolerance").map(([, element]) => element),
      first,
    );
    this.shown.replaceChildren(
      ...this.views(state),
      ...this.filters(state, data, colour),
      this.columns(state, data, open),
    );
    if ((focused && focused.startsWith("data-")) || focused?.startsWith("choice-data-"))
      document.getElementById(focused ?? "")?.focus();
  }

  /** @param {State} state */
  views(state) {
    const buttons = /** @type {const} */ (["tokens", "sequences", "text"]).map((view) =>
      html(
        "button",
        {
          type: "button",
          id: `data-view-${view}`,
          "aria-pressed": String(view === state.view),
          onclick: () => {
            const now = this.access.get();
            const sort =
              view === "sequences"
                ? now.sort
                : ["place", "length"].includes(now.sort.key)
                  ? { key: "sequence", descending: false }
                  : now.sort;
            this.access.set({ ...now, view, sort });
          },
        },
        t(`data.view.${view}`),
      ),
    );
    return [html("div", { class: "views", role: "group", "aria-label": t("data.view.label") }, ...buttons)];
  }

  /** @param {State} state @param {Loaded} data @param {string} colour */
  filters(state, data, colour) {
    const set = (/** @type {Partial<State["filter"]>} */ filter) => {
      const now = this.access.get();
      this.access.set({ ...now, filter: { ...now.filter, ...filter } });
    };
    const number = (/** @type {string} */ value) => (value === "" ? null : Number(value));
    const fields = [];
    if (data.keys.length > 0) {
      fields.push(
        choice("colour", {
          label: t("data.colour"),
          value: colour,
          options: data.keys.map((key) => ({ value: key, text: quantityName(key) })),
          set: (key) => this.access.set({ ...this.access.get(), colour: key }),
        }),
      );
    }
    if (state.view === "text") return fields;
    const all = { value: "", text: t("data.filter.all") };
    const listed = (
      /** @type {"step" | "group" | "sequence"} */ name,
      /** @type {{ value: string, text: string }[]} */ options,
    ) =>
      choice(`filter-${name}`, {
        label: t(`data.filter.${name}`),
        value: state.filter[name] === null ? "" : String(state.filter[name]),
        options: [all, ...options],
        set: (value) => set({ [name]: number(value) }),
      });
    if (data.steps.length > 1)
      fields.push(
        listed(
          "step",
          data.steps.slice(0, LISTED).map((step) => ({ value: String(step), text: String(step) })),
        ),
      );
    if (data.groupNames.length > 1 && data.groupNames.length <= LISTED)
      fields.push(
        listed(
          "group",
          data.groupNames.map((name, index) => ({ value: String(index), text: `${index + 1} · ${name.slice(0, 24)}` })),
        ),
      );
    if (state.view === "tokens") {
      if (data.sequences <= LISTED)
        fields.push(
          listed(
            "sequence",
            Array.from({ length: data.sequences }, (_, index) => ({ value: String(index), text: String(index + 1) })),
          ),
        );
      else fields.push(this.sequenceNumber(state, data, set));
      fields.push(
        check("kept", { label: t("data.filter.kept"), checked: state.filter.kept, set: (kept) => set({ kept }) }),
      );
    }
    return fields;
  }

  /** @param {State} state @param {Loaded} data @param {(filter: Partial<State["filter"]>) => void} set */
  sequenceNumber(state, data, set) {
    const input = html("input", {
      type: "text",
      inputmode: "numeric",
      id: "data-filter-sequence",
      autocomplete: "off",
      placeholder: t("data.filter.all"),
    });
    input.value = state.filter.sequence === null ? "" : String(state.filter.sequence + 1);
    input.addEventListener("change", () => {
      const wanted = Number(input.value);
      const fits = Number.isInteger(wanted) && wanted >= 1 && wanted <= data.sequences;
      if (input.value.trim() === "") set({ sequence: null });
      else if (fits) set({ sequence: wanted - 1 });
      else input.value = state.filter.sequence === null ? "" : String(state.filter.sequence + 1);
    });
    return html(
      "div",
      { class: "field" },
      html("label", { for: "data-filter-sequence" }, t("data.filter.sequenceOf", { count: data.sequences })),
      input,
    );
  }

  /** @param {State} state @param {Loaded} data @param {boolean} open */
  columns(state, data, open) {
    const boxes = data.keys.map((key) =>
      check(`column-${key}`, {
        label: quantityName(key),
        checked: !state.hidden.includes(key),
        set: (on) => {
          const now = this.access.get();
          this.access.set({ ...now, hidden: on ? now.hidden.filter((each) => each !== key) : [...now.hidden, key] });
        },
      }),
    );
    return html(
      "details",
      { class: "columns", open, hidden: state.view === "text" || boxes.length === 0 },
      html("summary", { id: "data-columns" }, t("data.columns")),
      html("div", { class: "boxes" }, ...boxes),
    );
  }
}
