// The Rust program while it is being written: which names it imports, which inputs it declares, line after line.

/** @typedef {import("./batch.js").Flat} Flat */

/** @type {Record<string, [string, string]>} rows of the page: their name in the program, and what they are */
const INPUTS = {
  score: ["scores", "what the task gives for each token"],
  oldLogProb: ["old_log_probs", "log-probabilities under the policy that sampled"],
  refLogProb: ["ref_log_probs", "log-probabilities under the reference policy"],
  logProb: ["log_probs", "log-probabilities under the policy in training"],
  value: ["values", "what the critic expects before each token"],
  attention: ["attention", "how much each token mattered"],
};

/**
 * @param {number} value
 * @returns {string} a literal with the same bits
 */
export function number(value) {
  if (Number.isNaN(value)) return "f64::NAN";
  if (!Number.isFinite(value)) return value > 0 ? "f64::INFINITY" : "f64::NEG_INFINITY";
  if (Object.is(value, -0)) return "-0.0";
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/**
 * @template T
 * @param {T[]} values
 * @param {(value: T) => string} write
 */
export function array(values, write) {
  const texts = values.map(write);
  if (texts.length > 4 && texts.every((text) => text === texts[0])) return `[${texts[0]}; ${texts.length}]`;
  return `[${texts.join(", ")}]`;
}

/** @param {string} name `count-plus-epsilon`, `k3` */
export const variant = (name) =>
  name
    .split("-")
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join("");

/**
 * @param {string} name of a config
 * @param {Record<string, string>} fields those that are not left to its default
 */
export function config(name, fields) {
  const written = Object.entries(fields).map(([field, value]) => `${field}: ${value}`);
  return `${name} { ${written.join(", ")}, ..Default::default() }`;
}

export class Program {
  /**
   * @param {Flat} flat
   * @param {import("../state.js").State} state
   * @param {import("../compute/compute.js").Result} result
   */
  constructor(flat, state, result) {
    this.flat = flat;
    this.state = state;
    this.result = result;
    /** @type {string[]} */
    this.lines = [];
    /** @type {Set<string>} */
    this.used = new Set();
    /** @type {Map<string, { values: number[], about: string }>} */
    this.declared = new Map();
  }

  /** The advantages that loss and metrics read. */
  get weight() {
    return this.state.choices.weight === "raw" ? "advantage" : "whitened";
  }

  /** @param {string[]} names paths below the crate */
  use(...names) {
    for (const name of names) this.used.add(name);
  }

  /** @param {string} line */
  line(line) {
    if (line.startsWith("//")) this.lines.push("");
    this.lines.push(line);
  }

  /** @param {string} name */
  show(name) {
    this.line(`show("${name}", &${name});`);
  }

  /** @param {string} name a row to be filled */
  zeros(name) {
    this.line(`let mut ${name} = vec![0.0; n];`);
  }

  /**
   * @param {string} name
   * @param {number[]} values
   * @param {string} about
   */
  input(name, values, about) {
    this.declared.set(name, { values, about });
    return name;
  }

  /** @param {string} row of the page */
  rowInput(row) {
    const [name, about] = INPUTS[row];
    return this.input(name, this.flat.rows[row], about);
  }

  /** What a critic expects after each sequence. */
  bootstrap() {
    return this.input(
      "bootstrap",
      this.flat.bootstrap,
      "what the critic expects after the last token of each sequence",
    );
  }

  declarations() {
    return [...this.declared].flatMap(([name, { values, about }]) => [
      `    // ${about}`,
      `    let ${name} = ${array(values, number)};`,
    ]);
  }

  imports() {
    /** @type {Map<string, string[]>} */
    const modules = new Map();
    const own = [];
    for (const path of [...this.used].sort()) {
      const [module, name] = path.split("::");
      if (name === undefined) own.push(module);
      else modules.set(module, [...(modules.get(module) ?? []), name]);
    }
    const parts = [...modules].map(([module, names]) => `    ${module}::{${names.join(", ")}},`);
    return ["use tokenwise::{", ...parts, `    ${own.join(", ")},`, "};"].join("\n");
  }
}
