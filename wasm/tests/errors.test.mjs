// Every kind of bad input is an Error with all fields; nothing traps, and the module works on.
import assert from "node:assert/strict";
import { test } from "node:test";

import { tokenwise } from "./load.mjs";

const { Batch, gae, mean, whiten } = tokenwise;
const f = (...values) => Float32Array.from(values);
const u = (...values) => Uint32Array.from(values);
const batch = Batch.padded(1, 2, Uint8Array.of(1, 1));
const four = f(1, 2, 3, 4);
const gone = Batch.padded(1, 1, Uint8Array.of(1));
gone.free();
const input = { rewards: f(0, 1), values: f(0, 0), bootstrap: f(0) };
const policy = { logProbs: f(0, 0), oldLogProbs: f(0, 0), advantages: f(1, 1) };
const whole = "a whole number from 0 to 2^32 - 1";

// call, code, parameter, index, expected, got, message
const refusals = [
  // the core's own
  [() => mean(batch, four), "length", "values", undefined, 2, 4, "values: expected 2 entries, got 4"],
  [() => Batch.padded(1, 2, Uint8Array.of(1)), "length", "mask", undefined, 2, 1, "mask: expected 2 entries, got 1"],
  [
    () => Batch.packed(u(), new Uint8Array(0)),
    "length",
    "cuSeqlens",
    undefined,
    1,
    0,
    "cuSeqlens: expected 1 entries, got 0",
  ],
  [() => Batch.packed(u(1), new Uint8Array(0)), "offsets", "cuSeqlens", 0, 0, 1, "cuSeqlens[0]: expected 0, got 1"],
  [
    () => Batch.packed(u(0, 3, 2), new Uint8Array(2)),
    "offsets",
    "cuSeqlens",
    2,
    3,
    2,
    "cuSeqlens[2]: expected at least 3, got 2",
  ],
  [
    () => tokenwise.tokenLogProbs(batch, { logits: four, vocab: 2, tokens: u(1, 2) }),
    "token_id",
    "tokens",
    1,
    2,
    2,
    "tokens[1]: expected an id below the vocabulary size 2, got 2",
  ],
  [
    () => tokenwise.groupRelative({ ids: u(0, 2) }, f(1, 2)),
    "group",
    "groups",
    1,
    2,
    2,
    "groups[1]: expected an id below 2, the number of sequences, got 2",
  ],
  [
    () => tokenwise.leaveOneOut({ sizes: u(2, 0) }, f(1, 2)),
    "entry",
    "sizes",
    1,
    "at least 1",
    0,
    "sizes[1]: must be at least 1, got 0",
  ],
  [
    () => tokenwise.shift(batch, { raw: f(1, 2), width: 1, rawLayout: { batch: 1, len: 2 } }),
    "sequence",
    "rawLayout",
    0,
    3,
    2,
    "rawLayout[0]: expected at least 3 positions, got 2",
  ],
  [
    () => tokenwise.shift(batch, { raw: f(1), width: 1, rawLayout: { batch: 1, len: 3 } }),
    "length",
    "raw",
    undefined,
    3,
    1,
    "raw: expected 3 entries, got 1",
  ],
  [
    () => gae(batch, input, { lambda: 1.5 }),
    "config",
    "lambda",
    undefined,
    "in [0, 1]",
    1.5,
    "lambda: must be in [0, 1], got 1.5",
  ],
  [
    () => gae(batch, input, { gamma: NaN }),
    "config",
    "gamma",
    undefined,
    "in [0, 1]",
    NaN,
    "gamma: must be in [0, 1], got NaN",
  ],
  [
    () => tokenwise.overlongPenalty({ scores: f(1), lengths: u(1) }, { maxLen: 1, buffer: 2 }),
    "config",
    "buffer",
    undefined,
    "at least 1 and at most maxLen",
    2,
    "buffer: must be at least 1 and at most maxLen, got 2",
  ],
  [
    () => Batch.padded(1, 2, Uint8Array.of(1, 255)),
    "entry",
    "mask",
    1,
    "0 or 1",
    255,
    "mask[1]: must be 0 or 1, got 255",
  ],
  [
    () => mean(Batch.padded(1, 1, Uint8Array.of(0)), f(1)),
    "empty_mask",
    "mask",
    undefined,
    1,
    0,
    "mask: expected at least 1 kept token, got 0",
  ],
  [
    () => tokenwise.variance(Batch.padded(1, 1, Uint8Array.of(1)), f(1)),
    "too_few",
    "variance",
    undefined,
    2,
    1,
    "variance: needs at least 2 kept entries, got 1",
  ],
  [
    () => Batch.padded(65536, 65536, Uint8Array.of(1)),
    "overflow",
    "batch × len",
    undefined,
    "a product that fits into a machine word",
    [65536, 65536],
    "batch × len: 65536 × 65536 does not fit into a machine word",
  ],

  // arguments of the wrong kind
  [
    () => mean(gone, f(1)),
    "freed",
    "batch",
    undefined,
    "a Batch",
    "a freed Batch",
    "batch: expected a Batch, got one that was freed",
  ],
  [
    () => mean(undefined, f(1)),
    "type",
    "batch",
    undefined,
    "a Batch",
    undefined,
    "batch: expected a Batch, got undefined",
  ],
  [
    () => mean({ clone: () => 1 }, f(1)),
    "type",
    "batch",
    undefined,
    "a Batch",
    "Object",
    "batch: expected a Batch, got Object",
  ],
  [
    () => mean(batch),
    "type",
    "values",
    undefined,
    "a Float32Array",
    undefined,
    "values: expected a Float32Array, got undefined",
  ],
  [
    () => mean(batch, [1, 2]),
    "type",
    "values",
    undefined,
    "a Float32Array",
    "Array",
    "values: expected a Float32Array, got Array",
  ],
  [
    () => mean(batch, Float64Array.of(1, 2)),
    "type",
    "values",
    undefined,
    "a Float32Array",
    "Float64Array",
    "values: expected a Float32Array, got Float64Array",
  ],
  [
    () => tokenwise.meanF64(batch, f(1, 2)),
    "type",
    "values",
    undefined,
    "a Float64Array",
    "Float32Array",
    "values: expected a Float64Array, got Float32Array",
  ],
  [
    () => gae(batch, { ...input, values: undefined }),
    "type",
    "values",
    undefined,
    "a Float32Array",
    undefined,
    "values: expected a Float32Array, got undefined",
  ],
  [() => gae(batch, null), "type", "input", undefined, "an object", null, "input: expected an object, got null"],
  [
    () => gae(batch, input, "fast"),
    "type",
    "config",
    undefined,
    "an object",
    "fast",
    'config: expected an object, got "fast"',
  ],
  [
    () => Batch.padded(NaN, 1, Uint8Array.of(1)),
    "type",
    "batch",
    undefined,
    whole,
    NaN,
    `batch: expected ${whole}, got NaN`,
  ],
  [() => Batch.padded(1, -1, Uint8Array.of(1)), "type", "len", undefined, whole, -1, `len: expected ${whole}, got -1`],
  [
    () => Batch.padded(1, 1.5, Uint8Array.of(1)),
    "type",
    "len",
    undefined,
    whole,
    1.5,
    `len: expected ${whole}, got 1.5`,
  ],
  [
    () => Batch.padded(1, 2 ** 32, Uint8Array.of(1)),
    "type",
    "len",
    undefined,
    whole,
    2 ** 32,
    `len: expected ${whole}, got 4294967296`,
  ],
  [
    () => Batch.padded(1n, 1, Uint8Array.of(1)),
    "type",
    "batch",
    undefined,
    whole,
    1n,
    `batch: expected ${whole}, got 1`,
  ],
  [
    () => Batch.padded(1, 1, [1]),
    "type",
    "mask",
    undefined,
    "a Uint8Array",
    "Array",
    "mask: expected a Uint8Array, got Array",
  ],
  [
    () => Batch.packed([0, 1], Uint8Array.of(1)),
    "type",
    "cuSeqlens",
    undefined,
    "a Uint32Array",
    "Array",
    "cuSeqlens: expected a Uint32Array, got Array",
  ],
  [
    () => tokenwise.shapeRewards(batch, { scores: f(0, 0), kl: f(0, 0) }, 0.1),
    "type",
    "config",
    undefined,
    "an object",
    0.1,
    "config: expected an object, got 0.1",
  ],
  [
    () => tokenwise.lastKCredit(batch, f(1), { k: 0.5 }),
    "type",
    "k",
    undefined,
    "a whole number from 0 to 2^53 - 1",
    0.5,
    "k: expected a whole number from 0 to 2^53 - 1, got 0.5",
  ],
  [
    () => tokenwise.lastKCredit(batch, f(1)),
    "type",
    "k",
    undefined,
    "a value",
    undefined,
    "k: expected a value, got undefined",
  ],
  [() => tokenwise.exp("1"), "type", "x", undefined, "a number", "1", 'x: expected a number, got "1"'],
  [
    () => tokenwise.exp(Symbol.iterator),
    "type",
    "x",
    undefined,
    "a number",
    Symbol.iterator,
    "x: expected a number, got Symbol(Symbol.iterator)",
  ],
  [
    () => tokenwise.groupTokens(batch, {}),
    "type",
    "ids",
    undefined,
    "a Uint32Array",
    undefined,
    "ids: expected a Uint32Array, got undefined",
  ],
  [
    () => tokenwise.momentsMerge({ count: -1, mean: 0, m2: 0 }, {}),
    "type",
    "count",
    undefined,
    "a whole number from 0 to 2^53 - 1",
    -1,
    "count: expected a whole number from 0 to 2^53 - 1, got -1",
  ],

  // keys and values of configs
  [
    () => gae(batch, input, { lamda: 1 }),
    "key",
    "lamda",
    undefined,
    "gamma, lambda, across",
    "lamda",
    "lamda: not a key of config, which has gamma, lambda, across",
  ],
  [
    () => gae(batch, input, { lambda: "1" }),
    "type",
    "lambda",
    undefined,
    "a number",
    "1",
    'lambda: expected a number, got "1"',
  ],
  [
    () => gae(batch, input, { across: "jump" }),
    "choice",
    "across",
    undefined,
    "step-over, zero-step",
    "jump",
    "across: expected one of step-over, zero-step, got jump",
  ],
  [
    () => gae(batch, input, { across: 1 }),
    "type",
    "across",
    undefined,
    "step-over | zero-step",
    1,
    "across: expected step-over | zero-step, got 1",
  ],
  [
    () => tokenwise.ppoClip(batch, policy, { logRatioBound: "no" }),
    "type",
    "logRatioBound",
    undefined,
    "a number or null",
    "no",
    'logRatioBound: expected a number or null, got "no"',
  ],
  [
    () => tokenwise.ppoClip(batch, policy, { dualClip: 3 }),
    "type",
    "dualClip",
    undefined,
    "off | negativeOnly | bothSigns",
    3,
    "dualClip: expected off | negativeOnly | bothSigns, got 3",
  ],
  [
    () => tokenwise.ppoClip(batch, policy, { dualClip: { c: 3 } }),
    "key",
    "c",
    undefined,
    "off, negativeOnly, bothSigns",
    "c",
    "c: not a key of dualClip, which has off, negativeOnly, bothSigns",
  ],
  [
    () => tokenwise.surrogate(batch, policy, { aggregate: { mode: "mean" } }),
    "choice",
    "mode",
    undefined,
    "token-mean, token-sum, seq-mean-token-sum, seq-mean-token-sum-norm, seq-mean-token-mean, prompt-mean",
    "mean",
    "mode: expected one of token-mean, token-sum, seq-mean-token-sum, seq-mean-token-sum-norm, seq-mean-token-mean, prompt-mean, got mean",
  ],
  [
    () => tokenwise.surrogate(batch, policy, { aggregate: { scale: 2 } }),
    "fields",
    "aggregate",
    undefined,
    "`scale` without its mode",
    undefined,
    "aggregate: `scale` without its mode",
  ],
  [
    () => tokenwise.rewardScaleClip(four, {}),
    "type",
    "kind",
    undefined,
    "a value",
    undefined,
    "kind: expected a value, got undefined",
  ],
  [
    () => tokenwise.rewardScaleClip(four, { kind: "clip", low: 0, top: 1 }),
    "key",
    "top",
    undefined,
    "kind, low, high, bias, scale, bound, fromLow, fromHigh, toLow, toHigh",
    "top",
    "top: not a key of config, which has kind, low, high, bias, scale, bound, fromLow, fromHigh, toLow, toHigh",
  ],
  [
    () => tokenwise.rewardScaleClip(four),
    "type",
    "kind",
    undefined,
    "a value",
    undefined,
    "kind: expected a value, got undefined",
  ],
  [
    () => tokenwise.rolloutRejection(batch, { oldLogProbs: f(0, 0), rolloutLogProbs: f(0, 0) }, { criteria: 1 }),
    "type",
    "criteria",
    undefined,
    "an array",
    1,
    "criteria: expected an array, got 1",
  ],
  [
    () => tokenwise.clipCov(batch, { ...policy, selected: Uint8Array.of(0, 2) }),
    "entry",
    "selected",
    1,
    "0 or 1",
    2,
    "selected[1]: must be 0 or 1, got 2",
  ],
  [
    () => tokenwise.surrogate(batch, { ...policy, weights: f(1) }),
    "length",
    "weights",
    undefined,
    2,
    1,
    "weights: expected 2 entries, got 1",
  ],
  [
    () => tokenwise.dro(batch, policy),
    "type",
    "beta",
    undefined,
    "a value",
    undefined,
    "beta: expected a value, got undefined",
  ],
  [
    () => tokenwise.parseWeightBound("two"),
    "entry",
    "thresholds",
    0,
    "a positive number",
    NaN,
    "thresholds[0]: must be a positive number, got NaN",
  ],
  [
    () => tokenwise.aggregate(batch, f(1, 2), { mode: "seq-mean-token-sum-norm" }),
    "fields",
    "config",
    undefined,
    "missing field `scale`",
    undefined,
    "config: missing field `scale`",
  ],
  [
    () => tokenwise.aggregate(batch, f(1, 2), { counts: { tokens: 0.5 } }),
    "type",
    "tokens",
    undefined,
    "a whole number from 0 to 2^53 - 1",
    0.5,
    "tokens: expected a whole number from 0 to 2^53 - 1, got 0.5",
  ],
  [
    () => tokenwise.shift(batch, { raw: four, width: 1, rawLayout: { rows: 1 } }),
    "key",
    "rows",
    undefined,
    "batch, len, cuSeqlens",
    "rows",
    "rows: not a key of rawLayout, which has batch, len, cuSeqlens",
  ],
];

