// The shapes of a plot: axes, marks, curves, bars, the mark that moves.

import { svg } from "./dom.js";
import { short } from "./format.js";
import { clamp } from "./scale.js";

/** @typedef {import("./plot.js").Plot} Plot */
/** @typedef {import("./plot.js").Series} Series */

/**
 * @typedef {object} Frame the picture's size and axes
 * @property {number} width
 * @property {number} height
 * @property {import("./scale.js").Scale} x
 * @property {import("./scale.js").Scale} y
 * @property {(value: number) => number} px
 * @property {(value: number) => number} py
 */

export const EDGE = { top: 14, right: 16, bottom: 42, left: 68 };
const DASHES = ["", "7 3", "2 3", "10 3 2 3", "5 2 1 2 1 2", "14 4", "1 4", "9 2 2 2 2 2"];

/**
 * How a series is drawn.
 * @param {number} colour
 * @param {number} [dash]
 * @param {boolean} [quiet]
 */
const look = (colour, dash = colour, quiet = false) => ({
  class: `curve c${colour % 8}${quiet ? " quiet" : ""}`,
  "stroke-dasharray": DASHES[dash % 8] || null,
});

/**
 * @param {Plot} plot
 * @param {Series} series
 */
function lookOf(plot, series) {
  const colour = series.colour ?? plot.series.indexOf(series);
  return look(colour, series.dash ?? colour, series.quiet);
}

/**
 * What a series is drawn with, to stand before its name: a short piece of the curve, a point or a bar.
 * @param {number} colour
 * @param {number} [dash]
 * @param {boolean} [quiet]
 * @param {Series["kind"]} [kind]
 */
export function sample(colour, dash, quiet, kind = "line") {
  const drawn = look(colour, dash, quiet);
  const solid = { ...drawn, "stroke-dasharray": null };
  const piece =
    kind === "points"
      ? svg("circle", { ...solid, cx: 13, cy: 5, r: 3 })
      : kind === "bars"
        ? svg("rect", { ...solid, x: 6, y: 0, width: 14, height: 10 })
        : svg("line", { ...drawn, x1: 1, x2: 25, y1: 5, y2: 5 });
  return svg("svg", { viewBox: "0 0 26 10", class: "sample", "aria-hidden": "true" }, piece);
}

/** Four digits are what can be read off a picture. @param {number} value */
export const brief = (value) => short(Number.isFinite(value) && value !== 0 ? Number(value.toPrecision(4)) : value);

/**
 * The value of a series at the entry nearest to x.
 * @param {Series} series
 * @param {number} x
 */
export function nearest(series, x) {
  let best = -1;
  for (let i = 0; i < series.x.length; i += 1) {
    if (best < 0 || Math.abs(series.x[i] - x) < Math.abs(series.x[best] - x)) best = i;
  }
  return best < 0 ? NaN : series.y[best];
}

/**
 * @param {Frame} frame
 * @param {Plot} plot
 */
export function axes({ width, height, x, y, px, py }, plot) {
  const [left, right, bottom] = [EDGE.left, width - EDGE.right, height - EDGE.bottom];
  const across = x.ticks.flatMap((tick) => [
    svg("line", { class: "rule", x1: px(tick), x2: px(tick), y1: EDGE.top, y2: bottom }),
    svg("text", { class: "axis", x: px(tick), y: bottom + 16 }, short(tick)),
  ]);
  const up = y.ticks.flatMap((tick) => [
    svg("line", { class: tick === 0 ? "rule zero" : "rule", x1: left, x2: right, y1: py(tick), y2: py(tick) }),
    svg("text", { class: "axis side", x: left - 7, y: py(tick) + 4 }, short(tick)),
  ]);
  return [
    ...across,
    ...up,
    svg("text", { class: "axis title", x: (left + right) / 2, y: height - 6 }, plot.x.label),
    svg(
      "text",
      { class: "axis title", transform: `translate(13 ${(EDGE.top + bottom) / 2}) rotate(-90)` },
      plot.y.label,
    ),
  ];
}

/** About how wide words are: wide characters count twice. @param {string} text */
const lengthOf = (text) => Array.from(text).reduce((sum, letter) => sum + (letter > "\u2e80" ? 12.5 : 6.6), 10);

/**
 * @param {Frame} frame
 * @param {Plot} plot
 */
export function marks({ width, height, px, py }, plot) {
  /** @type {number[]} where the words on each line end */
  const ends = [];
  const inOrder = (plot.marks ?? []).slice().sort((a, b) => (a.x ?? 0) - (b.x ?? 0));
  return inOrder.flatMap(({ x, y, text }) => {
    if (x !== undefined) {
      const at = px(x);
      if (!(at >= EDGE.left - 0.5 && at <= width - EDGE.right + 0.5)) return [];
      const line = svg("line", { class: "note", x1: at, x2: at, y1: EDGE.top, y2: height - EDGE.bottom });
      // words of marks close together stand below each other
      const before = at + lengthOf(text) > width - EDGE.right;
      const start = before ? at - lengthOf(text) : at;
      const free = ends.findIndex((end) => end <= start);
      const level = free < 0 ? ends.length : free;
      ends[level] = start + lengthOf(text);
      return [
        line,
        svg(
          "text",
          { class: `note ${before ? "before" : ""}`, x: at + (before ? -4 : 4), y: EDGE.top + 10 + level * 14 },
          text,
        ),
      ];
    }
    const at = py(y ?? 0);
    if (!(at >= EDGE.top && at <= height - EDGE.bottom)) return [];
    const line = svg("line", { class: "note", x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at });
    return [line, svg("text", { class: "note before", x: width - EDGE.right - 4, y: at - 4 }, text)];
  });
}

