// A text field inside a cell, for as long as the cell is being edited.

import { html } from "./dom.js";
import { signKey } from "./sign-key.js";

/**
 * @typedef {object} Editing
 * @property {string} text
 * @property {boolean} selected whether typing replaces the text
 * @property {string} label
 * @property {"decimal" | "text"} [mode] which keys a phone offers
 * @property {(text: string) => void} preview
 * @property {(text: string | null, refocus: boolean) => void} finish null gives the old value back
 */

/**
 * @param {HTMLElement} cell
 * @param {Editing} editing
 */
export function openEditor(cell, editing) {
  const field = html("input", {
    class: "editor",
    type: "text",
    inputmode: editing.mode ?? "decimal",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": editing.label,
  });
  field.value = editing.text;
  let open = true;
  /**
   * @param {string | null} text
   * @param {boolean} refocus
   */
  const close = (text, refocus) => {
    // taking the field away makes it lose the focus, which would close it a second time
    if (!open) return;
    open = false;
    editing.finish(text, refocus);
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") close(field.value, true);
    else if (event.key === "Escape") close(null, true);
    else if (event.key === "Tab") close(field.value, true);
    else return;
    event.stopPropagation();
    if (event.key !== "Tab") event.preventDefault();
  });
  field.addEventListener("input", () => editing.preview(field.value));
  field.addEventListener("blur", () => close(field.value, false));
  const sign = editing.mode === "text" ? null : signKey(field);
  cell.replaceChildren(field, ...(sign ? [sign] : []));
  field.focus();
  if (editing.selected) field.select();
}
