// Pictures and texts on their way out of the page: an SVG that stands alone, a PNG of it, a file, the clipboard.

const SVG = "http://www.w3.org/2000/svg";

/** Properties that a style sheet may set on a shape, with their initial values, which are not written. */
const PROPERTIES = {
  fill: "rgb(0, 0, 0)",
  "fill-opacity": "1",
  stroke: "none",
  "stroke-width": "1px",
  "stroke-opacity": "1",
  "stroke-dasharray": "none",
  "stroke-linejoin": "miter",
  "stroke-linecap": "butt",
  "paint-order": "normal",
  opacity: "1",
  "text-anchor": "start",
  "dominant-baseline": "auto",
  "font-family": "",
  "font-size": "",
  "font-weight": "400",
  "font-style": "normal",
  "text-decoration-line": "none",
  "writing-mode": "horizontal-tb",
};
/** Inherited properties: a value equal to the parent's is not repeated. */
const INHERITED = new Set([
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linejoin",
  "stroke-linecap",
  "paint-order",
  "text-anchor",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "writing-mode",
]);
const TEXT_ONLY = new Set([
  "text-anchor",
  "dominant-baseline",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "text-decoration-line",
  "writing-mode",
]);
/** Attributes that are of use only on the page. */
const OWN = /^(class|style|tabindex|role|id|data-.*|aria-.*)$/;

/**
 * The picture as it looks now, theme included, as a file of its own.
 * @param {SVGSVGElement} picture in the document: what its style sheets say is written into it
 * @returns {string}
 */
export function svgText(picture) {
  const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  carry(picture, copy, null);
  const { width, height, x, y } = frame(picture);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const ground = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries({ x, y, width, height, ...paint("fill", groundOf(picture)) }))
    ground.setAttribute(name, String(value));
  const title = document.createElementNS(SVG, "title");
  title.textContent = picture.getAttribute("aria-label") ?? document.title;
  copy.prepend(title, ground);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

/**
 * @param {SVGSVGElement} picture
 * @param {number} [scale] pixels per unit of the picture
 * @returns {Promise<Blob>}
 */
export async function pngBlob(picture, scale = 2) {
  const { width, height } = frame(picture);
  const address = URL.createObjectURL(new Blob([svgText(picture)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    if (!pen) throw new Error("no canvas");
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png");
    });
  } finally {
    URL.revokeObjectURL(address);
  }
}

/**
 * Offers a file for download.
 * @param {string} name
 * @param {Blob | string} content
 */
export function saveFile(name, content) {
  const blob = typeof content === "string" ? new Blob([content], { type: typeOf(name) }) : content;
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // a browser may begin to read only after the click is over
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** @param {string} name */
function typeOf(name) {
  const ending = name.slice(name.lastIndexOf(".") + 1);
  const types = {
    svg: "image/svg+xml",
    json: "application/json",
    csv: "text/csv",
    html: "text/html",
    png: "image/png",
  };
  return `${types[/** @type {keyof typeof types} */ (ending)] ?? "text/plain"};charset=utf-8`;
}

/** @param {SVGSVGElement} picture */
function frame(picture) {
  const box = picture.viewBox.baseVal;
  if (box && box.width > 0) return { x: box.x, y: box.y, width: box.width, height: box.height };
  const { width, height } = picture.getBoundingClientRect();
  return { x: 0, y: 0, width: Math.max(1, width), height: Math.max(1, height) };
}

/**
 * Writes what the style sheets give `from` into `to` as attributes: those work in every viewer and under every policy.
 * @param {Element} from
 * @param {Element} to
 * @param {Record<string, string> | null} above what the parent's look is
 */
function carry(from, to, above) {
  const style = getComputedStyle(from);
  for (const { name } of Array.from(to.attributes)) if (OWN.test(name)) to.removeAttribute(name);
  /** @type {Record<string, string>} */
  const look = {};
  const words = from instanceof SVGTextContentElement;
  for (const [name, usual] of Object.entries(PROPERTIES)) {
    look[name] = style.getPropertyValue(name);
    if (TEXT_ONLY.has(name) && !words) look[name] = above?.[name] ?? "";
    const known = INHERITED.has(name) && above ? above[name] || usual : usual;
    if (look[name] === known || look[name] === "") {
      to.removeAttribute(name);
      continue;
    }
    const written = name === "text-decoration-line" ? "text-decoration" : name;
    for (const [attribute, value] of Object.entries(
      name === "fill" || name === "stroke" ? paint(name, look[name]) : { [written]: look[name] },
    ))
      to.setAttribute(attribute, value);
  }
  const children = Array.from(to.children);
  for (const [index, child] of Array.from(from.children).entries()) {
    const { display, visibility } = getComputedStyle(child);
    if (display === "none" || visibility === "hidden") children[index].remove();
    else carry(child, children[index], look);
  }
}

/**
 * A colour for viewers that know only plain ones: the page mixes colours, and files are read elsewhere.
 * @param {"fill" | "stroke"} name
 * @param {string} colour as the browser computed it
 * @returns {Record<string, string>}
 */
function paint(name, colour) {
  const mixed = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.e-]+))?\)$/.exec(colour);
  const plain = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(colour);
  const found = mixed ?? plain;
  if (!found) return { [name]: colour };
  const parts = found.slice(1, 4).map((part) => Math.round(Number(part) * (mixed ? 255 : 1)));
  const hex = `#${parts.map((part) => Math.min(255, Math.max(0, part)).toString(16).padStart(2, "0")).join("")}`;
  return found[4] === undefined ? { [name]: hex } : { [name]: hex, [`${name}-opacity`]: found[4] };
}

/**
 * The background of the picture.
 * @param {Element} picture
 */
function groundOf(picture) {
  for (let element = /** @type {Element | null} */ (picture); element; element = element.parentElement) {
    const { backgroundColor } = getComputedStyle(element);
    if (!/^rgba\(.*, 0\)$|^transparent$/.test(backgroundColor)) return backgroundColor;
  }
  return "rgb(255, 255, 255)";
}
