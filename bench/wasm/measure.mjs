// Times our module and onnxruntime-web in turns; runs in Node and in browsers.

import { analysisModel, logitsModel, ppoModel } from "./model.mjs";

const [ROWS, VOCAB, SEQUENCES, LEN] = [64, 151936, 256, 4096];
const SAMPLE = 20; // ms: browser clocks are coarse
const BUDGET = 8000; // ms per item
const LEAST = 5;
// as the formula in place is set
const PPO = { dualClip: { negativeOnly: 3 } };

/** The bare formulas with their data in place. */
class Bare {
  constructor(instance) {
    this.c = instance.exports;
    this.logits = this.c.logits_new(ROWS, VOCAB, 0);
    this.tokens = this.c.tokens_new(SEQUENCES, LEN, 0);
  }

  // a copy: growing the memory detaches views
  read(owner, which, Kind, count) {
    return new Kind(this.c.memory.buffer, this.c[`${owner}_buffer`](this[owner], which), count).slice();
  }
}

const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];

async function timed(contestants) {
  const all = [];
  for (const [who, call] of contestants) {
    await call();
    const begin = performance.now();
    await call();
    const repeats = Math.max(1, Math.ceil(SAMPLE / Math.max(performance.now() - begin, 0.1)));
    all.push({ who, call, repeats, times: [] });
  }
  const begin = performance.now();
  while (performance.now() - begin < BUDGET || all[0].times.length < LEAST) {
    for (const each of all) {
      const from = performance.now();
      for (let index = 0; index < each.repeats; index += 1) await each.call();
      each.times.push((performance.now() - from) / each.repeats);
    }
  }
  return all.map(({ who, times }) => ({ who, ms: median(times), least: Math.min(...times), samples: times.length }));
}

const near = (name, got, expected) => {
  const worst = Math.max(
    ...expected.map((value, index) => Math.abs(Number(got[index]) - value) / Math.max(1, Math.abs(value))),
  );
  if (!(worst < 1e-3)) throw new Error(`${name} is off by ${worst}`);
};

/**
 * `bare` and `plain` are instances, `tokenwise` is the package, `ort` is onnxruntime-web;
 * `print` gets one record each.
 */
export async function measure({ bare, plain, tokenwise, ort, print }) {
  const [inPlace, withoutSimd] = [new Bare(bare), new Bare(plain)];
  ort.env.wasm.numThreads = 1;

  const logits = inPlace.read("logits", 0, Float32Array, ROWS * VOCAB);
  const tokens = inPlace.read("logits", 1, Uint32Array, ROWS);
  inPlace.c.logits_run(inPlace.logits, 0);
  const expected = [...inPlace.read("logits", 4, Float32Array, ROWS)];
  const session = await ort.InferenceSession.create(logitsModel(ROWS, VOCAB), { executionProviders: ["wasm"] });
  const feeds = {
    logits: new ort.Tensor("float32", logits, [ROWS, VOCAB]),
    tokens: new ort.Tensor("int64", BigInt64Array.from(tokens, BigInt), [ROWS, 1]),
  };
  near("onnxruntime-web", (await session.run(feeds)).log_probs.data, expected);
  const rows = new Uint8Array(ROWS).fill(1);
  const one = tokenwise.Batch.padded(1, ROWS, rows);
  const packaged = () => tokenwise.logProbsAndEntropy(one, { logits, vocab: VOCAB, tokens });
  near("the package", packaged().logProbs, expected);
  const report = (item, shape, results) => results.forEach((result) => print({ item, shape, ...result }));
  report(
    "logits-f32",
    `${ROWS}×${VOCAB}`,
    await timed([
      ["ours, in place", () => inPlace.c.logits_run(inPlace.logits, 0)],
      ["ours, package", packaged],
      ["ours, without simd128", () => withoutSimd.c.logits_run(withoutSimd.logits, 0)],
      ["onnxruntime-web", () => session.run(feeds)],
    ]),
  );
  await session.release();

  const slots = SEQUENCES * LEN;
  const mask = inPlace.read("tokens", 0, Uint8Array, slots);
  const [rewards, oldLogProbs, advantages] = [1, 4, 6].map((which) =>
    inPlace.read("tokens", which, Float32Array, slots),
  );
  inPlace.c.tokens_run(inPlace.tokens, 3);
  const totals = [...inPlace.read("tokens", 10, Float64Array, 5)];
  const metrics = await ort.InferenceSession.create(analysisModel(SEQUENCES, LEN), { executionProviders: ["wasm"] });
  const named = { old: oldLogProbs, advantages, rewards, mask: Float32Array.from(mask) };
  const inputs = Object.fromEntries(
    Object.entries(named).map(([name, data]) => [name, new ort.Tensor("float32", data, [SEQUENCES, LEN])]),
  );
  const made = await metrics.run(inputs);
  near(
    "onnxruntime-web",
    metrics.outputNames.map((name) => made[name].data[0]),
    totals,
  );
  const batch = tokenwise.Batch.padded(SEQUENCES, LEN, mask);
  report(
    "analysis",
    `${SEQUENCES}×${LEN}`,
    await timed([
      ["ours, in place", () => inPlace.c.tokens_run(inPlace.tokens, 3)],
      ["ours, package", () => tokenwise.analysis(batch, { oldLogProbs, advantages, rewards })],
      ["ours, without simd128", () => withoutSimd.c.tokens_run(withoutSimd.tokens, 3)],
      ["onnxruntime-web", () => metrics.run(inputs)],
    ]),
  );

  const logProbs = inPlace.read("tokens", 3, Float32Array, slots);
  inPlace.c.tokens_run(inPlace.tokens, 2);
  const [loss] = inPlace.read("tokens", 10, Float64Array, 1);
  const policy = { logProbs, oldLogProbs, advantages };
  const ppoClip = () => tokenwise.ppoClip(batch, policy, PPO);
  // as in place, where the gradient is written over the last one
  const into = { grad: new Float32Array(slots) };
  const ppoClipInto = () => tokenwise.ppoClip(batch, policy, PPO, into);
  near("the package", [ppoClip().loss, ppoClipInto().loss], [loss, loss]);
  const clipped = await ort.InferenceSession.create(ppoModel(SEQUENCES, LEN), { executionProviders: ["wasm"] });
  const bounds = { low: 0.8, high: 1.2, bound: PPO.dualClip.negativeOnly, zero: 0 };
  const scalar = ([name, value]) => [name, new ort.Tensor("float32", Float32Array.of(value), [1, 1])];
  const { old, advantages: weights, mask: kept } = inputs;
  const fed = {
    new: new ort.Tensor("float32", logProbs, [SEQUENCES, LEN]),
    old,
    advantages: weights,
    mask: kept,
    ...Object.fromEntries(Object.entries(bounds).map(scalar)),
  };
  near("onnxruntime-web", (await clipped.run(fed)).loss.data, [loss]);
  report(
    "ppo",
    `${SEQUENCES}×${LEN}`,
    await timed([
      ["ours, in place", () => inPlace.c.tokens_run(inPlace.tokens, 2)],
      ["ours, package", ppoClip],
      ["ours, package, into the caller's array", ppoClipInto],
      ["ours, without simd128", () => withoutSimd.c.tokens_run(withoutSimd.tokens, 2)],
      ["onnxruntime-web, loss without gradient", () => clipped.run(fed)],
    ]),
  );
}
