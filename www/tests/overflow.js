// Finds text that is not shown whole: cut by its box, running out of it, or out of a picture.

/**
 * Runs in the page.
 * @returns {string[]} what is cut, and where
 */
export function cutTexts() {
  const found = [];
  const name = (element) => {
    const { id, dataset } = element;
    const own = id ? `#${id}` : `.${[...element.classList].join(".")}`;
    return `${element.localName}${own}${dataset?.row ? `[${dataset.row}.${dataset.index}]` : ""}`;
  };
  const visible = (element) =>
    element.checkVisibility({ contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true });
  const isScrolled = (style) => ["auto", "scroll"].includes(style.overflowX);
  // words may end in an ellipsis where the whole can be read elsewhere; numbers and formulas may not
  const mayBeShortened = (element) => element.matches("[data-row=token], .said, .tab, [hidden], svg, option");

  /** The nearest box that would cut the text or that it would run out of. */
  const boxOf = (element) => {
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      // a table may be scrolled, a formula has to be seen whole
      if (isScrolled(style)) return element.localName === "math" ? at : null;
      const cuts = style.overflowX !== "visible" || /strict|paint|content/.test(style.contain);
      const framed = parseFloat(style.borderRightWidth) > 0 || style.backgroundColor !== "rgba(0, 0, 0, 0)";
      if ((cuts || framed) && style.display !== "inline" && style.display !== "contents") return at;
    }
    return document.body;
  };
  const report = (element, text, by) => {
    if (by > 1) found.push(`${name(element)}: “${text.trim().slice(0, 40)}” by ${Math.round(by)} px`);
  };

  const look = (element) => {
    // what is clipped away is for screen readers only
    if (mayBeShortened(element) || !visible(element) || getComputedStyle(element).clipPath !== "none") return;
    for (const child of element.localName === "math" ? [] : element.children) look(child);
    if (element instanceof HTMLInputElement) {
      if (["text", "number", "search"].includes(element.type))
        report(element, element.value, element.scrollWidth - element.clientWidth);
      return;
    }
    if (element instanceof HTMLSelectElement) {
      const style = getComputedStyle(element);
      const brush = document.createElement("canvas").getContext("2d");
      brush.font = style.font;
      const inner = element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      const text = element.selectedOptions[0]?.text ?? "";
      // the arrow of the list
      report(element, text, brush.measureText(text).width + 14 - inner);
      return;
    }
    const isMath = element.localName === "math";
    const texts = isMath
      ? [element]
      : [...element.childNodes].filter((node) => node instanceof Text && node.data.trim() !== "");
    if (texts.length === 0) return;
    const box = boxOf(element);
    if (!box) return;
    const frame = box.getBoundingClientRect();
    for (const text of texts) {
      const range = document.createRange();
      range.selectNodeContents(text);
      const rects = isMath ? [element.getBoundingClientRect()] : [...range.getClientRects()];
      for (const rect of rects) {
        if (rect.width === 0) continue;
        report(element, text.textContent, Math.max(rect.right - frame.right, frame.left - rect.left));
        // one line in a box too low for it
        const style = getComputedStyle(box);
        if (style.overflowY === "hidden" || /strict|paint|content/.test(style.contain))
          report(element, text.textContent, rect.height > frame.height + 6 ? rect.height - frame.height : 0);
      }
    }
  };
  for (const part of document.querySelectorAll("main, header")) look(part);
  for (const picture of document.querySelectorAll("#main svg")) {
    if (!visible(picture)) continue;
    const frame = picture.getBoundingClientRect();
    for (const text of picture.querySelectorAll("text")) {
      const rect = text.getBoundingClientRect();
      if (rect.width === 0) continue;
      const by = Math.max(
        rect.right - frame.right,
        frame.left - rect.left,
        rect.bottom - frame.bottom,
        frame.top - rect.top,
      );
      report(text, `svg ${text.textContent}`, by);
    }
  }
  // lines of a formula, broken or one under the other, do not run into each other
  const inkOf = (part) => {
    const leaves = part.childElementCount === 0 ? [part] : [...part.querySelectorAll("mi, mn, mo, mtext")];
    const rects = leaves.map((leaf) => leaf.getBoundingClientRect()).filter(({ width }) => width > 0);
    const edge = (name, of) => of(...rects.map((rect) => rect[name]));
    return {
      part,
      left: edge("left", Math.min),
      right: edge("right", Math.max),
      top: edge("top", Math.min),
      bottom: edge("bottom", Math.max),
    };
  };
  for (const box of document.querySelectorAll("#main .formula, #main .lab-formula")) {
    if (!visible(box)) continue;
    const parts = [...box.querySelectorAll("math")].flatMap((math) =>
      (math.matches(".broken") ? [...math.children] : [math]).map(inkOf),
    );
    for (const [index, one] of parts.entries())
      for (const other of parts.slice(index + 1)) {
        const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
        // letters that touch cannot be read
        if (wide > 2 && high > -1) report(one.part, `${one.part.textContent} over ${other.part.textContent}`, high + 3);
      }
  }
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth + 1) found.push(`the page by ${root.scrollWidth - root.clientWidth} px`);
  return [...new Set(found)];
}
