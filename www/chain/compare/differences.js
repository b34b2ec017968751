// The same state under other conventions: which numbers differ, and which convention causes the difference.

import { compute, computeUnder } from "../compute/compute.js";
import { conventionsOf, disputed } from "../compute/conventions.js";
import { short } from "../../parts/format.js";
import { visibleRows } from "../rows.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {{ convention: string, values: [string, string] }} Cause */
/** @typedef {{ row: string, count: number, slight: number, causes: Cause[] }} Difference */

/** The conventions that the chain reads. */
const READ = [
  "divisor",
  "across",
  "whiten.spread",
  "whiten.place",
  "group.epsilon",
  "singleton",
  "baseline.singleton",
  "score_slots",
  "kl.bounds",
  "reward.clip",
  "aggregate.empty_rows",
  "aggregate.divisor",
  "log_ratio_bound",
  "dual_clip.bound",
  "dual_clip.signs",
  "gspo.form",
  "gspo.log_ratio_cap",
  "cispo.bounds",
];

/** @type {WeakMap<State, Result>} */
const others = new WeakMap();

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @returns {Result | null} the numbers under the conventions it is compared with
 */
export function otherwise(library, state) {
  if (!state.against || state.against === state.profile) return null;
  const found = others.get(state) ?? computeUnder(library, state, conventionsOf(library, state.against));
  others.set(state, found);
  return found;
}

/**
 * @param {Result} one
 * @param {Result} other
 * @param {string} row
 * @returns {{ count: number, slight: number }} cells that differ in what is shown, and cells that differ only beyond it
 */
function cellsApart(one, other, row) {
  const found = { count: 0, slight: 0 };
  for (const [s, values] of (one.rows[row] ?? []).entries()) {
    for (const [i, value] of values.entries()) {
      const theirs = other.rows[row]?.[s]?.[i];
      if (theirs === undefined || Object.is(theirs, value)) continue;
      if (short(theirs) === short(value)) found.slight += 1;
      else found.count += 1;
    }
  }
  return found;
}

/**
 * The rows that differ, each with its causes: the conventions that change it when they alone are exchanged.
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @returns {Difference[]}
 */
export function differencesOf(library, state) {
  const other = otherwise(library, state);
  if (!other || !state.against) return [];
  const mine = compute(library, state);
  const [here, there] = [conventionsOf(library, state.profile), conventionsOf(library, state.against)];
  const rows = visibleRows(state)
    .filter((row) => row.kind(state) === "result")
    .map(({ key }) => ({ row: key, ...cellsApart(mine, other, key) }))
    .filter(({ count, slight }) => count + slight > 0);
  if (rows.length === 0) return [];
  const names = disputed(here, there).filter((name) => READ.includes(name));
  const exchanged = names.map((name) => ({
    name,
    result: computeUnder(library, state, { ...here, [name]: there[name] }),
    base: mine,
  }));
  // a convention may matter only together with another one: then exchanging it in the other profile shows it
  const back = names.map((name) => ({
    name,
    result: computeUnder(library, state, { ...there, [name]: here[name] }),
    base: other,
  }));
  return rows.map((row) => {
    /** @param {typeof exchanged} side */
    const causing = (side) =>
      side
        .filter(({ result, base }) => {
          const { count, slight } = cellsApart(base, result, row.row);
          // only causes of differences that are shown, not of those in the last bits
          return row.count > 0 ? count > 0 : slight > 0;
        })
        .map(({ name }) => name);
    const found = causing(exchanged);
    const causes = (found.length > 0 ? found : causing(back)).map((name) => ({
      convention: name,
      values: /** @type {[string, string]} */ ([here[name], there[name]]),
    }));
    return { ...row, causes };
  });
}
