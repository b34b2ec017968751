import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { browserTest, numberOf, open, pageModule, written } from "./harness.js";
import { checkViews } from "./lab-checks.js";

const { Collector, merged, readText } = await pageModule("runs/read.js");
const { runsOf, withoutSeed } = await pageModule("runs/files.js");

const columns = ({ keys, columns: values }) => Object.fromEntries(keys.map((key, i) => [key, Array.from(values[i])]));
const lines = (...records) => records.map((record) => `${JSON.stringify(record)}\n`).join("");

test("JSON Lines, verl's lines, a list, the state of a trainer", () => {
  const plain = readText(lines({ step: 1, a: 1, "b/c": 2, name: "x" }, { step: 2, a: 3 }));
  assert.deepEqual(Array.from(plain.steps), [1, 2]);
  assert.deepEqual(columns(plain), { a: [1, 3], "b/c": [2, NaN] });
  const verl = readText(
    lines({ step: 0, data: { "actor/kl": 0.5 } }, { step: 1, data: { "actor/kl": 0.25, "val/x": 1 } }),
  );
  assert.deepEqual(columns(verl), { "actor/kl": [0.5, 0.25], "val/x": [NaN, 1] });
  assert.deepEqual(columns(readText('[{"step": 1, "entropy": 2.5},\n {"step": 2, "entropy": 2}]')), {
    entropy: [2.5, 2],
  });
  const state = JSON.stringify(
    {
      epoch: 1,
      log_history: [
        { step: 10, loss: 3 },
        { step: 20, loss: 2, eval: 1 },
      ],
    },
    null,
    2,
  );
  assert.deepEqual(columns(readText(state)), { loss: [3, 2], eval: [NaN, 1] });
  const nested = readText(lines({ step: 1, train: { loss: 2, deep: { x: 1 } } }));
  assert.deepEqual(columns(nested), { "train/loss": [2], "train/deep/x": [1] });
  assert.deepEqual(Array.from(readText(lines({ global_step: 7, a: 1 }, { _step: 8, a: 2 })).steps), [7, 8]);
});

test("what Python writes, what a resumed run writes, what is still being written", () => {
  const python = readText(
    '{"step": 1, "a": NaN, "b": 1}\n{"step": 2, "a": -Infinity, "b": [NaN]}\n{"step": 3, "a": 4}\n',
  );
  assert.deepEqual(columns(python), { b: [1, NaN, NaN], a: [NaN, NaN, 4] });
  const resumed = readText(
    lines({ step: 1, a: 1 }, { step: 2, a: 2 }, { step: 3, a: 3 }, { step: 2, a: 20 }, { step: 1, b: 5 }),
  );
  assert.deepEqual(columns(resumed), { a: [1, 20, 3], b: [5, NaN, NaN] });
  const backwards = readText(lines({ step: 3, a: 3 }, { step: 1, a: 1 }));
  assert.deepEqual(
    [Array.from(backwards.steps), columns(backwards).a],
    [
      [1, 3],
      [1, 3],
    ],
  );
  const growing = readText('{"step": 1, "a": 1}\n{"step": 2, "a"');
  assert.deepEqual(columns(growing), { a: [1] });
  const windows = readText('{"step": 1, "a": 1}\r\n\r\n{"step": 2, "a": 2}\r\n');
  assert.deepEqual(columns(windows), { a: [1, 2] });
  // cut anywhere
  const whole = lines(...Array.from({ length: 3000 }, (_, i) => ({ step: i, a: i / 7, [`k${i % 3}`]: i })));
  const collector = new Collector();
  for (let from = 0; from < whole.length; from += 777) collector.add(whole.slice(from, from + 777));
  assert.deepEqual(columns(collector.end()), columns(readText(whole)));
  const both = merged([
    { prefix: "", metrics: readText(lines({ step: 1, a: 1 }, { step: 2, a: 2 })) },
    { prefix: "timing/", metrics: readText(lines({ step: 2, rollout: 0.5, "x/y": 1 }, { step: 3, rollout: 0.25 })) },
  ]);
  assert.deepEqual(Array.from(both.steps), [1, 2, 3]);
  assert.deepEqual(columns(both), { a: [1, 2, NaN], "timing/rollout": [NaN, 0.5, 0.25], "timing/x/y": [NaN, 1, NaN] });
});

