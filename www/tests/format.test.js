import assert from "node:assert/strict";
import { test } from "node:test";
import { pageModule } from "./harness.js";

const { full, parse, short, signed, subscript } = await pageModule("parts/format.js");

test("six digits in the grid, all digits on focus", () => {
  assert.equal(short(0.6210811859375), "0.621081");
  assert.equal(full(0.1 + 0.2), "0.30000000000000004");
  assert.equal(short(-0.0008277777), "−0.000827778");
  assert.equal(short(1e-9), "1e−9");
  assert.equal(short(-0.0000661941672), "−6.61942e−5");
  assert.equal(short(0.00005), "5e−5");
  assert.equal(short(1e21), "1e21");
});

test("special numbers are shown as such", () => {
  assert.deepEqual([-0, NaN, Infinity, -Infinity, 0].map(short), ["−0", "NaN", "∞", "−∞", "0"]);
  assert.deepEqual([1, -1, 0, -0].map(signed), ["+1", "−1", "0", "−0"]);
});

test("typing accepts both minus signs, NaN and ∞, and says what is wrong", () => {
  assert.deepEqual(
    ["-1", "−1", ".5", "1e-3", " 2. "].map((text) => parse(text).value),
    [-1, -1, 0.5, 0.001, 2],
  );
  assert.ok(Number.isNaN(parse("nan").value));
  assert.deepEqual(
    ["∞", "-inf"].map((text) => parse(text).value),
    [Infinity, -Infinity],
  );
  assert.ok(Object.is(parse("-0").value, -0));
  assert.deepEqual(
    ["", "0,5", "1+1", "0x10", "1e"].map((text) => parse(text).problem),
    ["empty", "comma", "text", "text", "text"],
  );
});

test("subscripts", () => assert.equal(subscript(10), "₁₀"));
