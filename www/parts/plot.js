// Curves and bars over numbers, as SVG: axes with round ticks, a legend that switches series, a cursor for pointer and keys, zoom.
// Every series has a colour and a dash of its own, so that colour alone carries nothing.

import { t } from "../i18n/index.js";
import { html, svg } from "./dom.js";
import { short } from "./format.js";

/**
 * @typedef {object} Series
 * @property {string} id stable, for the legend and for tests
 * @property {string} name
 * @property {ArrayLike<number>} x ascending
 * @property {ArrayLike<number>} y where it is not finite the curve is broken
 * @property {"line" | "bars" | "points"} [kind] default "line"; a bar goes from 0 to y, as wide as the distance to its neighbour
 * @property {number} [colour] 0 to 7, default its place among the series
 * @property {boolean} [quiet] thin and grey: for comparison only
 */

/**
 * @typedef {object} Plot
 * @property {string} label for a screen reader
 * @property {{ label: string, domain?: [number, number] }} x
 * @property {{ label: string, domain?: [number, number] }} y
 * @property {Series[]} series
 * @property {{ x?: number, y?: number, text: string }[]} [marks] lines across the picture
 * @property {[number, number] | null} [zoom] the part of x shown; null for all
 * @property {(zoom: [number, number] | null) => void} [setZoom] without it there is no zoom
 */

const WIDTH = 720;
const HEIGHT = 320;
const EDGE = { top: 14, right: 16, bottom: 42, left: 64 };
const DASHES = ["", "7 3", "2 3", "10 3 2 3", "5 2 1 2 1 2", "14 4", "1 4", "9 2 2 2 2 2"];

/**
 * Round numbers that divide a range.
 * @param {number} low
 * @param {number} high
 * @param {number} [count] about how many
 * @returns {number[]}
 */
