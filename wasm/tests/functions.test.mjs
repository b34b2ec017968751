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
  if (typeof expected === "string" || expected === null) {
    assert.equal(got, expected, place);
  } else if (typeof expected === "number") {
    assert.equal(typeof got, "number", place);
    assert.ok(
      Math.abs(got - expected) <= tolerance || Object.is(got, expected),
      `${place}: ${got} instead of ${expected}`,
    );
  } else {
    assert.deepEqual(Object.keys(got).sort(), Object.keys(expected).sort(), place);
    for (const key of Object.keys(expected)) close(got[key], expected[key], tolerance, `${place}.${key}`);
  }
}

/** All arrays in a result. */
function arrays(result) {
  if (ArrayBuffer.isView(result)) return [result];
  return typeof result === "object" && result !== null ? Object.values(result).flatMap(arrays) : [];
}

const long = tokenwise.Batch.padded(1, 64, new Uint8Array(64).fill(1));

/** Leaves NaN in the buffers that later calls compute their outputs in. */
function stain(suffix, array) {
  const nan = new array(64).fill(NaN);
  tokenwise[`gae${suffix}`](long, { rewards: nan, values: nan, bootstrap: new array(1) });
}

for (const { suffix, array, tolerance } of precisions) {
  const poisoned = [NaN, Infinity, -1e30].map((poison) => cases(array, poison));
  poisoned[0].forEach(([name, args, expected], index) => {
    test(`${name}${suffix} (${index})`, () => {
      stain(suffix, array);
      const result = call(name + suffix, args);
      close(result, expected, tolerance, name);
      for (const output of arrays(result)) {
        const kind = output instanceof Uint8Array ? Uint8Array : name === "pfPpoWeights" ? Float64Array : array;
        assert.equal(output.constructor, kind);
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

/**
 * Calls a function with the columns that its errors ask for, each of the length they name. A formula of the catalogue
 * needs no more than this: its numbers are tested in Rust, its bits on wasm32 by the fingerprints.
 */
function callAsAsked(name, array, poison) {
  const batch = tokenwise.Batch.padded(2, 2, Uint8Array.of(1, 0, 1, 1));
  const column = (length) => array.from({ length }, (_, slot) => (length === 4 && slot === 1 ? poison : slot / 4 - 1));
  const input = {};
  for (let asked = 0; asked < 20; asked++) {
    try {
      return call(name, [batch, input]);
    } catch (error) {
      const { code, parameter, expected, got } = error;
      if (code === "type" && got === undefined) input[parameter] = column(4);
      else if (code === "length") input[parameter] = column(expected);
      else throw error;
    }
  }
  throw new Error(`${name} asks for ever more`);
}

const seen = new Set([...cases(Float32Array, 0), ...plainCases].map(([name]) => name));
for (const { suffix, array } of precisions) {
  for (const name of functions.filter((name) => !name.endsWith("F64") && !seen.has(name))) {
    test(`${name}${suffix}, as it asks`, () => {
      const [result, other] = [NaN, -1e30].map((poison) => callAsAsked(name + suffix, array, poison));
      assert.ok(arrays(result).length > 0 && arrays(result).every((output) => output.every(Number.isFinite)));
      assert.deepEqual(other, result, "a dropped slot was read");
    });
  }
}

test("every exported function was called", () => {
  assert.deepEqual(
    functions.filter((name) => !called.has(name)),
    [],
  );
});

test("results are written into arrays of the caller's", () => {
  const batch = tokenwise.Batch.padded(1, 4, Uint8Array.of(1, 1, 0, 1));
  const f = (...values) => Float32Array.from(values);
  const input = { rewards: f(0, 0, NaN, 1), values: f(0.5, 0.5, NaN, 0.5), bootstrap: f(0) };
  const fresh = tokenwise.gae(batch, input, { lambda: 0.5 });
  const into = { advantages: f(9, 9, 9, 9) };
  const result = tokenwise.gae(batch, input, { lambda: 0.5 }, into);
  assert.equal(result.advantages, into.advantages);
  assert.deepEqual(result, fresh);
  // one array is itself, also where it is the input
  const values = Float64Array.of(1, 3, NaN, 5);
  const whitened = tokenwise.whitenF64(batch, values.slice());
  assert.equal(tokenwise.whitenF64(batch, values, undefined, values), values);
  assert.deepEqual(values, whitened);
  // flags, and numbers beside an array
  const policy = { oldLogProbs: f(-1, -1, NaN, -1), rolloutLogProbs: f(-1, -4, NaN, -1) };
  const [keep, weights] = [new Uint8Array(4).fill(7), f(9, 9, 9, 9)];
  assert.equal(tokenwise.klMask(batch, policy, { tau: 0.125 }, keep), keep);
  assert.deepEqual(keep, tokenwise.klMask(batch, policy, { tau: 0.125 }));
  const gate = tokenwise.rolloutGate(batch, policy, { level: "token", upper: 2 }, { weights });
  assert.equal(gate.weights, weights);
  assert.deepEqual(gate, tokenwise.rolloutGate(batch, policy, { level: "token", upper: 2 }));
});

test("arrays that do not fit are refused, and nothing is written", () => {
  const { Batch, gae, whiten } = tokenwise;
  const batch = Batch.padded(1, 2, Uint8Array.of(1, 1));
  const input = { rewards: Float32Array.of(0, 1), values: Float32Array.of(0, 0), bootstrap: Float32Array.of(0) };
  const two = Float32Array.of(9, 9);
  const cases = [
    [{ advantages: two, returns: new Float32Array(3) }, "length", "returns", "returns: expected 2 entries, got 3"],
    [
      { advantages: two, returns: new Float64Array(2) },
      "type",
      "returns",
      "returns: expected a Float32Array, got Float64Array",
    ],
    [
      { advantages: two, returned: two },
      "key",
      "returned",
      "returned: not a key of into, which has advantages, returns",
    ],
    [3, "type", "into", "into: expected an object, got 3"],
  ];
  for (const [into, code, parameter, message] of cases) {
    assert.throws(() => gae(batch, input, {}, into), { name: "TokenwiseError", code, parameter, message });
  }
  assert.throws(() => gae(batch, input, { lambda: 2 }, { advantages: two }), { code: "config" });
  assert.throws(() => whiten(batch, two, undefined, []), { message: "out: expected a Float32Array, got Array" });
  assert.deepEqual(two, Float32Array.of(9, 9));
});

test("rows of logits are the same one by one and together", () => {
  const { Batch, logProbsAndEntropyF64, logitsGradientF64, tokenLogProbs } = tokenwise;
  // more than a block of rows, and the last block is not full
  const [rows, vocab] = [9, 20_011];
  const mask = Uint8Array.from({ length: rows }, (_, row) => (row % 4 === 2 ? 0 : 1));
  const logits = Float64Array.from({ length: rows * vocab }, (_, at) => Math.sin(at) * 3);
  const tokens = Uint32Array.from({ length: rows }, (_, row) => row * 2000);
  const [gradLogProbs, gradEntropy] = [Float64Array.from(tokens, Math.cos), Float64Array.from(tokens, Math.sin)];
  mask.forEach((kept, row) => kept || logits.fill(NaN, row * vocab, (row + 1) * vocab));
  const batch = Batch.padded(3, 3, mask);
  const all = logProbsAndEntropyF64(batch, { logits, vocab, tokens });
  const gradient = logitsGradientF64(batch, { logits, vocab, tokens, gradLogProbs, gradEntropy });
  for (let row = 0; row < rows; row++) {
    const part = (array, width = 1) => array.slice(row * width, (row + 1) * width);
    const one = Batch.padded(1, 1, part(mask));
    const input = { logits: part(logits, vocab), vocab, tokens: part(tokens) };
    const alone = logProbsAndEntropyF64(one, input);
    assert.equal(all.logProbs[row], alone.logProbs[0]);
    assert.equal(all.entropy[row], alone.entropy[0]);
    const gradients = { gradLogProbs: part(gradLogProbs), gradEntropy: part(gradEntropy) };
    assert.deepEqual(part(gradient, vocab), logitsGradientF64(one, { ...input, ...gradients }));
  }
  // the index of a bad id is that of the whole batch
  tokens[7] = vocab;
  const into = new Float32Array(rows);
  const single = Float32Array.from(logits);
  assert.throws(() => tokenLogProbs(batch, { logits: single, vocab, tokens }, {}, into), {
    code: "token_id",
    index: 7,
    expected: vocab,
    got: vocab,
  });
  assert.deepEqual(into, new Float32Array(rows));
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

test("role baselines go on from call to call", () => {
  const baselines = new tokenwise.RoleBaselines(2, 0.5);
  const input = { roles: Uint32Array.of(0, 1, 0, 1), scores: Float64Array.of(1, -1, 1, 0) };
  assert.deepEqual(tokenwise.roleBaselineF64(baselines, input), Float64Array.of(1, -1, 0.5, 0.5));
  assert.deepEqual(baselines.values, Float64Array.of(0.75, -0.25));
  const clone = baselines.clone();
  baselines.free();
  assert.deepEqual(
    tokenwise.roleBaseline(clone, { roles: Uint32Array.of(0), scores: Float32Array.of(1) }),
    Float32Array.of(0.25),
  );
  assert.throws(() => tokenwise.roleBaseline(baselines, input), { code: "freed", got: "a freed RoleBaselines" });
  assert.throws(() => tokenwise.roleBaseline({}, input), { code: "type", parameter: "baselines" });
  assert.throws(() => new tokenwise.RoleBaselines(2, 2), { code: "config" });
});

test("a histogram counts either precision and merges", () => {
  const batch = tokenwise.Batch.padded(1, 4, Uint8Array.of(1, 1, 0, 1));
  const [a, b] = [new tokenwise.Histogram(), new tokenwise.Histogram()];
  a.add(batch, Float32Array.of(1, 2, NaN, 4));
  b.add(batch, Float64Array.of(1, 2, NaN, 4));
  assert.equal(a.quantile(1), 4);
  a.merge(b);
  a.merge(a);
  assert.equal(a.count, 12);
  assert.ok(Math.abs(a.quantile(0.5) / 2 - 1) <= 1 / 32);
  assert.throws(() => a.merge({}), { code: "type", parameter: "other" });
  assert.throws(() => a.add(batch, [1]), { code: "type", parameter: "values" });
  assert.throws(() => new tokenwise.Histogram().quantile(0.5), { code: "empty_mask" });
});

test("running moments take in either precision", () => {
  const running = new tokenwise.RunningMoments();
  assert.equal(running.update(Float32Array.of(1, 3)).mean, 2);
  running.update(Float64Array.of(5, 7));
  const { count, mean, variance } = running;
  assert.deepEqual({ count, mean, variance }, { count: 4, mean: 4, variance: 5 });
  assert.ok(Math.abs(running.std - Math.sqrt(20 / 3)) < 1e-12);
});

test("the controllers go on from step to step, and clones go their own way", () => {
  const linear = new tokenwise.LinearKl({ beta: 0.5, target: 0.25, learningRate: 0.5 });
  assert.equal(linear.update(0.75), 0.75);
  const clone = linear.clone();
  assert.equal(linear.update(-9), 1e-6);
  assert.equal(clone.beta, 0.75);
  assert.throws(() => linear.update(NaN), { code: "config", parameter: "kl" });
  assert.throws(() => new tokenwise.LinearKl({ learningRate: 0 }), { code: "config" });
  assert.throws(() => new tokenwise.LinearKl({ rate: 1 }), { parameter: "rate" });

  const budget = new tokenwise.EntropyBudget({ learningRate: 0.5, source: { kind: "warm-up", steps: 1, rho: 0.5 } });
  const warm = budget.update({ step: 0, whSum: 8, tokenCount: 4 });
  assert.deepEqual([warm.lambda, warm.budget, warm.warmUpFinished], [0, null, true]);
  const report = budget.update({ step: 1, whSum: 6, tokenCount: 4 });
  assert.deepEqual([report.lambda, report.budget, report.usageRatio, budget.lambda], [0.25, 4, 1.5, 0.25]);
  assert.throws(() => budget.update({ step: 2, whSum: 6, tokenCount: 0 }), { code: "config", parameter: "tokenCount" });
});

test("the dual game measures a batch and moves both prices", () => {
  const batch = tokenwise.Batch.padded(1, 3, Uint8Array.of(1, 0, 1));
  const game = new tokenwise.DualGame({
    kl: { beta: 0.5, target: 0 },
    budget: { source: { kind: "given", b0: 0 }, learningRate: 0.5 },
  });
  const input = (Array) => ({
    oldLogProbs: Array.of(-0.5, NaN, -0.5),
    refLogProbs: Array.of(-0.5, NaN, -0.5),
    advantages: Array.of(1, NaN, -1),
    rewards: Array.of(0, NaN, 1),
  });
  const report = game.clone().step(batch, input(Float64Array));
  assert.equal(report.beta, 0.5);
  assert.equal(report.lambda, 0.5 * report.budget.whPerToken);
  assert.equal(report.entries["dual_game/lambda"], report.lambda);
  assert.equal(game.lambda, 0);
  assert.ok(Math.abs(game.step(batch, input(Float32Array)).lambda - report.lambda) < 1e-6);
  assert.ok(game.lambda > 0);
  assert.throws(() => game.step(batch, { ...input(Float32Array), weight: "structural" }), {
    code: "type",
    parameter: "structural",
  });
});
