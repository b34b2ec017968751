// The grid as comma-separated values: one line per token, one column per row of the page.

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */

/**
 * @param {State} state
 * @param {Result} result
 * @param {string[]} keys the rows wanted
 * @returns {string}
 */
export function csv(state, result, keys) {
  const wanted = keys.filter((key) => key !== "mask" && result.rows[key] !== undefined);
  const lines = [["sequence", "group", "slot", "token", "role", ...wanted]];
  for (const [s, { tokens, roles, group }] of state.sequences.entries()) {
    const numbers = (/** @type {number} */ i) =>
      wanted.map((key) => {
        const row = /** @type {Float64Array[]} */ (result.rows[key])[s];
        // what belongs to the whole sequence stands in its first line
        const value = row.length === 1 && tokens.length > 1 && i > 0 ? undefined : row[i];
        return value === undefined ? "" : String(Object.is(value, -0) ? "-0" : value);
      });
    for (const [i, token] of tokens.entries())
      lines.push([String(s), String(group), String(i), harmless(token), roles[i], ...numbers(i)]);
    // the state after the last token has a value and nothing else
    if (wanted.includes("value"))
      lines.push([String(s), String(group), String(tokens.length), "", "", ...numbers(tokens.length)]);
  }
  return `${lines.map((line) => line.map(quoted).join(",")).join("\r\n")}\r\n`;
}

/**
 * A spreadsheet must not take a token for a formula.
 * @param {string} text
 */
const harmless = (text) => (/^[=+\-@\t\r].+/su.test(text) ? `'${text}` : text);

/** @param {string} text */
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
