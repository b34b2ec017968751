// The keys of the grid: those of a spreadsheet.

import { idOf } from "./grid.js";

/**
 * @param {import("./grid.js").Grid} grid
 * @param {KeyboardEvent} event
 */
export function pressed(grid, event) {
  const { place } = grid;
  if (!place || grid.editing) return;
  const line = grid.lines.findIndex((places) => places.some((one) => idOf(one) === idOf(place)));
  if (line < 0) return;
  const at = grid.lines[line].findIndex((one) => idOf(one) === idOf(place));
  const end = grid.lines.length - 1;
  const command = event.ctrlKey || event.metaKey;
  /** @type {Record<string, () => void>} */
  const keys = {
    ArrowLeft: () => grid.walk(line, at - 1, true),
    ArrowRight: () => grid.walk(line, at + 1, true),
    ArrowUp: () => grid.walk(line - 1, grid.wanted, false),
    ArrowDown: () => grid.walk(line + 1, grid.wanted, false),
    Home: () => grid.walk(command ? 0 : line, 0, true),
    End: () => grid.walk(command ? end : line, Infinity, true),
    Enter: () => (grid.toggles(place) ? grid.handlers.toggle(place) : grid.edit(place)),
    F2: () => grid.edit(place),
    " ": () => grid.toggles(place) && grid.handlers.toggle(place),
    Insert: () => grid.handlers.shape(event.shiftKey ? "before" : "after", place),
    Delete: () => place.row === "token" && grid.handlers.shape("remove", place),
  };
  if (command && event.key === "c") grid.handlers.copy(place);
  else if (keys[event.key] && !event.altKey && !event.metaKey) {
    event.preventDefault();
    keys[event.key]();
  } else if (!command && !event.altKey && grid.cellAt(place)?.kind === "input" && /^[\d.+\-−]$/.test(event.key)) {
    event.preventDefault();
    grid.edit(place, event.key);
  }
}
