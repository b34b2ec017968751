// The chain as a table for the grid: numbers to text, sign and size to a tint, cells to sentences.
// Texts are made only for cells that changed.

import { full, short, signed, subscript, visible } from "../../parts/format.js";
import { currentLanguage, t } from "../../i18n/index.js";
import { math, symbol } from "../../parts/math.js";
import { cellCount, visibleRows } from "../rows.js";
import { isKept } from "../state.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {import("./types.js").TableRow} TableRow */
/** @typedef {import("./types.js").Cell} Cell */

/** Flags of a cell beside its number. */
const DROPPED = 1;
const FOLLOWS = 2;
const DIFFERS = 4;
const SLIGHTLY = 8;
const ROLE = { policy: 0, tool: 16, padding: 32 };

/** @type {Record<string, string>} */
const ROLE_MARK = { policy: "●", tool: "◇", padding: "○" };

/**
 * @param {State} state
 * @param {Result} result
 * @param {Result | null} other the same under other conventions
 * @param {(sequence: number) => boolean} isOpen
 * @returns {import("./types.js").Table}
 */
export function tableOf(state, result, other, isOpen) {
  const shown = visibleRows(state);
  const several = state.sequences.length > 1;
  const ofSequence = shown.filter((row) => row.align === "sequence");
  return {
    label: t("grid.label"),
    corner: t("grid.tokens"),
    halves: Math.max(...state.sequences.map(({ tokens }) => tokens.length)) * 2 + 2,
    blocks: state.sequences.map((sequence, s) => {
      let stage = "";
      return {
        sequence: s,
        open: !several || isOpen(s),
        // a single sequence needs no line of its own unless a number belongs to it
        head: several || ofSequence.length > 0 ? headOf(state, s, several) : null,
        numbers: ofSequence.map((row) => tableRow(state, result, other, row, s, false)),
        tokens: tokenRow(state, s),
        states: Array.from({ length: sequence.tokens.length + 1 }, (_, i) => `s${subscript(i + 1)}`),
        rows: shown
          .filter((row) => row.align !== "sequence")
          .map((row) => {
            const first = stage !== "" && stage !== row.stage;
            stage = row.stage;
            return tableRow(state, result, other, row, s, first);
          }),
      };
    }),
  };
}

/**
 * @param {State} state
 * @param {number} s
 * @param {boolean} several
 */
function headOf(state, s, several) {
  const { prompt, tokens, group } = state.sequences[s];
  return {
    title: t("grid.sequence", { number: s + 1 }),
    group: several ? t("grid.group", { group: group + 1 }) : "",
    text: visible(`${prompt ? `${prompt} → ` : ""}${tokens.join("")}`),
    folds: several,
  };
}

/** @type {WeakMap<object, number>} */
const versions = new WeakMap();
let last = 0;

/** @param {object} list */
function versionOf(list) {
  const known = versions.get(list);
  if (known !== undefined) return known;
  last += 1;
  versions.set(list, last);
  return last;
}

/**
 * @param {State} state
 * @param {number} s
 * @returns {TableRow}
 */
function tokenRow(state, s) {
  const sequence = state.sequences[s];
  return {
    key: "token",
    name: "",
    symbol: () => null,
    align: "action",
    first: false,
    count: sequence.tokens.length,
    signed: false,
    stamp: `${t("grid.editable")}|${versionOf(sequence.tokens)}`,
    value: () => 0,
    flags: (i) => ROLE[sequence.roles[i]],
    cell: (i) => ({
      text: visible(sequence.tokens[i]),
      kind: "text",
      tone: "",
      strength: 0,
      faint: false,
      differs: "",
      dropped: !isKept(sequence, i),
      role: sequence.roles[i],
      editText: sequence.tokens[i],
      label: () =>
        t("grid.cell.token", { number: i + 1, token: sequence.tokens[i], role: t(`role.${sequence.roles[i]}`) }),
    }),
  };
}

/**
 * @param {State} state
 * @param {Result} result
 * @param {Result | null} other
 * @param {import("../rows.js").Row} row
 * @param {number} s
 * @param {boolean} first
 * @returns {TableRow}
 */
function tableRow(state, result, other, row, s, first) {
  const sequence = state.sequences[s];
  const kind = row.kind(state);
  const values = result.rows[row.key]?.[s];
  const others = other && kind === "result" ? other.rows[row.key]?.[s] : undefined;
  const largest = row.signed && kind === "result" ? largestOf(result.rows[row.key]) : 0;
  const name = t(`row.${row.key}`);
  return {
    key: row.key,
    name,
    symbol: () => math("inline", symbol(row.key)),
    align: row.align,
    first,
    count: cellCount(row, state, s),
    signed: Boolean(row.signed),
    stamp: [
      kind,
      largest,
      name,
      values === undefined,
      versionOf(sequence.tokens),
      state.sequences.length,
      others ? state.against : "",
    ].join("|"),
    value: (i) => (kind === "mask" ? 0 : (values?.[i] ?? NaN)),
    flags: (i) => {
      const onToken = row.align !== "sequence" && i < sequence.tokens.length;
      let flags = onToken ? ROLE[sequence.roles[i]] : 0;
      if (onToken && !isKept(sequence, i)) flags |= DROPPED;
      if (row.key === "logProb" && sequence.inputs.logProb[i] === null) flags |= FOLLOWS;
      if (others && values && !Object.is(others[i], values[i]))
        flags |= short(others[i]) === short(values[i]) ? SLIGHTLY : DIFFERS;
      return flags;
    },
    cell: (i, value, flags) =>
      cellOf({
        state,
        row,
        s,
        i,
        kind,
        value: values === undefined ? undefined : value,
        flags,
        largest,
        other: others?.[i],
      }),
  };
}

