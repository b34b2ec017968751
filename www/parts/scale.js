// From numbers to places on an axis and back; which numbers are written beside it. Without imports,
// so that Node can test it.

/**
 * @typedef {object} Scale an axis of length 1
 * @property {[number, number]} domain
 * @property {(value: number) => number} place 0 at the low end, 1 at the high one
 * @property {(place: number) => number} value
 * @property {number[]} ticks
 */

/**
 * Round numbers that divide a range.
 * @param {number} low
 * @param {number} high
 * @param {number} [count] about how many
 * @returns {number[]}
 */
export function ticks(low, high, count = 6) {
  const rough = (high - low) / count;
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * (1 - 1e-9)) ?? 10 * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  // numbers so small that the step has no digits left
  if (!(last - first < 1000)) return [low, high];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

/**
 * 1, 2 and 5 times the powers of ten; only the powers where that is too many, a plain division where it is too few.
 * @param {number} low above 0
 * @param {number} high
 * @param {number} [count] about how many
 * @returns {number[]}
 */
export function logTicks(low, high, count = 6) {
  /** @type {number[]} */
  const powers = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) powers.push(power);
  const among = (/** @type {number[]} */ factors) =>
    powers
      .flatMap((power) => factors.map((factor) => Number((factor * 10 ** power).toPrecision(12))))
      .filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
  const fine = among([1, 2, 5]);
  if (fine.length < 3) return ticks(low, high, count);
  return fine.length > 2 * count ? among([1]) : fine;
}

/**
 * @param {[number, number]} domain
 * @param {{ log?: boolean, count?: number }} [options]
 * @returns {Scale}
 */
export function scale([low, high], { log = false, count = 6 } = {}) {
  if (log && low > 0) {
    const [from, to] = [Math.log(low), Math.log(high)];
    return {
      domain: [low, high],
      place: (value) => (Math.log(value) - from) / (to - from),
      value: (place) => Math.exp(from + place * (to - from)),
      ticks: logTicks(low, high, count),
    };
  }
  // the largest numbers are too far apart for their difference
  const unit = Number.isFinite(high - low) ? 1 : 0.25;
  const [from, span] = [low * unit, high * unit - low * unit];
  return {
    domain: [low, high],
    place: (value) => (span > 0 ? (value * unit - from) / span : 0.5),
    value: (place) => (from + place * span) / unit,
    ticks: ticks(low, high, count),
  };
}

/**
 * @param {Iterable<number>} values those that are not finite do not count
 * @returns {[number, number]} never empty
 */
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  return low === high ? [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2] : [low, high];
}

/**
 * A little room above and below, none beyond 0.
 * @param {[number, number]} range
 * @returns {[number, number]}
 */
export const padded = ([low, high]) => [
  low === 0 ? 0 : low - (high - low) * 0.06,
  high === 0 ? 0 : high + (high - low) * 0.06,
];

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
