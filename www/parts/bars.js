// The chosen row as bars over the tokens; a state's bar stands between two tokens, as in the grid.

import { svg, html } from "./dom.js";
import { digitsWide, short, subscript, visible } from "./format.js";
import { t } from "../i18n/index.js";

/** The picture is drawn as wide as its place, so that its letters keep their size; within these limits. */
const [NARROWEST, WIDEST] = [260, 560];
const HEIGHT = 190;
const TOP = 22;
const TICKS = 28;
const SIDE = 8;

/**
 * @typedef {object} ChartData
 * @property {string} name
 * @property {string} [title] instead of the name over the tokens
 * @property {"action" | "state"} align
 * @property {string[]} tokens
 * @property {boolean[]} mask
 * @property {ArrayLike<number> | undefined} values
 * @property {number} chosen
 * @property {ArrayLike<number>} [ghost] the same under other conventions, as outlines
 * @property {string} [ghostName]
 */

/** More columns than this leave no room for a token under each. */
const NUMBERED = 16;
/** Of a digit and of a letter of a token, in the units of the picture. */
const DIGIT = 7.8;
const LETTER = 8.3;

/**
 * @param {HTMLElement} container
 * @param {ChartData} data
 */
export function drawChart(container, data) {
  const place = container.clientWidth;
  const width = place === 0 ? WIDEST : Math.max(NARROWEST, Math.min(WIDEST, place));
  const values = Array.from(data.values ?? []);
  const ghost = Array.from(data.ghost ?? []);
  const finite = [...values, ...ghost].filter(
    (value, index) => Number.isFinite(value) && data.mask[index % values.length] !== false,
  );
  const high = Math.max(0, ...finite);
  const low = Math.min(0, ...finite);
  // measured against the largest, because the distance of two huge numbers is infinite
  const unit = Math.max(high, -low) || 1;
  const span = high / unit - low / unit || 1;
  // a number under a bar needs a line of its own above the tokens
  const bottom = low < 0 ? TICKS + 14 : TICKS;
  const y = (/** @type {number} */ value) => TOP + ((high / unit - value / unit) / span) * (HEIGHT - TOP - bottom);
  const half = (width - 2 * SIDE) / (data.tokens.length * 2 + 2);
  // centre of a token's column, or of the state to its left
  const x = (/** @type {number} */ index, /** @type {string} */ align) =>
    SIDE + half * (2 * index + (align === "action" ? 2 : 1));

  const list = values.map((value, index) => `${placeName(data, index)} ${short(value)}`).join(", ");
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`,
    role: "img",
    "aria-label": t("chart.aria", { row: data.name, values: list }),
  });
  const every = Math.ceil(data.tokens.length / NUMBERED);
  for (const [index, token] of data.tokens.entries()) {
    if (index % every !== 0) continue;
    picture.append(
      svg(
        "text",
        { x: x(index, "action"), y: HEIGHT - 8, lang: "zh", class: data.mask[index] ? "tick" : "tick dropped" },
        shortened(visible(token), (2 * half * every) / LETTER),
      ),
    );
  }
  const wide = (/** @type {number} */ value) => DIGIT * digitsWide(brief(value));
  const roomy = every === 1 && values.every((value, i) => data.mask[i] === false || wide(value) < 2 * half - 3);
  // a number over the first or the last bar may be wider than its column
  const inside = (/** @type {number} */ centre, /** @type {number} */ own) =>
    Math.max(own / 2 + 1, Math.min(width - own / 2 - 1, centre));
  for (const [index, value] of values.entries()) {
    const dropped = data.mask[index] === false;
    const centre = x(index, data.align);
    const classes = ["bar", value < 0 ? "minus" : "plus", index === data.chosen && "chosen", dropped && "dropped"]
      .filter(Boolean)
      .join(" ");
    if (dropped) continue;
    if (Number.isFinite(value)) {
      const top = Math.min(y(value), y(0));
      const height = Math.max(1.5, Math.abs(y(value) - y(0)));
      picture.append(svg("rect", { x: centre - half * 0.55, y: top, width: half * 1.1, height, class: classes }));
    }
    const other = ghost[index];
    if (Number.isFinite(other) && !Object.is(other, value)) {
      picture.append(
        svg("rect", {
          x: centre - half * 0.55,
          y: Math.min(y(other), y(0)),
          width: half * 1.1,
          height: Math.max(1.5, Math.abs(y(other) - y(0))),
          class: "ghost",
        }),
      );
    }
    if (!roomy && index !== data.chosen) continue;
    const above = !(value < 0);
    const edge = Number.isFinite(value) ? y(value) : y(0);
    picture.append(
      svg(
        "text",
        {
          x: inside(centre, wide(value)),
          y: above ? edge - 5 : edge + 12,
          class: index === data.chosen ? "number chosen" : "number",
        },
        brief(value),
      ),
    );
  }
  picture.append(svg("line", { x1: SIDE, x2: width - SIDE, y1: y(0), y2: y(0), class: "zero" }));
  const key =
    ghost.length > 0 ? html("span", { class: "ghost-key" }, t("chart.ghost", { name: data.ghostName ?? "" })) : null;
  container.replaceChildren(html("h2", {}, data.title ?? t("chart.label", { row: data.name }), key), picture);
}

/**
 * Three digits: beside a bar more cannot be read, and the grid has them all.
 * @param {number} value
 */
const brief = (value) => short(Number.isFinite(value) && value !== 0 ? Number(value.toPrecision(3)) : value);

/**
 * @param {string} token
 * @param {number} letters there is room for; a Chinese one takes two
 */
function shortened(token, letters) {
  let width = 0;
  let text = "";
  for (const letter of token) {
    width += letter > "\u2e7f" ? 1.7 : 1;
    if (width > Math.max(2, letters)) return `${text}…`;
    text += letter;
  }
  return token;
}

/**
 * @param {ChartData} data
 * @param {number} index
 */
const placeName = (data, index) => (data.align === "action" ? data.tokens[index] : `s${subscript(index + 1)}`);
