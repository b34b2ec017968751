// The two tables: tokens, and sequences with the means of their tokens.

import { t } from "../i18n/index.js";
import { short } from "../parts/format.js";
import { textOf } from "./flow.js";
import { visible } from "../parts/format.js";
import { quantityMeaning, quantityName } from "./words.js";

/** @typedef {import("./types.js").Loaded} Loaded */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./cells.js").Cell} Cell */

/** @param {string | number} text @returns {Cell} */
const plain = (text) => ({ text: String(text), tone: "", strength: 0 });

/** @param {string} key */
const heading = (key) => ({ key, name: t(`data.column.${key}`), title: t(`data.columnTitle.${key}`), narrow: true });
/** @param {Loaded} data @param {State} state @param {string} colour */
const shown = (data, state, colour) =>
  [colour, ...data.keys.filter((key) => key !== colour)].filter((key) => key !== "" && !state.hidden.includes(key));
/** @param {string} key */
const quantity = (key) => ({ key, name: quantityName(key), title: quantityMeaning(key) });

/**
 * @param {Loaded} data
 * @param {State} state
 * @param {Uint32Array} order
 * @param {{ sequence: number, token: number } | null} at
 * @param {string} colour the quantity that is coloured; it comes first, where it is seen
 * @param {(key: string, value: number) => Cell} number
 * @returns {import("./rows.js").Table}
 */
export function tokenTable(data, state, order, at, colour, number) {
  const quantities = shown(data, state, colour);
  // what is coloured stands beside the token, also on a phone
  const [first, rest] = [quantities.filter((key) => key === colour), quantities.filter((key) => key !== colour)];
  const columns = [
    heading("sequence"),
    heading("token"),
    ...(data.text.length > 0 ? [{ ...heading("text"), wide: true }] : []),
    ...first.map(quantity),
    heading("kept"),
    ...rest.map(quantity),
  ];
  const slot = at ? data.offsets[at.sequence] + at.token : -1;
  return {
    label: t("data.table.tokens", { count: order.length }),
    columns,
    count: order.length,
    sort: state.sort,
    chosen: slot < 0 ? -1 : order.indexOf(slot),
    dropped: (row) => (data.keep[order[row]] === 1 ? "" : "dropped"),
    cell: (row, key) => {
      const index = order[row];
      if (key === "sequence") return plain(data.sequence[index] + 1);
      if (key === "token") return plain(data.token[index] + 1);
      if (key === "text") return plain(visible(textOf(data, index)));
      if (key === "kept") return plain(data.keep[index] === 1 ? "●" : "○");
      const cell = number(key, data.columns[key][index]);
      // a dropped token is left out
      return data.keep[index] === 1 ? cell : { ...cell, tone: "", strength: 0 };
    },
  };
}

/**
 * @param {Loaded} data
 * @param {State} state
 * @param {Uint32Array} order
 * @param {{ sequence: number, token: number } | null} at
 * @param {string} colour the quantity that is coloured; it comes first, where it is seen
 * @param {(key: string, value: number) => Cell} number
 * @returns {import("./rows.js").Table}
 */
export function sequenceTable(data, state, order, at, colour, number) {
  const columns = [
    heading("sequence"),
    heading("place"),
    ...(data.steps.length > 0 ? [heading("step")] : []),
    ...(data.groupNames.length > 0 ? [{ ...heading("group"), wide: true }] : []),
    heading("length"),
    ...(data.scored.includes(1) ? [heading("score")] : []),
    ...shown(data, state, colour).map(quantity),
  ];
  return {
    label: t("data.table.sequences", { count: order.length }),
    columns,
    count: order.length,
    sort: state.sort,
    chosen: at ? order.indexOf(at.sequence) : -1,
    dropped: () => "",
    cell: (row, key) => {
      const index = order[row];
      if (key === "sequence") return plain(index + 1);
      if (key === "place") return plain(data.place[index]);
      if (key === "step") return plain(Number.isNaN(data.step[index]) ? "—" : data.step[index]);
      if (key === "group") return plain(data.groupNames[data.group[index]] ?? "—");
      if (key === "length") return plain(data.offsets[index + 1] - data.offsets[index]);
      if (key === "score") return plain(data.scored[index] === 1 ? short(data.score[index]) : "—");
      return number(key, data.means[key][index]);
    },
  };
}
