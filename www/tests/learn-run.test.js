// The runs of the laboratory that learns: its generator, its updates, and the same bits every time.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { browserTest, open, pageModule, setParameter } from "./harness.js";
import { choose, goTo, learn, print, settled } from "./learn-tools.js";

test("the generator is xoshiro128**", async () => {
  const { Random } = await pageModule("labs/learn/random.js");
  // the first outputs of the authors' C code from the state 1, 2, 3, 4
  const known = new Random([1, 2, 3, 4]);
  assert.deepEqual(
    Array.from({ length: 4 }, () => known.next()),
    [11520, 0, 5927040, 70819200],
  );
  const streams = [0, 1, 2].map((update) => Random.of(7, update));
  const firsts = streams.map((random) => random.uniform());
  assert.equal(new Set(firsts).size, 3);
  const [random, again] = [Random.of(3, 5), Random.of(3, 5)];
  let sum = 0;
  for (let i = 0; i < 20000; i += 1) {
    const u = random.uniform();
    assert.ok(u >= 0 && u < 1);
    assert.equal(again.uniform(), u);
    sum += u;
  }
  assert.ok(Math.abs(sum / 20000 - 0.5) < 0.01);
});

test("what an answer is worth", async () => {
  const { judge, problemOf, worldOf, rowOf } = await pageModule("labs/learn/world.js");
  const world = worldOf({ words: "note", extra: "", stop: "off", memory: "position" });
  assert.deepEqual(world.letters, ["e", "n", "o", "t"]);
  const tokens = (word, { letters } = world) => Array.from(word, (letter) => letters.indexOf(letter));
  const score = (rule, word) => judge(world, rule, 0, tokens(word)).score;
  assert.deepEqual(
    ["note", "tone", "noon", "eton"].map((word) => score("letters", word)),
    [1, 0.5, 0.5, 0],
  );
  assert.deepEqual(
    ["note", "tone"].map((word) => score("whole", word)),
    [1, 0],
  );
  assert.deepEqual(
    ["note", "noon", "nnnn"].map((word) => score("count", word)),
    [0.25, 0.5, 1],
  );
  assert.deepEqual(
    ["note", "noon", "nnnn"].map((word) => score("trap", word)),
    [1, 0.25, 0.5],
  );
  assert.deepEqual(judge(world, "each", 0, tokens("noon")), { score: 0.5, right: false, each: [0.25, 0.25, 0, 0] });
  // an answer that ends by itself may be too short or too long
  const ending = worldOf({ words: "on no", extra: "", stop: "on", memory: "previous" });
  assert.deepEqual(ending.letters, ["n", "o", "⏹"]);
  const ended = (word) => judge(ending, "letters", 0, tokens(word, ending));
  assert.deepEqual(ended("on⏹"), { score: 1, right: true, each: null });
  assert.equal(ended("o⏹").score, 1 / 3);
  assert.equal(ended("onn⏹").score, 2 / 4);
  assert.equal(ending.rows, 2 * 4 * 4);
  assert.equal(rowOf(ending, 1, 3, 2), ending.rows - 1);
  for (const [words, extra, problem] of [
    ["", "", "none"],
    ["a b c d e f g", "", "many"],
    ["abcdefghi", "", "long"],
    ["aaa", "", "few"],
    ["aaa", "b", null],
    ["abcdefg hijklm", "", "letters"],
    ["你好 好你", "", null],
  ])
    assert.equal(problemOf(words, extra), problem, words);
});

test("no number of a run comes from the browser's own functions", async () => {
  for (const file of ["random", "world", "update", "run", "methods"]) {
    const source = await readFile(new URL(`../labs/learn/${file}.js`, import.meta.url), "utf8");
    const used = [...source.matchAll(/\bMath\.(\w+)|(\*\*)(?!\/|$|,)/g)].map((match) => match[1] ?? match[2]);
    const exact = ["imul", "max", "min", "floor"];
    assert.deepEqual(
      used.filter((name) => !exact.includes(name) && name !== "**"),
      [],
      file,
    );
    assert.doesNotMatch(source.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, ""), /\*\*/, `${file}: a power`);
  }
});

