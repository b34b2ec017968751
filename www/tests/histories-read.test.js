// Entropy histories without a browser: what is read, what is refused and why, and what is computed for a curve.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pageModule } from "./harness.js";
import { BAD } from "./histories-files.js";

const { readBytes, readLines, readText } = await pageModule("histories/read.js");
const { collapse, movingMean, runningMean, thinned } = await pageModule("histories/curve.js");

test("the format is read, other keys are left alone, floats may be whole", () => {
  const { steps, entropies } = readText(
    '[\n {"step": 1, "entropy": 4.532},\n {"step": 2.0, "entropy": 4, "kl": [1, 2]}, {"entropy": -0.5, "step": 9}\n]',
  );
  assert.deepEqual(
    [Array.from(steps), Array.from(entropies)],
    [
      [1, 2, 9],
      [4.532, 4, -0.5],
    ],
  );
});

for (const [text, problem, values] of BAD) {
  test(`refused: ${JSON.stringify(text)}`, () => assert.deepEqual(readText(text), { problem, values }));
}

test("bytes that are no text are refused", () => {
  assert.deepEqual(readBytes(Uint8Array.of(91, 10, 255, 93).buffer), { problem: "encoding", values: {} });
});

test("metrics in JSON Lines: policy/entropy is taken, as on the command line", () => {
  const { steps, entropies } = readLines(
    '{"step": 1, "policy/entropy": 4}\n{"step": 2, "loss": 1}\n\n{"step": 3.5, "policy/entropy": 3}\n',
  );
  assert.deepEqual(
    [Array.from(steps), Array.from(entropies)],
    [
      [1, 3.5],
      [4, 3],
    ],
  );
  for (const [text, problem, values] of [
    ["", "noLines", {}],
    ['{"step": 1, "entropy": 4}', "noLines", {}],
    ['{"step": 1}\n{"st', "line", { line: 2, near: '{"st' }],
    ['{"step": 1, "policy/entropy": null}', "lineNumbers", { line: 1, step: "1", got: "null" }],
    ['{"step": 2, "policy/entropy": 1}\n{"step": 2, "policy/entropy": 1}', "lineOrder", { line: 2, step: 2 }],
  ])
    assert.deepEqual(readLines(text), { problem, values }, text);
});

test("a collapse is where entropy stays low, as on the command line", () => {
  const falling = Float64Array.of(4, 1, 3, 1, 0.5, 0.2);
  assert.equal(collapse(falling, 0.5), 3);
  assert.equal(collapse(falling, 0.01), -1);
  assert.equal(collapse(Float64Array.of(4, 4), 0.5), -1);
  // 2 is not below half of 4
  assert.equal(collapse(Float64Array.of(4, 2), 0.5), -1);
  assert.equal(collapse(Float64Array.of(4, 1.999), 0.5), 1);
});

test("smoothing by hand", () => {
  assert.deepEqual(Array.from(movingMean(Float64Array.of(1, 2, 3, 4, 5), 3)), [1, 2, 3, 4, 5]);
  assert.deepEqual(Array.from(movingMean(Float64Array.of(0, 3, 0), 3)), [0, 1, 0]);
  // half a window of 5 at the third, of 3 beside it, of 1 at the ends
  assert.deepEqual(Array.from(movingMean(Float64Array.of(1, 2, 9, 0, 8), 5)), [1, 4, 4, 17 / 3, 8]);
  assert.deepEqual(Array.from(movingMean(Float64Array.of(5), 9)), [5]);
  assert.deepEqual(Array.from(runningMean(Float64Array.of(4, 2, 0), 0.5)), [4, 3, 1.5]);
  assert.deepEqual(Array.from(runningMean(Float64Array.of(4, 2), 0)), [4, 2]);
});

test("thinning keeps spikes and ends, and looks only where it is zoomed", () => {
  const steps = Float64Array.from({ length: 100_000 }, (_, i) => i);
  const values = new Float64Array(100_000).fill(1);
  values[50_001] = 9;
  const { x, y } = thinned(steps, values, null, 1000);
  assert.ok(x.length <= 1100, `${x.length}`);
  assert.equal(y[x.indexOf(50_001)], 9);
  assert.deepEqual([x[0], x[x.length - 1]], [0, 99_999]);
  assert.ok(x.every((step, i) => i === 0 || step > x[i - 1]));
  assert.deepEqual(thinned(steps, values, [10, 12], 1000).x, [9, 10, 11, 12, 13]);
});
