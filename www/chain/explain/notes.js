// Sentences about a cell: what it is aligned to, and the rules by which it was computed.

import { short } from "../../parts/format.js";
import { t } from "../../i18n/index.js";
import { groupEstimators } from "../compute/estimators.js";
import { singletonOf } from "../formulas/groups.js";
import { groupOf, rowByKey, stepsOnDropped, weightRow } from "../rows.js";
import { isKept } from "../state.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */
/** @typedef {import("../edit/edits.js").Place} Place */

const STEPPING = ["delta", "advantage", "discountedReturn"];

/**
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 * @returns {string[]}
 */
export function notesOf(state, result, place) {
  const row = rowByKey.get(place.row);
  const { sequence: s, index } = place;
  const sequence = state.sequences[s];
  if (place.row === "token")
    return [
      t("explain.alignAction", words(state, place)),
      t(`role.about.${sequence.roles[index]}`),
      t("explain.givenText"),
    ];
  if (row?.align === "sequence")
    return [
      t("explain.alignSequence", { number: s + 1 }),
      t(ruleOfSequence(result, place.row)),
      ...groupNotes(state, result, place),
    ];
  const atEnd = index === sequence.tokens.length;
  const align = row?.align === "action" ? "explain.alignAction" : atEnd ? "explain.alignEnd" : "explain.alignState";
  const found = [t(align, words(state, place))];
  const kind = row?.kind(state);
  if (kind === "mask") return [...found, t(`role.about.${sequence.roles[index]}`), t("explain.givenMask")];
  if (!atEnd && !isKept(sequence, index)) {
    const carries = result.hidden[place.row]?.[s]?.[index];
    if (
      kind === "result" &&
      carries !== undefined &&
      stepsOnDropped({ state, settings: result.settings, s, i: index - 1 })
    )
      return [...found, t("explain.carries", { value: short(carries) })];
    return [...found, t(kind === "input" ? "explain.droppedInput" : "explain.dropped")];
  }
  if (kind === "input") return [...found, t("explain.given")];
  if (result.rows[place.row] === undefined) return [...found, t("explain.missing")];
  found.push(t(maskRule(state, result, place)), ...groupNotes(state, result, place));
  const weight = result.rows[weightRow(state)]?.[s]?.[index];
  const held =
    place.row === "gradient" && result.rows.gradient?.[s]?.[index] === 0 && weight !== 0 && weight !== undefined;
  if (held) found.push(t("explain.clipped"));
  if (place.row === "gradient" && state.choices.kl === "given" && state.choices.placement.startsWith("loss"))
    found.push(t("explain.klGiven"));
  return found;
}

/**
 * @param {State} state
 * @param {Place} place
 */
const words = (state, { sequence, index }) => ({
  number: index + 1,
  token: `“${state.sequences[sequence].tokens[index] ?? ""}”`,
  index,
});

/**
 * @param {Result} result
 * @param {string} row
 */
const ruleOfSequence = (result, row) =>
  row === "sequenceScore"
    ? result.settings.scoreSlots === "all"
      ? "explain.scoreAll"
      : "explain.scoreKept"
    : "explain.groupRule";

/**
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 */
function maskRule(state, { settings }, place) {
  const recursive = place.row === "delta" || place.row === "discountedReturn" || state.choices.advantage === "gae";
  if (STEPPING.includes(place.row) && recursive)
    return settings.across === "zero-step" ? "explain.maskZero" : "explain.maskStep";
  if (place.row === "advantage" && groupEstimators.includes(state.choices.advantage)) return "explain.maskBroadcast";
  if (place.row === "whitened") return "explain.maskMean";
  if (place.row === "gradient" || place.row === "tokenWeight") return "explain.maskCount";
  return "explain.maskKept";
}

/**
 * The scores a sequence is compared with.
 * @param {State} state
 * @param {Result} result
 * @param {Place} place
 */
function groupNotes(state, result, place) {
  if (!groupEstimators.includes(state.choices.advantage) || !["advantage", "groupAdvantage"].includes(place.row))
    return [];
  const members = groupOf(state, place.sequence);
  const scores = members.map((other) => short(result.rows.sequenceScore?.[other]?.[0] ?? NaN)).join(", ");
  const found = [t("explain.groupScores", { group: state.sequences[place.sequence].group + 1, scores })];
  const tied = members.every(
    (other) => result.rows.sequenceScore?.[other]?.[0] === result.rows.sequenceScore?.[members[0]]?.[0],
  );
  if (members.length > 1 && tied) found.push(t("explain.tied"));
  if (members.length === 1) found.push(t(`explain.alone.${singletonOf(state, result.settings)}`));
  return found;
}
