import assert from "node:assert/strict";
import { test } from "node:test";
import { pageModule } from "./harness.js";

const { clamp, extent, logTicks, padded, scale, ticks } = await pageModule("parts/scale.js");

test("ticks are round and lie inside", () => {
  assert.deepEqual(ticks(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(-3.1, 3.1), [-2, 0, 2]);
  assert.deepEqual(ticks(0.3, 0.3), [0.3]);
  assert.deepEqual(ticks(0, 6e-5, 3), [0, 2e-5, 4e-5, 6e-5]);
});

test("ticks of a logarithmic axis: 1, 2, 5; only powers over many decades; a plain division over less than one", () => {
  assert.deepEqual(logTicks(0.1, 10), [0.1, 0.2, 0.5, 1, 2, 5, 10]);
  assert.deepEqual(logTicks(1e-4, 1e4), [1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000, 1e4]);
  assert.deepEqual(logTicks(0.8, 1.2, 4), [0.8, 0.9, 1, 1.1, 1.2]);
});

test("a place on an axis leads back to its number", () => {
  for (const log of [false, true]) {
    const axis = scale([0.25, 4], { log });
    assert.equal(axis.place(0.25), 0);
    assert.equal(axis.place(4), 1);
    for (const value of [0.3, 1, 2.5]) assert.ok(Math.abs(axis.value(axis.place(value)) - value) < 1e-12);
  }
  assert.equal(scale([0.25, 4], { log: true }).place(1), 0.5);
  // without a positive start the axis is linear
  assert.equal(scale([0, 4], { log: true }).place(1), 0.25);
});

test("an extent is never empty and does not see what is not finite", () => {
  assert.deepEqual(extent([NaN, 2, Infinity, -1]), [-1, 2]);
  assert.deepEqual(extent([]), [0, 1]);
  assert.deepEqual(extent([0]), [-0.5, 0.5]);
  assert.deepEqual(padded([0, 10]), [0, 10.6]);
  assert.equal(clamp(5, 0, 1), 1);
});
