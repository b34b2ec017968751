// Where histories come in: a button, files dropped anywhere on the page, text pasted; and what was wrong with those that did not.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { load } from "./load.js";
import { labelOf, MOST_RUNS } from "./state.js";

/** @typedef {{ file: string, label: string, points: import("./read.js").Points }} Loaded */

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
    const mine = (/** @type {(event: any) => void} */ act) => (/** @type {Event} */ event) => !page.hidden && act(event);
    // a file dropped beside its place would make the browser leave the page
    document.addEventListener("dragover", mine((event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      container.classList.add("over");
    }));
    document.addEventListener("dragleave", mine((event) => event.relatedTarget === null && container.classList.remove("over")));
    document.addEventListener("drop", mine((event) => {
      container.classList.remove("over");
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.take(Array.from(event.dataTransfer.files));
    }));
    document.addEventListener("paste", mine((event) => {
      if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return;
      const files = Array.from(event.clipboardData?.files ?? []);
      const text = event.clipboardData?.getData("text") ?? "";
      if (files.length > 0) this.take(/** @type {File[]} */ (files));
      else if (text.trim() !== "") this.pasted(text);
    }));
  }

  build() {
    const input = html("input", { type: "file", id: "histories-input", multiple: true, accept: ".json,application/json", hidden: true });
    input.addEventListener("change", () => {
      this.take(Array.from(input.files ?? []));
      input.value = "";
    });
    const typed = this.area?.value ?? "";
    this.area = html("textarea", { id: "histories-paste", rows: 4, spellcheck: "false", placeholder: '[{"step": 1, "entropy": 4.532}, …]' });
    this.area.value = typed;
    const add = html("button", { type: "button", id: "histories-add", onclick: () => this.area && this.pasted(this.area.value) }, t("histories.paste.add"));
    this.status = html("p", { class: "quiet", role: "status", id: "histories-status" });
    this.list = html("div", { role: "alert", class: "histories-problems", id: "histories-problems" });
    this.container.replaceChildren(
      html("div", { class: "intake" },
        html("button", { type: "button", class: "main", id: "histories-choose", onclick: () => input.click() }, t("histories.choose")), input,
        html("span", {}, t("histories.drop")),
        html("button", { type: "button", id: "histories-sample", onclick: () => this.owner.samples() }, t("histories.sample"))),
      html("details", {}, html("summary", {}, t("histories.paste")), html("label", { for: "histories-paste", class: "quiet" }, t("histories.paste.label")), this.area, add),
      this.status, this.list);
    this.draw();
  }

  /** @param {string} text */
  async pasted(text) {
    const name = t("histories.pasted");
    const file = new File([text], name);
    if (await this.take([file]) && this.area) this.area.value = "";
  }

  /**
   * @param {File[]} files
   * @returns {Promise<boolean>} whether all of them were good
   */
  async take(files) {
    if (this.reading.all > 0 || files.length === 0) return false;
    const room = this.owner.room(files.length);
    this.problems = files.slice(room).map(({ name }) => ({ file: name, problem: "many", values: { most: MOST_RUNS } }));
    const taken = files.slice(0, room);
    /** @type {Loaded[]} */
    const loaded = [];
    for (const [done, file] of taken.entries()) {
      this.reading = { done, all: taken.length };
      this.draw();
      const result = await load(file);
      if ("problem" in result) this.problems.push({ file: file.name, ...result });
      else loaded.push({ file: file.name, label: labelOf(file.name), points: result });
    }
    this.reading = { done: 0, all: 0 };
    this.added = loaded.length;
    this.draw();
    if (loaded.length > 0) this.owner.add(loaded);
    return this.problems.length === 0;
  }

  draw() {
    if (!this.status || !this.list) return;
    const { done, all } = this.reading;
    this.status.textContent = all > 0 ? t("histories.reading", { done: done + 1, all }) : this.added !== undefined ? t("histories.added", { count: this.added }) : "";
    const lines = this.problems.map(({ file, problem, values }) => html("li", {}, html("strong", {}, file), ": ", t(`histories.problem.${problem}`, values)));
    const clear = () => {
      this.problems = [];
      this.draw();
      document.getElementById("histories-choose")?.focus();
    };
    this.list.replaceChildren(...(lines.length > 0 ? [html("ul", {}, ...lines), html("button", { type: "button", class: "small", id: "histories-clear", onclick: clear }, t("histories.clear"))] : []));
  }
}
