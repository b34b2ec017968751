// The address bar follows the state, and the state follows a link put into it.

import { decode, encode } from "./link.js";

/** @typedef {import("../shell.js").Snapshot} Snapshot */
/** @typedef {import("./link.js").Problem} Problem */

/** One turn of the wheel is many changes: the address is written when it is over. */
const PAUSE = 300;
/** Longer ones are cut off by some programs. */
export const LONGEST = 16_000;

/**
 * The link that was followed here.
 * @returns {Promise<{ snapshot: Snapshot } | { problem: Problem } | null>} null if it carries nothing
 */
export async function fromAddress() {
  const { hash } = location;
  if (hash === "" || hash === "#" || hash === "#main") return null;
  return decode(hash);
}

/**
 * The link to a state, wherever the page is served.
 * @param {Snapshot} snapshot
 */
export async function linkTo(snapshot) {
  return `${location.origin}${location.pathname}${await encode(snapshot)}`;
}

export class Address {
  /**
   * @param {(finding: ReturnType<typeof fromAddress>) => void} follow is told of a link before it has been read
   * @param {(page: string) => void} open goes to a page and leaves the states as they are
   */
  constructor(follow, open) {
    this.timer = 0;
    this.written = location.hash;
    /** the page of this entry of the browser's history; none before the first */
    this.page = "";
    window.addEventListener("popstate", ({ state }) => {
      // an entry of ours: Back and Forward move between pages, numbers are for undo
      if (typeof state?.page !== "string") return;
      this.page = state.page;
      this.written = location.hash;
      open(state.page);
    });
    window.addEventListener("hashchange", () => {
      if (location.hash === this.written) return;
      // a pending write is older than the link that has just arrived
      clearTimeout(this.timer);
      this.timer = 0;
      this.tell(false);
      const { hash } = location;
      // while it was being read another one may have come
      follow(fromAddress().then((found) => (hash === location.hash ? found : null)));
    });
  }

  /** @param {Snapshot} snapshot */
  changed(snapshot) {
    if (snapshot.page !== this.page) this.turn(snapshot.page);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(snapshot), PAUSE);
    this.tell(true);
  }

  /**
   * Another page is another entry, so that Back leads to the one before; the first one is the entry that is there.
   * @param {string} page
   */
  turn(page) {
    const first = this.page === "";
    this.page = page;
    if (first) history.replaceState({ page }, "");
    else history.pushState({ page }, "", withPage(new URL(location.href), page));
  }

  /** @param {Snapshot} snapshot */
  async write(snapshot) {
    const timer = this.timer;
    const fragment = Object.keys(snapshot.states).length > 0 ? await encode(snapshot) : "";
    if (timer !== this.timer) return;
    const address = new URL(location.href);
    withPage(address, snapshot.page);
    address.hash = fragment.length > LONGEST ? "" : fragment;
    this.replace(address);
    this.tell(false);
  }

  /** Whether the address is older than the state. @param {boolean} behind */
  tell(behind) {
    document.documentElement.toggleAttribute("data-unwritten", behind);
  }

  /**
   * A language named in the address would win over the one chosen since.
   * @param {string} language
   */
  speak(language) {
    const address = new URL(location.href);
    if (!address.searchParams.has("lang")) return;
    address.searchParams.set("lang", language);
    this.replace(address);
  }

  /** @param {URL} address */
  replace(address) {
    if (address.href === location.href) return;
    try {
      history.replaceState({ page: this.page }, "", address);
      this.written = location.hash;
    } catch {
      // browsers refuse too many changes in a short time; the next one writes it all
    }
  }
}

/**
 * @param {URL} address
 * @param {string} page
 */
function withPage(address, page) {
  if (page !== "chain" || address.searchParams.has("page")) address.searchParams.set("page", page);
  return address;
}
