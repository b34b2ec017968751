// What the pages with curves of several runs share: runs that come in, go and are switched off, smoothing, and the part
// of the steps that is shown. The texts are those of the page, under its id.

import { t } from "../i18n/index.js";
import { html } from "./dom.js";
import { choiceField } from "./fields.js";
import { short } from "./format.js";
import { sample } from "./plot.js";
import { smoothKinds } from "./runs-state.js";
import { slider } from "./slider.js";

/** @typedef {import("./runs-state.js").Smooth} Smooth */

/**
 * @typedef {object} Shown what the states of these pages have in common
 * @property {{ key: string, label: string, off: boolean }[]} runs
 * @property {Smooth} smooth
 * @property {[number, number] | null} zoom the steps shown, null for all
 */

/**
 * @typedef {object} Kind
 * @property {string} id of the page
 * @property {string} first the id of what is focused when the last run is gone
 * @property {(state: any, loaded: any[]) => Shown} withLoaded
 * @property {(state: any, key: string) => Shown} without
 * @property {(state: any, key: string, change: any) => Shown} withRun
 */

export class RunsFrame {
  /**
   * @param {HTMLElement} container
   * @param {import("../pages.js").Context} context
   * @param {Kind} kind
   */
  constructor(container, context, kind) {
    this.context = context;
    this.container = container;
    this.kind = kind;
    /** @type {any[]} read while another page was in front */
    this.pending = [];
  }

  /** @returns {Shown} */
  get state() {
    return this.context.state();
  }

  /** First and last step of all that is drawn. @returns {[number, number]} */
  get domain() {
    throw new Error("every page has its own");
  }

  /** @param {any[]} loaded */
  add(loaded) {
    if (this.container.hidden) this.pending.push(...loaded);
    else this.context.change(this.kind.withLoaded(this.state, loaded));
  }

  /** When the page is in front again. */
  addPending() {
    if (this.pending.length > 0) setTimeout(() => !this.container.hidden && this.add(this.pending.splice(0)));
  }

  /** @param {string} key */
  remove(key) {
    const { runs } = this.state;
    const { id, first, without } = this.kind;
    const index = runs.findIndex((run) => run.key === key);
    const next = runs[index + 1] ?? runs[index - 1];
    this.context.change(without(this.state, key));
    document.getElementById(next ? `${id}-remove-${next.key}` : first)?.focus();
  }

  /**
   * The name of a run, which switches it off and on.
   * @param {Shown["runs"][number]} run
   * @param {number} colour
   * @param {number} [dash]
   * @param {string} [more] after the name
   */
  keyOf(run, colour, dash, more = "") {
    const { id, withRun } = this.kind;
    return html(
      "button",
      {
        type: "button",
        class: "key",
        id: `${id}-key-${run.key}`,
        "aria-pressed": run.off ? "false" : "true",
        onclick: () => this.context.change(withRun(this.state, run.key, { off: !run.off })),
      },
      sample(colour, dash),
      run.label,
      more,
    );
  }

  /** What is wider than everything is everything. @param {[number, number] | null} zoom */
  setZoom(zoom) {
    const [low, high] = this.domain;
    const size = zoom ? Math.min(high - low, zoom[1] - zoom[0]) : high - low;
    const from = zoom ? Math.min(Math.max(low, zoom[0]), high - size) : low;
    const next = /** @type {[number, number] | null} */ (size >= high - low ? null : [from, from + size]);
    if (JSON.stringify(next) !== JSON.stringify(this.state.zoom) && (next === null || next[1] > next[0]))
      this.context.change({ ...this.state, zoom: next });
  }

  /** The buttons that choose the steps shown, in the current language. */
  zoomTools() {
    const { id } = this.kind;
    const tool = (/** @type {string} */ name, /** @type {() => void} */ press) =>
      html("button", { type: "button", id: `${id}-zoom-${name}`, onclick: press }, t(`${id}.zoom.${name}`));
    const by = (/** @type {number} */ factor, /** @type {number} */ shift) => () => {
      const [low, high] = this.state.zoom ?? this.domain;
      const [middle, half] = [(low + high) / 2 + shift * (high - low), ((high - low) / 2) * factor];
      this.setZoom([middle - half, middle + half]);
    };
    return [
      tool("in", by(0.5, 0)),
      tool("out", by(2, 0)),
      tool("left", by(1, -0.5)),
      tool("right", by(1, 0.5)),
      tool("all", () => this.setZoom(null)),
    ];
  }

  /** The fields of the smoothing, in the current language. */
  smoothFields() {
    const { id } = this.kind;
    const set = (/** @type {Partial<Smooth>} */ change, continued = false) =>
      this.context.change({ ...this.state, smooth: { ...this.state.smooth, ...change } }, continued);
    const kind = choiceField(`${id}-smooth`, {
      label: t(`${id}.smooth`),
      options: smoothKinds.map((each) => ({ value: each, text: t(`${id}.smooth.${each}`) })),
      set: (value) => set({ kind: /** @type {Smooth["kind"]} */ (value) }),
    });
    const window = slider(`${id}-window`, t(`${id}.window`), [3, 201, 2], (value, continued) =>
      set({ window: value }, continued),
    );
    const weight = slider(`${id}-weight`, t(`${id}.weight`), [0, 0.99, 0.01], (value, continued) =>
      set({ weight: value }, continued),
    );
    this.smoothing = { kind, window, weight };
    return [kind.element, window.element, weight.element];
  }

  /** @param {Smooth} smooth */
  showSmooth(smooth) {
    if (!this.smoothing) return;
    const { kind, window, weight } = this.smoothing;
    kind.select.value = smooth.kind;
    window.element.hidden = smooth.kind !== "mean";
    weight.element.hidden = smooth.kind !== "ema";
    window.show(smooth.window, t(`${this.kind.id}.window.value`, { count: smooth.window }));
    weight.show(smooth.weight, short(smooth.weight));
  }
}