/**
 * @param {{ state: State, row: import("../rows.js").Row, s: number, i: number, kind: "mask" | "input" | "result",
 *   value: number | undefined, flags: number, largest: number, other: number | undefined }} about
 * @returns {Cell}
 */
function cellOf({ state, row, s, i, kind, value, flags, largest, other }) {
  const dropped = (flags & DROPPED) !== 0;
  const role = state.sequences[s].roles[i] ?? "policy";
  if (kind === "mask") {
    const label = () => labelOf(state, row, s, i, `${t(`role.${role}`)}, ${t(dropped ? "grid.dropped" : "grid.kept")}`);
    return {
      text: ROLE_MARK[role],
      label,
      kind,
      tone: "",
      strength: 0,
      dropped,
      faint: false,
      differs: "",
      editText: "",
      role,
    };
  }
  const tinted = kind === "result" && Boolean(row.signed) && value !== undefined && !dropped;
  const follows = (flags & FOLLOWS) !== 0;
  const text = value === undefined ? "—" : tinted ? signed(value) : short(value);
  const shown =
    row.align === "sequence" ? `${row.key === "sequenceScore" ? "S" : "Â"}${subscript(s + 1)} = ${text}` : text;
  const label = () => {
    const notes = [value === undefined ? t("grid.missing") : shown];
    if (follows) notes.push(t("grid.follows"));
    if (dropped) notes.push(t("grid.dropped"));
    if (kind === "input") notes.push(t("grid.editable"));
    if ((flags & DIFFERS) !== 0 && other !== undefined)
      notes.push(t("grid.otherwise", { profile: t(`profile.${state.against}`), value: short(other) }));
    return labelOf(state, row, s, i, notes.join(", "));
  };
  return {
    text: shown,
    label,
    kind,
    tone: tinted && value > 0 ? "plus" : tinted && value < 0 ? "minus" : "",
    strength: !tinted || !(largest > 0) ? 0 : Number.isFinite(value) ? Math.abs(value) / largest : 1,
    dropped,
    faint: follows,
    differs: (flags & DIFFERS) !== 0 ? "differs" : (flags & SLIGHTLY) !== 0 ? "slightly" : "",
    editText: value === undefined ? "" : full(value),
    role,
  };
}

/** @param {Float64Array[] | undefined} all */
function largestOf(all) {
  let largest = 0;
  for (const values of all ?? []) {
    for (const value of values) {
      if (Number.isFinite(value) && Math.abs(value) > largest) largest = Math.abs(value);
    }
  }
  return largest;
}

/** Stands in for the number in a sentence that is made once. */
const NUMBER = "\u0001";

/** @type {WeakMap<string[], Map<string, string[]>>} by the tokens of the sequence: what stands before and after */
const sentences = new WeakMap();

/**
 * @param {State} state
 * @param {import("../rows.js").Row} row
 * @param {number} s
 * @param {number} i
 * @param {string} value
 */
function labelOf(state, row, s, i, value) {
  const { tokens } = state.sequences[s];
  const known = sentences.get(tokens) ?? new Map();
  sentences.set(tokens, known);
  const id = `${currentLanguage()}.${row.key}.${s}.${i}.${state.sequences.length > 1}`;
  const [before, after] = known.get(id) ?? sentenceOf(state, row, s, i).split(NUMBER);
  known.set(id, [before, after]);
  return before + value + after;
}

/**
 * @param {State} state
 * @param {import("../rows.js").Row} row
 * @param {number} s
 * @param {number} i
 */
function sentenceOf(state, row, s, i) {
  const { tokens } = state.sequences[s];
  const words = { row: t(`row.${row.key}`), number: i + 1, token: tokens[i] ?? "", value: NUMBER };
  const spot =
    row.align === "sequence"
      ? t("grid.cell.sequence", { ...words, number: s + 1 })
      : row.align === "action"
        ? t("grid.cell.action", words)
        : t(i < tokens.length ? "grid.cell.state" : "grid.cell.end", words);
  return state.sequences.length > 1 && row.align !== "sequence"
    ? t("grid.cell.within", { sequence: s + 1, cell: spot })
    : spot;
}
