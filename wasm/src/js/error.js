
/** The core's names as JavaScript spells them, in running text too. */
const camelCase = (text) => (typeof text === "string" ? text.replace(/_(.)/g, (_, letter) => letter.toUpperCase()) : text);

/** A primitive as it is, an object by the name of its class. */
const plain = (value) =>
  (typeof value === "object" && value !== null) || typeof value === "function" ? String(value.constructor?.name ?? "object") : value;

/** What is said for each code: of the parameter, its index, what was expected, what was there. */
const messages = {
  length: (p, i, e, g) => `${p}: expected ${e} entries, got ${g}`,
  offsets: (p, i, e, g) => `${p}[${i}]: expected ${i === 0 ? "" : "at least "}${e}, got ${g}`,
  token_id: (p, i, e, g) => `${p}[${i}]: expected an id below the vocabulary size ${e}, got ${g}`,
  group: (p, i, e, g) => `${p}[${i}]: expected an id below ${e}, the number of sequences, got ${g}`,
  sequence: (p, i, e, g) => `${p}[${i}]: expected at least ${e} positions, got ${g}`,
  config: (p, i, e, g) => `${p}: must be ${e}, got ${g}`,
  entry: (p, i, e, g) => `${p}[${i}]: must be ${e}, got ${g}`,
  empty_mask: (p) => `${p}: expected at least 1 kept token, got 0`,
  too_few: (p, i, e, g) => `${p}: needs at least ${e} kept entries, got ${g}`,
  overflow: (p, i, e, g) => `${p}: ${g[0]} × ${g[1]} does not fit into a machine word`,
  key: (p, i, e, g) => `${p}: not a key of ${g}, which has ${e}`,
  choice: (p, i, e, g) => `${p}: expected one of ${e}, got ${g}`,
  freed: (p, i, e) => `${p}: expected ${e}, got one that was freed`,
  memory: (p, i, e, g) => `${p}: no room for ${g} entries`,
};

/** What a refused call throws. */
export class TokenwiseError extends Error {
  constructor(code, parameter, index, expected, got) {
    [parameter, expected] = [camelCase(parameter), camelCase(expected)];
    const words = code === "type" && typeof got === "string" ? `"${got}"` : code === "overflow" ? got : plain(got);
    super(code === "type" ? `${parameter}: expected ${expected}, got ${String(words)}` : messages[code](parameter, index, expected, words));
    if (code === "overflow") expected = "a product that fits into a machine word";
    if (code === "key") got = parameter;
    if (code === "freed") got = `a freed${expected.slice(1)}`;
    if (code === "type") got = plain(got);
    Object.assign(this, { code, parameter, index: index < 0 ? undefined : index, expected, got });
  }
}
Object.defineProperty(TokenwiseError.prototype, "name", { value: "TokenwiseError", configurable: true, writable: true });

