// Curves and bars over numbers, as SVG: axes with round ticks, a legend that switches series, a cursor for pointer and
// keys, zoom, or one mark that can be moved. Every series has a colour and a dash of its own, so that colour alone
// carries nothing. The picture is as wide as its place, so that its words keep their size on a phone.

import { t } from "../i18n/index.js";
import { html, svg } from "./dom.js";
import { axes, brief, curve, EDGE, handle, marks, nearest, sample } from "./plot-shapes.js";
import { clamp, extent, padded, scale } from "./scale.js";

export { sample } from "./plot-shapes.js";
export { ticks } from "./scale.js";

/**
 * @typedef {object} Series
 * @property {string} id stable, for the legend and for tests
 * @property {string} name
 * @property {ArrayLike<number>} x ascending
 * @property {ArrayLike<number>} y where it is not finite the curve is broken
 * @property {"line" | "bars" | "points" | "band"} [kind] default "line"; a bar goes from 0 to y,
 *   as wide as the distance to its neighbour; a band from y to `top`
 * @property {ArrayLike<number>} [top] of a band
 * @property {number} [colour] 0 to 7, default its place among the series
 * @property {number} [dash] 0 to 7, default as the colour
 * @property {boolean} [quiet] thin and grey: for comparison only
 */

/**
 * @typedef {object} Movable a value of x that pointer and keys change
 * @property {number} x
 * @property {string} name
 * @property {Record<string, number>} [values] what the series are there, by id; without it what they are nearby
 * @property {(x: number, continued: boolean) => void} set `continued` for every step after the first of one movement
 */

/**
 * @typedef {object} Plot
 * @property {string} label for a screen reader
 * @property {{ label: string, domain?: [number, number], log?: boolean }} x
 * @property {{ label: string, domain?: [number, number] }} y
 * @property {Series[]} series
 * @property {{ x?: number, y?: number, text: string }[]} [marks] lines across the picture
 * @property {[number, number] | null} [zoom] the part of x shown; null for all
 * @property {(zoom: [number, number] | null) => void} [setZoom] without it there is no zoom
 * @property {Movable} [movable] takes the place of zoom and cursor
 * @property {(x: number) => void} [choose] a click, or Enter at the cursor
 * @property {boolean} [legend] default true
 */

export class PlotView {
  /**
   * @param {HTMLElement} container
   * @param {{ compact?: boolean }} [options] compact: half as high, for pictures beside each other
   */
  constructor(container, { compact = false } = {}) {
    this.compact = compact;
    this.width = 720;
    this.measured = false;
    this.height = compact ? 190 : 320;
    this.picture = svg("svg", { class: "plot", role: "img", tabindex: 0 });
    this.legend = html("div", { class: "legend" });
    this.readout = html("p", { class: "readout", "aria-live": "polite" });
    /** @type {Set<string>} series switched off */
    this.hidden = new Set();
    /** @type {Plot | null} */
    this.plot = null;
    this.cursor = NaN;
    /** whether the mark is on its way */
    this.moving = false;
    container.append(html("figure", { class: "figure" }, this.picture, this.readout, this.legend));
    this.picture.addEventListener("pointermove", (event) => this.point(/** @type {PointerEvent} */ (event)));
    this.picture.addEventListener("pointerleave", () => this.point(null));
    this.picture.addEventListener("keydown", (event) => this.key(/** @type {KeyboardEvent} */ (event)));
    this.picture.addEventListener("pointerdown", (event) => this.drag(/** @type {PointerEvent} */ (event)));
    this.picture.addEventListener("focus", () => {
      this.moving = false;
    });
    // in the next frame, because drawing changes the height that is being observed
    const observer = new ResizeObserver(() =>
      requestAnimationFrame(() => this.fit() && this.plot && this.draw(this.plot)),
    );
    observer.observe(this.picture);
  }

  /** Takes the available width; returns whether it has changed. */
  fit() {
    const width = Math.round(this.picture.getBoundingClientRect().width);
    if (width < 40) return false;
    this.measured = true;
    if (width === this.width) return false;
    this.width = width;
    this.height = Math.round(this.compact ? clamp(width * 0.5, 150, 210) : clamp(width * 0.44, 230, 340));
    return true;
  }

