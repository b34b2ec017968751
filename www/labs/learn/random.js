// xoshiro128**, started anew for every update from the seed and the number of the update: any update can be drawn again
// without those before it. Integers only, so that every browser draws the same. No imports.

/** The last steps of MurmurHash3: every bit of the input reaches every bit of the result. @param {number} x */
function mixed(x) {
  let h = x;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** @param {number} x @param {number} by */
const rotated = (x, by) => (x << by) | (x >>> (32 - by));

export class Random {
  /** @param {[number, number, number, number]} state not all 0 */
  constructor(state) {
    this.state = Uint32Array.from(state);
  }

  /**
   * @param {number} seed
   * @param {number} update
   */
  static of(seed, update) {
    const words = [1, 2, 3, 4].map((k) =>
      mixed(mixed(seed + Math.imul(k, 0x9e3779b9)) ^ Math.imul(update + k, 0x27d4eb2f)),
    );
    return new Random([words[0], words[1], words[2], words[3] | 1]);
  }

  /** The next 32 bits. */
  next() {
    const { state: s } = this;
    const result = Math.imul(rotated(Math.imul(s[1], 5), 7), 9) >>> 0;
    const shifted = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotated(s[3], 11);
    return result;
  }

  /** A number from 0 up to, but not including, 1; 53 bits of it are drawn. */
  uniform() {
    const [high, low] = [this.next() >>> 5, this.next() >>> 6];
    return (high * 67108864 + low) / 9007199254740992;
  }
}