/** One update by the formulas as they are written in papers, with the browser's own exp and log. */
function byHand({ world, settings, start, logits, samples }) {
  const { letters, positions } = world;
  const count = letters.length;
  const rows = logits.length / count;
  const soft = (z) => {
    const largest = Math.max(...z);
    const e = z.map((x) => Math.exp(x - largest));
    const sum = e.reduce((a, b) => a + b);
    return e.map((x) => x / sum);
  };
  const rowsOf = (table) => Array.from({ length: rows }, (_, r) => soft(table.slice(r * count, (r + 1) * count)));
  const [p, p0] = [rowsOf(logits), rowsOf(start)];
  const kept = [];
  for (const [slot, keep] of samples.mask.entries())
    if (keep === 1) {
      const answer = Math.floor(slot / positions);
      kept.push({
        slot,
        answer,
        row: Math.floor(answer / settings.group) * positions + (slot % positions),
        letter: samples.tokens[slot],
      });
    }
  const group = (answer) =>
    samples.scores.slice(
      Math.floor(answer / settings.group) * settings.group,
      (Math.floor(answer / settings.group) + 1) * settings.group,
    );
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const deviation = (list) => Math.sqrt(list.reduce((sum, x) => sum + (x - mean(list)) ** 2, 0) / (list.length - 1));
  const advantageOf = {
    "grpo": (answer) => (samples.scores[answer] - mean(group(answer))) / (deviation(group(answer)) + 1e-6),
    "dr-grpo": (answer) => samples.scores[answer] - mean(group(answer)),
    "rloo": (answer) =>
      samples.scores[answer] - (group(answer).reduce((a, b) => a + b) - samples.scores[answer]) / (settings.group - 1),
    "max-rl": (answer) => (samples.scores[answer] - mean(group(answer))) / (mean(group(answer)) + 1e-6),
    "returns": (answer, t) => samples.scores[answer] * settings.gamma ** (positions - 1 - t),
  }[settings.estimator];
  const grad = new Array(logits.length).fill(0);
  const advantages = [];
  for (const { slot, answer, row, letter } of kept) {
    const advantage = advantageOf(answer, slot % positions);
    advantages.push(advantage);
    const weight = 1 / kept.length;
    // in the first epoch the ratio is 1: the gradient by log π is −A
    let slope = -advantage * weight;
    const d = Math.log(p[row][letter]) - Math.log(p0[row][letter]);
    if (settings.klPlace === "loss")
      slope += settings.beta * weight * { k1: 1, k2: d, k3: 1 - Math.exp(-d) }[settings.klKind];
    const entropy = -p[row].reduce((sum, x) => sum + x * Math.log(x), 0);
    for (let v = 0; v < count; v += 1) {
      grad[row * count + v] += slope * ((v === letter ? 1 : 0) - p[row][v]);
      grad[row * count + v] += settings.entropy * weight * p[row][v] * (Math.log(p[row][v]) + entropy);
    }
  }
  return { advantages, logits: logits.map((z, i) => z - settings.rate * grad[i]), kept };
}

test("an update is what the formulas say", browserTest, async () => {
  const { page, close } = await open({ page: "learn" });
  for (const changes of [
    { estimator: "grpo" },
    { estimator: "dr-grpo", loss: "reinforce" },
    { estimator: "rloo", loss: "surrogate", klPlace: "loss", klKind: "k3", beta: 0.7 },
    { estimator: "max-rl", loss: "cispo", entropy: 0.3 },
    { estimator: "returns", gamma: 0.6, klPlace: "loss", klKind: "k2", beta: 0.2, entropy: -0.1 },
    { estimator: "grpo", klPlace: "loss", klKind: "k1", beta: 2 },
  ]) {
    const made = await page.evaluate(async (given) => {
      const load = (path) => import(new URL(path, document.baseURI).href);
      const [{ Run }, { defaults, worldDefaults }, { loadLibrary }] = await Promise.all(
        ["labs/learn/run.js", "labs/learn/state.js", "engine.js"].map(load),
      );
      const { library } = await loadLibrary();
      // five updates first, so that the policy is not the initial one any more
      const run = new Run(library, worldDefaults, [
        { from: 0, settings: defaults },
        { from: 5, settings: { ...defaults, epochs: 1, ...given } },
      ]);
      run.goTo(5);
      const logits = Array.from(run.table.logits);
      run.goTo(6);
      const { samples, world } = run;
      return {
        world,
        settings: { ...defaults, epochs: 1, ...given },
        start: Array.from(run.bench.start),
        logits,
        after: Array.from(run.table.logits),
        samples: Object.fromEntries(
          ["mask", "tokens", "scores", "advantages"].map((key) => [key, Array.from(samples[key])]),
        ),
      };
    }, changes);
    const wanted = byHand(made);
    const near = (got, want, what) =>
      assert.ok(
        Math.abs(got - want) <= 1e-9 * (1 + Math.abs(want)),
        `${JSON.stringify(changes)} ${what}: ${got}, ${want}`,
      );
    for (const [i, { slot }] of wanted.kept.entries())
      near(made.samples.advantages[slot], wanted.advantages[i], `advantage ${slot}`);
    for (const [i, z] of wanted.logits.entries()) near(made.after[i], z, `logit ${i}`);
    assert.ok(made.after.some((z, i) => Math.abs(z - made.logits[i]) > 1e-3));
  }
  await close();
});

