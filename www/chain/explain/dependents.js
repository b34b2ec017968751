// Which cells depend on which. The index is kept as long as the shape of the state stays the same:
// a number alone does not change it.

import { cellCount, rows, sourcesOf, totalSources } from "../rows.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/conventions.js").Settings} Settings */

let shape = "";
/** @typedef {Map<string, string[]>} Links */
/** @type {{ users: Links, sources: Links }} */
let links = { users: new Map(), sources: new Map() };

/**
 * Everything that decides what reads what.
 * @param {State} state
 * @param {Settings} settings
 */
const shapeOf = (state, settings) =>
  JSON.stringify([
    state.choices,
    settings.across,
    settings.scoreSlots,
    settings.dual,
    settings.gspo.form,
    settings.cispo.kind,
    state.sequences.map(({ roles, group, inputs }) => [
      group,
      roles.map((role) => (role === "policy" ? 1 : 0)).join(""),
      inputs.logProb.map((own) => (own === null ? 1 : 0)).join(""),
    ]),
  ]);

/**
 * @param {State} state
 * @param {Settings} settings
 */
function index(state, settings) {
  const now = shapeOf(state, settings);
  if (now === shape) return links;
  shape = now;
  links = { users: new Map(), sources: new Map() };
  /** @type {Set<string>} */
  const totals = new Set();
  /**
   * @param {string} source
   * @param {string} user
   */
  const note = (source, user) => {
    add(links.users, source, user);
    add(links.sources, user, source);
    if (source.startsWith("total.")) totals.add(source);
  };
  for (const row of rows) {
    if (row.shown && !row.shown(state)) continue;
    for (const s of state.sequences.keys()) {
      for (let i = 0; i < cellCount(row, state, s); i += 1) {
        for (const source of sourcesOf(row, { state, settings, s, i })) note(source, `${row.key}.${s}.${i}`);
      }
    }
  }
  for (const total of totals) {
    for (const source of totalSources(state, settings, total)) note(source, total);
  }
  return links;
}

/**
 * @param {Links} all
 * @param {string} key
 * @param {string} value
 */
function add(all, key, value) {
  const list = all.get(key);
  if (list) list.push(value);
  else all.set(key, [value]);
}

/**
 * @param {Links} all
 * @param {string} id
 * @returns {Set<string>}
 */
function reached(all, id) {
  /** @type {Set<string>} */
  const found = new Set();
  const open = [id];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const one of all.get(next) ?? []) {
      if (found.has(one)) continue;
      found.add(one);
      open.push(one);
    }
  }
  return found;
}

/**
 * Every cell that depends on `id`, directly or not.
 * @param {State} state
 * @param {Settings} settings
 * @param {string} id
 */
export const dependents = (state, settings, id) => reached(index(state, settings).users, id);

/**
 * Every cell and parameter that `id` depends on, directly or not.
 * @param {State} state
 * @param {Settings} settings
 * @param {string} id
 */
export const ancestors = (state, settings, id) => reached(index(state, settings).sources, id);
