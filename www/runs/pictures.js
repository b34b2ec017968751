// A picture for every key, in groups by the part before the slash. Only those in sight are drawn, one in a frame, so
// that fifty runs with forty keys stay usable.

import { thinned } from "../histories/curve.js";
import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { PlotView } from "../parts/plot.js";
import { keysOf, pointsOf, smoothPoints, together } from "./curves.js";
import { dataOf, groupsOf, looksOf } from "./state.js";

/** @typedef {import("./state.js").State} State */
/**
 * `seen` is undefined until the browser has said whether it is in sight.
 * @typedef {{ key: string, section: HTMLElement, view: PlotView | null, seen: boolean | undefined,
 *   drawn: string }} Picture
 */

/** Points drawn of all curves of a picture together; more cannot be seen. */
const DRAWN = 12_000;
const MARGIN = "300px";

export class Pictures {
  /**
   * @param {HTMLElement} container
   * @param {{ zoom: (zoom: [number, number] | null) => void, choose: (step: number) => void,
   *   fold: (prefix: string, closed: boolean) => void }} handlers
   */
  constructor(container, handlers) {
    this.container = container;
    this.handlers = handlers;
    /** @type {Map<string, Picture>} */
    this.pictures = new Map();
    this.shape = "";
    /** @type {State | null} */
    this.state = null;
    this.waiting = 0;
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const picture = this.pictures.get(/** @type {HTMLElement} */ (target).dataset.key ?? "");
          if (picture) picture.seen = isIntersecting;
        }
        this.schedule();
      },
      { rootMargin: MARGIN },
    );
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    const all = state.runs.flatMap((run) => dataOf(run)?.metrics ?? []);
    const groups = keysOf(all, state.search);
    const shape = JSON.stringify([groups, state.closed]);
    this.state = state;
    this.stamp = JSON.stringify([
      state.runs.map((run) => [run.data, dataOf(run) !== undefined, run.off, run.look, run.label]),
      state.smooth,
      state.bands,
      state.zoom,
      state.at,
    ]);
    if (anew || shape !== this.shape) this.build(groups, state.closed);
    this.shape = shape;
    this.domain = domainOf(state);
    this.schedule();
  }

  /**
   * @param {[string, string[]][]} groups
   * @param {string[]} closed
   */
  build(groups, closed) {
    const held = this.container.contains(document.activeElement) ? document.activeElement?.id : "";
    this.observer.disconnect();
    this.pictures.clear();
    const sections = groups.map(([prefix, keys], index) => {
      const name = prefix === "" ? t("runs.noPrefix") : `${prefix}/`;
      const folded = closed.includes(prefix);
      const body = html("div", { class: "runs-plots" });
      if (!folded)
        for (const key of keys) {
          const section = html("section", { class: "runs-plot", "data-key": key }, html("h3", {}, key));
          this.pictures.set(key, { key, section, view: null, seen: undefined, drawn: "" });
          this.observer.observe(section);
          body.append(section);
        }
      const summary = html(
        "button",
        {
          type: "button",
          class: "runs-fold",
          id: `runs-group-${index}`,
          "aria-expanded": String(!folded),
          onclick: () => this.handlers.fold(prefix, !folded),
        },
        t("runs.group", { name, count: keys.length }),
      );
      return html("section", { class: "runs-group", "data-group": prefix }, html("h2", {}, summary), body);
    });
    this.container.replaceChildren(
      ...(sections.length > 0 ? sections : [html("p", { class: "quiet", id: "runs-none" }, t("runs.none"))]),
    );
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
  }

  /** Draws those in sight that are out of date, one in a frame. */
  schedule() {
    this.tellBusy();
    if (this.waiting !== 0) return;
    const step = () => {
      this.waiting = 0;
      const next = [...this.pictures.values()].find(({ seen, drawn }) => seen && drawn !== this.stamp);
      if (next) {
        this.drawOne(next);
        this.waiting = requestAnimationFrame(step);
      }
      this.tellBusy();
    };
    this.waiting = requestAnimationFrame(step);
  }

  /** Busy from the change on, not from the next frame: who waits for the pictures must not see the old ones. */
  tellBusy() {
    const behind = [...this.pictures.values()].some(({ seen, drawn }) => seen !== false && drawn !== this.stamp);
    this.container.setAttribute("aria-busy", String(behind));
  }

  /** @param {Picture} picture */
  drawOne(picture) {
    const { state } = this;
    if (!state) return;
    picture.drawn = this.stamp ?? "";
    picture.view ??= new PlotView(picture.section, { compact: true });
    const groups = groupsOf(state);
    const curves = groups.length * (state.smooth.kind === "none" ? 1 : 2);
    const most = Math.max(60, Math.min(500, Math.floor(DRAWN / Math.max(1, curves))));
    picture.view.draw({
      label: t("runs.plot", { key: picture.key, count: groups.length }),
      x: { label: t("runs.axis.step"), domain: this.domain },
      y: { label: "" },
      series: groups.flatMap((group) => seriesOf(state, group, picture.key, most)),
      marks: state.at === null ? [] : [{ x: state.at, text: String(state.at) }],
      zoom: state.zoom,
      setZoom: this.handlers.zoom,
      choose: this.handlers.choose,
      legend: false,
    });
  }
}