test("played, rewound, in another language, by the other build: the same bits", browserTest, async () => {
  const { page, problems, close } = await open({ page: "learn", motion: "no-preference" });
  const start = await print(page);
  await choose(page, "speed", "200");
  await page.locator("#learn-play").click();
  await page.waitForFunction(() => Number(document.querySelector("#learn-at").value) >= 60);
  await page.locator("#learn-play").click();
  await goTo(page, 60);
  const sixty = await print(page);
  const metrics = async () =>
    (await page.locator("#learn-plots [data-now]").allTextContents()).concat(
      await page.locator("#learn-samples").innerText(),
    );
  const shown = await metrics();
  await page.locator("#learn-rewind").click();
  assert.equal(await print(page), start);
  assert.notEqual(sixty, start);
  await goTo(page, 37);
  const middle = await print(page);
  await page.locator("#learn-forward").click();
  await settled(page);
  assert.notEqual(await print(page), middle);
  await page.locator("#learn-back").click();
  await settled(page);
  assert.equal(await print(page), middle);
  await goTo(page, 60);
  assert.equal(await print(page), sixty);
  assert.deepEqual(await metrics(), shown);
  assert.match(await page.locator("#learn-proof").textContent(), /\d+ updates computed again: the same bits/);
  // another seed is another run, and undo brings the first one back
  await setParameter(page, "learn-seed", "2");
  await settled(page);
  assert.notEqual(await print(page), sixty);
  await page.locator("#undo").click();
  await settled(page);
  assert.equal(await print(page), sixty);
  const [simd, plain] = [await learn(page, {}, 60, "simd"), await learn(page, {}, 60, "plain")];
  assert.deepEqual(simd, plain);
  assert.equal(simd.prints[60], sixty);
  assert.equal(simd.prints[37], middle);
  assert.deepEqual(problems, []);
  await close();
  const other = await open({ page: "learn", lang: "zh" });
  await goTo(other.page, 60);
  assert.equal(await print(other.page), sixty);
  assert.match(await other.page.locator("#learn-where").textContent(), /第 60 次更新/);
  await other.close();
});

