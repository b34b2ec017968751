// What stands around the pages: tabs, undo and redo over all of them, one state that a link can carry.

import { addTexts, t } from "./i18n/index.js";
import { pages } from "./pages.js";
import { byId, html } from "./parts/dom.js";
import { History } from "./parts/history.js";

/** @typedef {import("./pages.js").Page} Page */
/** @typedef {import("./pages.js").View} View */

/**
 * @typedef {object} Snapshot everything a link carries
 * @property {string} page
 * @property {Record<string, any>} states of the pages that were changed
 */

export class Shell {
  /**
   * @param {any} library
   * @param {{ changed?: (snapshot: Snapshot) => void }} [observer]
   */
  constructor(library, observer = {}) {
    this.library = library;
    this.observer = observer;
    /** @type {History<Snapshot>} */
    this.history = new History({ page: pages[0].id, states: {} });
    /** @type {Map<string, { page: Page, view: View, element: HTMLElement }>} */
    this.mounted = new Map();
    /** counts openings, so that a page that loads late does not cover the one chosen since */
    this.opening = 0;
    byId("undo").addEventListener("click", () => this.step("undo"));
    byId("redo").addEventListener("click", () => this.step("redo"));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** @returns {Snapshot} */
  get snapshot() {
    return this.history.present;
  }

  /**
   * The state of a page: as changed, or as it opens.
   * @param {string} id
   */
  stateOf(id) {
    return this.history.present.states[id] ?? this.mounted.get(id)?.page.initial();
  }

  /**
   * Starts with what a link carried; states that cannot be read are left out.
   * @param {Snapshot} snapshot
   * @returns {Promise<string[]>} the pages whose state was refused
   */
  async restore(snapshot) {
    /** @type {string[]} */
    const refused = [];
    /** @type {Record<string, any>} */
    const states = {};
    for (const [id, data] of Object.entries(snapshot.states ?? {})) {
      const entry = pages.find((page) => page.id === id);
      const state = entry ? (await entry.load()).page.read(data) : null;
      if (state === null || state === undefined) refused.push(id);
      else states[id] = state;
    }
    const page = pages.some(({ id }) => id === snapshot.page) ? snapshot.page : pages[0].id;
    this.history = new History({ page, states });
    await this.open(page);
    return refused;
  }

  /**
   * @param {string} id
   * @param {any} [state] what the page is to show
   */
  async open(id, state) {
    this.opening += 1;
    const mine = this.opening;
    byId("main").setAttribute("aria-busy", "true");
    const mounted = await this.mount(id);
    if (mine !== this.opening) return;
    if (state !== undefined) this.history.push({ page: id, states: { ...this.history.present.states, [id]: state } });
    else if (this.history.present.page !== id) this.history.amend({ ...this.history.present, page: id });
    for (const [other, { element }] of this.mounted) element.hidden = other !== id;
    byId("status").hidden = true;
    byId("content").hidden = false;
    mounted?.view.draw(this.stateOf(id), true);
    this.settled();
    byId("main").setAttribute("aria-busy", "false");
  }

  /** @param {string} id */
  async mount(id) {
    const found = this.mounted.get(id);
    if (found) return found;
    const entry = pages.find((page) => page.id === id);
    if (!entry) throw new Error(`no page ${id}`);
    const element = html("div", { class: "page", id: `page-${id}` });
    try {
      const { page } = await entry.load();
      await addTexts(page.texts);
      const again = this.mounted.get(id);
      if (again) return again;
      byId("content").append(element);
      const view = page.mount(element, {
        library: this.library,
        state: () => this.stateOf(id) ?? page.initial(),
        change: (next, continued) => this.change(id, next, continued),
        open: (other, state) => this.open(other, state),
      });
      const mounted = { page, view, element };
      this.mounted.set(id, mounted);
      return mounted;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      element.replaceChildren(html("p", { class: "status failed", role: "alert" }, t("page.pageFailed", { reason })));
      byId("content").append(element);
      console.error(error);
      return null;
    }
  }

  /**
   * @param {string} id
   * @param {any} next
   * @param {boolean} [continued]
   */
  change(id, next, continued = false) {
    const snapshot = { page: id, states: { ...this.history.present.states, [id]: next } };
    if (continued) this.history.amend(snapshot);
    else this.history.push(snapshot);
    this.mounted.get(id)?.view.draw(next, false);
    this.settled();
  }

  /** @param {"undo" | "redo"} way */
  step(way) {
    const before = this.history.present.page;
    if (!this.history[way]()) return;
    const { page } = this.history.present;
    if (page !== before) this.open(page);
    else {
      this.mounted.get(page)?.view.draw(this.stateOf(page), false);
      this.settled();
    }
  }

  /** Everything anew, in another language. */
  redraw() {
    const { page } = this.history.present;
    this.mounted.get(page)?.view.draw(this.stateOf(page), true);
    this.settled();
  }

  /** What the header shows of the present. */
  settled() {
    /** @type {HTMLButtonElement} */ (byId("undo")).disabled = this.history.past.length === 0;
    /** @type {HTMLButtonElement} */ (byId("redo")).disabled = this.history.future.length === 0;
    this.drawTabs();
    this.observer.changed?.(this.history.present);
  }

  drawTabs() {
    const tabs = byId("tabs");
    tabs.setAttribute("aria-label", t("tab.label"));
    if (tabs.childElementCount === 0) {
      tabs.append(...pages.map(({ id }) => html("button", { type: "button", class: "tab", id: `tab-${id}`, onclick: () => this.open(id) })));
    }
    for (const { id } of pages) {
      const tab = byId(`tab-${id}`);
      tab.textContent = t(`tab.${id}`);
      if (id === this.history.present.page) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
  }

  /** What the page in front offers to copy or save. */
  exports() {
    const { page } = this.history.present;
    return this.mounted.get(page)?.view.exports?.(this.stateOf(page)) ?? [];
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const command = event.ctrlKey || event.metaKey;
    if (!command || event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return;
    const key = event.key.toLowerCase();
    const redo = key === "y" || (key === "z" && event.shiftKey);
    if (!redo && key !== "z") return;
    event.preventDefault();
    this.step(redo ? "redo" : "undo");
  }
}