test("faults name the line", () => {
  const problem = (text) => {
    const { problem: code, values } = readText(text);
    return [code, values.line];
  };
  assert.deepEqual(problem('{"step": 1, "a": 1}\nnonsense\n{"step": 2}\n'), ["line", 2]);
  assert.deepEqual(problem('{"step": 1, "a": 1}\n[1]\n'), ["object", 2]);
  assert.deepEqual(problem(""), ["nothing", undefined]);
  assert.deepEqual(problem("\n\n"), ["nothing", undefined]);
  assert.deepEqual(problem('{"a": 1}\n'), ["noStep", undefined]);
  assert.deepEqual(problem('{"step": 1, "name": "x"}\n'), ["noNumbers", undefined]);
  assert.deepEqual(problem("half"), ["line", 1]);
  const many = JSON.stringify({ step: 1, ...Object.fromEntries(Array.from({ length: 2500 }, (_, i) => [`k${i}`, i])) });
  assert.deepEqual(problem(many), ["keys", undefined]);
});

test("which files make a run, and which runs differ only in their seed", () => {
  const file = (path) => ({ file: { name: path.split("/").at(-1) }, path: path.includes("/") ? path : "" });
  const names = ({ runs }) => runs.map(({ label, metrics, rollouts }) => [label, metrics.length, rollouts !== null]);
  const folders = runsOf(
    [
      "lab/main/C0/seed0/metrics.jsonl",
      "lab/main/C0/seed0/timing.jsonl",
      "lab/main/C0/seed0/rollouts.jsonl",
      "lab/main/C0/seed0/run.json",
      "lab/main/C1/seed0/metrics.jsonl",
      "lab/main/C1/seed0/distributions.jsonl",
      "lab/main/C1/seed0/entropy_history_policy.json",
    ].map(file),
  );
  assert.deepEqual(names(folders), [
    ["C0/seed0", 2, true],
    ["C1/seed0", 1, false],
  ]);
  assert.equal(folders.runs[1].histories.length, 1);
  assert.deepEqual(folders.others, ["lab/main/C1/seed0/distributions.jsonl"]);
  assert.deepEqual(names(runsOf(["a.jsonl", "b.jsonl"].map(file))), [
    ["a", 1, false],
    ["b", 1, false],
  ]);
  assert.deepEqual(names(runsOf(["metrics.jsonl", "rollouts.jsonl"].map(file))), [["metrics", 1, true]]);
  assert.deepEqual(runsOf([file("picture.png")]).others, ["picture.png"]);
  for (const [label, group] of [
    ["C0/seed0", "C0"],
    ["main C0 seed 3", "main C0"],
    ["grpo_s1", "grpo"],
    ["grpo-seed=12-long", "grpo-long"],
    ["tokens1", "tokens1"],
    ["初始设置，种子 2", "初始设置"],
    ["seed0", "seed0"],
  ])
    assert.equal(withoutSeed(label), group, label);
});

const idle = (page) => page.waitForSelector("#runs-pictures[aria-busy=false]");
/** The example is there, and everything in sight is drawn. */
const ready = async (page) => {
  await page.waitForFunction(() => document.querySelectorAll("#runs-pictures .runs-plot svg.plot").length > 0);
  await page.waitForFunction(() => document.querySelectorAll("#runs-pictures path.band").length >= 2);
  await idle(page);
};