test("what the tries claim is so", browserTest, async () => {
  const { page, close } = await open({ page: "learn" });
  const tries = await page.evaluate(
    async () => (await import(new URL("labs/learn/tries.js", document.baseURI).href)).tries,
  );
  const runs = {};
  for (const { id, world, settings, updates } of tries) {
    runs[id] = await learn(page, { ...world, ...settings }, updates);
    assert.equal(runs[id].at, updates, id);
  }
  const mean = (id, key, from, to) => {
    const part = runs[id].metrics.slice(from, to).map((one) => one[key]);
    return part.reduce((a, b) => a + b) / part.length;
  };
  const last = (id, key) => mean(id, key, -10);
  const when = (id, key, level) => runs[id].metrics.findIndex((one) => one[key] >= level);
  assert.ok(last("start", "solved") > 0.9 && last("start", "entropy") < 0.2 && last("start", "kl") > 1.5);
  assert.ok(Math.abs(mean("clip", "clipped", 0) - 0.5) < 0.1);
  const [slow, usual] = [await learn(page, { clipLow: 0, clipHigh: 0 }, 300), runs.start];
  const reaches = ({ metrics }) => metrics.findIndex(({ reward }) => reward >= 0.75);
  assert.ok(reaches(slow) > 3 * reaches(usual) && reaches(slow) < 6 * reaches(usual), `${reaches(slow)}`);
  const single = await learn(page, { epochs: 1 }, 300);
  assert.ok(Math.abs(reaches(single) / reaches(slow) - 1) < 0.4, `${reaches(single)} ${reaches(slow)}`);
  assert.ok(last("collapse", "entropy") < 0.01 && last("collapse", "tied") === 1 && last("collapse", "solved") < 0.5);
  assert.ok(Math.abs(last("klOne", "reward") - last("start", "reward")) < 0.05);
  assert.ok(Math.abs(last("klOne", "kl") - last("start", "kl")) < 0.15);
  assert.ok(Math.max(...runs.klThree.metrics.map(({ kl }) => kl)) < 0.6 && last("klThree", "entropy") > 1);
  assert.ok(Math.abs(last("klThree", "reward") - 0.6) < 0.08);
  const pairs = when("pairs", "reward", 0.9) / when("start", "reward", 0.9);
  assert.ok(pairs > 1.5 && pairs < 3.5, `${pairs}`);
  assert.ok(mean("pairs", "tied", 0, 40) > 0.15 && mean("start", "tied", 0, 20) < 0.05);
  assert.ok(mean("sparse", "tied", 0, 50) > 0.9 && last("sparse", "solved") > 0.2);
  assert.ok(last("trap", "entropy") < 0.1 && Math.abs(last("trap", "reward") - 0.5) < 0.02);
  assert.equal(Math.max(...runs.trap.metrics.slice(20).map(({ solved }) => solved)), 0);
  assert.ok(last("escape", "solved") > 0.5);
  // γ = 0.4: the last letter is learned before the first
  const bars = await page.evaluate(async () => {
    const load = (path) => import(new URL(path, document.baseURI).href);
    const [{ Run }, { tried }, { initial }, { marginals }, { loadLibrary }] = await Promise.all(
      ["labs/learn/run.js", "labs/learn/tries.js", "labs/learn/state.js", "labs/learn/bars.js", "engine.js"].map(load),
    );
    const { library } = await loadLibrary();
    const { world, phases } = tried(initial(), "discount");
    const run = new Run(library, world, phases);
    run.goTo(80);
    const p = run.bench.probabilities(run.table.logits);
    return run.world.words.map((word, prompt) => marginals(run.world, p, prompt).map((at, t) => at[word[t]]));
  });
  const of = (position) => bars.reduce((sum, word) => sum + word[position], 0) / bars.length;
  assert.ok(of(3) > 0.8 && of(3) > of(2) && of(2) > of(0) && of(0) < 0.5, JSON.stringify(bars));
  await close();
});

test("every method learns, alone and together with the others", browserTest, async () => {
  const { page, close } = await open({ page: "learn" });
  const { choices } = await page.evaluate(async () => {
    const { choices: found } = await import(new URL("labs/learn/state.js", document.baseURI).href);
    return { choices: found };
  });
  for (const estimator of choices.estimator)
    for (const loss of choices.loss) {
      const { metrics, at, diverged, refusal } = await learn(page, { estimator, loss, rate: 6 }, 60);
      assert.deepEqual([at, diverged, refusal], [60, false, null], `${estimator} ${loss}`);
      assert.ok(metrics.at(-1).reward > metrics[0].reward + 0.1, `${estimator} ${loss}: ${metrics.at(-1).reward}`);
    }
  for (const changes of [
    { stop: "on" },
    { memory: "previous" },
    { stop: "on", memory: "previous", rule: "each", estimator: "gae" },
    { words: "你好 好的", extra: "吗" },
  ]) {
    const { metrics } = await learn(page, { ...changes, rate: 6 }, 120);
    assert.ok(metrics.at(-1).reward > 0.6, JSON.stringify(changes));
  }
  await close();
});
