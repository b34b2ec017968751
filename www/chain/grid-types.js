// What the grid is given to draw, and what it tells. Types only.

/**
 * @typedef {object} Cell
 * @property {string} text as shown
 * @property {() => string} label for a screen reader
 * @property {"mask" | "input" | "result" | "text"} kind
 * @property {"plus" | "minus" | ""} tone
 * @property {number} strength 0 to 1, how deep the tint is
 * @property {boolean} dropped
 * @property {boolean} faint shown, but not the cell's own
 * @property {"differs" | "slightly" | ""} differs from the number under other conventions
 * @property {string} editText what the editor starts with
 * @property {string} role of the token
 */

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
/** @typedef {{ sequence: number, open: boolean, head: Head | null, numbers: TableRow[], tokens: TableRow, states: string[], rows: TableRow[] }} Block */
/** @typedef {{ label: string, corner: string, halves: number, blocks: Block[] }} Table */
/** @typedef {import("./edits.js").Place} Place */
/** @typedef {{ elements: HTMLElement[], values: Float64Array, flags: Uint8Array, stamp: string, row: TableRow }} Drawn */

/**
 * @typedef {object} Handlers
 * @property {(place: Place) => void} focus
 * @property {(place: Place) => void} toggle
 * @property {(place: Place, text: string) => string | null} commit takes the text, or says why not
 * @property {(place: Place, text: string) => void} preview
 * @property {() => void} cancel gives back what stood before the previews
 * @property {(place: Place) => void} copy
 * @property {(command: "before" | "after" | "remove", place: Place) => void} shape adds or removes a token
 */

export {};
