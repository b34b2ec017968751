// The weight of each token as a bar, answer after answer: equal heights mean equal say.

import { svg } from "../../parts/dom.js";
import { short } from "../../parts/format.js";

const WIDTH = 340;
const HEIGHT = 74;
const [TOP, BOTTOM] = [16, 16];

const brief = (/** @type {number} */ value) => short(Number(value.toPrecision(4)));

/**
 * @param {boolean[][]} kept of each answer
 * @param {ArrayLike<number>} weights of all slots in a row
 * @param {string} label
 */
export function strip(kept, weights, label) {
  const columns = kept[0].length;
  const most = Array.from(weights).reduce((a, b) => Math.max(a, b), 0) || 1;
  const shown = kept.map((slots) => slots.filter(Boolean).length);
  const gap = kept.length > 6 ? 4 : 10;
  const unit =
    (WIDTH - gap * (kept.length - 1)) /
    Math.max(
      1,
      shown.reduce((all, count) => all + Math.max(count, 0.6), 0),
    );
  // a single token must not fill the whole width
  const bar = Math.min(unit, 34);
  const floor = HEIGHT - BOTTOM;
  // an infinite weight is as high as a bar can be
  const heightOf = (/** @type {number} */ weight) =>
    Math.max(1, (Number.isFinite(weight) ? weight / most : Number(weight === most)) * (floor - TOP));
  const picture = svg("svg", {
    class: "agg-strip",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    "aria-label": label,
  });
  let x = 0;
  for (const [i, slots] of kept.entries()) {
    const from = x;
    let weight = 0;
    for (const [t, keep] of slots.entries()) {
      if (!keep) continue;
      weight = weights[i * columns + t];
      const height = heightOf(weight);
      picture.append(
        svg("rect", { x: x + bar * 0.08, y: floor - height, width: bar * 0.84, height, class: "agg-bar" }),
      );
      x += bar;
    }
    if (shown[i] === 0) x += bar * 0.6;
    picture.append(svg("line", { x1: from, x2: x, y1: floor + 0.5, y2: floor + 0.5, class: "agg-floor" }));
    const middle = (from + x) / 2;
    picture.append(svg("text", { x: Math.max(middle, 9), y: HEIGHT - 3, class: "agg-name" }, `#${i + 1}`));
    const top = floor - heightOf(weight);
    // a number is only written where it has room
    if (shown[i] > 0 && x - from + gap > brief(weight).length * 6)
      picture.append(
        svg(
          "text",
          { x: Math.min(middle, WIDTH - brief(weight).length * 3.1), y: top - 4, class: "agg-number" },
          brief(weight),
        ),
      );
    x += gap;
  }
  return picture;
}