/** A folder of runs as a trainer would write it. */
async function folderOfRuns() {
  const folder = await mkdtemp(join(tmpdir(), "tokenwise-"));
  for (const group of ["C0", "C1"])
    for (const seed of [0, 1]) {
      const own = join(folder, group, `seed${seed}`);
      await mkdir(own, { recursive: true });
      const metrics = Array.from({ length: 40 }, (_, i) => ({
        step: i + 1,
        "actor/entropy": (group === "C0" ? 2 : 1) + seed / 10 - i / 100,
        "critic/score/mean": i / 40,
        ...(i % 10 === 0 ? { "val/pass": i / 40 } : {}),
      }));
      await writeFile(join(own, "metrics.jsonl"), lines(...metrics));
      await writeFile(join(own, "timing.jsonl"), lines({ step: 1, rollout: 0.25 }, { step: 2, rollout: 0.5 }));
      await writeFile(join(own, "run.json"), JSON.stringify({ task: "main", group, seed }));
      await writeFile(join(own, "distributions.jsonl"), "not read\n");
      const rollout = (step, answer, score) => ({
        step,
        prompt: "1+1=",
        score,
        response_tokens: answer,
        old_log_probs: answer.map(() => -0.5),
        log_probs: answer.map(() => -0.4),
        ref_log_probs: answer.map(() => -0.6),
        advantages: answer.map(() => (score > 0.5 ? 1 : -1)),
      });
      await writeFile(
        join(own, "rollouts.jsonl"),
        lines(...[1, 20, 40].flatMap((step) => [rollout(step, ["2", "。"], 1), rollout(step, ["1", "1", "！"], 0)])),
      );
    }
  return folder;
}

test("a folder of runs: bands over seeds, a step, its tokens, the chain", browserTest, async () => {
  const folder = await folderOfRuns();
  const { page, problems, close } = await open({ page: "runs" });
  await page.locator("#runs-folder-input").setInputFiles(folder);
  await page.waitForFunction(() => /main C1 seed 1/.test(document.querySelector("#runs-list").textContent));
  assert.deepEqual((await page.locator(".runs-chip .key").allTextContents()).sort(), [
    "main C0 seed 0",
    "main C0 seed 1",
    "main C1 seed 0",
    "main C1 seed 1",
  ]);
  assert.match(await page.locator("#runs-status").textContent(), /4/);
  assert.equal(await page.locator("#runs-problems li").count(), 0);
  assert.deepEqual(await page.locator(".runs-group").evaluateAll((all) => all.map((one) => one.dataset.group)), [
    "actor",
    "critic",
    "val",
    "timing",
  ]);
  await idle(page);
  const plot = page.locator('[data-key="actor/entropy"] svg.plot');
  assert.equal(await plot.locator("path.band").count(), 2);
  assert.equal(await plot.locator("path.curve:not(.band)").count(), 2);
  await page.locator("#runs-bands").uncheck();
  await idle(page);
  assert.equal(await plot.locator("path.curve:not(.band)").count(), 4);
  assert.equal(await plot.locator("path.band").count(), 0);
  const looks = await plot
    .locator("path.curve")
    .evaluateAll((all) => all.map((one) => one.getAttribute("class") + one.getAttribute("stroke-dasharray")));
  assert.equal(new Set(looks).size, 4);
  // a step by a click, and by keys
  const box = await plot.boundingBox();
  await page.mouse.click(box.x + 68 + (box.width - 84) * 0.5, box.y + box.height / 2);
  await page.waitForSelector("#runs-step h2");
  assert.match(await page.locator("#runs-step h2").first().textContent(), /Step 2[01]/);
  await plot.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#runs-step h2").textContent === "Step 1");
  await page.locator("#runs-step-after").click();
  await page.waitForFunction(() => document.querySelector("#runs-step h2").textContent === "Step 2");
  const row = await page.locator('#runs-step [data-row="actor/entropy"] td').allTextContents();
  assert.deepEqual(row.map(numberOf), [1.99, 2.09, 0.99, 1.09]);
  await page.waitForSelector(".runs-prompt");
  assert.match(await page.locator("#runs-rollouts").textContent(), /nearest step with rollouts is 1/);
  assert.equal(await page.locator(".runs-line").count(), 2);
  assert.deepEqual(await page.locator(".runs-line").first().locator(".runs-token").allTextContents(), ["2", "。"]);
  await page.locator("#runs-chain-0").click();
  await page.waitForSelector("#page-chain:not([hidden])");
  assert.match(await page.locator("#page-chain").innerText(), /！/);
  await page.locator("#undo").click();
  await page.waitForSelector("#page-runs:not([hidden])");
  assert.deepEqual(problems, []);
  await close();
  await rm(folder, { recursive: true });
});