/**
 * @param {State} state
 * @param {{ name: string, runs: import("./state.js").Run[] }} group
 * @param {string} key
 * @param {number} most
 * @returns {import("../parts/plot.js").Series[]}
 */
function seriesOf(state, { name, runs }, key, most) {
  const all = runs.flatMap((run) => {
    const stored = dataOf(run);
    const points = stored ? pointsOf(stored.metrics, key) : null;
    return points ? [points] : [];
  });
  if (all.length === 0) return [];
  const look = looksOf(state).get(runs[0].key) ?? { colour: 0, dash: 0 };
  const line = (/** @type {Float64Array} */ steps, /** @type {Float64Array} */ values) => ({
    kind: /** @type {"points" | "line"} */ (steps.length === 1 ? "points" : "line"),
    ...thinned(steps, values, state.zoom, most),
  });
  const smooth = all.map((points) => smoothPoints(points, state.smooth));
  if (all.length === 1) {
    const [raw, main] = [all[0], smooth[0]];
    return [
      ...(state.smooth.kind === "none"
        ? []
        : [{ id: `raw-${runs[0].key}`, name, ...look, quiet: true, ...line(raw.steps, raw.values) }]),
      { id: runs[0].key, name, ...look, ...line(main.steps, main.values) },
    ];
  }
  const { steps, mean, low, high } = together(smooth);
  return [
    band(`band-${runs[0].key}`, name, look.colour, { steps, low, high }, state.zoom, most),
    { id: runs[0].key, name, ...look, ...line(steps, mean) },
  ];
}

/**
 * Lowest and highest, of each stretch the outermost, so that no spike is lost.
 * @param {string} id
 * @param {string} name
 * @param {number} colour
 * @param {{ steps: Float64Array, low: Float64Array, high: Float64Array }} edges
 * @param {[number, number] | null} zoom
 * @param {number} most
 * @returns {import("../parts/plot.js").Series}
 */
function band(id, name, colour, { steps, low, high }, zoom, most) {
  const stretch = Math.max(1, Math.ceil(steps.length / most));
  /** @type {{ x: number[], y: number[], top: number[] }} */
  const drawn = { x: [], y: [], top: [] };
  for (let from = 0; from < steps.length; from += stretch) {
    let [bottom, top] = [Infinity, -Infinity];
    const to = Math.min(steps.length, from + stretch);
    for (let i = from; i < to; i += 1) {
      if (low[i] < bottom) bottom = low[i];
      if (high[i] > top) top = high[i];
    }
    // the ends stay where they are
    const place = from === 0 ? 0 : to === steps.length ? to - 1 : Math.floor((from + to - 1) / 2);
    if (zoom && (steps[to - 1] < zoom[0] || steps[from] > zoom[1])) continue;
    drawn.x.push(steps[place]);
    drawn.y.push(bottom);
    drawn.top.push(top);
  }
  return { id, name, colour, dash: 0, kind: "band", ...drawn };
}

/** First and last step of all runs shown. @param {State} state @returns {[number, number]} */
export function domainOf({ runs }) {
  const ends = runs.flatMap((run) => {
    const steps = run.off ? undefined : dataOf(run)?.metrics.steps;
    return steps && steps.length > 0 ? [[steps[0], steps[steps.length - 1]]] : [];
  });
  if (ends.length === 0) return [0, 1];
  const [low, high] = [Math.min(...ends.map(([first]) => first)), Math.max(...ends.map(([, last]) => last))];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}