for (const [call, code, parameter, index, expected, got, message] of refusals) {
  test(message, () => {
    assert.throws(call, (error) => {
      assert.ok(error instanceof tokenwise.TokenwiseError && error instanceof Error);
      const { name } = error;
      assert.deepEqual(
        {
          name,
          code: error.code,
          parameter: error.parameter,
          index: error.index,
          expected: error.expected,
          got: error.got,
          message: error.message,
        },
        { name: "TokenwiseError", code, parameter, index, expected, got, message },
      );
      return true;
    });
    // the module has not been harmed
    assert.equal(mean(batch, f(1, 3)), 2);
  });
}

test("what an input's getter throws goes through", () => {
  const own = new Error("mine");
  assert.throws(
    () =>
      gae(batch, {
        get rewards() {
          throw own;
        },
      }),
    (error) => error === own,
  );
});

test("undefined config keys mean the default", () => {
  assert.deepEqual(gae(batch, input, { lambda: undefined }), gae(batch, input));
});

test("an input may hold more arrays than a function reads", () => {
  assert.deepEqual(gae(batch, { ...input, other: 1 }), gae(batch, input));
});

test("sizes that overflow or exceed memory are refused", () => {
  const huge = { raw: f(), width: 2 ** 32 - 1, rawLayout: { batch: 1, len: 0 } };
  assert.throws(() => tokenwise.shift(batch, huge), { name: "TokenwiseError" });
  assert.throws(() => tokenwise.entropy(batch, { logits: f(), vocab: 2 ** 32 - 1 }), {
    name: "TokenwiseError",
    code: "overflow",
  });
  assert.throws(() => tokenwise.groupRelative({ sizes: u(2 ** 32 - 1, 2 ** 32 - 1) }, f()), {
    name: "TokenwiseError",
    code: "overflow",
  });
});

test("a batch can be freed while its function runs", () => {
  const doomed = Batch.padded(1, 2, Uint8Array.of(1, 1));
  const bootstrap = {
    get bootstrap() {
      doomed.free();
      return f(0);
    },
  };
  const result = () =>
    gae(
      doomed,
      Object.defineProperties({ rewards: f(0, 1), values: f(0, 0) }, Object.getOwnPropertyDescriptors(bootstrap)),
    );
  assert.throws(result, { name: "TokenwiseError", code: "freed" });
  assert.ok(whiten(batch, f(1, 2)) instanceof Float32Array);
});