test("search, folding, smoothing, zoom, switching off, removing: each can be undone", browserTest, async () => {
  const { page, problems, close } = await open({ page: "runs" });
  await ready(page);
  const count = () => page.locator(".runs-plot").count();
  const all = await count();
  assert.ok(all >= 10);
  await page.locator("#runs-search").fill("actor kl");
  assert.equal(await count(), 1);
  await page.locator("#runs-search").fill("nothing like this");
  assert.equal(await page.locator("#runs-none").count(), 1);
  await page.locator("#runs-search").fill("");
  assert.equal(await count(), all);
  await page.locator('.runs-group[data-group="actor"] .runs-fold').click();
  assert.equal(await count(), all - 4);
  assert.equal(await page.locator('.runs-group[data-group="actor"] .runs-fold').getAttribute("aria-expanded"), "false");
  await page.locator("#undo").click();
  assert.equal(await count(), all);
  await idle(page);
  const path = () => page.locator('[data-key="critic/score/mean"] path.curve:not(.band)').first().getAttribute("d");
  const before = await path();
  await page.locator("#choice-runs-smooth").selectOption("ema");
  await idle(page);
  const smooth = await path();
  assert.notEqual(smooth, before);
  await page.locator("#undo").click();
  await idle(page);
  assert.equal(await path(), before);
  const ticks = () => page.locator('[data-key="critic/score/mean"] text.axis:not(.side):not(.title)').allTextContents();
  const everything = await ticks();
  await page.locator("#runs-zoom-in").click();
  await idle(page);
  assert.notDeepEqual(await ticks(), everything);
  assert.ok(!(await ticks()).includes("0"));
  await page.locator("#runs-zoom-all").click();
  await idle(page);
  assert.deepEqual(await ticks(), everything);
  await page.locator(".runs-chip .key").first().click();
  assert.equal(await page.locator(".runs-chip .key").first().getAttribute("aria-pressed"), "false");
  await page.locator(".runs-chip .small").first().click();
  assert.equal(await page.locator(".runs-chip").count(), 3);
  await page.locator("#undo").click();
  await page.locator("#undo").click();
  assert.equal(await page.locator(".runs-chip [aria-pressed=true]").count(), 4);
  assert.deepEqual(problems, []);
  await close();
});

test("the example has all of its runs", async () => {
  const file = JSON.parse(await readFile(new URL("../runs/example.json", import.meta.url), "utf8"));
  assert.deepEqual(
    file.map(({ label }) => label),
    ["C0", "C1"].flatMap((group) => [0, 1].map((seed) => `two-digit ${group} seed ${seed}`)),
  );
  for (const { steps, columns: own } of file)
    for (const column of Object.values(own)) assert.equal(column.length, steps.length);
});

test("the example is the same in both languages", browserTest, async () => {
  const paths = [];
  for (const lang of ["en", "zh"]) {
    const { page, problems, close } = await open({ page: "runs", lang });
    await ready(page);
    await page.waitForFunction(
      () => document.querySelectorAll('[data-key="critic/score/mean"] path.band').length === 2,
    );
    paths.push(
      await page
        .locator('[data-key="critic/score/mean"] path.curve')
        .evaluateAll((all) => all.map((one) => one.getAttribute("d"))),
    );
    assert.match(await page.locator(".runs-chip").first().textContent(), /two-digit C0 seed 0/);
    assert.deepEqual(problems, []);
    await close();
  }
  assert.deepEqual(paths[0], paths[1]);
});