  /** @param {Plot} plot */
  draw(plot) {
    // asking for a size makes the browser lay out the page: once, then the observer tells
    if (!this.measured) this.fit();
    this.plot = plot;
    const shown = plot.series.filter(({ id }) => !this.hidden.has(id));
    const domain = plot.zoom ?? plot.x.domain ?? extent(shown.flatMap(({ x }) => Array.from(x)));
    this.x = scale(domain, { log: plot.x.log, count: this.width < 420 ? 4 : 6 });
    const inside = (/** @type {Series} */ { x, y, kind, top = [] }) => [
      ...Array.from(y).filter((_, i) => x[i] >= domain[0] && x[i] <= domain[1]),
      ...Array.from(top).filter((_, i) => x[i] >= domain[0] && x[i] <= domain[1]),
      ...(kind === "bars" ? [0] : []),
    ];
    this.y = scale(plot.y.domain ?? padded(extent(shown.flatMap(inside))), { count: this.compact ? 3 : 5 });
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    const frame = this.frame();
    this.cursorLine = svg("line", { class: "cursor", y1: EDGE.top, y2: this.height - EDGE.bottom, x1: -10, x2: -10 });
    const noted = marks(frame, plot);
    const isText = (/** @type {Element} */ { localName }) => localName === "text";
    this.picture.replaceChildren(
      ...axes(frame, plot),
      ...noted.filter((each) => !isText(each)),
      ...shown.flatMap((series) => curve(frame, plot, series)),
      // words lie above the curves, so that they can be read
      ...noted.filter(isText),
      this.cursorLine,
      ...handle(frame, plot, shown),
    );
    this.describe(plot);
    this.drawLegend();
    this.drawCursor();
  }

  /** @returns {import("./plot-shapes.js").Frame} */
  frame() {
    const { width, height, x = scale([0, 1]), y = scale([0, 1]) } = this;
    return {
      width,
      height,
      x,
      y,
      px: (value) => EDGE.left + x.place(value) * (width - EDGE.left - EDGE.right),
      py: (value) => height - EDGE.bottom - y.place(value) * (height - EDGE.top - EDGE.bottom),
    };
  }

  /** What a screen reader is told. @param {Plot} plot */
  describe({ label, setZoom, movable }) {
    const { picture } = this;
    picture.setAttribute("role", movable ? "slider" : "img");
    picture.setAttribute(
      "aria-label",
      label + (movable ? ` ${t("plot.move", { name: movable.name })}` : setZoom ? ` ${t("plot.keys")}` : ""),
    );
    picture.classList.toggle("moves", movable !== undefined);
    const [low, high] = this.x?.domain ?? [0, 1];
    for (const [name, value] of Object.entries({
      valuemin: low,
      valuemax: high,
      valuenow: movable?.x,
      valuetext: movable && `${movable.name} ${brief(movable.x)}`,
    })) {
      if (movable) picture.setAttribute(`aria-${name}`, String(value));
      else picture.removeAttribute(`aria-${name}`);
    }
  }

  drawLegend() {
    const { series = [], zoom, setZoom, legend = true } = this.plot ?? {};
    const wanted = legend && series.length > 1;
    const keys = !wanted
      ? []
      : series.map((each, place) => {
          const flip = () => {
            if (this.hidden.has(each.id)) this.hidden.delete(each.id);
            else this.hidden.add(each.id);
            if (this.plot) this.draw(this.plot);
            /** @type {HTMLElement | null} */ (
              this.legend.querySelector(`[data-series="${CSS.escape(each.id)}"]`)
            )?.focus();
          };
          const piece = sample(each.colour ?? place, each.dash, each.quiet, each.kind);
          return html(
            "button",
            {
              type: "button",
              class: "key",
              "data-series": each.id,
              "aria-pressed": !this.hidden.has(each.id) ? "true" : "false",
              onclick: flip,
            },
            piece,
            each.name,
          );
        });
    const all =
      zoom && setZoom
        ? [html("button", { type: "button", class: "small", onclick: () => setZoom(null) }, t("plot.all"))]
        : [];
    this.legend.replaceChildren(...keys, ...all);
  }

