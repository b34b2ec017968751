// What the user can change on this page. The data itself is part of it while it is small;
// larger files stay in memory only.

import { QUANTITIES } from "./quantities.js";

/**
 * @typedef {object} Settings
 * @property {number} gamma
 * @property {number} lambda
 * @property {number} beta
 * @property {number} clipLow
 * @property {number} clipHigh
 * @property {"k1" | "abs" | "k2" | "k3"} kl
 * @property {number} tolerance of the lint
 * @property {boolean} firstUpdate for the lint: every ratio must be 1
 */

/**
 * @typedef {{ kind: "sample" } | { kind: "text", name: string, text: string } |
 *   { kind: "memory", name: string, size: number, id: string }} Source
 */
/** @typedef {{ sequence: number | null, step: number | null, group: number | null, kept: boolean }} Filter */
/** @typedef {"tokens" | "sequences" | "text"} ViewName */

/**
 * @typedef {object} State
 * @property {Source | null} source
 * @property {string} scoreName the field that holds the score, "" for the usual names
 * @property {Settings} settings
 * @property {ViewName} view
 * @property {{ key: string, descending: boolean }} sort
 * @property {string} colour the quantity chosen
 * @property {Filter} filter
 * @property {string[]} hidden columns of the table
 * @property {{ sequence: number, token: number } | null} at the token looked at
 */

/** Up to this many characters, data goes into the link. */
export const LINK_TEXT = 20_000;

export const KL = /** @type {const} */ (["k1", "k2", "k3", "abs"]);
export const VIEWS = /** @type {const} */ (["tokens", "sequences", "text"]);
export const NUMBERS = /** @type {const} */ (["gamma", "lambda", "beta", "clipLow", "clipHigh", "tolerance"]);
/** Columns of the tables that are not quantities. */
export const PLACES = ["sequence", "token", "kept", "place", "step", "group", "score", "length"];

/** @returns {State} */
export const initial = () => ({
  source: null,
  scoreName: "",
  settings: {
    gamma: 1,
    lambda: 0.95,
    beta: 0.1,
    clipLow: 0.2,
    clipHigh: 0.2,
    kl: "k1",
    tolerance: 1e-4,
    firstUpdate: false,
  },
  view: "tokens",
  sort: { key: "sequence", descending: false },
  colour: "",
  filter: { sequence: null, step: null, group: null, kept: false },
  hidden: [],
  at: null,
});

/** @param {unknown} value @returns {value is Record<string, unknown>} */
const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @param {unknown} value @param {number} most */
const text = (value, most) => (typeof value === "string" ? value.slice(0, most) : "");
/** @param {unknown} value @returns {number | null} */
const index = (value) =>
  Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0 ? /** @type {number} */ (value) : null;

/**
 * A state that came with a link, checked and completed.
 * @param {unknown} data
 * @returns {State | null}
 */
export function readState(data) {
  if (!isRecord(data)) return null;
  const state = initial();
  const { settings, sort, filter, at } = data;
  state.source = readSource(data.source);
  state.scoreName = text(data.scoreName, 200);
  if (isRecord(settings)) {
    for (const key of NUMBERS)
      if (typeof settings[key] === "number" && problem(key, settings[key]) === null)
        state.settings[key] = settings[key];
    state.settings.kl = KL.find((kl) => kl === settings.kl) ?? "k1";
    state.settings.firstUpdate = settings.firstUpdate === true;
  }
  state.view = VIEWS.find((view) => view === data.view) ?? "tokens";
  const known = [...PLACES, ...QUANTITIES];
  if (isRecord(sort) && known.includes(/** @type {string} */ (sort.key)))
    state.sort = { key: /** @type {string} */ (sort.key), descending: sort.descending === true };
  state.colour = QUANTITIES.find((key) => key === data.colour) ?? "";
  if (isRecord(filter))
    state.filter = {
      sequence: index(filter.sequence),
      step: index(filter.step),
      group: index(filter.group),
      kept: filter.kept === true,
    };
  if (Array.isArray(data.hidden))
    state.hidden = known.filter((key) => /** @type {unknown[]} */ (data.hidden).includes(key));
  if (isRecord(at)) {
    const [sequence, token] = [index(at.sequence), index(at.token)];
    if (sequence !== null && token !== null) state.at = { sequence, token };
  }
  return state;
}

/** @param {unknown} data @returns {Source | null} */
function readSource(data) {
  if (!isRecord(data)) return null;
  if (data.kind === "sample") return { kind: "sample" };
  if (data.kind === "text" && typeof data.text === "string" && data.text.length <= LINK_TEXT)
    return { kind: "text", name: text(data.name, 200), text: data.text };
  if (data.kind === "memory")
    return { kind: "memory", name: text(data.name, 200), size: index(data.size) ?? 0, id: text(data.id, 40) };
  return null;
}

/**
 * Why a number cannot be a setting; null if it can.
 * @param {string} key
 * @param {number} value
 * @returns {"share" | "positive" | "low" | null}
 */
export function problem(key, value) {
  if (!Number.isFinite(value) || value < 0) return key === "gamma" || key === "lambda" ? "share" : "positive";
  if ((key === "gamma" || key === "lambda") && value > 1) return "share";
  return key === "clipLow" && value > 1 ? "low" : null;
}

/** @type {Map<string, Blob | string>} files too large for a link; they last as long as the page */
const memory = new Map();

/**
 * What a state says of data that was dropped or pasted.
 * @param {string} name
 * @param {Blob | string} data
 * @param {string} [content] if it is known already
 * @returns {Source}
 */
export function sourceOf(name, data, content) {
  const plain = typeof data === "string" ? data : content;
  if (plain !== undefined && plain.length <= LINK_TEXT) return { kind: "text", name, text: plain };
  const id = `${memory.size + 1}-${Math.random().toString(36).slice(2, 10)}`;
  memory.set(id, data);
  return { kind: "memory", name, size: typeof data === "string" ? data.length : data.size, id };
}

/** @param {Source} source @returns {{ name: string, data: Blob | string } | null} null if it is gone */
export function contentOf(source) {
  if (source.kind === "text") return { name: source.name, data: source.text };
  if (source.kind === "sample") return { name: "sample.jsonl", data: "" };
  const data = memory.get(source.id);
  return data === undefined ? null : { name: source.name, data };
}
