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
  /** @param {(found: { snapshot: Snapshot } | { problem: Problem }) => void} follow */
  constructor(follow) {
    this.timer = 0;
    this.written = location.hash;
    window.addEventListener("hashchange", async () => {
      if (location.hash === this.written) return;
      // a pending write is older than the link that has just arrived
      clearTimeout(this.timer);
      this.timer = 0;
      const { hash } = location;
      const found = await fromAddress();
      // while it was being read another one may have come
      if (found && hash === location.hash) follow(found);
    });
  }

  /** @param {Snapshot} snapshot */
  changed(snapshot) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(snapshot), PAUSE);
  }

  /** @param {Snapshot} snapshot */
  async write(snapshot) {
    const timer = this.timer;
    const fragment = Object.keys(snapshot.states).length > 0 ? await encode(snapshot) : "";
    if (timer !== this.timer) return;
    const address = new URL(location.href);
    if (snapshot.page !== "chain" || address.searchParams.has("page")) address.searchParams.set("page", snapshot.page);
    address.hash = fragment.length > LONGEST ? "" : fragment;
    this.replace(address);
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
      history.replaceState(null, "", address);
      this.written = location.hash;
    } catch {
      // browsers refuse too many changes in a short time; the next one writes it all
    }
  }
}
