// placeholder until the page is written
import { html } from "../parts/dom.js";

/** @type {import("../pages.js").Page} */
export const page = {
  texts: [],
  initial: () => ({}),
  read: () => null,
  mount: (container) => {
    container.append(html("p", {}, "…"));
    return { draw: () => {} };
  },
};
