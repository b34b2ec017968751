// A key that turns the sign of a number: the keyboards that phones offer for decimals may have no minus.

import { html } from "./dom.js";
import { t } from "../i18n/index.js";

const coarse = window.matchMedia("(pointer: coarse)");

/**
 * @param {HTMLInputElement} field
 * @returns {HTMLButtonElement | null} null where there is a real keyboard
 */
export function signKey(field) {
  if (!coarse.matches) return null;
  const key = html("button", { type: "button", class: "sign-key", tabindex: -1, "aria-label": t("tool.sign") }, "±");
  // the field keeps the focus, and with it the keyboard on the screen
  key.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    event.stopPropagation();
    field.value = /^[-−－]/.test(field.value) ? field.value.slice(1) : `−${field.value}`;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
  });
  return key;
}
