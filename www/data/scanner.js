// JSON read piece by piece from a text: numbers go straight into columns, what nobody needs is stepped over without being built.
// Also takes the bare words NaN, Infinity and -Infinity, as Python writes them.

import { excerpt, Fault } from "./fault.js";

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /-?[A-Za-z]+/y;
const BLANK = /[ \t\n\r]*/y;
const [QUOTE, BACKSLASH] = [34, 92];
const ESCAPES = /** @type {Record<string, string>} */ ({ '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" });

/** @typedef {"{" | "[" | "text" | "number" | "word"} Kind what comes next */

export class Scanner {
  /**
   * @param {string} text
   * @param {number} [at]
   * @param {number} [end]
   */
  constructor(text, at = 0, end = text.length) {
    this.text = text;
    this.at = at;
    this.end = end;
  }

  blanks() {
    // most often there are none
    if (this.text.charCodeAt(this.at) > 32) return;
    BLANK.lastIndex = this.at;
    BLANK.test(this.text);
    this.at = Math.min(BLANK.lastIndex, this.end);
  }

  /** Whether nothing but blanks is left. */
  done() {
    this.blanks();
    return this.at >= this.end;
  }

  /** The next character that is not blank, "" at the end. */
  peek() {
    this.blanks();
    return this.at < this.end ? this.text[this.at] : "";
  }

  /** Steps over a character if it is the next. @param {string} character */
  take(character) {
    if (this.peek() !== character) return false;
    this.at += 1;
    return true;
  }

  /** @param {string} character */
  expect(character) {
    if (!this.take(character)) throw this.unexpected(character);
  }

  /** @returns {Kind} */
  kind() {
    const next = this.peek();
    if (next === "{" || next === "[") return next;
    if (next === '"') return "text";
    if (next === "-") return this.text.charCodeAt(this.at + 1) === 73 ? "word" : "number";
    if (next >= "0" && next <= "9") return "number";
    if ((next >= "a" && next <= "z") || (next >= "A" && next <= "Z")) return "word";
    throw this.unexpected("");
  }

  number() {
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text);
    if (!found || NUMBER.lastIndex > this.end) throw this.unexpected("");
    const value = Number(found[0]);
    if (!Number.isFinite(value)) throw this.fault("range", { text: excerpt(found[0]) });
    this.at += found[0].length;
    return value;
  }

  /** `true`, `false`, `null`, or one of the words for numbers. @returns {boolean | null | string} */
  word() {
    WORD.lastIndex = this.at;
    const found = WORD.exec(this.text)?.[0] ?? "";
    if (this.at + found.length > this.end) throw this.ends();
    if (!["true", "false", "null", "NaN", "Infinity", "-Infinity"].includes(found)) throw this.unexpected("");
    this.at += found.length;
    if (found === "true" || found === "false") return found === "true";
    return found === "null" ? null : found;
  }

  /** A text, its escapes undone. */
  string() {
    this.expect('"');
    let whole = "";
    let from = this.at;
    for (;;) {
      const code = this.plain();
      whole += this.text.slice(from, this.at);
      this.at += 1;
      if (code === QUOTE) return whole;
      whole += this.escape();
      from = this.at;
    }
  }

  /** Goes on to the next quote or backslash, and says which. */
  plain() {
    const { text, end } = this;
    let { at } = this;
    for (; at < end; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE || code === BACKSLASH) {
        this.at = at;
        return code;
      }
      if (code < 32) {
        this.at = at;
        throw this.fault("control");
      }
    }
    this.at = end;
    throw this.ends();
  }

  escape() {
    const letter = this.text[this.at] ?? "";
    this.at += 1;
    if (letter === "u") {
      const digits = this.text.slice(this.at, this.at + 4);
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.at + 4 > this.end ? this.ends() : this.fault("escape", { text: `\\u${excerpt(digits)}` });
      this.at += 4;
      return String.fromCharCode(parseInt(digits, 16));
    }
    if (this.at > this.end) throw this.ends();
    const plain = ESCAPES[letter];
    if (plain === undefined) throw this.fault("escape", { text: `\\${letter}` });
    return plain;
  }

  /** Any value, not looked at. Without recursion: a file may nest a million deep. */
  skip() {
    /** @type {string[]} what closes the lists and objects that are open */
    const open = [];
    do {
      const kind = this.kind();
      if (kind === "{" || kind === "[") {
        this.at += 1;
        const close = kind === "{" ? "}" : "]";
        if (!this.take(close)) {
          open.push(close);
          if (kind === "{") this.key();
          continue;
        }
      } else if (kind === "text") this.skipString();
      else if (kind === "number") this.number();
      else this.word();
      while (open.length > 0 && !this.take(",")) {
        this.expect(/** @type {string} */ (open.pop()));
      }
      if (open.length > 0 && open[open.length - 1] === "}") this.key();
    } while (open.length > 0);
  }

  key() {
    if (this.peek() !== '"') throw this.unexpected('"');
    this.skipString();
    this.expect(":");
  }

  skipString() {
    this.at += 1;
    while (this.plain() !== QUOTE) {
      this.at += 1;
      this.escape();
    }
    this.at += 1;
  }

  /**
   * The entries of a list.
   * @param {() => void} entry reads one
   */
  list(entry) {
    this.expect("[");
    if (this.take("]")) return;
    do entry();
    while (this.take(","));
    this.expect("]");
  }

  /**
   * The fields of an object.
   * @param {(key: string) => void} field reads the value
   */
  object(field) {
    this.expect("{");
    if (this.take("}")) return;
    do {
      if (this.peek() !== '"') throw this.unexpected('"');
      const key = this.string();
      this.expect(":");
      field(key);
    } while (this.take(","));
    this.expect("}");
  }

  /**
   * @param {string} wanted a character, or "" for any value
   * @returns {Fault}
   */
  unexpected(wanted) {
    if (this.done()) return this.ends();
    const found = excerpt(this.text.slice(this.at, Math.min(this.end, this.at + 20)).split("\n")[0]);
    return wanted === "" ? this.fault("noValue", { found }) : this.fault("expected", { wanted, found });
  }

  ends() {
    this.at = this.end;
    return this.fault("ends");
  }

  /**
   * @param {string} code
   * @param {Record<string, string | number>} [values]
   */
  fault(code, values) {
    return new Fault(code, values, placeOf(this.text, this.at));
  }
}

/**
 * @param {string} text
 * @param {number} at
 * @returns {import("./fault.js").Place}
 */
export function placeOf(text, at) {
  let line = 1;
  let start = 0;
  for (let next = text.indexOf("\n"); next >= 0 && next < at; next = text.indexOf("\n", next + 1)) {
    line += 1;
    start = next + 1;
  }
  return { line, column: at - start + 1 };
}
