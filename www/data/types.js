// What the worker tells the page, as types.

/** @typedef {import("./words.js").Finding} Finding */

/**
 * @typedef {object} Loaded what the worker told of a file
 * @property {string} key under which the worker has it
 * @property {string} name
 * @property {string} asked the settings and the engine with which it was computed
 * @property {import("../engines/switch.js").Outcome | null} ran what that took
 * @property {string} kind the usual ending of its format
 * @property {string[]} passedOver
 * @property {number} padded sequences whose texts end with padding
 * @property {number} tokens
 * @property {number} sequences
 * @property {number} kept
 * @property {number[]} steps
 * @property {Uint32Array} place
 * @property {Float64Array} step
 * @property {Float64Array} score
 * @property {Uint8Array} scored
 * @property {Uint32Array} group
 * @property {string[]} groupNames
 * @property {Uint32Array} prompt
 * @property {string[]} prompts
 * @property {Uint32Array} offsets
 * @property {Uint8Array} keep
 * @property {Uint32Array} sequence
 * @property {Uint32Array} token
 * @property {string} text
 * @property {Uint32Array} textEnds
 * @property {string[]} fields
 * @property {string[]} keys
 * @property {Record<string, Float64Array>} columns
 * @property {Record<string, Float64Array>} means
 * @property {{ quantity: string, message: string }[]} refusals
 * @property {{ counts: Record<string, number>, findings: Finding[] } | null} lint
 */

/** @typedef {{ mean: number, deviation: number, low: number, median: number, high: number }} Statistics */
/**
 * @typedef {{ count: number, notFinite: number, outside: number, scale: number, domain: [number, number], x: number[],
 *   y: number[], statistics: Statistics | null }} Histogram
 */

export {};
