// A cell of the grid while it is being edited.

import { openEditor } from "../parts/editor.js";
import { idOf } from "./grid.js";

/**
 * @param {import("./grid.js").Grid} grid
 * @param {import("./edits.js").Place} place
 * @param {string} [typed] replaces what stands there instead of changing it
 */
export function editCell(grid, place, typed) {
  const cell = grid.cellAt(place);
  const element = grid.elements.get(idOf(place));
  if (!element || (cell?.kind !== "input" && cell?.kind !== "text")) return;
  grid.bubble.hide();
  grid.editing = element;
  openEditor(element, {
    text: typed ?? cell.editText,
    selected: typed === undefined,
    label: cell.label(),
    mode: cell.kind === "text" ? "text" : "decimal",
    preview: (text) => grid.handlers.preview(place, text),
    finish: (text, refocus) => {
      grid.editing = null;
      const problem = text === null ? null : grid.handlers.commit(place, text);
      if (text === null || problem) grid.handlers.cancel();
      // an edit may have built the grid anew: then the cell stands elsewhere
      const now = grid.elements.get(idOf(place)) ?? element;
      const current = grid.cellAt(place);
      element.replaceChildren();
      element.classList.remove("editing");
      if (current) grid.drawCell(now, current, idOf(place));
      if (refocus) now.focus();
      if (problem) grid.bubble.show(problem, now);
    },
  });
  element.classList.add("editing");
}
