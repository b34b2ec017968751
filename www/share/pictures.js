// The charts of the page in front, as files.

import { t } from "../i18n/index.js";
import { byId } from "../parts/dom.js";
import { pngBlob, svgText } from "../parts/save.js";

/** @typedef {import("../pages.js").Export} Export */

const NAME_LENGTH = 60;

/** @typedef {{ name: string, exports: Export[] }} Picture */

/**
 * @param {string} page
 * @returns {Picture[]}
 */
export function picturesOf(page) {
  const all = /** @type {SVGSVGElement[]} */ (Array.from(byId("content").querySelectorAll('svg[role="img"]')));
  const shown = all.filter((picture) => picture.getClientRects().length > 0);
  return shown.map((picture, index) => {
    const file = `tokenwise-${page}${shown.length > 1 ? `-${index + 1}` : ""}`;
    return {
      name: nameOf(picture),
      exports: [
        { id: `svg-${index}`, label: "SVG", how: "save", file: `${file}.svg`, make: () => svgText(picture) },
        { id: `png-${index}`, label: "PNG", how: "save", file: `${file}.png`, make: () => pngBlob(picture) },
      ],
    };
  });
}

/**
 * The heading above the picture, or its label for screen readers.
 * @param {SVGSVGElement} picture
 */
function nameOf(picture) {
  const around = picture.closest("figure, section, .chart");
  const title = around?.querySelector("figcaption, h2, h3")?.textContent?.trim();
  // the first sentence of a description serves as its name
  const name =
    title || (picture.getAttribute("aria-label") ?? "").split(/[.。](?:\s|$)|。/)[0].trim() || t("share.chart");
  return name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH - 1)}…` : name;
}
