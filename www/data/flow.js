// One response as flowing text, each token coloured by the chosen quantity. Arrow keys walk it.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { short, visible } from "../parts/format.js";
import { numberText, toneOf } from "./cells.js";
import { scaleOf } from "./quantities.js";
import { quantityName } from "./words.js";

/** Tokens per page; longer responses are shown page by page. */
export const PAGE = 600;

/** @typedef {import("./types.js").Loaded} Loaded */

/** What a token reads like. @param {Loaded} data @param {number} slot */
export function textOf(data, slot) {
  return data.text.slice(slot === 0 ? 0 : data.textEnds[slot - 1], data.textEnds[slot]);
}

/**
 * @param {HTMLElement} container
 * @param {Loaded} data
 * @param {{ sequence: number, token: number, colour: string, scale: number, chosen: boolean }} options
 * @param {{ choose: (token: number) => void, turn: (sequence: number) => void }} handlers
 */
export function drawFlow(container, data, { sequence, token, colour, scale, chosen }, { choose, turn }) {
  const [start, end] = [data.offsets[sequence], data.offsets[sequence + 1]];
  const from = start + Math.floor(token / PAGE) * PAGE;
  const to = Math.min(end, from + PAGE);
  const values = data.columns[colour];
  const tokens = [];
  for (let slot = from; slot < to; slot += 1) {
    const index = slot - start;
    const value = values ? values[slot] : NaN;
    const kept = data.keep[slot] === 1;
    const { tone, strength } = kept && values ? toneOf(colour, value, scale) : { tone: "", strength: 0 };
    const text = textOf(data, slot);
    const current = chosen && index === token;
    const number = !kept
      ? t("data.flow.dropped")
      : values
        ? `${quantityName(colour)} ${numberText(colour, value)}`
        : "";
    const label = t("data.flow.token", { index: index + 1, text: text || "—", number });
    const button = html(
      "button",
      {
        type: "button",
        class: ["flow-token", tone, !kept && "dropped", current && "current"].filter(Boolean).join(" "),
        title: label,
        "aria-label": label,
        "aria-pressed": String(current),
        tabindex: index === token || (slot === from && !(token >= from - start && token < to - start)) ? 0 : -1,
        "data-token": index,
        onclick: () => choose(index),
      },
      text === "" ? String(index + 1) : visible(text),
    );
    if (tone !== "") button.style.setProperty("--strength", strength.toFixed(3));
    tokens.push(button, ...(text.endsWith("\n") ? [html("br")] : []));
  }
  const pages = Math.ceil((end - start) / PAGE);
  const page = Math.floor(token / PAGE);
  const step = (/** @type {string} */ id, /** @type {boolean} */ off, /** @type {() => void} */ work) =>
    html(
      "button",
      { type: "button", class: "small", id: `data-flow-${id}`, disabled: off, onclick: work },
      t(`data.flow.${id}`),
    );
  const prompt = data.prompts[data.prompt[sequence]] ?? "";
  const focused = container.contains(document.activeElement)
    ? /** @type {HTMLElement} */ (document.activeElement)
    : null;
  const [focusId, focusToken] = [focused?.id, focused?.dataset.token];
  const words = html(
    "div",
    { class: "flow", role: "group", "aria-label": t("data.flow.label", { sequence: sequence + 1 }), onkeydown: walk },
    ...tokens,
  );
  container.replaceChildren(
    html(
      "p",
      { class: "flow-head" },
      step("before", sequence === 0, () => turn(sequence - 1)),
      html("span", {}, t("data.flow.sequence", { sequence: sequence + 1, count: data.sequences })),
      step("after", sequence + 1 >= data.sequences, () => turn(sequence + 1)),
      ...(pages > 1
        ? [
            step("pageBefore", page === 0, () => choose((page - 1) * PAGE)),
            html("span", {}, t("data.flow.page", { page: page + 1, pages })),
            step("pageAfter", page + 1 >= pages, () => choose((page + 1) * PAGE)),
          ]
        : []),
    ),
    ...(values
      ? [
          html(
            "p",
            { class: "quiet scale" },
            t(`data.flow.scale.${scaleOf(colour)}`, {
              name: quantityName(colour),
              scale: short(Number(scale.toPrecision(3))),
            }),
          ),
        ]
      : []),
    ...(prompt === ""
      ? []
      : [html("p", { class: "quiet prompt" }, html("span", { class: "label" }, t("data.flow.prompt")), " ", prompt)]),
    end > start ? words : html("p", { class: "quiet" }, t("data.flow.empty")),
  );
  if (focusToken !== undefined) /** @type {HTMLElement | null} */ (words.querySelector('[tabindex="0"]'))?.focus();
  else if (focusId) document.getElementById(focusId)?.focus();
}

/** @param {KeyboardEvent} event */
function walk(event) {
  const steps = /** @type {Record<string, number>} */ ({
    ArrowRight: 1,
    ArrowLeft: -1,
    Home: -Infinity,
    End: Infinity,
  });
  const step = steps[event.key];
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll("button")];
  const at = all.indexOf(/** @type {HTMLButtonElement} */ (event.target));
  const next = all[Math.max(0, Math.min(all.length - 1, at + step))];
  event.preventDefault();
  for (const each of all) each.tabIndex = each === next ? 0 : -1;
  next.focus();
}
