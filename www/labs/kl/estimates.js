// The rows of the table: every estimate the library offers, in the loss and in the reward.

/** @typedef {"truth" | "loss" | "reward"} Place */

/**
 * @typedef {object} Row
 * @property {string} id
 * @property {Place} place
 * @property {"k1" | "abs" | "k2" | "k3"} [estimator]
 * @property {boolean} [straight] the gradient of d²/2 whatever the value: verl's names with "+"
 * @property {"token" | "score-function"} [weight] multiplied by a weight whose gradient counts too
 * @property {boolean} [other] the divergence with policy and reference exchanged
 */

/** @type {Row[]} */
export const rows = [
  { id: "truth.forward", place: "truth" },
  { id: "truth.other", place: "truth", other: true },
  { id: "loss.k1", place: "loss", estimator: "k1" },
  { id: "loss.k2", place: "loss", estimator: "k2" },
  { id: "loss.k3", place: "loss", estimator: "k3" },
  { id: "loss.abs", place: "loss", estimator: "abs" },
  { id: "loss.ratio-k3", place: "loss", estimator: "k3", weight: "token" },
  { id: "loss.score-k3", place: "loss", estimator: "k3", weight: "score-function" },
  { id: "loss.ratio-k1", place: "loss", estimator: "k1", weight: "token" },
  { id: "loss.ratio-k2", place: "loss", estimator: "k2", weight: "token" },
  { id: "loss.straight-k1", place: "loss", estimator: "k1", straight: true },
  { id: "loss.straight-k3", place: "loss", estimator: "k3", straight: true },
  { id: "loss.straight-abs", place: "loss", estimator: "abs", straight: true },
  { id: "reward.k1", place: "reward", estimator: "k1" },
  { id: "reward.k2", place: "reward", estimator: "k2" },
  { id: "reward.k3", place: "reward", estimator: "k3" },
  { id: "reward.abs", place: "reward", estimator: "abs" },
];

/** @type {Place[]} */
export const places = ["truth", "loss", "reward"];

export const rowIds = rows.map(({ id }) => id);

/** @param {string} id */
export const rowOf = (id) => rows.find((row) => row.id === id) ?? rows[0];

/** How an estimate is written in a table or legend. @param {Row} row */
export function shortName({ estimator = "k1", straight, weight }) {
  const factor = weight === "token" ? "ρ·" : weight === "score-function" ? "∇·" : "";
  return `${factor}${estimator === "abs" ? "|d|" : estimator}${straight ? "+" : ""}`;
}