  /** @param {PointerEvent | null} event */
  point(event) {
    if (this.plot?.movable) return;
    this.cursor = event ? this.valueAt(event) : NaN;
    this.drawCursor();
  }

  /** @param {PointerEvent} event */
  valueAt(event) {
    const frame = this.picture.getBoundingClientRect();
    const at = ((event.clientX - frame.left) / frame.width) * this.width;
    return this.x?.value(clamp((at - EDGE.left) / (this.width - EDGE.left - EDGE.right), 0, 1)) ?? 0;
  }

  /** A drag sideways moves the mark, or chooses the part to be shown. @param {PointerEvent} down */
  drag(down) {
    const { setZoom, movable, choose } = this.plot ?? {};
    if (down.button !== 0 || !(setZoom || movable || choose)) return;
    const from = this.valueAt(down);
    this.picture.setPointerCapture(down.pointerId);
    if (movable) movable.set(from, false);
    // the plot is redrawn at every step, so the current one is asked
    const moved = (/** @type {Event} */ event) =>
      this.plot?.movable?.set(this.valueAt(/** @type {PointerEvent} */ (event)), true);
    if (movable) this.picture.addEventListener("pointermove", moved);
    const end = (/** @type {Event} */ event) => {
      this.picture.removeEventListener("pointermove", moved);
      if (movable || event.type !== "pointerup") return;
      const to = this.valueAt(/** @type {PointerEvent} */ (event));
      if (Math.abs((this.x?.place(to) ?? 0) - (this.x?.place(from) ?? 0)) > 0.02)
        setZoom?.([Math.min(from, to), Math.max(from, to)]);
      else this.plot?.choose?.(to);
    };
    for (const kind of ["pointerup", "pointercancel"]) this.picture.addEventListener(kind, end, { once: true });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { plot, x } = this;
    if (!plot || !x || event.ctrlKey || event.metaKey || event.altKey) return;
    const { movable, setZoom, choose } = plot;
    const at = x.place(movable ? movable.x : Number.isFinite(this.cursor) ? this.cursor : x.value(0.5));
    const step = event.shiftKey ? 0.1 : 0.01;
    const to = (/** @type {number} */ place) => {
      const value = x.value(clamp(place, 0, 1));
      if (!movable) this.cursor = value;
      else {
        movable.set(value, this.moving);
        this.moving = true;
      }
    };
    const zoomed = (/** @type {number} */ factor) =>
      setZoom?.([x.value(at - at * factor), x.value(at + (1 - at) * factor)]);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => to(at - step),
      ArrowRight: () => to(at + step),
      ...(choose ? { Enter: () => choose(x.value(at)) } : {}),
      Home: () => to(0),
      End: () => to(1),
      ...(movable
        ? { ArrowDown: () => to(at - step), ArrowUp: () => to(at + step) }
        : { "+": () => zoomed(0.5), "-": () => zoomed(2), 0: () => setZoom?.(null) }),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    this.drawCursor();
  }

  drawCursor() {
    const inside = Number.isFinite(this.cursor) && !this.plot?.movable;
    const at = inside ? this.frame().px(this.cursor) : -10;
    this.cursorLine?.setAttribute("x1", String(at));
    this.cursorLine?.setAttribute("x2", String(at));
    this.readout.hidden = this.plot?.movable !== undefined;
    if (!inside || !this.plot) {
      this.readout.textContent = "\u00a0";
      return;
    }
    const shown = this.plot.series.filter(({ id, quiet, kind }) => !this.hidden.has(id) && !quiet && kind !== "band");
    const values = shown.map((series) => `${series.name} ${brief(nearest(series, this.cursor))}`).join(" · ");
    this.readout.textContent = t("plot.cursor", { x: brief(this.cursor), values });
  }
}
