// Hints about inputs that look like a mistake; nothing is refused.

import { groupEstimators, normalising } from "../compute/estimators.js";
import { t } from "../../i18n/index.js";
import { groupOf } from "../rows.js";
import { isKept } from "../state.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */

/**
 * @param {State} state
 * @param {Result} result
 * @returns {string[]}
 */
export function hintsOf(state, result) {
  const found = [];
  const lost = state.sequences.flatMap((sequence, s) =>
    sequence.inputs.score.flatMap((score, i) => (score !== 0 && !isKept(sequence, i) ? [[s + 1, i + 1]] : [])),
  );
  if (lost.length > 0) found.push(t("hint.droppedScore", { sequence: lost[0][0], number: lost[0][1] }));
  const grouped = groupEstimators.includes(state.choices.advantage);
  const scores = result.rows.sequenceScore ?? [];
  const tied = grouped
    ? state.sequences.findIndex((_, s) => {
        const members = groupOf(state, s);
        return members.length > 1 && members.every((other) => scores[other]?.[0] === scores[s]?.[0]);
      })
    : -1;
  if (tied >= 0) found.push(t("hint.tied", { group: state.sequences[tied].group + 1 }));
  if (normalising.includes(state.choices.advantage) && state.choices.weight === "whitened")
    found.push(t("hint.normalisedTwice", { estimator: t(`choice.advantage.${state.choices.advantage}`) }));
  if (result.summary.variance === Infinity) found.push(t("hint.overflow"));
  if (state.choices.placement !== "off" && state.parameters.beta === 0) found.push(t("hint.freeKl"));
  return found;
}
