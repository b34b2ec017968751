// Adds and removes tokens at the focused cell and sequences, and sets the group of a sequence.

import {
  canAdd,
  canInsert,
  withSequenceAdded,
  withSequenceRemoved,
  withTokenAdded,
  withTokenRemoved,
} from "./edits.js";
import { html, setText } from "../../parts/dom.js";
import { choiceField } from "../../parts/fields.js";
import { t } from "../../i18n/index.js";
import { limits } from "../state.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("./edits.js").Place} Place */
/** @typedef {"before" | "after" | "remove" | "new" | "copy" | "drop"} Command */

const COMMANDS = /** @type {Command[]} */ (["before", "after", "remove", "new", "copy", "drop"]);

export class Toolbar {
  /**
   * @param {HTMLElement} container
   * @param {(command: Command) => void} run
   * @param {(group: number) => void} setGroup
   */
  constructor(container, run, setGroup) {
    this.container = container;
    this.run = run;
    this.setGroup = setGroup;
    this.language = "";
    /** @type {Map<Command, HTMLButtonElement>} */
    this.buttons = new Map();
    this.token = html("span", { class: "quiet" });
    this.sequence = html("span", { class: "quiet" });
    /** @type {HTMLSelectElement | null} */
    this.group = null;
  }

  build() {
    for (const command of COMMANDS)
      this.buttons.set(
        command,
        html(
          "button",
          { type: "button", class: "small", id: `shape-${command}`, onclick: () => this.run(command) },
          t(`shape.${command}`),
        ),
      );
    const button = (/** @type {Command} */ command) => /** @type {HTMLButtonElement} */ (this.buttons.get(command));
    const group = choiceField("group", {
      label: t("shape.group"),
      options: [],
      set: (value) => this.setGroup(Number(value)),
    });
    this.group = group.select;
    group.element.classList.add("beside");
    this.container.replaceChildren(
      html("div", {}, this.token, button("before"), button("after"), button("remove")),
      html("div", {}, this.sequence, button("new"), button("copy"), button("drop"), group.element),
    );
  }

  /**
   * @param {State} state
   * @param {Place} place
   */
  draw(state, place) {
    const language = t("shape.before");
    if (language !== this.language) this.build();
    this.language = language;
    const s = Math.min(place.sequence, state.sequences.length - 1);
    const { tokens, group } = state.sequences[s];
    const index = Math.min(place.index, tokens.length - 1);
    setText(this.token, t("shape.token", { number: index + 1, token: tokens[index] }));
    setText(this.sequence, t("shape.sequence", { number: s + 1, count: state.sequences.length }));
    const allowed = {
      before: canInsert(state, s),
      after: canInsert(state, s),
      remove: tokens.length > 1,
      new: canAdd(state, s),
      copy: canAdd(state, s),
      drop: state.sequences.length > 1,
    };
    for (const [command, button] of this.buttons) button.disabled = !allowed[command];
    if (!this.group) return;
    const most = Math.min(Math.max(...state.sequences.map((one) => one.group)) + 1, limits.groups);
    const wanted = Array.from({ length: most + 1 }, (_, value) => String(value + 1)).join();
    if (this.group.dataset.options !== wanted) {
      this.group.dataset.options = wanted;
      this.group.replaceChildren(...wanted.split(",").map((text, value) => html("option", { value }, text)));
    }
    this.group.value = String(group);
  }
}

/**
 * The state with a token or sequence added or removed, and the cell to focus next.
 * @param {State} state
 * @param {Place} place
 * @param {Command} command
 * @param {string} text of a new token
 * @returns {{ state: State, place: Place }}
 */
export function reshaped(state, place, command, text) {
  const s = Math.min(place.sequence, state.sequences.length - 1);
  const index = Math.min(place.index, state.sequences[s].tokens.length - 1);
  if (command === "before") return { state: withTokenAdded(state, s, index, text), place };
  if (command === "after")
    return { state: withTokenAdded(state, s, index + 1, text), place: { ...place, index: index + 1 } };
  if (command === "remove")
    return {
      state: withTokenRemoved(state, s, index),
      place: { ...place, index: Math.max(0, Math.min(index, state.sequences[s].tokens.length - 2)) },
    };
  if (command === "drop")
    return { state: withSequenceRemoved(state, s), place: { ...place, sequence: Math.max(0, s - 1) } };
  return { state: withSequenceAdded(state, s, command === "copy"), place: { ...place, sequence: s + 1 } };
}
