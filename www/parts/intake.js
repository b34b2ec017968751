// How recorded files come in on a page that compares them: two buttons, files and folders dropped anywhere on the page,
// pasted text; and what was wrong with those that did not. A page says what it reads by extending it.

import { t } from "../i18n/index.js";
import { html } from "./dom.js";
import { filesOf } from "./folder.js";

/**
 * @typedef {object} Kind
 * @property {string} id begins the ids of the elements and the keys of the texts
 * @property {"choose" | "folder"} first the button that most people want
 * @property {string} accept the kinds of files that can be chosen
 * @property {(name: string) => boolean} wanted which files of a folder
 * @property {string} placeholder of the field for pasted text
 * @property {() => void} sample shows what comes with the page
 */

/** @typedef {{ file: string, problem: string, values: Record<string, string | number> }} Problem */

export class Intake {
  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} page hidden while another page is in front
   * @param {Kind} kind
   */
  constructor(container, page, kind) {
    this.container = container;
    this.kind = kind;
    /** @type {Problem[]} */
    this.problems = [];
    /** What is being read, with how much of it. @type {{ done: number, all: number, share: number } | null} */
    this.reading = null;
    this.added = 0;
    /** @type {Promise<boolean>} */
    this.turn = Promise.resolve(true);
    const mine = (/** @type {(event: any) => void} */ act) => (/** @type {Event} */ event) =>
      !page.hidden && act(event);
    // a file dropped beside its place would make the browser leave the page
    document.addEventListener(
      "dragover",
      mine((event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        container.classList.add("over");
      }),
    );
    document.addEventListener(
      "dragleave",
      mine((event) => event.relatedTarget === null && container.classList.remove("over")),
    );
    document.addEventListener(
      "drop",
      mine(async (event) => {
        container.classList.remove("over");
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        const { files, folders } = await filesOf(event.dataTransfer, kind.wanted);
        this.take(files, folders);
      }),
    );
    document.addEventListener(
      "paste",
      mine((event) => {
        if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return;
        const files = /** @type {File[]} */ (Array.from(event.clipboardData?.files ?? []));
        const text = event.clipboardData?.getData("text") ?? "";
        if (files.length > 0) this.take(files);
        else if (text.trim() !== "") this.pasted(text);
      }),
    );
  }

  /** Draws again in the current language. */
  build() {
    const { id, first, accept, wanted, placeholder, sample } = this.kind;
    const chooser = (/** @type {string} */ name, /** @type {Record<string, unknown>} */ more) => {
      const input = html("input", { type: "file", id: name, hidden: true, ...more });
      input.addEventListener("change", () => {
        const all = Array.from(input.files ?? []);
        const folder = all[0]?.webkitRelativePath.split("/")[0] ?? "";
        const found = all
          .filter(({ name: file }) => wanted(file))
          .sort((a, b) => (a.webkitRelativePath < b.webkitRelativePath ? -1 : 1));
        if (folder === "") this.take(all);
        else this.take(found, [folder]);
        input.value = "";
      });
      return input;
    };
    const inputs = {
      choose: chooser(`${id}-input`, { multiple: true, accept }),
      folder: chooser(`${id}-folder-input`, { webkitdirectory: true }),
    };
    const button = (/** @type {string} */ name, /** @type {() => void} */ press, kind = "") =>
      html("button", { type: "button", class: kind, id: `${id}-${name}`, onclick: press }, t(`${id}.${name}`));
    const second = first === "choose" ? "folder" : "choose";
    const typed = this.area?.value ?? "";
    this.area = html("textarea", { id: `${id}-paste`, rows: 4, spellcheck: "false", placeholder });
    this.area.value = typed;
    this.status = html("p", { class: "quiet", role: "status", id: `${id}-status` });
    this.list = html("div", { role: "alert", class: "intake-problems", id: `${id}-problems` });
    this.container.replaceChildren(
      html(
        "div",
        { class: "intake" },
        button(first, () => inputs[first].click(), "main"),
        inputs[first],
        button(second, () => inputs[second].click()),
        inputs[second],
        html("span", {}, t(`${id}.drop`)),
        button("sample", sample),
      ),
      html(
        "details",
        {},
        html("summary", {}, t(`${id}.paste`)),
        html("label", { for: `${id}-paste`, class: "quiet" }, t(`${id}.paste.label`)),
        this.area,
        html(
          "button",
          { type: "button", id: `${id}-add`, onclick: () => this.area && this.pasted(this.area.value) },
          t(`${id}.paste.add`),
        ),
      ),
      this.status,
      this.list,
    );
    this.draw();
  }

  /** @param {string} text */
  async pasted(text) {
    const file = new File([text], t(`${this.kind.id}.pasted`));
    if ((await this.take([file])) && this.area) this.area.value = "";
  }

  /**
   * @param {File[]} files
   * @param {string[]} [folders] where they were looked for
   * @returns {Promise<boolean>} whether all of them were good
   */
  take(files, folders = []) {
    // what comes while others are being read waits for them
    const turn = this.turn.then(() => (files.length + folders.length === 0 ? false : this.readAll(files, folders)));
    this.turn = turn.catch((error) => {
      console.error(error);
      return false;
    });
    return this.turn;
  }

  /**
   * Reads them, keeps `problems`, and ends with `finish`.
   * @param {File[]} _files
   * @param {string[]} _folders
   * @returns {Promise<boolean>} whether all of them were good
   */
  readAll(_files, _folders) {
    return Promise.resolve(false);
  }

  /**
   * @param {number} done
   * @param {number} all
   * @param {number} [share] how much of the one under way is read
   */
  progress(done, all, share = 0) {
    this.reading = { done, all, share };
    this.draw();
  }

  /** @param {number} added how many were good */
  finish(added) {
    this.reading = null;
    this.added = added;
    this.draw();
    return this.problems.length === 0;
  }

  draw() {
    if (!this.status || !this.list) return;
    const { id, first } = this.kind;
    this.status.textContent = this.reading
      ? t(`${id}.reading`, {
          done: this.reading.done + 1,
          all: this.reading.all,
          share: Math.round(this.reading.share * 100),
        })
      : this.added > 0
        ? t(`${id}.added`, { count: this.added })
        : "";
    const lines = this.problems.map(({ file, problem, values }) =>
      html("li", {}, html("strong", {}, file), ": ", t(`${id}.problem.${problem}`, values)),
    );
    const clear = () => {
      this.problems = [];
      this.draw();
      document.getElementById(`${id}-${first}`)?.focus();
    };
    const clearing = () =>
      html("button", { type: "button", class: "small", id: `${id}-clear`, onclick: clear }, t(`${id}.clear`));
    this.list.replaceChildren(...(lines.length > 0 ? [html("ul", {}, ...lines), clearing()] : []));
  }
}
