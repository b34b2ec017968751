// Arbitrary fragments for the decoder of the page's links: it may refuse one, never throw or hang.
//
// node fuzz/link.mjs SECONDS

import { decode, encode } from "../www/share/link.js";

const seconds = Number(process.argv[2] ?? 60);
const end = Date.now() + seconds * 1000;
let state = 0x2545f491;
const random = (/** @type {number} */ below) => {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
};
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~=%&#/+";

const seeds = ["", "#", "#1.", "#2.abc"];
seeds.push(await encode({ page: "chain", states: { chain: { tokens: ["a", "b"], beta: 0.1 } } }));
let count = 0;
for (; Date.now() < end; count += 1) {
  let text = seeds[random(seeds.length)];
  for (let edits = random(8) + 1; edits > 0; edits -= 1) {
    const at = random(text.length + 1);
    const letter = letters[random(letters.length)];
    text = [
      text.slice(0, at) + letter + text.slice(at),
      text.slice(0, at),
      text.slice(0, at) + letter + text.slice(at + 1),
    ][random(3)];
  }
  const limit = new Promise((_, reject) => setTimeout(() => reject(new Error("hangs")), 5000).unref());
  try {
    await Promise.race([decode(text), limit]);
  } catch (error) {
    console.error(`decode(${JSON.stringify(text)}):`, error);
    process.exit(1);
  }
}
console.log(`${count} links`);
