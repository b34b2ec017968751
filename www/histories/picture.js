// The comparison as a self-contained picture: the plot, and below it the legend, which on the page consists of buttons.

import { html, svg } from "../parts/dom.js";
import { pngBlob, saveFile, svgText } from "../parts/save.js";

const LINE = 20;

/**
 * Puts a copy with a legend into the page, out of sight: only there do the style sheets apply.
 * @template T
 * @param {SVGSVGElement} plot
 * @param {{ sample: Element, text: string }[]} legend
 * @param {(picture: SVGSVGElement) => T | Promise<T>} use
 * @returns {Promise<T>}
 */
async function withLegend(plot, legend, use) {
  const picture = /** @type {SVGSVGElement} */ (plot.cloneNode(true));
  picture.querySelector(".cursor")?.remove();
  const { width, height } = plot.viewBox.baseVal;
  const place = html("div", { class: "histories-aside", "aria-hidden": "true" });
  place.append(picture);
  document.body.append(place);
  try {
    let [x, y] = [60, height + LINE - 6];
    for (const { sample, text } of legend) {
      const words = /** @type {SVGTextElement} */ (svg("text", { class: "axis legend-words" }, text));
      picture.append(words);
      const wide = 34 + words.getComputedTextLength() + 22;
      if (x > 60 && x + wide > width) [x, y] = [60, y + LINE];
      const line = /** @type {Element} */ (sample.querySelector("line")?.cloneNode());
      line.setAttribute("transform", `translate(${x} ${y - 9})`);
      picture.append(line);
      words.setAttribute("x", String(x + 32));
      words.setAttribute("y", String(y));
      x += wide;
    }
    picture.setAttribute("viewBox", `0 0 ${width} ${y + 12}`);
    return await use(picture);
  } finally {
    place.remove();
  }
}

/**
 * @param {SVGSVGElement} plot
 * @param {{ sample: Element, text: string }[]} legend
 * @param {"svg" | "png"} kind
 * @param {string} name
 */
export async function savePicture(plot, legend, kind, name) {
  /** @type {(picture: SVGSVGElement) => string | Promise<Blob>} */
  const make = (picture) => (kind === "svg" ? svgText(picture) : pngBlob(picture, 2));
  const content = await withLegend(
    plot,
    legend,
    /** @type {(picture: SVGSVGElement) => Promise<string | Blob>} */ (make),
  );
  saveFile(`${name}.${kind}`, content);
}
