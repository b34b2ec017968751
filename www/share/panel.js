// The share panel under its button: the link, what can be copied and saved of the page in front,
// and the whole state as a file.

import { t } from "../i18n/index.js";
import { byId, html } from "../parts/dom.js";
import { copyText } from "../parts/copy.js";
import { tellBehind } from "../parts/later.js";
import { LONGEST, linkTo } from "./address.js";
import { read, write } from "./link.js";

/** @typedef {import("../pages.js").Export} Export */

export class SharePanel {
  /**
   * @param {import("../shell.js").Shell} shell
   * @param {(found: ReturnType<typeof read>) => void} follow goes to a state that was opened
   */
  constructor(shell, follow) {
    this.shell = shell;
    this.follow = follow;
    this.button = html("button", {
      type: "button",
      id: "share-button",
      "aria-expanded": "false",
      "aria-controls": "share-panel",
    });
    this.panel = html("section", { class: "share-panel", id: "share-panel", hidden: true });
    this.said = html("p", { class: "said", role: "status" });
    this.timer = 0;
    /** counts drawings: a link that is ready late must not pass for the newest */
    this.turn = 0;
    byId("share").replaceChildren(this.button, this.panel);
    this.button.addEventListener("click", () => this.toggle());
    byId("share").addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.panel.hidden) return;
      event.stopPropagation();
      this.toggle();
      this.button.focus();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!this.panel.hidden && event.target instanceof Node && !byId("share").contains(event.target)) this.toggle();
    });
  }

  toggle() {
    this.panel.hidden = !this.panel.hidden;
    this.button.setAttribute("aria-expanded", String(!this.panel.hidden));
    this.said.textContent = "";
    if (!this.panel.hidden) this.draw();
  }

  /** Draws an open panel again, after a change or in another language. */
  redraw() {
    this.button.textContent = t("share.title");
    this.panel.setAttribute("aria-label", t("share.title"));
    clearTimeout(this.timer);
    if (this.panel.hidden) return;
    tellBehind(this.panel, true);
    this.timer = setTimeout(() => this.draw(), 100);
  }

  draw() {
    this.turn += 1;
    const mine = this.turn;
    tellBehind(this.panel, true);
    const pictures = html("div", { class: "part", hidden: true });
    const all = this.shell.exports();
    const before = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.export;
    const preview = this.panel.querySelector(".preview");
    const { part, ready } = this.linkPart();
    this.panel.replaceChildren(
      part,
      ...this.group(
        t("share.copyAs"),
        all.filter(({ how }) => how === "copy"),
      ),
      ...this.group(t("share.saveAs"), [...all.filter(({ how }) => how === "save"), this.stateExport()]),
      pictures,
      this.opener(),
      this.said,
      ...(preview ? [preview] : []),
    );
    const refocus = () =>
      before &&
      /** @type {HTMLElement | null} */ (this.panel.querySelector(`[data-export="${CSS.escape(before)}"]`))?.focus();
    refocus();
    Promise.all([ready, this.fillPictures(pictures).then(refocus)]).then(() => {
      if (mine === this.turn) tellBehind(this.panel, false);
    });
  }

  linkPart() {
    const field = html("input", {
      type: "text",
      readonly: true,
      id: "share-link",
      class: "link",
      "aria-describedby": "share-length",
    });
    field.addEventListener("focus", () => field.select());
    const length = html("span", { class: "quiet", id: "share-length" });
    const copy = html(
      "button",
      {
        type: "button",
        "data-export": "link",
        disabled: true,
        onclick: () => this.copy(t("share.theLink"), field.value),
      },
      t("share.copy"),
    );
    const ready = linkTo(this.shell.whole).then((link) => {
      const long = link.length > LONGEST;
      field.value = long ? "" : link;
      copy.disabled = long;
      length.textContent = t(long ? "share.tooLong" : "share.length", { count: link.length });
    });
    const part = html(
      "div",
      { class: "part" },
      html("label", { for: "share-link" }, t("share.link")),
      html("div", { class: "line" }, field, copy),
      length,
    );
    return { part, ready };
  }

  /**
   * @param {string} title
   * @param {Export[]} entries
   */
  group(title, entries) {
    if (entries.length === 0) return [];
    const buttons = entries.map((entry) =>
      html("button", { type: "button", "data-export": entry.id, onclick: () => this.run(entry) }, entry.label),
    );
    return [
      html(
        "div",
        { class: "part", role: "group", "aria-label": title },
        html("p", { class: "title", "aria-hidden": "true" }, title),
        html("div", { class: "buttons" }, ...buttons),
      ),
    ];
  }

  /**
   * Each chart on a line of its own, with its two kinds of file. The code that makes them is loaded on demand.
   * @param {HTMLElement} part
   */
  async fillPictures(part) {
    const { picturesOf } = await import("./pictures.js");
    const lines = picturesOf(this.shell.snapshot.page).map(({ name, exports }) => {
      const buttons = exports.map((entry) =>
        html(
          "button",
          {
            type: "button",
            "data-export": entry.id,
            "aria-label": t("share.pictureAs", { name, kind: entry.label }),
            onclick: () => this.run(entry),
          },
          entry.label,
        ),
      );
      return html("li", {}, html("span", {}, name), ...buttons);
    });
    part.hidden = lines.length === 0;
    part.replaceChildren(
      html("p", { class: "title", id: "share-pictures" }, t("share.pictures")),
      html("ul", { class: "pictures", "aria-labelledby": "share-pictures" }, ...lines),
    );
  }

  /** @returns {Export} */
  stateExport() {
    return {
      id: "state",
      label: t("share.state"),
      how: "save",
      file: "tokenwise-state.json",
      make: () => `${write(this.shell.whole)}\n`,
    };
  }

  /** A state saved before; the link is for what is small, the file for everything. */
  opener() {
    // the field itself would speak the browser's language: its label is the button
    const field = html("input", { type: "file", class: "unseen", accept: ".json,application/json", id: "share-open" });
    field.addEventListener("change", async () => {
      const file = field.files?.[0];
      if (!file) return;
      // the same limit as in read(): a huge file chosen by mistake is not even loaded
      this.follow(file.size > 16e6 ? { problem: "large" } : read(await file.text()));
      if (!this.panel.hidden) this.toggle();
    });
    return html("div", { class: "part open" }, field, html("label", { for: "share-open" }, t("share.open")));
  }

  /** @param {Export} entry */
  async run(entry) {
    try {
      const made = await entry.make();
      if (entry.how === "copy")
        return await this.copy(entry.label, typeof made === "string" ? made : await made.text());
      const file = entry.file ?? "tokenwise.txt";
      const { saveFile } = await import("../parts/save.js");
      saveFile(file, made);
      this.say(t("share.saved", { file }));
    } catch (error) {
      this.say(
        t("share.failed", { what: entry.label, reason: error instanceof Error ? error.message : String(error) }),
      );
    }
  }

  /**
   * @param {string} what
   * @param {string} text
   */
  async copy(what, text) {
    const copied = await copyText(text);
    // always shown, so that it can be checked, and copied by hand where there is no clipboard access
    const shown = html("textarea", {
      class: "preview",
      readonly: true,
      rows: 8,
      spellcheck: "false",
      "aria-label": t("share.preview", { what }),
    });
    shown.value = text;
    this.panel.querySelector(".preview")?.remove();
    this.panel.append(shown);
    this.say(t(copied ? "share.copied" : "share.notCopied", { what }));
    if (!copied) shown.select();
  }

  /** @param {string} sentence */
  say(sentence) {
    this.said.textContent = sentence;
  }
}