for (const [lang, words] of [
  [
    "en",
    {
      bad: /Line 2 is not JSON: nonsense/,
      step: /No line says which step/,
      kind: /Not a file of metrics/,
      empty: /empty/,
      text: /UTF-8/,
    },
  ],
  [
    "zh",
    { bad: /第 2 行不是 JSON：nonsense/, step: /没有一行说明/, kind: /不是指标文件/, empty: /空的/, text: /UTF-8/ },
  ],
]) {
  test(`bad files say what is wrong, ${lang}`, browserTest, async () => {
    const { page, problems, close } = await open({ page: "runs", lang });
    const give = (name, text) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) });
    await page
      .locator("#runs-input")
      .setInputFiles([
        give("bad.jsonl", '{"step": 1, "a": 1}\nnonsense\n'),
        give("step.jsonl", '{"a": 1}\n'),
        give("picture.png", "x"),
        give("empty.jsonl", ""),
        give("text.jsonl", Buffer.from([0x7b, 0xff, 0xfe])),
        give("good.jsonl", '{"step": 1, "a": 1}\n{"step": 2, "a": 2}\n'),
      ]);
    await page.waitForFunction(() => document.querySelectorAll("#runs-problems li").length === 5);
    const told = (await page.locator("#runs-problems li").allTextContents()).join("\n");
    for (const [file, key] of [
      ["bad.jsonl", "bad"],
      ["step", "step"],
      ["picture.png", "kind"],
      ["empty", "empty"],
      ["text", "text"],
    ]) {
      assert.match(told, new RegExp(file));
      assert.match(told, words[key]);
    }
    await page.waitForFunction(() => document.querySelectorAll(".runs-chip").length === 1);
    await page.locator("#runs-clear").click();
    assert.equal(await page.locator("#runs-problems li").count(), 0);
    assert.deepEqual(problems, []);
    await close();
  });
}

test("pasted, and a link without numbers", browserTest, async () => {
  const { page, problems, close } = await open({ page: "runs" });
  await page.locator("#runs-intake summary").click();
  await page.locator("#runs-paste").fill('{"step": 1, "loss": 2}\n{"step": 2, "loss": 1}');
  await page.locator("#runs-add").click();
  assert.equal(await page.locator(".runs-chip").count(), 1);
  assert.equal(await page.locator("#runs-paste").inputValue(), "");
  const file = { name: "a.jsonl", mimeType: "text/plain", buffer: Buffer.from('{"step": 1, "loss": 3}\n') };
  await page.locator("#runs-input").setInputFiles([file]);
  await page.waitForFunction(() => document.querySelectorAll(".runs-chip").length === 2);
  await written(page);
  const fragment = await page.evaluate(() => location.hash);
  await close();
  const again = await open({ page: "runs", fragment });
  assert.equal(await again.page.locator(".runs-chip.missing").count(), 2);
  assert.match(await again.page.locator("#runs-note").textContent(), /Drop the same files/);
  await again.page.locator("#runs-input").setInputFiles([file]);
  await again.page.waitForFunction(() => document.querySelectorAll(".runs-chip.missing").length === 1);
  assert.deepEqual([...problems, ...again.problems], []);
  const read = (data) =>
    again.page.evaluate(async (text) => {
      const { page: module } = await import(new URL("runs/page.js", document.baseURI).href);
      return module.read(JSON.parse(text));
    }, JSON.stringify(data));
  for (const nothing of [null, 3, "x", [], { runs: 3 }]) assert.equal(await read(nothing), null);
  const mended = await read({
    runs: [{ look: 1e9, data: "example-evil" }, null],
    zoom: [5, 1],
    at: "x",
    closed: [1],
    smooth: { kind: "x", window: -1 },
  });
  assert.deepEqual(mended.runs, [{ key: "1", label: "1", file: "", look: 0, off: false, data: "" }]);
  assert.deepEqual([mended.zoom, mended.at, mended.smooth.kind], [null, null, "none"]);
  await again.close();
});

