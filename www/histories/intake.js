// How histories come in: a button, files dropped anywhere on the page, pasted text;
// and what was wrong with those that did not.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { load } from "./load.js";
import { filesOf, pathOf } from "./folder.js";
import { isHistory, labelOf, MOST_RUNS } from "./state.js";

/**
 * @typedef {{ file: string, label: string, points: import("./read.js").Points, parent?: string }} Loaded `parent` where
 *   a folder was given
 */

export class Intake {
  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} page hidden while another page is in front
   * @param {{ add: (loaded: Loaded[]) => void, room: (files: number) => number, samples: () => void }} owner
   */
  constructor(container, page, owner) {
    this.container = container;
    this.page = page;
    this.owner = owner;
    /** @type {{ file: string, problem: string, values: Record<string, string | number> }[]} */
    this.problems = [];
    this.reading = { done: 0, all: 0 };
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
        const { files, folders } = await filesOf(event.dataTransfer);
        this.take(files, folders);
      }),
    );
    document.addEventListener(
      "paste",
      mine((event) => {
        if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return;
        const files = Array.from(event.clipboardData?.files ?? []);
        const text = event.clipboardData?.getData("text") ?? "";
        if (files.length > 0) this.take(/** @type {File[]} */ (files));
        else if (text.trim() !== "") this.pasted(text);
      }),
    );
  }

  build() {
    const input = html("input", {
      type: "file",
      id: "histories-input",
      multiple: true,
      accept: ".json,.jsonl,.ndjson,application/json",
      hidden: true,
    });
    const folder = html("input", { type: "file", id: "histories-folder-input", webkitdirectory: true, hidden: true });
    folder.addEventListener("change", () => {
      const all = Array.from(folder.files ?? []);
      const found = all
        .filter(({ name }) => isHistory(name))
        .sort((a, b) => (a.webkitRelativePath < b.webkitRelativePath ? -1 : 1));
      const name = all[0]?.webkitRelativePath.split("/")[0] ?? "";
      this.take(found, all.length > 0 ? [name] : []);
      folder.value = "";
    });
    input.addEventListener("change", () => {
      this.take(Array.from(input.files ?? []));
      input.value = "";
    });
    const typed = this.area?.value ?? "";
    this.area = html("textarea", {
      id: "histories-paste",
      rows: 4,
      spellcheck: "false",
      placeholder: '[{"step": 1, "entropy": 4.532}, …]',
    });
    this.area.value = typed;
    const add = html(
      "button",
      { type: "button", id: "histories-add", onclick: () => this.area && this.pasted(this.area.value) },
      t("histories.paste.add"),
    );
    this.status = html("p", { class: "quiet", role: "status", id: "histories-status" });
    this.list = html("div", { role: "alert", class: "histories-problems", id: "histories-problems" });
    this.container.replaceChildren(
      html(
        "div",
        { class: "intake" },
        html(
          "button",
          { type: "button", class: "main", id: "histories-choose", onclick: () => input.click() },
          t("histories.choose"),
        ),
        input,
        html(
          "button",
          { type: "button", id: "histories-folder", onclick: () => folder.click() },
          t("histories.folder"),
        ),
        folder,
        html("span", {}, t("histories.drop")),
        html(
          "button",
          { type: "button", id: "histories-sample", onclick: () => this.owner.samples() },
          t("histories.sample"),
        ),
      ),
      html(
        "details",
        {},
        html("summary", {}, t("histories.paste")),
        html("label", { for: "histories-paste", class: "quiet" }, t("histories.paste.label")),
        this.area,
        add,
      ),
      this.status,
      this.list,
    );
    this.draw();
  }

  /** @param {string} text */
  async pasted(text) {
    const name = t("histories.pasted");
    const file = new File([text], name);
    if ((await this.take([file])) && this.area) this.area.value = "";
  }

  /**
   * @param {File[]} files
   * @param {string[]} [folders] where they were looked for
   * @returns {Promise<boolean>} whether all of them were good
   */
  take(files, folders = []) {
    // what comes while others are being read waits for them
    const turn = this.turn.then(() => this.readAll(files, folders));
    this.turn = turn.catch(() => false);
    return turn;
  }

  /**
   * @param {File[]} files
   * @param {string[]} folders
   */
  async readAll(files, folders) {
    if (files.length + folders.length === 0) return false;
    const room = this.owner.room(files.length);
    this.problems = files.slice(room).map(({ name }) => ({ file: name, problem: "many", values: { most: MOST_RUNS } }));
    if (files.length === 0) this.problems = folders.map((name) => ({ file: name, problem: "folder", values: {} }));
    const taken = files.slice(0, room);
    /** @type {Loaded[]} */
    const loaded = [];
    for (const [done, file] of taken.entries()) {
      this.reading = { done, all: taken.length };
      this.draw();
      const result = await load(file);
      if ("problem" in result) this.problems.push({ file: file.name, ...result });
      else loaded.push({ file: file.name, label: labelOf(file.name), points: result, parent: parentOf(file) });
    }
    distinguish(loaded);
    this.reading = { done: 0, all: 0 };
    this.added = loaded.length;
    this.draw();
    if (loaded.length > 0) this.owner.add(loaded);
    return this.problems.length === 0;
  }

  draw() {
    if (!this.status || !this.list) return;
    const { done, all } = this.reading;
    this.status.textContent =
      all > 0
        ? t("histories.reading", { done: done + 1, all })
        : this.added
          ? t("histories.added", { count: this.added })
          : "";
    const lines = this.problems.map(({ file, problem, values }) =>
      html("li", {}, html("strong", {}, file), ": ", t(`histories.problem.${problem}`, values)),
    );
    const clear = () => {
      this.problems = [];
      this.draw();
      document.getElementById("histories-choose")?.focus();
    };
    this.list.replaceChildren(
      ...(lines.length > 0
        ? [
            html("ul", {}, ...lines),
            html(
              "button",
              { type: "button", class: "small", id: "histories-clear", onclick: clear },
              t("histories.clear"),
            ),
          ]
        : []),
    );
  }
}

/** @param {File} file */
const parentOf = (file) => (pathOf.get(file) ?? file.webkitRelativePath).split("/").slice(1, -1).join("/");

/**
 * The same experiment in two folders: says where.
 * @param {Loaded[]} loaded
 */
function distinguish(loaded) {
  const labels = loaded.map(({ label }) => label);
  for (const [index, each] of loaded.entries()) {
    if (each.parent && labels.filter((label) => label === labels[index]).length > 1)
      each.label = `${each.label} (${each.parent})`;
  }
}
