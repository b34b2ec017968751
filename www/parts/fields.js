// Parameters as small number fields: typed, stepped by arrow keys or wheel, or dragged by their sign. Choices as lists.

import { html } from "./dom.js";
import { full, parse } from "./format.js";
import { signKey } from "./sign-key.js";
import { t } from "../i18n/index.js";

/**
 * @typedef {object} NumberField
 * @property {HTMLElement} element
 * @property {HTMLInputElement} input
 * @property {(value: number) => void} show
 */

/**
 * @param {string} name
 * @param {{ label: import("./dom.js").Child[], step: number, set: (value: number, continued: boolean) => string | null,
 *   focus?: () => void }} options `set` takes the number, or says why not;
 *   `continued` for every step after the first of one movement
 * @returns {NumberField}
 */
export function numberField(name, { label: words, step, set, focus }) {
  const input = html("input", {
    type: "text",
    inputmode: "decimal",
    id: `field-${name}`,
    role: "spinbutton",
    autocomplete: "off",
    "aria-describedby": `problem-${name}`,
  });
  const problem = html("span", { class: "problem", id: `problem-${name}`, role: "alert" });
  const tell = (/** @type {string} */ reason) => {
    problem.textContent = reason;
    if (reason !== "") untilNextAct(problem);
  };
  const label = html("label", { for: `field-${name}` }, ...words);
  const element = html(
    "div",
    { class: "field" },
    label,
    html("span", { class: "with-sign" }, input, signKey(input)),
    problem,
  );
  let value = 0;
  let moving = false;

  /** @param {number} next */
  const show = (next) => {
    value = next;
    input.setAttribute("aria-valuenow", String(next));
    if (document.activeElement !== input || parsedOrNaN(input.value) !== next) input.value = full(next);
  };
  /**
   * @param {number} next
   * @param {boolean} continued
   */
  const attempt = (next, continued) => {
    const reason = set(next, continued);
    tell(reason ?? "");
    input.setAttribute("aria-invalid", String(reason !== null));
    return reason === null;
  };
  /** @param {number} steps */
  const move = (steps) => {
    // steps in decimal, so that 0.95 + 0.05 is 1 and not 1.0000000000000002
    const next = Number((value + steps * step).toFixed(6));
    if (attempt(next, moving)) {
      moving = true;
      input.value = full(value);
    }
  };
  const typed = () => {
    const parsed = parse(input.value);
    if ("problem" in parsed) {
      tell(t(`bad.${parsed.problem}`, { text: input.value, old: full(value) }));
      input.setAttribute("aria-invalid", "true");
    } else if (!Object.is(parsed.value, value)) attempt(parsed.value, false);
    else {
      problem.textContent = "";
      input.removeAttribute("aria-invalid");
    }
    input.value = full(value);
  };

  input.addEventListener("focus", () => {
    moving = false;
    focus?.();
  });
  input.addEventListener("change", typed);
  input.addEventListener("keydown", (event) => {
    const sign = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (sign !== undefined) move(sign * (event.shiftKey ? 10 : 1));
    else if (event.key === "Enter") typed();
    else if (event.key === "Escape") {
      input.value = full(value);
      problem.textContent = "";
    } else return;
    event.preventDefault();
  });
  input.addEventListener(
    "wheel",
    (event) => {
      // a page that scrolls past must not change numbers: only the focused field listens
      if (document.activeElement !== input) return;
      event.preventDefault();
      move(event.deltaY < 0 ? 1 : -1);
    },
    { passive: false },
  );
  drag(label, move, () => {
    moving = false;
  });
  return { element, input, show };
}

/**
 * A message says why a number was not taken, and goes with the next key or press: several would cover each other. The
 * act that brought it has passed the document on its way down and does not come there again, so that the document can
 * listen at once: a timer could fire after the next key.
 * @param {HTMLElement} message
 */
function untilNextAct(message) {
  const clear = () => {
    message.textContent = "";
    message.parentElement?.querySelector("[aria-invalid]")?.removeAttribute("aria-invalid");
    for (const act of ["keydown", "pointerdown"]) document.removeEventListener(act, clear, true);
  };
  for (const act of ["keydown", "pointerdown"]) document.addEventListener(act, clear, true);
}

/**
 * @param {HTMLElement} handle
 * @param {(steps: number) => void} move
 * @param {() => void} start
 */
function drag(handle, move, start) {
  const pixels = 8;
  handle.addEventListener("pointerdown", (down) => {
    let from = down.clientX;
    start();
    handle.setPointerCapture(down.pointerId);
    const moved = (/** @type {PointerEvent} */ event) => {
      const steps = Math.trunc((event.clientX - from) / pixels);
      if (steps === 0) return;
      from += steps * pixels;
      move(steps);
    };
    handle.addEventListener("pointermove", moved);
    const end = () => handle.removeEventListener("pointermove", moved);
    handle.addEventListener("pointerup", end, { once: true });
    handle.addEventListener("pointercancel", end, { once: true });
  });
}

/** @param {string} text */
function parsedOrNaN(text) {
  const parsed = parse(text);
  return "value" in parsed ? parsed.value : NaN;
}

/**
 * @param {string} name
 * @param {{ label: string, options: { value: string, text: string }[], set: (value: string) => void }} options
 * @returns {{ element: HTMLElement, select: HTMLSelectElement }}
 */
export function choiceField(name, { label, options, set }) {
  const select = html(
    "select",
    { id: `choice-${name}` },
    ...options.map(({ value, text }) => html("option", { value }, text)),
  );
  select.addEventListener("change", () => set(select.value));
  return { element: html("div", { class: "field" }, html("label", { for: `choice-${name}` }, label), select), select };
}