test("50 runs of 10,000 steps with 40 keys stay usable", browserTest, async (t) => {
  const { page, problems, close } = await open({ page: "kl", motion: "no-preference" });
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => {
    const { metrics } = await client.send("Performance.getMetrics");
    const found = (name) => metrics.find((metric) => metric.name === name).value * 1000;
    return found("ScriptDuration") + found("LayoutDuration") + found("RecalcStyleDuration");
  };
  await page.evaluate(async () => {
    const load = (path) => import(new URL(path, document.baseURI).href);
    const [{ Shell }, { loadLibrary }, { initial, withLoaded }] = await Promise.all(
      ["shell.js", "engine.js", "runs/state.js"].map(load),
    );
    const { library } = await loadLibrary();
    const steps = Float64Array.from({ length: 10_000 }, (_, i) => i + 1);
    const keys = Array.from({ length: 40 }, (_, k) => `${["actor", "critic", "timing", "val"][k % 4]}/key${k}`);
    const loaded = Array.from({ length: 50 }, (_, r) => {
      const columns = keys.map((_, k) =>
        steps.map((s) => Math.sin(s / 300 + k) + 0.1 * r + ((s * 7919 + r * 31) % 97) / 97),
      );
      return {
        label: `run ${r} seed ${r % 5}`,
        file: "",
        stored: { metrics: { steps, keys, columns }, rollouts: null },
      };
    });
    const shell = new Shell(library);
    const state = { ...withLoaded({ ...initial(), bands: false }, loaded), search: "" };
    window.setRuns = (changes) =>
      new Promise((done) => {
        setTimeout(() => {
          shell.change("runs", { ...shell.stateOf("runs"), ...changes });
          done();
        });
      });
    await shell.open("runs", state);
    document.querySelector("#page-kl").hidden = true;
  });
  await idle(page);
  assert.equal(await page.locator(".runs-chip").count(), 50);
  assert.equal(await page.locator(".runs-plot").count(), 40);
  const drawn = await page.locator("#runs-pictures svg.plot").count();
  assert.ok(drawn > 0 && drawn < 40, `${drawn} pictures drawn`);
  for (const [what, changes] of [
    ["zoom", { zoom: [2000, 4000] }],
    ["all", { zoom: null }],
    ["smooth", { smooth: { kind: "ema", window: 9, weight: 0.9 } }],
    ["bands", { bands: true }],
    ["search", { search: "key7" }],
  ]) {
    const start = await busy();
    await page.evaluate((given) => window.setRuns(given), changes);
    await idle(page);
    const spent = (await busy()) - start;
    const pictures = await page.locator("#runs-pictures svg.plot").count();
    t.diagnostic(`${what}: ${spent.toFixed(0)} ms for ${pictures} pictures`);
    assert.ok(spent / Math.max(1, pictures) < 250, `${what}: ${spent} ms for ${pictures} pictures`);
  }
  // one file of 10,000 lines with 40 keys
  const speed = await page.evaluate(async () => {
    const { readFile } = await import(new URL("runs/read.js", document.baseURI).href);
    const line = (s) =>
      `{"step": ${s}, ${Array.from({ length: 40 }, (_, k) => `"actor/key${k}": ${Math.sin(s + k)}`).join(", ")}}\n`;
    const parts = Array.from({ length: 10_000 }, (_, s) => line(s));
    const blob = new Blob(parts);
    const start = performance.now();
    const metrics = await readFile(blob);
    return { size: blob.size, time: performance.now() - start, steps: metrics.steps.length, keys: metrics.keys.length };
  });
  assert.deepEqual([speed.steps, speed.keys], [10_000, 40]);
  t.diagnostic(`${(speed.size / 1e6).toFixed(0)} MB read in ${speed.time.toFixed(0)} ms`);
  assert.deepEqual(problems, []);
  await close();
});

checkViews("runs", async (page, check) => {
  await ready(page);
  const plot = page.locator('[data-key="critic/score/mean"] svg.plot');
  await plot.focus();
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".runs-prompt");
  await idle(page);
  await check("step");
});
