// A range with its label and its value in words.

import { html } from "./dom.js";

/**
 * @param {string} id
 * @param {string} label
 * @param {[number, number, number]} range from, to, step
 * @param {(value: number, continued: boolean) => void} set
 */
export function slider(id, label, [min, max, step], set) {
  const input = html("input", { type: "range", id, min, max, step });
  const output = html("output", { for: id });
  let continued = false;
  input.addEventListener("input", () => {
    set(Number(input.value), continued);
    continued = true;
  });
  input.addEventListener("change", () => {
    continued = false;
  });
  /** @param {number} value @param {string} words */
  const show = (value, words) => {
    input.value = String(value);
    input.setAttribute("aria-valuetext", words);
    output.textContent = words;
  };
  return {
    element: html("div", { class: "field slider" }, html("label", { for: id }, label), html("span", {}, input, output)),
    show,
  };
}
