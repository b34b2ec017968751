// What is wrong with a file: a code and its values, so that either language can say it.

/**
 * @typedef {object} Place where in the file, counted from 1
 * @property {number} [line]
 * @property {number} [column]
 * @property {number} [record]
 * @property {number} [row]
 */

export class Fault extends Error {
  /**
   * @param {string} code the end of a key `data.fault.…`
   * @param {Record<string, string | number>} [values]
   * @param {Place} [place]
   */
  constructor(code, values = {}, place = {}) {
    super(code);
    this.code = code;
    this.values = values;
    this.place = place;
  }
}