/**
 * @param {Frame} frame
 * @param {Plot} plot
 * @param {Series} series
 * @returns {Element[]}
 */
export function curve(frame, plot, series) {
  const drawn = { ...lookOf(plot, series), "data-series": series.id, "data-name": series.name };
  const { px, py, height } = frame;
  const { x, y, kind } = series;
  const places = Array.from(x, (_, i) => i);
  if (kind === "bars") return places.flatMap((i) => bar(frame, series, i, drawn));
  if (kind === "points")
    return places
      .filter((i) => Number.isFinite(y[i]))
      .map((i) => svg("circle", { ...drawn, "stroke-dasharray": null, cx: px(x[i]), cy: py(y[i]), r: 3 }));
  if (kind === "band") return [clipped(frame, band(frame, series, drawn.class))];
  let path = "";
  let open = false;
  for (const i of places) {
    const fits = Number.isFinite(px(x[i])) && Number.isFinite(y[i]);
    if (fits) path += `${open ? "L" : "M"}${px(x[i]).toFixed(2)} ${clamp(py(y[i]), -height, 2 * height).toFixed(2)}`;
    open = fits;
  }
  return [clipped(frame, svg("path", { ...drawn, d: path || "M0 0" }, svg("title", {}, series.name)))];
}

/**
 * The space between two curves.
 * @param {Frame} frame
 * @param {Series} series
 * @param {string} look
 */
function band({ px, py, height }, { id, x, y, top = [] }, look) {
  const places = Array.from(x, (_, i) => i).filter((i) => Number.isFinite(px(x[i]) + y[i] + top[i]));
  const point = (/** @type {number} */ i, /** @type {ArrayLike<number>} */ of) =>
    `${px(x[i]).toFixed(2)} ${clamp(py(of[i]), -height, 2 * height).toFixed(2)}`;
  const edge = [...places.map((i) => point(i, y)), ...places.reverse().map((i) => point(i, top))];
  return svg("path", { class: `${look} band`, "data-series": id, d: edge.length > 0 ? `M${edge.join("L")}Z` : "M0 0" });
}

/**
 * What lies outside of the axes is not drawn over them.
 * @param {Frame} frame
 * @param {Element} element
 */
function clipped({ width, height }, element) {
  const box = {
    x: EDGE.left,
    y: EDGE.top - 2,
    width: width - EDGE.left - EDGE.right,
    height: height - EDGE.top - EDGE.bottom + 4,
  };
  return svg("svg", { ...box, viewBox: `${box.x} ${box.y} ${box.width} ${box.height}`, overflow: "hidden" }, element);
}

/**
 * @param {Frame} frame
 * @param {Series} series
 * @param {number} i
 * @param {Record<string, unknown>} drawn
 */
function bar({ x: { domain }, px, py }, { x, y }, i, drawn) {
  // a position that is not a number is not drawn
  if (!Number.isFinite(y[i]) || !(x[i] >= domain[0] && x[i] <= domain[1])) return [];
  const gap = x.length > 1 ? Math.abs(px(x[Math.min(i + 1, x.length - 1)]) - px(x[Math.min(i, x.length - 2)])) : 40;
  const [a, b] = [py(y[i]), py(0)];
  if (!Number.isFinite(gap + a + b)) return [];
  return [
    svg("rect", {
      ...drawn,
      "stroke-dasharray": null,
      x: px(x[i]) - gap * 0.45,
      width: Math.max(0.5, gap * 0.9),
      y: Math.min(a, b),
      height: Math.max(0.5, Math.abs(a - b)),
    }),
  ];
}

/**
 * The mark that moves, with a dot on every curve.
 * @param {Frame} frame
 * @param {Plot} plot
 * @param {Series[]} shown
 */
export function handle({ x: { domain }, height, px, py }, plot, shown) {
  const { movable } = plot;
  if (!movable || !(movable.x >= domain[0] && movable.x <= domain[1])) return [];
  const at = px(movable.x);
  const bottom = height - EDGE.bottom;
  const dots = shown
    .filter(({ kind = "line", quiet }) => kind === "line" && !quiet)
    .flatMap((series) => {
      const y = py(movable.values?.[series.id] ?? nearest(series, movable.x));
      return y >= EDGE.top - 1 && y <= bottom + 1
        ? [svg("circle", { class: `dot ${lookOf(plot, series).class}`, cx: at, cy: y, r: 4 })]
        : [];
    });
  const grip = svg("path", { class: "grip", d: `M${at - 6} ${bottom - 9}L${at + 6} ${bottom - 9}L${at} ${bottom}Z` });
  return [svg("line", { class: "moved", x1: at, x2: at, y1: EDGE.top, y2: bottom }), ...dots, grip];
}
