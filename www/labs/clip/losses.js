// The policy losses that depend on one token's ratio, from the descriptions in losses/.

import { clipLosses } from "./losses/clip.js";
import { sequenceLosses } from "./losses/sequence.js";
import { softLosses } from "./losses/soft.js";
import { weightLosses } from "./losses/weight.js";

/** @typedef {import("./losses/description.js").Description} Loss */

/** In the order of the page; a family's name is clip.family.<id>. */
export const families = [
  { id: "clip", members: clipLosses },
  { id: "sequence", members: sequenceLosses },
  { id: "weight", members: weightLosses },
  { id: "soft", members: softLosses },
];

export const losses = families.flatMap(({ members }) => members);

export const lossIds = losses.map(({ id }) => id);

/** @param {string} id */
export const lossOf = (id) => /** @type {Loss} */ (losses.find((loss) => loss.id === id));

/** @param {string} id */
export const lookOf = (id) => {
  const [colour, dash] = lossOf(id).look;
  return { colour, dash };
};

/** The parameters that count for the sign of an advantage. @param {Loss} loss @param {number} advantage */
export const parametersOf = (loss, advantage) =>
  loss.parameters.filter(({ when }) => when === undefined || when === (advantage < 0 ? -1 : 1));
