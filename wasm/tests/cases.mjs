// Calls with small numbers whose results can be seen by eye.
import { advantage } from "./cases/advantage.mjs";
import { data } from "./cases/data.mjs";
import { loss } from "./cases/loss.mjs";
import { metric } from "./cases/metric.mjs";

export { plainCases } from "./cases/plain.mjs";

/** `[name, arguments, expected]` of every function with two precisions; `x` stands in every dropped slot. */
export function cases(array, x) {
  const shared = data(array, x);
  return [...advantage(shared), ...loss(shared), ...metric(shared)];
}
