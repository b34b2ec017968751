// How data comes in: drop, choose, paste, or try the sample. And the messages about it.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";

/**
 * @typedef {object} Handlers
 * @property {(name: string, data: Blob | string, others: number) => void} take with how many other files that came with
 *   it
 * @property {() => void} sample
 * @property {() => void} stop
 */

export class Intake {
  /**
   * @param {HTMLElement} page while it is shown, the whole window takes drops:
   *   beside it the browser would leave for the file
   * @param {Handlers} handlers
   */
  constructor(page, handlers) {
    this.handlers = handlers;
    this.element = html("section", { class: "intake" });
    this.messages = html("div", { class: "data-messages", role: "status", "aria-live": "polite", id: "data-messages" });
    this.file = html("input", {
      type: "file",
      class: "unseen",
      id: "data-file",
      accept: ".json,.jsonl,.ndjson,.csv,.parquet,.safetensors,.txt,.log,application/json,text/csv",
      tabindex: -1,
    });
    this.paste = html("textarea", { id: "data-paste", rows: 3, spellcheck: "false", autocomplete: "off" });
    this.bar = html("progress", { max: 1, value: 0 });
    this.busy = html("div", { class: "data-busy", hidden: true });
    /** @type {{ text: () => string, bad: boolean }[]} */
    this.said = [];
    this.file.addEventListener("change", () => {
      const [file, ...others] = this.file.files ?? [];
      if (file) handlers.take(file.name, file, others.length);
      // the same file may be chosen again
      this.file.value = "";
    });
    let inside = 0;
    const over = (/** @type {boolean} */ on) => this.element.classList.toggle("over", on);
    const listen = (
      /** @type {"dragenter" | "dragleave" | "dragover" | "drop"} */ type,
      /** @type {(event: DragEvent) => void} */ work,
    ) =>
      document.addEventListener(type, (event) => {
        if (!page.hidden) work(event);
      });
    listen("dragenter", (event) => {
      event.preventDefault();
      inside += 1;
      over(true);
    });
    listen("dragleave", () => {
      inside -= 1;
      if (inside <= 0) over(false);
    });
    listen("dragover", (event) => event.preventDefault());
    listen("drop", (event) => {
      inside = 0;
      over(false);
      const [file, ...others] = event.dataTransfer?.files ?? [];
      // text dropped into a field belongs there
      if (!file && event.target instanceof HTMLTextAreaElement) return;
      event.preventDefault();
      const text = event.dataTransfer?.getData("text/plain") ?? "";
      if (file) handlers.take(file.name, file, others.length);
      else if (text !== "") handlers.take("", text, 0);
    });
  }

  /** Draws again in the current language. */
  build() {
    const pasted = this.paste.value;
    this.paste.setAttribute("aria-label", t("data.paste.label"));
    this.paste.setAttribute("placeholder", t("data.paste.placeholder"));
    this.file.setAttribute("aria-label", t("data.choose"));
    this.paste.value = pasted;
    this.bar.setAttribute("aria-label", t("data.progress"));
    const choose = html(
      "button",
      { type: "button", id: "data-choose", onclick: () => this.file.click() },
      t("data.choose"),
    );
    const sample = html(
      "button",
      { type: "button", id: "data-sample", onclick: () => this.handlers.sample() },
      t("data.sample"),
    );
    const read = html(
      "button",
      { type: "button", id: "data-read", onclick: () => this.handlers.take("", this.paste.value, 0) },
      t("data.paste.read"),
    );
    const stop = html(
      "button",
      { type: "button", id: "data-stop", onclick: () => this.handlers.stop() },
      t("data.stop"),
    );
    this.busy.replaceChildren(html("span", { id: "data-stage" }), this.bar, stop);
    this.element.replaceChildren(
      html(
        "div",
        { class: "drop" },
        html("p", {}, html("strong", {}, t("data.drop"))),
        html("p", { class: "quiet" }, t("data.private")),
        html("p", { class: "buttons" }, choose, sample),
        this.file,
      ),
      html("div", { class: "paste" }, this.paste, read),
      this.busy,
      this.messages,
    );
    this.say(this.said);
  }

  /** @param {{ stage: string, share: number } | null} progress null when nothing is under way */
  progress(progress) {
    this.busy.hidden = progress === null;
    if (!progress) return;
    this.bar.value = progress.share;
    const stage = this.busy.querySelector("#data-stage");
    if (stage) stage.textContent = t(`data.stage.${progress.stage}`);
  }

  /** @param {{ text: () => string, bad: boolean }[]} messages texts are made when needed: the language may change */
  say(messages) {
    this.said = messages;
    this.messages.replaceChildren(
      ...messages.map(({ text, bad }) => html("p", { class: bad ? "bad" : "quiet" }, text())),
    );
  }
}
