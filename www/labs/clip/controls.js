// The fields of the clip laboratory: the token, the picture, the losses and their numbers.

import { html } from "../../parts/dom.js";
import { choiceField, numberField } from "../../parts/fields.js";
import { full } from "../../parts/format.js";
import { math, name, sub, upright } from "../../parts/math.js";
import { sample } from "../../parts/plot.js";
import { t } from "../../i18n/index.js";
import { signOf } from "./formulas.js";
import { families, lookOf, losses, lossOf, parametersOf } from "./losses.js";
import { LIMITS, presetOf, presets, ranges, reach, scales, withProbability, withToggled } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {{ state: () => State, change: (next: State, continued?: boolean) => void }} Access */

/**
 * A number of the state with its limits.
 * @param {Access} access
 * @param {{ key: string, label: import("../../parts/dom.js").Child[], step: number, good: (value: number) => boolean,
 *   limits: () => Record<string, string>, get: (state: State) => number,
 *   put: (state: State, value: number) => State }} options
 */
function field({ state, change }, { key, label, step, good, limits, get, put }) {
  const made = numberField(`clip-${key}`, {
    label,
    step,
    set: (value, continued) => {
      if (!good(value)) return t("clip.bad", { ...limits(), old: full(get(state())) });
      change(put(state(), value), continued);
      return null;
    },
  });
  return { ...made, get };
}

const within = (/** @type {number} */ least, /** @type {number} */ most) => ({
  good: (/** @type {number} */ value) => value >= least && value <= most,
  limits: () => ({ least: full(least), most: full(most) }),
});

/**
 * @param {Access} access
 * @returns {{ elements: HTMLElement[], show: (state: State) => void }}
 */
export function mainFields(access) {
  const { state, change } = access;
  const preset = choiceField("clip-preset", {
    label: t("clip.preset"),
    options: ["", ...presets.map(({ id }) => id)].map((id) => ({ value: id, text: t(`clip.preset.${id || "own"}`) })),
    set: (id) => {
      const found = presets.find((one) => one.id === id);
      if (found) change(found.state);
    },
  });
  preset.select.options[0].disabled = true;
  const words = (/** @type {Element} */ sign, /** @type {string} */ text) => [math("inline", sign), " ", text];
  const advantage = field(access, {
    key: "advantage",
    label: words(name("A"), t("clip.advantage")),
    step: 0.1,
    ...within(-LIMITS.advantage, LIMITS.advantage),
    get: (s) => s.advantage,
    put: (s, value) => ({ ...s, advantage: value }),
  });
  const flip = html(
    "button",
    { type: "button", id: "clip-flip", onclick: () => change({ ...state(), advantage: -state().advantage || 0 }) },
    t("clip.flip"),
  );
  const ratio = field(access, {
    key: "ratio",
    label: words(name("ρ"), t("clip.ratio")),
    step: 0.01,
    get: (s) => s.ratio,
    put: (s, value) => ({ ...s, ratio: value }),
    good: (value) => value >= LIMITS.ratio && value <= reach(state().q),
    limits: () => ({ least: full(LIMITS.ratio), most: full(Number(reach(state().q).toPrecision(6))) }),
  });
  const q = field(access, {
    key: "q",
    label: words(sub(name("π"), upright("old")), t("clip.q")),
    step: 0.01,
    ...within(LIMITS.q[0], LIMITS.q[1]),
    get: (s) => s.q,
    put: withProbability,
  });
  const scale = choiceField("clip-scale", {
    label: t("clip.scale"),
    options: scales.map((value) => ({ value, text: t(`clip.scale.${value}`) })),
    set: (value) => change({ ...state(), scale: /** @type {any} */ (value) }),
  });
  const most = choiceField("clip-most", {
    label: t("clip.most"),
    options: ranges.map((value) => ({ value: String(value), text: t("clip.most.to", { most: value }) })),
    set: (value) => change({ ...state(), most: Number(value) }),
  });
  const numbers = [advantage, ratio, q];
  return {
    elements: [preset.element, advantage.element, flip, ratio.element, q.element, scale.element, most.element],
    show: (now) => {
      preset.select.value = presetOf(now);
      scale.select.value = now.scale;
      most.select.value = String(now.most);
      for (const one of numbers) one.show(one.get(now));
    },
  };
}