export function ticks(low, high, count = 6) {
  const rough = (high - low) / count;
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? 10 * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

/**
 * @param {number[]} values
 * @returns {[number, number]} never empty
 */
function extent(values) {
  const finite = values.filter(Number.isFinite);
  const low = finite.reduce((a, b) => Math.min(a, b), Infinity);
  const high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
  if (low > high) return [0, 1];
  return low === high ? [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2] : [low, high];
}

export class PlotView {
  /** @param {HTMLElement} container */
  constructor(container) {
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img", tabindex: 0 });
    this.legend = html("div", { class: "legend" });
    this.readout = html("p", { class: "readout", "aria-live": "polite" });
    /** @type {Set<string>} series switched off */
    this.hidden = new Set();
    /** @type {Plot | null} */
    this.plot = null;
    this.cursor = NaN;
    container.append(html("figure", { class: "figure" }, this.picture, this.readout, this.legend));
    this.picture.addEventListener("pointermove", (event) => this.point(/** @type {PointerEvent} */ (event)));
    this.picture.addEventListener("pointerleave", () => this.point(null));
    this.picture.addEventListener("keydown", (event) => this.key(/** @type {KeyboardEvent} */ (event)));
    this.picture.addEventListener("pointerdown", (event) => this.drag(/** @type {PointerEvent} */ (event)));
  }

  /** @param {Plot} plot */
  draw(plot) {
    this.plot = plot;
    const shown = plot.series.filter(({ id }) => !this.hidden.has(id));
    this.xDomain = plot.zoom ?? plot.x.domain ?? extent(shown.flatMap(({ x }) => Array.from(x)));
    const [from, to] = this.xDomain;
    const inside = (/** @type {Series} */ { x, y, kind }) => [
      ...Array.from(y).filter((_, i) => x[i] >= from && x[i] <= to), ...(kind === "bars" ? [0] : []),
    ];
    this.yDomain = plot.y.domain ?? padded(extent(shown.flatMap(inside)));
    this.picture.setAttribute("aria-label", plot.label + (plot.setZoom ? ` ${t("plot.keys")}` : ""));
    this.picture.replaceChildren(...this.axes(), ...this.marks(), ...shown.flatMap((series) => this.curve(series)));
    this.cursorLine = svg("line", { class: "cursor", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, x1: -10, x2: -10 });
    this.picture.append(this.cursorLine);
    this.drawLegend();
    this.drawCursor();
  }

  /** @param {number} value */
  px(value) {
    const [low, high] = this.xDomain ?? [0, 1];
    return EDGE.left + ((value - low) / (high - low)) * (WIDTH - EDGE.left - EDGE.right);
  }

  /** @param {number} value */
  py(value) {
    const [low, high] = this.yDomain ?? [0, 1];
    return HEIGHT - EDGE.bottom - ((value - low) / (high - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
  }

  axes() {
    const { x, y } = /** @type {Plot} */ (this.plot);
    const [left, right, bottom] = [EDGE.left, WIDTH - EDGE.right, HEIGHT - EDGE.bottom];
    const parts = [];
    for (const tick of ticks(...(this.xDomain ?? [0, 1]))) {
      parts.push(svg("line", { class: "rule", x1: this.px(tick), x2: this.px(tick), y1: EDGE.top, y2: bottom }));
      parts.push(svg("text", { class: "axis", x: this.px(tick), y: bottom + 16 }, short(tick)));
    }
    for (const tick of ticks(...(this.yDomain ?? [0, 1]), 5)) {
      parts.push(svg("line", { class: tick === 0 ? "rule zero" : "rule", x1: left, x2: right, y1: this.py(tick), y2: this.py(tick) }));
      parts.push(svg("text", { class: "axis side", x: left - 7, y: this.py(tick) + 4 }, short(tick)));
    }
    parts.push(svg("text", { class: "axis title", x: (left + right) / 2, y: HEIGHT - 6 }, x.label));
    parts.push(svg("text", { class: "axis title", transform: `translate(13 ${(EDGE.top + bottom) / 2}) rotate(-90)` }, y.label));
    return parts;
  }

  marks() {
    return (this.plot?.marks ?? []).flatMap(({ x, y, text }) => {
      if (x !== undefined) {
        const at = this.px(x);
        if (!(at >= EDGE.left && at <= WIDTH - EDGE.right)) return [];
        const line = svg("line", { class: "note", x1: at, x2: at, y1: EDGE.top, y2: HEIGHT - EDGE.bottom });
        return [line, svg("text", { class: `note ${at > WIDTH * 0.75 ? "before" : ""}`, x: at + (at > WIDTH * 0.75 ? -4 : 4), y: EDGE.top + 10 }, text)];
      }
      const at = this.py(y ?? 0);
      if (!(at >= EDGE.top && at <= HEIGHT - EDGE.bottom)) return [];
      const line = svg("line", { class: "note", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: at, y2: at });
      return [line, svg("text", { class: "note before", x: WIDTH - EDGE.right - 4, y: at - 4 }, text)];
    });
  }

  /** @param {Series} series */
  look(series) {
    const index = series.colour ?? this.plot?.series.indexOf(series) ?? 0;
    return { class: `curve c${index % 8}${series.quiet ? " quiet" : ""}`, "stroke-dasharray": DASHES[index % 8] || null };
  }

  /** @param {Series} series */
  curve(series) {
    const look = { ...this.look(series), "data-series": series.id };
    const { x, y, kind } = series;
    if (kind === "bars") return Array.from(x, (_, i) => this.bar(series, i, look)).filter((bar) => bar !== null);
    if (kind === "points") {
      return Array.from(x, (_, i) => (Number.isFinite(y[i]) ? svg("circle", { ...look, cx: this.px(x[i]), cy: this.py(y[i]), r: 3 }) : null)).filter((dot) => dot !== null);
    }
    let path = "";
    let open = false;
    for (let i = 0; i < x.length; i += 1) {
      const fits = Number.isFinite(x[i]) && Number.isFinite(y[i]);
      if (fits) path += `${open ? "L" : "M"}${this.px(x[i]).toFixed(2)} ${clamp(this.py(y[i]), -HEIGHT, 2 * HEIGHT).toFixed(2)}`;
      open = fits;
    }
    return [this.clipped(svg("path", { ...look, d: path || "M0 0" }))];
  }

  /**
   * What lies outside of the axes is not drawn over them.
   * @param {Element} element
   */
  clipped(element) {
    const box = { x: EDGE.left, y: EDGE.top - 2, width: WIDTH - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom + 4 };
    return svg("svg", { ...box, viewBox: `${box.x} ${box.y} ${box.width} ${box.height}`, overflow: "hidden" }, element);
  }

  /**
   * @param {Series} series
   * @param {number} i
   * @param {Record<string, unknown>} look
   */
  bar({ x, y }, i, look) {
    const [low, high] = this.xDomain ?? [0, 1];
    if (!Number.isFinite(y[i]) || x[i] < low || x[i] > high) return null;
    const gap = x.length > 1 ? Math.abs(this.px(x[Math.min(i + 1, x.length - 1)]) - this.px(x[Math.min(i, x.length - 2)])) : 40;
    const [a, b] = [this.py(y[i]), this.py(0)];
    return svg("rect", { ...look, "stroke-dasharray": null, x: this.px(x[i]) - gap * 0.45, width: Math.max(0.5, gap * 0.9), y: Math.min(a, b), height: Math.max(0.5, Math.abs(a - b)) });
  }

  drawLegend() {
    const { series = [], zoom, setZoom } = this.plot ?? {};
    const keys = series.map((each) => {
      const sample = svg("svg", { viewBox: "0 0 26 10", class: "sample", "aria-hidden": "true" }, svg("line", { ...this.look(each), x1: 1, x2: 25, y1: 5, y2: 5 }));
      const flip = () => {
        if (this.hidden.has(each.id)) this.hidden.delete(each.id);
        else this.hidden.add(each.id);
        if (this.plot) this.draw(this.plot);
        /** @type {HTMLElement | null} */ (this.legend.querySelector(`[data-series="${CSS.escape(each.id)}"]`))?.focus();
      };
      return html("button", { type: "button", class: "key", "data-series": each.id, "aria-pressed": !this.hidden.has(each.id) ? "true" : "false", onclick: flip }, sample, each.name);
    });
    const all = zoom && setZoom ? html("button", { type: "button", class: "small", onclick: () => setZoom(null) }, t("plot.all")) : null;
    if (series.length > 1 || all) this.legend.replaceChildren(...(series.length > 1 ? keys : []), ...(all ? [all] : []));
    else this.legend.replaceChildren();
  }

  /** @param {PointerEvent | null} event */
  point(event) {
    this.cursor = event ? this.valueAt(event) : NaN;
    this.drawCursor();
  }

  /** @param {PointerEvent} event */
  valueAt(event) {
    const frame = this.picture.getBoundingClientRect();
    const at = ((event.clientX - frame.left) / frame.width) * WIDTH;
    const [low, high] = this.xDomain ?? [0, 1];
    return clamp(low + ((at - EDGE.left) / (WIDTH - EDGE.left - EDGE.right)) * (high - low), low, high);
  }

  /** A drag sideways chooses the part to be shown. @param {PointerEvent} down */
  drag(down) {
    const setZoom = this.plot?.setZoom;
    if (!setZoom || down.button !== 0) return;
    const from = this.valueAt(down);
    this.picture.setPointerCapture(down.pointerId);
    this.picture.addEventListener("pointerup", (event) => {
      const to = this.valueAt(/** @type {PointerEvent} */ (event));
      const [low, high] = this.xDomain ?? [0, 1];
      if (Math.abs(to - from) > (high - low) * 0.02) setZoom([Math.min(from, to), Math.max(from, to)]);
    }, { once: true });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const plot = this.plot;
    if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const [low, high] = this.xDomain ?? [0, 1];
    const step = (high - low) / (event.shiftKey ? 10 : 100);
    const at = Number.isFinite(this.cursor) ? this.cursor : (low + high) / 2;
    const zoomed = (/** @type {number} */ factor) => plot.setZoom?.([at - (at - low) * factor, at + (high - at) * factor]);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => { this.cursor = clamp(at - step, low, high); },
      ArrowRight: () => { this.cursor = clamp(at + step, low, high); },
      Home: () => { this.cursor = low; },
      End: () => { this.cursor = high; },
      "+": () => zoomed(0.5),
      "-": () => zoomed(2),
      0: () => plot.setZoom?.(null),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    this.drawCursor();
  }

  drawCursor() {
    const inside = Number.isFinite(this.cursor);
    const at = inside ? this.px(this.cursor) : -10;
    this.cursorLine?.setAttribute("x1", String(at));
    this.cursorLine?.setAttribute("x2", String(at));
    if (!inside || !this.plot) {
      this.readout.textContent = "\u00a0";
      return;
    }
    const shown = this.plot.series.filter(({ id, quiet }) => !this.hidden.has(id) && !quiet);
    const values = shown.map((series) => `${series.name} ${brief(nearest(series, this.cursor))}`).join(" · ");
    this.readout.textContent = t("plot.cursor", { x: brief(this.cursor), values });
  }
}

/** Four digits are what can be read off a picture. @param {number} value */
const brief = (value) => short(Number.isFinite(value) && value !== 0 ? Number(value.toPrecision(4)) : value);

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/**
 * @param {[number, number]} range
 * @returns {[number, number]}
 */
const padded = ([low, high]) => [low === 0 ? 0 : low - (high - low) * 0.06, high === 0 ? 0 : high + (high - low) * 0.06];

/**
 * The value of a series at the entry nearest to x.
 * @param {Series} series
 * @param {number} x
 */
function nearest(series, x) {
  let best = -1;
  for (let i = 0; i < series.x.length; i += 1) {
    if (best < 0 || Math.abs(series.x[i] - x) < Math.abs(series.x[best] - x)) best = i;
  }
  return best < 0 ? NaN : series.y[best];
}
