// "请问1+1=2？" → 是 的 ， 等于 2 ！: from the scores to the advantages, against numbers worked out by hand.
import assert from "node:assert/strict";
import { test } from "node:test";

import { precisions, tokenwise } from "./load.mjs";

const kl = [0.1, 0.05, -0.05, 0.1, 0.2, 0.05];
const values = [0.2, 0.25, 0.3, 0.35, 0.45, 0.6];
const [beta, lambda] = [0.1, 0.95];

const rewards = kl.map((kl, t) => (t === 5 ? 1 : 0) - beta * kl);
const advantages = Array(6).fill(0);
for (let t = 5; t >= 0; t--) {
  const [next, ahead] = t === 5 ? [0, 0] : [values[t + 1], advantages[t + 1]];
  advantages[t] = rewards[t] + next - values[t] + lambda * ahead;
}
const returns = advantages.map((advantage, t) => advantage + values[t]);

function close(got, expected, tolerance) {
  assert.equal(got.length, expected.length);
  expected.forEach((value, t) =>
    assert.ok(Math.abs(got[t] - value) <= tolerance, `slot ${t}: ${got[t]} instead of ${value}`),
  );
}

test("the numbers are those worked out by hand", () => {
  close(rewards, [-0.01, -0.005, 0.005, -0.01, -0.02, 0.995], 1e-6);
  close(advantages, [0.621081, 0.611664, 0.596488, 0.569987, 0.50525, 0.395], 1e-6);
  close(returns, [0.821081, 0.861664, 0.896488, 0.919987, 0.95525, 0.995], 1e-6);
});

for (const { suffix, array, tolerance } of precisions) {
  const fn = (name) => tokenwise[name + suffix];
  const layouts = {
    padded: tokenwise.Batch.padded(1, 6, new Uint8Array(6).fill(1)),
    packed: tokenwise.Batch.packed(Uint32Array.of(0, 6), new Uint8Array(6).fill(1)),
  };
  for (const [layout, batch] of Object.entries(layouts)) {
    test(`one-plus-one, ${array.name}, ${layout}`, () => {
      const scores = fn("placeScores")(batch, array.of(1));
      assert.deepEqual(scores, array.of(0, 0, 0, 0, 0, 1));
      const shaped = fn("shapeRewards")(batch, { scores, kl: array.from(kl) }, { beta });
      close(shaped, rewards, tolerance);
      const input = { rewards: shaped, values: array.from(values), bootstrap: array.of(0) };
      const result = fn("gae")(batch, input, { lambda });
      close(result.advantages, advantages, tolerance);
      close(result.returns, returns, tolerance);
    });
  }
}