/** The switches of the losses, and the numbers of those that are on. */
export class LossFields {
  /**
   * @param {HTMLElement} switches
   * @param {HTMLElement} parameters
   * @param {Access} access
   */
  constructor(switches, parameters, access) {
    this.switches = switches;
    this.parameters = parameters;
    this.access = access;
    this.built = "";
    /** @type {{ show: (value: number) => void, get: (state: State) => number }[]} */
    this.fields = [];
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    if (anew) this.drawSwitches();
    for (const { id } of losses)
      document.getElementById(`clip-on-${id}`)?.setAttribute("aria-pressed", String(state.on.includes(id)));
    // which fields there are depends on what is on and on the sign; a field in use stays where it is
    const wanted = [...state.on, state.advantage < 0].join();
    if (anew || wanted !== this.built) this.drawParameters(state);
    this.built = wanted;
    for (const field of this.fields) field.show(field.get(state));
  }

  drawSwitches() {
    const { state, change } = this.access;
    this.switches.replaceChildren(
      ...families.map((family) =>
        html(
          "div",
          { class: "clip-family", role: "group", "aria-label": t(`clip.family.${family.id}`) },
          html("span", { class: "clip-family-name" }, t(`clip.family.${family.id}`)),
          ...family.members.map(({ id }) => {
            const { colour, dash } = lookOf(id);
            return html(
              "button",
              {
                type: "button",
                class: "clip-switch",
                id: `clip-on-${id}`,
                onclick: () => change(withToggled(state(), id)),
              },
              sample(colour, dash),
              t(`clip.loss.${id}`),
            );
          }),
        ),
      ),
    );
  }

  /** @param {State} state */
  drawParameters(state) {
    this.fields = [];
    const groups = state.on.map((id) => {
      const fields = parametersOf(lossOf(id), state.advantage).map(({ key, sign, step, range }) =>
        field(this.access, {
          key: `${id}-${key}`,
          label: [math("inline", signOf(sign)), html("span", { class: "unseen" }, ` ${t(`clip.loss.${id}`)}`)],
          step,
          ...within(range[0], range[1]),
          get: (s) => s.values[`${id}.${key}`],
          put: (s, value) => ({ ...s, values: { ...s.values, [`${id}.${key}`]: value } }),
        }),
      );
      this.fields.push(...fields);
      return fields.length === 0
        ? null
        : html(
            "fieldset",
            { class: "clip-numbers", "data-numbers": id },
            html("legend", {}, t(`clip.loss.${id}`)),
            ...fields.map(({ element }) => element),
          );
    });
    this.parameters.replaceChildren(...groups.filter((group) => group !== null), ...this.sequence(state));
  }

  /** The other tokens, where a loss reads them. @param {State} state */
  sequence(state) {
    if (!state.on.some((id) => lossOf(id).sequence)) return [];
    const tokens = field(this.access, {
      key: "tokens",
      label: [math("inline", name("n")), " ", t("clip.tokens")],
      step: 1,
      good: (value) => Number.isInteger(value) && value >= LIMITS.tokens[0] && value <= LIMITS.tokens[1],
      limits: () => ({ least: full(LIMITS.tokens[0]), most: full(LIMITS.tokens[1]) }),
      get: (s) => s.tokens,
      put: (s, value) => ({ ...s, tokens: value }),
    });
    const other = field(this.access, {
      key: "other",
      label: [math("inline", sub(name("d"), upright("other"))), " ", t("clip.other")],
      step: 0.05,
      ...within(-LIMITS.other, LIMITS.other),
      get: (s) => s.other,
      put: (s, value) => ({ ...s, other: value }),
    });
    this.fields.push(tokens, other);
    return [
      html(
        "fieldset",
        { class: "clip-numbers", "data-numbers": "sequence" },
        html("legend", {}, t("clip.sequence")),
        tokens.element,
        other.element,
      ),
    ];
  }
}
