// The frame around the pages: tabs, undo and redo over all of them, one state that a link can carry.

import { NotLoaded } from "./engine.js";
import { addTexts, t } from "./i18n/index.js";
import { pages } from "./pages.js";
import { byId, html } from "./parts/dom.js";
import { parse } from "./parts/format.js";
import { History } from "./parts/history.js";
import { addStyle, wear } from "./parts/styles.js";

/** @typedef {import("./pages.js").Page} Page */
/** @typedef {import("./pages.js").View} View */
/** @typedef {{ page: Page, view: View, element: HTMLElement }} Mounted */

/**
 * @typedef {object} Snapshot everything a link carries
 * @property {string} page
 * @property {Record<string, any>} states of the pages that were changed
 */

/**
 * @typedef {object} Observer
 * @property {(snapshot: Snapshot) => void} [changed]
 * @property {(id: string) => void} [failed] a page could not draw its state, and shows an earlier one
 */

/** @param {string} id */
const entryOf = (id) => pages.find((page) => page.id === id);

export class Shell {
  /**
   * @param {import("./engine.js").Library} library
   * @param {Observer} [observer]
   * @param {() => Promise<void>} [complete] loads the rest of the library, where only a part is there
   */
  constructor(library, observer = {}, complete = async () => {}) {
    this.library = library;
    this.observer = observer;
    this.complete = complete;
    /** the drawing that waits for the rest of the library */
    this.later = Promise.resolve();
    /** @type {History<Snapshot>} */
    this.history = new History({ page: pages[0].id, states: {} });
    /** @type {Map<string, Mounted>} */
    this.mounted = new Map();
    /** counts openings, so that a page that loads late does not cover the one chosen since */
    this.opening = 0;
    /** how many pieces of work are under way */
    this.working = 0;
    byId("undo").addEventListener("click", () => this.step("undo"));
    byId("redo").addEventListener("click", () => this.step("redo"));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** @returns {Snapshot} */
  get snapshot() {
    return this.history.present;
  }

  /**
   * The same with the state of the page in front even where it is as it opens:
   * a link keeps its numbers when examples change.
   * @returns {Snapshot}
   */
  get whole() {
    const { page, states } = this.history.present;
    const state = this.stateOf(page);
    return state === undefined ? this.history.present : { page, states: { ...states, [page]: state } };
  }

  /**
   * The state of a page: as changed, or as it opens.
   * @param {string} id
   */
  stateOf(id) {
    return this.history.present.states[id] ?? this.mounted.get(id)?.page.initial();
  }

  /**
   * Goes to what a link or a file carried; states that cannot be read are left out.
   * @param {Snapshot} snapshot
   * @param {boolean} [asStep] so that it can be undone
   * @returns {Promise<string[]>} the pages whose state was refused
   */
  async restore(snapshot, asStep = false) {
    /** @type {string[]} */
    const refused = [];
    /** @type {Record<string, any>} */
    const states = {};
    for (const [id, data] of Object.entries(snapshot.states)) {
      const state = await readState(id, data);
      if (state === null) refused.push(id);
      else states[id] = state;
    }
    const next = { page: entryOf(snapshot.page) ? snapshot.page : pages[0].id, states };
    if (asStep) this.history.push(next);
    else this.history = new History(next);
    await this.open(next.page);
    return refused;
  }

  /**
   * Says that the page is busy from now on until some work is done, whatever else is done meanwhile.
   * @template T
   * @param {() => Promise<T>} work
   */
  async during(work) {
    const tell = (/** @type {number} */ more) => {
      this.working += more;
      byId("main").setAttribute("aria-busy", String(this.working > 0));
    };
    tell(1);
    try {
      return await work();
    } finally {
      tell(-1);
    }
  }

  /**
   * @param {string} id
   * @param {any} [state] what the page is to show
   * @param {any} [place] where in it
   */
  open(id, state, place) {
    return this.during(() => this.show(id, state, place));
  }

  /**
   * @param {string} id
   * @param {any} state
   * @param {any} place
   */
  async show(id, state, place) {
    this.opening += 1;
    const mine = this.opening;
    const mounted = await this.mount(id);
    if (mine !== this.opening) return;
    wear(mounted?.page.styles ?? []);
    if (state !== undefined) this.history.push({ page: id, states: { ...this.history.present.states, [id]: state } });
    else if (this.history.present.page !== id) this.history.turn({ ...this.history.present, page: id });
    for (const element of byId("content").children)
      /** @type {HTMLElement} */ (element).hidden = element.id !== `page-${id}`;
    byId("status").hidden = true;
    byId("content").hidden = false;
    if (mounted) this.draw(id, true);
    this.settled();
    await this.later;
    // what had the focus may have gone with the page before
    if (document.activeElement === document.body && mine > 1) byId("main").focus();
    if (place !== undefined) mounted?.view.goTo?.(place);
  }

  /**
   * @param {string} id
   * @returns {Promise<Mounted | null>}
   */
  async mount(id) {
    const found = this.mounted.get(id);
    if (found) return found;
    const entry = entryOf(id);
    if (!entry) throw new Error(`no page ${id}`);
    document.getElementById(`page-${id}`)?.remove();
    const element = html("div", { class: "page", id: `page-${id}` });
    try {
      const [{ page }] = await Promise.all([entry.load(), entry.start ? undefined : this.complete()]);
      await Promise.all([addTexts(page.texts), ...(page.styles ?? []).map(addStyle)]);
      const again = this.mounted.get(id);
      if (again) return again;
      byId("content").append(element);
      const view = page.mount(element, {
        library: this.library,
        state: () => this.stateOf(id) ?? page.initial(),
        change: (next, continued) => this.change(id, next, continued),
        open: (other, state, place) => this.open(other, state, place),
      });
      const mounted = { page, view, element };
      this.mounted.set(id, mounted);
      return mounted;
    } catch (error) {
      if (error instanceof NotLoaded) {
        await this.complete();
        return this.mount(id);
      }
      const reason = error instanceof Error ? error.message : String(error);
      element.replaceChildren(html("p", { class: "status failed", role: "alert" }, t("page.pageFailed", { reason })));
      byId("content").append(element);
      console.error(error);
      return null;
    }
  }

  /**
   * If a page cannot draw a state, the previous one is shown,
   * or else how the page opens.
   * @param {string} id
   * @param {boolean} anew
   */
  draw(id, anew) {
    const mounted = this.mounted.get(id);
    if (!mounted) return;
    try {
      mounted.view.draw(this.stateOf(id), anew);
    } catch (error) {
      if (error instanceof NotLoaded) {
        this.later = this.during(() => this.drawLater(id));
        return;
      }
      console.error(error);
      const { page, states: all } = this.history.present;
      const { [id]: bad, ...states } = all;
      if (bad === undefined) throw error;
      const before = this.history.past.at(-1)?.states[id];
      const other = before === bad ? undefined : before;
      this.history.amend({ page, states: other === undefined ? states : { ...states, [id]: other } });
      this.observer.failed?.(id);
      this.draw(id, true);
    }
  }

  /**
   * Draws a page when the rest of the library is there; until then it shows what it did.
   * @param {string} id
   */
  async drawLater(id) {
    await this.complete();
    this.draw(id, true);
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
    this.draw(id, false);
    this.settled();
  }

  /** @param {"undo" | "redo"} way */
  step(way) {
    const before = this.history.present.page;
    if (!this.history[way]()) return;
    const { page } = this.history.present;
    if (page !== before) this.open(page);
    else {
      this.draw(page, false);
      this.settled();
    }
  }

  /** Draws everything in another language. */
  redraw() {
    this.draw(this.history.present.page, true);
    this.settled();
  }

  /** What the header shows of the present. */
  settled() {
    for (const [id, steps] of /** @type {const} */ ([
      ["undo", this.history.past],
      ["redo", this.history.future],
    ])) {
      const button = /** @type {HTMLButtonElement} */ (byId(id));
      // a button that is disabled while focused would lose the focus
      if (steps.length === 0 && document.activeElement === button) byId("main").focus({ preventScroll: true });
      button.disabled = steps.length === 0;
    }
    this.drawTabs();
    this.observer.changed?.(this.history.present);
  }

  drawTabs() {
    const tabs = byId("tabs");
    tabs.setAttribute("aria-label", t("tab.label"));
    if (tabs.childElementCount === 0) {
      tabs.append(
        ...pages.map(({ id }) =>
          html("a", {
            class: "tab",
            id: `tab-${id}`,
            href: `?page=${id}`,
            onclick: (/** @type {MouseEvent} */ event) => this.follow(event, id),
          }),
        ),
      );
    }
    for (const { id } of pages) {
      const tab = byId(`tab-${id}`);
      tab.textContent = t(`tab.${id}`);
      const current = id === this.history.present.page;
      if (current && !tab.hasAttribute("aria-current")) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
      if (current) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    document.title = `${t(`tab.${this.history.present.page}`)} · ${t("page.title")}`;
  }

  /**
   * A tab is a link, so that it can be opened beside; a plain click stays on the page and keeps its state.
   * @param {MouseEvent} event
   * @param {string} id
   */
  follow(event, id) {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.open(id);
  }

  /** Past the header, to what the page in front is about. */
  enter() {
    const view = this.mounted.get(this.history.present.page)?.view;
    if (view?.enter) view.enter();
    else byId("main").focus();
  }

  /** What the page in front offers to copy or save. */
  exports() {
    const { page } = this.history.present;
    return this.mounted.get(page)?.view.exports?.(this.stateOf(page)) ?? [];
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || hasOwnUndo(event.target)) return;
    const key = event.key.toLowerCase();
    const redo = key === "y" || (key === "z" && event.shiftKey);
    if (!redo && key !== "z") return;
    event.preventDefault();
    this.step(redo ? "redo" : "undo");
  }
}

/**
 * @param {string} id
 * @param {unknown} data
 * @returns {Promise<any>} null if the page refuses it, or there is no such page
 */
async function readState(id, data) {
  const entry = entryOf(id);
  if (!entry) return null;
  const { page } = await entry.load();
  try {
    return page.read(data) ?? null;
  } catch (error) {
    console.error(error);
    return null;
  }
}

/**
 * Whether the key belongs to a text being written; a number field at rest has nothing of its own to undo.
 * @param {EventTarget | null} target
 */
function hasOwnUndo(target) {
  if (target instanceof HTMLTextAreaElement) return !target.readOnly;
  if (!(target instanceof HTMLInputElement) || target.readOnly) return false;
  if (["checkbox", "radio", "range", "button", "file", "color"].includes(target.type)) return false;
  const settled = target.getAttribute("aria-valuenow");
  const parsed = parse(target.value);
  return settled === null || !("value" in parsed) || !Object.is(parsed.value, Number(settled));
}
