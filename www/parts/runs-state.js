// What the states of pages with curves of several runs have in common, and how a link's is read.

/** @typedef {{ kind: "none" | "mean" | "ema", window: number, weight: number }} Smooth */

/** @type {Smooth["kind"][]} */
export const smoothKinds = ["none", "mean", "ema"];

/** @returns {Smooth} */
export const initialSmooth = () => ({ kind: "none", window: 9, weight: 0.9 });

/** @param {unknown} data @returns {data is Record<string, any>} */
export const isRecord = (data) => typeof data === "object" && data !== null && !Array.isArray(data);

/**
 * A number inside a range, or what stands in for it.
 * @param {unknown} value
 * @param {number} low
 * @param {number} high
 * @param {number} fallback
 */
export const within = (value, low, high, fallback) =>
  typeof value === "number" && value >= low && value <= high ? value : fallback;

/** @param {any} data whatever a link holds @returns {Smooth} */
export function readSmooth(data) {
  const { kind, window, weight } = isRecord(data) ? data : /** @type {Record<string, any>} */ ({});
  const usual = initialSmooth();
  return {
    kind: smoothKinds.includes(kind) ? kind : usual.kind,
    window: Math.trunc(within(window, 1, 501, usual.window)),
    weight: within(weight, 0, 0.999, usual.weight),
  };
}

/** @param {any} data whatever a link holds @returns {[number, number] | null} the steps shown, null for all */
export const readZoom = (data) =>
  Array.isArray(data) && data.length === 2 && data.every(Number.isFinite) && data[0] < data[1]
    ? [data[0], data[1]]
    : null;
