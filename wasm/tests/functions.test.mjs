// Every function, in both precisions, with anything at all in the dropped slots.
import assert from "node:assert/strict";
import { test } from "node:test";

import { cases, plainCases } from "./cases.mjs";
import { functions, precisions, tokenwise } from "./load.mjs";

const called = new Set();

function call(name, args) {
  called.add(name);
  return tokenwise[name](...args);
}

/** Compares numbers, arrays of them, and objects of these; names the place where they differ. */
function close(got, expected, tolerance, place) {
  if (typeof expected === "number") {
    assert.equal(typeof got, "number", place);
    assert.ok(Math.abs(got - expected) <= tolerance, `${place}: ${got} instead of ${expected}`);
  } else {
    assert.deepEqual(Object.keys(got), Object.keys(expected), place);
    for (const key of Object.keys(expected)) close(got[key], expected[key], tolerance, `${place}.${key}`);
  }
}

/** All arrays in a result. */
function arrays(result) {
  if (ArrayBuffer.isView(result)) return [result];
  return typeof result === "object" ? Object.values(result).flatMap(arrays) : [];
}

for (const { suffix, array, tolerance } of precisions) {
  const poisoned = [NaN, Infinity, -1e30].map((poison) => cases(array, poison));
  poisoned[0].forEach(([name, args, expected], index) => {
    test(`${name}${suffix} (${index})`, () => {
      const result = call(name + suffix, args);
      close(result, expected, tolerance, name);
      for (const output of arrays(result)) {
        assert.equal(output.constructor, array);
        // an array of its own, not a view into the memory of the module
        assert.equal(output.byteLength, output.buffer.byteLength);
      }
      for (const other of poisoned.slice(1)) {
        assert.deepEqual(call(name + suffix, other[index][1]), result, "a dropped slot was read");
      }
    });
  });
}

for (const [name, args, expected] of plainCases) {
  test(name, () => close(call(name, args), expected, 1e-12, name));
}

test("every exported function was called", () => {
  assert.deepEqual(functions.filter((name) => !called.has(name)), []);
});

test("inputs are copied, not changed, and outputs stay when memory grows", () => {
  const batch = tokenwise.Batch.padded(1, 2, Uint8Array.of(1, 1));
  const values = Float32Array.of(1, 3);
  const first = tokenwise.whiten(batch, values);
  const kept = first.slice();
  const large = tokenwise.Batch.padded(1, 1 << 22, new Uint8Array(1 << 22).fill(1));
  tokenwise.whiten(large, new Float32Array(1 << 22));
  large.free();
  assert.deepEqual(first, kept);
  assert.deepEqual(values, Float32Array.of(1, 3));
});

test("a batch knows its counts, and its clones outlive it", () => {
  const batch = tokenwise.Batch.packed(Uint32Array.of(0, 2, 2, 5), Uint8Array.of(1, 0, 0, 1, 1));
  const { sequences, tokens, kept, keptSequences } = batch;
  assert.deepEqual({ sequences, tokens, kept, keptSequences }, { sequences: 3, tokens: 5, kept: 3, keptSequences: 2 });
  const clone = batch.clone();
  batch.free();
  assert.equal(tokenwise.mean(clone, Float32Array.of(1, 9, 9, 1, 1)), 1);
});

test("the bits of exp and ln are those of the core", () => {
  assert.equal(tokenwise.expF64(1), 2.718281828459045);
  assert.equal(tokenwise.exp(1), Math.fround(Math.E));
  assert.equal(tokenwise.lnF64(10), 2.302585092994046);
  assert.ok(Number.isNaN(tokenwise.ln(-1)));
});
