// The NumPy script while it is being written: which inputs it declares, line after line.

/** @type {Record<string, string>} rows of the page, and what they are */
const INPUTS = {
  score: "what the task gives for each token",
  kl: "KL of each token, given",
  oldLogProb: "log-probabilities under the policy that sampled",
  refLogProb: "log-probabilities under the reference policy",
  logProb: "log-probabilities under the policy in training",
  value: "what the critic expects before each token",
  attention: "how much each token mattered",
  advantage: "advantages, given",
};

/** @param {string} key */
const snake = (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * @param {number} value
 * @returns {string} an expression with the same bits
 */
export function number(value) {
  if (Number.isNaN(value)) return "np.nan";
  if (!Number.isFinite(value)) return value > 0 ? "np.inf" : "-np.inf";
  return Object.is(value, -0) ? "-0.0" : String(value);
}

/** @param {number[]} values */
export const array = (values) => `[${values.map(number).join(", ")}]`;

export class Script {
  /**
   * @param {import("./batch.js").Flat} flat
   * @param {import("../state.js").State} state
   * @param {import("../compute/compute.js").Result} result
   */
  constructor(flat, state, result) {
    this.flat = flat;
    this.state = state;
    this.result = result;
    /** @type {string[]} */
    this.lines = [];
    /** @type {Map<string, string>} */
    this.declared = new Map();
  }

  /** The advantages that loss and metrics read. */
  get weight() {
    return this.state.choices.weight === "raw" ? "advantage" : "whitened";
  }

  /** @param {string[]} lines */
  line(...lines) {
    this.lines.push(...lines);
  }

  /** @param {string} title of the lines that follow */
  part(title) {
    this.lines.push("", `# ${title}`);
  }

  /** @param {string} name */
  show(name) {
    this.line(`show("${name}", ${name === "return" ? "returns" : name})`);
  }

  /** @param {string} key of a row of the page */
  input(key) {
    this.declared.set(snake(key), `np.array(${array(this.flat.rows[key])}, dtype=float)  # ${INPUTS[key]}`);
    return snake(key);
  }

  /** What the critic expects after each sequence. */
  bootstrap() {
    this.declared.set(
      "bootstrap",
      `${array(this.flat.bootstrap)}  # what the critic expects after the last token of each sequence`,
    );
    return "bootstrap";
  }

  /**
   * Which prompt each sequence answers.
   */
  groups() {
    this.declared.set("group", `np.array([${this.flat.groups.join(", ")}])  # which prompt each sequence answers`);
    return "group";
  }

  declarations() {
    return [...this.declared].map(([name, value]) => `${name} = ${value}`);
  }
}
