// The pages, in the order of their tabs. What a page is: a plain state, and a view that draws it.

/**
 * @typedef {object} Page
 * @property {string[]} texts the areas of the catalogues it uses
 * @property {string[]} [styles] the style sheets it needs beside those of every page
 * @property {() => any} initial the state it opens with: plain JSON data (numbers may also be NaN, ±Infinity, −0),
 *   never changed in place
 * @property {(data: unknown) => any} read a state that came from outside, checked and completed; null if it is none
 * @property {(container: HTMLElement, context: Context) => View} mount builds the view, once
 */

/**
 * @typedef {object} Context what the shell gives a page
 * @property {import("./engine.js").Library} library the WebAssembly module
 * @property {() => any} state the page's present state
 * @property {(next: any, continued?: boolean) => void} change takes a new state, as one step of undo (`continued`: as a
 *   part of the step before), and draws it
 * @property {(page: string, state?: any, place?: any) => Promise<void>} open goes to another page, there to a state and
 *   a place in it if they are given
 */

/**
 * @typedef {object} View
 * @property {(state: any, anew: boolean) => void} draw shows a state;
 *   `anew` when more than the state may have changed (the language)
 * @property {(state: any) => Export[]} [exports] what can be copied or saved of this page
 * @property {(place: any) => void} [goTo] goes to a place of the state shown
 * @property {() => void} [enter] focuses what the page is about, for a reader who skips the header
 */

/**
 * @typedef {object} Export
 * @property {string} id
 * @property {string} label in the current language
 * @property {"copy" | "save"} how
 * @property {() => string | Blob | Promise<string | Blob>} make
 * @property {string} [file] the name of the file saved
 */

/**
 * `start`: needs a part of the library only.
 * @type {{ id: string, start?: boolean, load: () => Promise<{ page: Page }> }[]}
 */
export const pages = [
  { id: "chain", start: true, load: () => import("./chain/page.js") },
  { id: "kl", load: () => import("./labs/kl/page.js") },
  { id: "clip", load: () => import("./labs/clip/page.js") },
  { id: "aggregate", load: () => import("./labs/aggregate/page.js") },
  { id: "groups", load: () => import("./labs/groups/page.js") },
  { id: "logits", load: () => import("./labs/logits/page.js") },
  { id: "budget", load: () => import("./labs/budget/page.js") },
  { id: "learn", load: () => import("./labs/learn/page.js") },
  { id: "runs", load: () => import("./runs/page.js") },
  { id: "histories", load: () => import("./histories/page.js") },
  { id: "data", load: () => import("./data/page.js") },
];
