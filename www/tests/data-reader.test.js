// Own data without a browser: damaged and hostile files, the quantities, the exports. What files are read as is tested
// with the reader (reader/tests).

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { hostile, randomOf, spoilt } from "./data-files.js";
import { browserTest, repository } from "./harness.js";

const playground = process.env.PLAYGROUND_DIR ?? join(repository, "target/playground");
const fixtures = join(repository, "reader/tests/fixtures");

// the page's modules as Node takes them: the folder needs to say that they are modules
const scratch = await mkdtemp(join(tmpdir(), "tokenwise-data-"));
await writeFile(join(scratch, "package.json"), '{"type":"module"}');
await cp(join(repository, "www/data"), join(scratch, "data"), { recursive: true });
await cp(join(repository, "www/engines"), join(scratch, "engines"), { recursive: true });
await cp(join(repository, "www/engine.js"), join(scratch, "engine.js"));
await cp(join(repository, "www/parts"), join(scratch, "parts"), { recursive: true });
await cp(join(repository, "www/i18n"), join(scratch, "i18n"), { recursive: true });
after(() => rm(scratch, { recursive: true }));
const module = (path) => import(pathToFileURL(join(scratch, path)).href);
const { read: readParts } = await module("data/read.js");
const { Fault } = await module("data/fault.js");
const { contentOf, initial, readState } = await module("data/state.js");
const catalogues = { en: (await module("i18n/en/data.js")).default, zh: (await module("i18n/zh/data.js")).default };

/** A module of the assembled page under Node, or null. */
async function loaded(name, file, bindings) {
  const folder = join(playground, "pkg", name);
  if (browserTest.skip || !existsSync(join(folder, `${file}.js`))) return null;
  await cp(folder, join(scratch, "pkg", name), { recursive: true });
  const library = await module(`pkg/${name}/${file}.js`);
  library.initSync({ module: await readFile(join(folder, `${bindings}_bg.wasm`)) });
  return library;
}
const tokenwise = await loaded("plain", "tokenwise", "bindings");
const reader = await loaded("reader", "reader", "reader");
const read = (name, content, scoreName = "") => {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const file = { size: bytes.length, part: (from, length) => bytes.subarray(from, from + length) };
  return readParts(reader, name, file, scoreName);
};
const { Dataset } = await module("data/dataset.js");
// the core is the build that was loaded here
const engine = { name: "core", compare: false };
const computed = async (file, settings = {}) => {
  const dataset = new Dataset(tokenwise, file);
  const lint = await dataset.compute({ ...initial().settings, ...settings }, engine, () => {});
  return { ...dataset.about(), lint, dataset };
};

/** Every fault has its words in both languages, with all its values. */
function told(error) {
  assert.ok(error instanceof Fault, error.stack ?? String(error));
  for (const [lang, texts] of Object.entries(catalogues)) {
    const text = texts[`data.fault.${error.code}`];
    assert.ok(text, `${lang}: no words for ${error.code}`);
    for (const [, name] of text.matchAll(/\{(\w+)\}/g))
      assert.ok(["string", "number"].includes(typeof error.values[name]), `${error.code} in ${lang}: no ${name}`);
  }
}

/** Everything the page asks of a file, under settings at their ends. */
async function ask(file) {
  const all = { sequence: null, step: null, group: null, kept: false };
  const { dataset, keys, lint } = await computed(file, {
    gamma: 0,
    lambda: 1,
    beta: 0,
    clipLow: 1,
    clipHigh: 0,
    kl: "k3",
    firstUpdate: true,
    tolerance: 0,
  });
  assert.ok(
    lint.findings.every(
      ({ sequence, token }) =>
        sequence < dataset.sequences &&
        (token === null || token < dataset.offsets[sequence + 1] - dataset.offsets[sequence]),
    ),
  );
  for (const key of [...keys, "sequence", "score", "nothing"]) {
    for (const view of ["tokens", "sequences"])
      assert.ok(dataset.order(view, all, { key, descending: true }).length <= dataset.tokens + dataset.sequences);
    const histogram = dataset.histogram(key, { ...all, kept: true });
    if (histogram) assert.equal(histogram.y.reduce((a, b) => a + b, 0) + histogram.outside, histogram.count);
  }
}

