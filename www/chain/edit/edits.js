// The user's edits: each takes a state and returns the next one.

import { normalising } from "../compute/estimators.js";
import { limits, roles, sequenceOf } from "../state.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../state.js").Sequence} Sequence */
/** @typedef {import("../state.js").Parameter} Parameter */
/** @typedef {import("../state.js").Choices} Choices */
/** @typedef {{ row: string, sequence: number, index: number }} Place */

/**
 * @param {State} state
 * @param {number} sequence
 * @param {(before: Sequence) => Sequence} edit
 * @returns {State}
 */
const withSequence = (state, sequence, edit) => ({
  ...state,
  sequences: state.sequences.map((one, s) => (s === sequence ? edit(one) : one)),
});

/**
 * @template T
 * @param {T[]} list
 * @param {number} index
 * @param {T} value
 */
const replaced = (list, index, value) => list.map((one, i) => (i === index ? value : one));

/**
 * @param {State} state
 * @param {Place} place
 * @param {number | null} value
 * @returns {State}
 */
export const withInput = (state, { row, sequence, index }, value) =>
  withSequence(state, sequence, (one) => {
    const values = /** @type {(number | null)[]} */ (/** @type {any} */ (one.inputs)[row]);
    return { ...one, inputs: { ...one.inputs, [row]: replaced(values, index, value) } };
  });

/**
 * The next role: policy, tool, padding, policy …
 * @param {State} state
 * @param {Place} place
 */
export const withNextRole = (state, { sequence, index }) =>
  withSequence(state, sequence, (one) => {
    const next = roles[(roles.indexOf(one.roles[index]) + 1) % roles.length];
    return { ...one, roles: replaced(one.roles, index, next) };
  });

/**
 * @param {State} state
 * @param {Place} place
 * @param {string} text
 */
export const withToken = (state, { sequence, index }, text) =>
  withSequence(state, sequence, (one) => ({ ...one, tokens: replaced(one.tokens, index, text.slice(0, limits.text)) }));

/**
 * @param {State} state
 * @param {Partial<Record<Parameter, number>>} parameters
 * @returns {State}
 */
export const withParameters = (state, parameters) => ({ ...state, parameters: { ...state.parameters, ...parameters } });

/**
 * @param {State} state
 * @param {Partial<Choices>} choices
 * @returns {State}
 */
export const withChoices = (state, choices) => ({ ...state, choices: { ...state.choices, ...choices } });

/**
 * The same as a reader means it: whoever compares the answers of a group has normalised already, so the loss reads
 * those advantages as they are unless told otherwise.
 * @param {State} state
 * @param {Partial<Choices>} choices
 * @returns {State}
 */
export const withChosen = (state, choices) =>
  withChoices(
    state,
    choices.advantage && normalising.includes(choices.advantage) && !normalising.includes(state.choices.advantage)
      ? { ...choices, weight: "raw" }
      : choices,
  );

/** @param {State} state */
const cells = (state) => state.sequences.reduce((sum, one) => sum + one.tokens.length, 0);

/**
 * @param {State} state
 * @param {number} sequence
 */
export const canInsert = (state, sequence) =>
  state.sequences[sequence].tokens.length < limits.tokens && cells(state) < limits.cells;

/**
 * @param {State} state
 * @param {number} sequence
 */
export const canAdd = (state, sequence) =>
  state.sequences.length < limits.sequences && cells(state) + state.sequences[sequence].tokens.length <= limits.cells;

/**
 * A new token of the policy at `index`; its numbers are 0, its value that of the state it splits.
 * @param {State} state
 * @param {number} sequence
 * @param {number} index
 * @param {string} text
 */
export function withTokenAdded(state, sequence, index, text) {
  if (!canInsert(state, sequence)) return state;
  /** @type {<T>(list: T[], value: T) => T[]} */
  const added = (list, value) => [...list.slice(0, index), value, ...list.slice(index)];
  return withSequence(state, sequence, (one) => {
    const { inputs } = one;
    return {
      ...one,
      tokens: added(one.tokens, text),
      roles: added(one.roles, /** @type {const} */ ("policy")),
      inputs: {
        score: added(inputs.score, 0),
        oldLogProb: added(inputs.oldLogProb, 0),
        refLogProb: added(inputs.refLogProb, 0),
        kl: added(inputs.kl, 0),
        attention: added(inputs.attention, 1),
        value: added(inputs.value, inputs.value[index]),
        advantage: added(inputs.advantage, 0),
        logProb: added(inputs.logProb, null),
      },
    };
  });
}

/**
 * @param {State} state
 * @param {number} sequence
 * @param {number} index
 */
export function withTokenRemoved(state, sequence, index) {
  if (state.sequences[sequence].tokens.length < 2) return state;
  /** @type {<T>(list: T[]) => T[]} */
  const removed = (list) => list.filter((_, i) => i !== index);
  return withSequence(state, sequence, (one) => ({
    ...one,
    tokens: removed(one.tokens),
    roles: removed(one.roles),
    inputs: /** @type {Sequence["inputs"]} */ (
      Object.fromEntries(
        Object.entries(one.inputs).map(([row, values]) => [row, removed(/** @type {any[]} */ (values))]),
      )
    ),
  }));
}

/**
 * A new sequence after `sequence`, in the same group: with the same tokens, its numbers copied or 0.
 * @param {State} state
 * @param {number} sequence
 * @param {boolean} same
 * @returns {State}
 */
export function withSequenceAdded(state, sequence, same) {
  if (!canAdd(state, sequence)) return state;
  const { tokens, prompt, group, roles: kinds } = state.sequences[sequence];
  const next = same ? state.sequences[sequence] : sequenceOf({ tokens, prompt, group, roles: kinds });
  return {
    ...state,
    sequences: [...state.sequences.slice(0, sequence + 1), next, ...state.sequences.slice(sequence + 1)],
  };
}

/**
 * @param {State} state
 * @param {number} sequence
 * @returns {State}
 */
export const withSequenceRemoved = (state, sequence) =>
  state.sequences.length < 2 ? state : { ...state, sequences: state.sequences.filter((_, s) => s !== sequence) };

/**
 * @param {State} state
 * @param {number} sequence
 * @param {number} group
 */
export const withGroup = (state, sequence, group) => withSequence(state, sequence, (one) => ({ ...one, group }));

/**
 * Switches to other conventions; the previous ones become those they are compared with.
 * @param {State} state
 * @param {State["profile"]} profile
 * @returns {State}
 */
export const withProfile = (state, profile) =>
  profile === state.profile ? state : { ...state, profile, against: state.profile };
