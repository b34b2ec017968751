// What the grid is given to draw, and what it reports. Types only.

/** @typedef {import("../../parts/grid.js").Cell} Cell */

/**
 * @typedef {object} TableRow
 * @property {string} key
 * @property {string} name
 * @property {() => Element | null} symbol
 * @property {"action" | "state" | "sequence"} align
 * @property {boolean} first of its stage
 * @property {number} count of cells
 * @property {boolean} signed
 * @property {string} stamp what all its cells depend on
 * @property {(i: number) => number} value
 * @property {(i: number) => number} flags
 * @property {(i: number, value: number, flags: number) => Cell} cell
 */

/** @typedef {{ title: string, group: string, text: string, folds: boolean }} Head */
/**
 * @typedef {{ sequence: number, open: boolean, head: Head | null, numbers: TableRow[], tokens: TableRow,
 *   states: string[], rows: TableRow[] }} Block
 */
/** @typedef {{ label: string, corner: string, halves: number, blocks: Block[] }} Table */
/** @typedef {import("../edit/edits.js").Place} Place */
/**
 * @typedef {{ elements: HTMLElement[], values: Float64Array, flags: Uint8Array, stamp: string, row: TableRow }} Drawn
 */

/**
 * @typedef {import("../../parts/grid.js").Handlers<Place> & {
 *   shape: (command: "before" | "after" | "remove", place: Place) => void,
 * }} Handlers `shape` adds or removes a token
 */

export {};