test("10,000 spoilt files: rows, or a message with a place; never anything else", browserTest, async () => {
  const names = [
    ...(await readdir(join(fixtures, "readings"))).map((name) => `readings/${name}`),
    "rollouts.jsonl",
    "unipo.json",
    "7.jsonl",
  ];
  const good = await Promise.all(names.map(async (name) => [name, await readFile(join(fixtures, name), "utf8")]));
  const before = Reflect.ownKeys(Object.prototype).length;
  const random = randomOf(7);
  let [rows, refused, placed] = [0, 0, 0];
  for (let i = 0; i < 10_000; i += 1) {
    const [name, text] = spoilt(random, good);
    try {
      const file = read(name, text);
      const [tokens, sequences] = [file.keep.length, file.places.length];
      assert.ok(sequences > 0 && file.offsets.length === sequences + 1 && file.offsets[sequences] === tokens);
      assert.ok(file.parts[0] === 0 && file.parts.at(-1) === sequences && file.textEnds.length === tokens);
      for (const column of Object.values(file.columns)) assert.equal(column.length, tokens, JSON.stringify(text));
      rows += 1;
      // and what the page asks of every file it shows
      if (tokenwise && rows % 3 === 0) await ask(file);
    } catch (error) {
      told(error);
      refused += 1;
      if (Object.keys(error.place).length > 0) placed += 1;
      else assert.ok(["empty", "unknownKind", "noRollout"].includes(error.code), error.code);
    }
  }
  assert.equal(Reflect.ownKeys(Object.prototype).length, before);
  assert.ok(rows > 500 && refused > 3000 && placed > refused / 2, `${rows} ${refused} ${placed}`);
});

test("hostile files: rows or a message, in time", browserTest, async () => {
  for (const [name, content] of hostile) {
    const from = performance.now();
    try {
      const file = read(name, content);
      assert.ok(file.places.length > 0, name);
      if (tokenwise) await ask(file);
    } catch (error) {
      told(error);
    }
    assert.ok(performance.now() - from < 5000, `${name} took too long`);
  }
  const long = `{"prompt": "${"x".repeat(10_000_000)}", "log_probs": [-1]}\n`;
  assert.equal(read("long.jsonl", long + long).places.length, 2);
  assert.throws(() => read("many.jsonl", `{"log_probs": [${new Array(600_000).fill("-1").join()}]}`), {
    code: "tooManyTokens",
  });
});

test("a state from a link is checked, whatever it holds", () => {
  for (const data of [null, 1, "x", [], () => 1]) assert.equal(readState(data), null);
  const odd = readState({
    source: { kind: "text", name: 5, text: "x".repeat(30_000) },
    settings: { gamma: 7, lambda: "0.5", beta: NaN, clipLow: -1, kl: "k9", tolerance: Infinity, firstUpdate: 1 },
    view: "<b>",
    sort: { key: "__proto__" },
    colour: "constructor",
    filter: { sequence: -1, step: 1.5, group: "2", kept: "yes" },
    hidden: { length: 1e9 },
    at: { sequence: 1e99, token: 0 },
    extra: 1,
  });
  assert.deepEqual(odd, initial());
  const whole = {
    ...initial(),
    source: { kind: "text", name: "a.jsonl", text: "{}" },
    view: "text",
    sort: { key: "kl", descending: true },
    colour: "kl",
    hidden: ["kl"],
    at: { sequence: 3, token: 2 },
  };
  assert.deepEqual(readState(JSON.parse(JSON.stringify(whole))), whole);
  // a file that stayed on another page is known by name only
  assert.equal(contentOf(readState({ source: { kind: "memory", name: "a.jsonl", size: 5, id: "1-x" } }).source), null);
});

const close6 = (got, wanted, what) =>
  assert.ok(
    Math.abs(got - wanted) <= 1e-9 * Math.max(1, Math.abs(wanted)) || Object.is(got, wanted),
    `${what}: ${got} is not ${wanted}`,
  );

test("the quantities are those of the formulas", browserTest, async () => {
  const text = await readFile(join(fixtures, "rollouts.jsonl"), "utf8");
  const { columns, keep } = await computed(read("rollouts.jsonl", text), { kl: "k3" });
  const [a, b] = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const given = (name) => [...a[name], ...b[name]];
  const [lp, old, ref, rollout, adv] = [
    "log_probs",
    "old_log_probs",
    "ref_log_probs",
    "rollout_log_probs",
    "advantages",
  ].map(given);
  for (let i = 0; i < 6; i += 1) {
    if (!keep[i]) continue;
    const d = old[i] - ref[i];
    const r = Math.exp(lp[i] - old[i]);
    const p = Math.exp(old[i]);
    const clipped = Math.min(1.2, Math.max(0.8, r));
    close6(columns.kl[i], Math.exp(-d) - 1 + d, "kl");
    close6(columns.ratio[i], r, "ratio");
    close6(columns.samplerRatio[i], Math.exp(old[i] - rollout[i]), "sampler");
    close6(columns.loss[i], Math.max(-r * adv[i], -clipped * adv[i]), "loss");
    close6(columns.gradient[i], -r * adv[i] >= -clipped * adv[i] ? -r * adv[i] : 0, "gradient");
    close6(columns.probability[i], p, "p");
    close6(columns.surprise[i], -p * old[i], "surprise");
    close6(columns.weightedEntropy[i], p * (1 - p) * Math.abs(adv[i]) * -p * old[i], "wH");
  }
  // rewards 0, 1, dropped and values 0.1, 0.3: δ₂ = 1 − 0.3, A₁ = 0 + 0.3 − 0.1 + 0.95·0.7
  close6(columns.gaeAdvantage[1], 0.7, "A₂");
  close6(columns.gaeAdvantage[0], 0.2 + 0.95 * 0.7, "A₁");
  close6(columns.gaeReturn[0], 0.3 + 0.95 * 0.7, "R₁");
  // scores 1 and 0: ±0.5 over the sample deviation √½ (+ 1e-6)
  close6(columns.groupAdvantage[0], 0.5 / (Math.SQRT1_2 + 1e-6), "group");
  assert.deepEqual([columns.kl[2], columns.loss[2]], [0, 0]);
});

test("what is exported is read again as the same", browserTest, async () => {
  const { toCsv, toJsonLines } = await module("data/export.js");
  const text = await readFile(join(fixtures, "readings/lists.json"), "utf8");
  const first = await computed(read("lists.json", text));
  for (const [name, again] of [
    ["x.jsonl", toJsonLines(first)],
    [
      "x.csv",
      toCsv(
        first,
        Uint32Array.from({ length: first.tokens }, (_, i) => i),
        first.keys,
      ),
    ],
  ]) {
    const second = await computed(read(name, again));
    assert.deepEqual(
      [second.sequences, second.tokens, second.kept, second.steps],
      [first.sequences, first.tokens, first.kept, first.steps],
      name,
    );
    for (const key of first.fields) assert.deepEqual(second.columns[key], first.columns[key], `${name} ${key}`);
    assert.deepEqual([...second.score], [...first.score], name);
  }
  const formula = await computed(read("formula.csv", hostile.find(([name]) => name === "formula.csv")[1]));
  assert.match(toCsv(formula, Uint32Array.of(0), formula.keys), /"'=HYPERLINK/);
});

test("NaN sorts last both ways, equals stay in order", browserTest, async () => {
  const file = read("x.jsonl", '{"log_probs": [-1, NaN, -3, -1], "mask": [1, 1, 1, 0]}\n{"log_probs": [-2, Infinity]}');
  const { dataset } = await computed(file);
  const all = { sequence: null, step: null, group: null, kept: false };
  const order = (descending, filter = all) => [...dataset.order("tokens", filter, { key: "logProbs", descending })];
  assert.deepEqual(order(false), [2, 4, 0, 3, 5, 1]);
  assert.deepEqual(order(true), [5, 0, 3, 4, 2, 1]);
  assert.deepEqual(order(false, { ...all, kept: true, sequence: 0 }), [2, 0, 1]);
  const { count, notFinite, y, statistics } = dataset.histogram("logProbs", all);
  assert.deepEqual([count, notFinite, y.reduce((a, b) => a + b, 0)], [3, 2, 3]);
  assert.deepEqual([statistics.low, statistics.median, statistics.high, statistics.mean], [-3, -2, -1, -2]);
});
