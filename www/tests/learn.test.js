// The page of the laboratory that learns: playing, settings, links, exports, keyboard, speed, look.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, numberOf, open, setParameter, written } from "./harness.js";
import { checkViews, exportOf } from "./lab-checks.js";
import { choose, goTo, learn, print, settled } from "./learn-tools.js";

test("playing is one step of undo, and stops when it should", browserTest, async () => {
  const { page, problems, close } = await open({ page: "learn", motion: "no-preference" });
  const at = async () => Number(await page.locator("#learn-at").inputValue());
  const play = page.locator("#learn-play");
  await choose(page, "speed", "60");
  await goTo(page, 5);
  await play.click();
  assert.match(await play.textContent(), /Pause/);
  await page.waitForFunction(() => Number(document.querySelector("#learn-at").value) > 40);
  await play.click();
  const stood = await at();
  await page.waitForTimeout(150);
  assert.equal(await at(), stood);
  await page.locator("#undo").click();
  await settled(page);
  assert.equal(await at(), 5, "one undo takes all of the playing back");
  // a setting changed while it plays: it goes on
  await play.click();
  await page.waitForFunction(() => Number(document.querySelector("#learn-at").value) > 10);
  await choose(page, "loss", "gspo");
  const then = await at();
  await page.waitForFunction((before) => Number(document.querySelector("#learn-at").value) > before + 5, then);
  // another page comes to the front
  await page.locator("#tab-chain").click();
  await page.waitForSelector("#page-learn[hidden]", { state: "attached" });
  const left = await at();
  await page.waitForTimeout(200);
  assert.equal(await at(), left);
  assert.equal(await page.locator("#tab-chain").getAttribute("aria-current"), "page");
  await page.locator("#tab-learn").click();
  assert.match(await play.textContent(), /Play/);
  // the window goes to the background
  await play.click();
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
    document.dispatchEvent(new Event("visibilitychange"));
    delete document.hidden;
  });
  assert.match(await play.textContent(), /Play/);
  assert.deepEqual(problems, []);
  await close();
});

test("changes hold from the start, or from an update on", browserTest, async () => {
  const { page, problems, close } = await open({ page: "learn" });
  await goTo(page, 40);
  const forty = await print(page);
  await page.locator("#learn-live").check();
  await choose(page, "klPlace", "loss");
  await setParameter(page, "learn-beta", "5");
  await settled(page);
  assert.equal(await print(page), forty, "what was learned stays");
  assert.equal(await page.locator("#learn-plots [data-plot=kl] text.note").count(), 1);
  const kl = async () => numberOf(await page.locator("[data-now=kl]").textContent());
  const before = await kl();
  await goTo(page, 80);
  const changed = await print(page);
  assert.ok((await kl()) < before / 2, "the price pulls it back");
  await goTo(page, 39);
  await goTo(page, 80);
  assert.equal(await print(page), changed);
  // from the start: the curve before stays in grey
  await page.locator("#learn-live").uncheck();
  await setParameter(page, "learn-rate", "1");
  await settled(page);
  assert.ok((await page.locator("#learn-plots path.quiet").count()) >= 4);
  assert.deepEqual(problems, []);
  await close();
});

test("words: typed, refused with a reason, and learned", browserTest, async () => {
  const { page, problems, close } = await open({ page: "learn" });
  const field = page.locator("#field-learn-words");
  await field.fill("ok 好的");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".learn-word").count(), 2);
  assert.deepEqual(await page.locator(".learn-word").allTextContents(), ["ok", "好的"]);
  for (const [text, words] of [
    ["aaaa", /two different letters/],
    ["a b c d e f g", /At most 6 words/],
    ["abcdefghijkl", /at most 8 letters/],
    ["   ", /At least one word/],
  ]) {
    await field.fill(text);
    await page.keyboard.press("Enter");
    assert.match(await page.locator("#problem-learn-words").textContent(), words);
    assert.equal(await page.locator(".learn-word").count(), 2);
  }
  for (const [name, value, words] of [
    ["group", "0", /whole number from 1 to 64/],
    ["group", "2.5", /whole number/],
    ["clipLow", "1", /From 0 to 0.99/],
    ["rate", "x", /not a number/],
  ]) {
    await setParameter(page, `learn-${name}`, value);
    assert.match(await page.locator(`#problem-learn-${name}`).textContent(), words);
  }
  assert.deepEqual(problems, []);
  await close();
});

test("a run that cannot go on says so", browserTest, async () => {
  const { page, problems, close } = await open({ page: "learn" });
  await choose(page, "loss", "surrogate");
  await choose(page, "klPlace", "loss");
  await choose(page, "klKind", "k2");
  await setParameter(page, "learn-beta", "100");
  await setParameter(page, "learn-rate", "1000");
  await setParameter(page, "learn-epochs", "16");
  await goTo(page, 20);
  assert.match(await page.locator("#learn-problem").textContent(), /cannot be made|allows/);
  await setParameter(page, "learn-rate", "1");
  await setParameter(page, "learn-beta", "0.1");
  await goTo(page, 20);
  assert.equal(await page.locator("#learn-problem").textContent(), "");
  assert.deepEqual(problems, []);
  await close();
});

test("the answers open in the chain with the same advantages, the run among the runs", browserTest, async () => {
  const { page, problems, close } = await open({ page: "learn" });
  await goTo(page, 12);
  await page.locator("#learn-prompt-2").click();
  const shown = (await page.locator("#learn-samples tbody tr td:last-child").allTextContents()).map(numberOf);
  assert.equal(shown.length, 8);
  await page.locator("#learn-chain").click();
  await page.waitForSelector("#page-chain:not([hidden])");
  const chain = [];
  for (let s = 0; s < 8; s += 1) {
    const text = await page
      .locator(`[role=gridcell][data-row="groupAdvantage"][data-sequence="${s}"]`)
      .first()
      .textContent();
    chain.push(Number(numberOf(text).toPrecision(3)));
  }
  assert.deepEqual(chain, shown);
  await page.locator("#tab-learn").click();
  await settled(page);
  await page.locator("#learn-runs").click();
  await page.waitForSelector("#page-runs:not([hidden])");
  assert.equal(await page.locator(".runs-chip").count(), 1);
  assert.match(await page.locator(".runs-chip").textContent(), /Initial settings, seed 1/);
  assert.deepEqual(problems, []);
  await close();
});

test("what a link may carry: hostile states are mended, never thrown", browserTest, async () => {
  const { page, close } = await open({ page: "learn" });
  const read = (data) =>
    page.evaluate(async (text) => {
      const { page: module } = await import(new URL("labs/learn/page.js", document.baseURI).href);
      return module.read(JSON.parse(text));
    }, JSON.stringify(data));
  for (const nothing of [null, 3, "x", []]) assert.equal(await read(nothing), null);
  const mended = await read({
    at: 1e12,
    speed: -1,
    prompt: 99,
    topic: "<b>",
    world: { words: "a".repeat(70), seed: -1, spread: "2", stop: "maybe", more: 1 },
    phases: [
      { from: 7, settings: { rate: 2, epochs: 1e9, loss: "__proto__" } },
      { from: 3, settings: {} },
      { from: 3, settings: {} },
      { from: "x" },
      null,
    ],
  });
  assert.equal(mended.at, 5000);
  assert.equal(mended.speed, 20);
  assert.equal(mended.prompt, 3);
  assert.equal(mended.world.words, "note tone knot knee");
  assert.equal(mended.world.seed, 1);
  assert.deepEqual(
    mended.phases.map(({ from }) => from),
    [0, 3],
  );
  assert.equal(mended.phases[0].settings.rate, 2);
  assert.equal(mended.phases[0].settings.epochs, 4);
  assert.equal(mended.phases[0].settings.loss, "ppo");
  assert.equal("more" in mended.world, false);
  // a link to an update of a run gives that update
  await goTo(page, 30);
  await choose(page, "estimator", "rloo");
  await settled(page);
  const wanted = await print(page);
  await written(page);
  const fragment = await page.evaluate(() => location.hash);
  await close();
  const again = await open({ page: "learn", lang: "zh", fragment });
  await settled(again.page);
  assert.equal(await print(again.page), wanted);
  await again.close();
});

test("exports: metrics of every update, and rollouts the reader understands", browserTest, async () => {
  const { page, close } = await open({ page: "learn" });
  const state = await page.evaluate(async () => {
    const { initial } = await import(new URL("labs/learn/state.js", document.baseURI).href);
    return { ...initial(), at: 12 };
  });
  const [metrics, rollouts] = await exportOf(page, "learn", state);
  const lines = metrics.text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ step }) => step),
    Array.from({ length: 12 }, (_, i) => i + 1),
  );
  assert.ok(
    lines.every((line) => Number.isFinite(line["actor/entropy"]) && Number.isFinite(line["critic/score/mean"])),
  );
  const samples = rollouts.text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(samples.length, 32);
  assert.ok(
    samples.every(
      ({ step, response_tokens: tokens, advantages }) => step === 12 && tokens.length === advantages.length,
    ),
  );
  await close();
});

test("without a mouse: try, play, step, slide, explain", browserTest, async () => {
  const { page, close } = await open({ page: "learn", motion: "no-preference" });
  await page.locator("#learn-try-pairs").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => Number(document.querySelector("#learn-at").value) > 3);
  assert.equal(await page.locator("#learn-try-pairs").getAttribute("aria-pressed"), "true");
  await page.locator("#learn-play").focus();
  await page.keyboard.press("Space");
  const stood = Number(await page.locator("#learn-at").inputValue());
  await page.locator("#learn-forward").focus();
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(Number(await page.locator("#learn-at").inputValue()), stood + 1);
  assert.equal(await page.evaluate(() => document.activeElement.id), "learn-forward");
  await page.locator("#learn-at").focus();
  await page.keyboard.press("Home");
  await settled(page);
  assert.match(await page.locator("#learn-where").textContent(), /update 0/);
  await page.locator("#field-learn-group").focus();
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.locator("#field-learn-group").inputValue(), "3");
  for (const topic of ["reward", "kl", "advantage", "loss", "gradient", "entropy", "clip"]) {
    await page.locator(`#learn-topic-${topic}`).focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), `learn-topic-${topic}`);
    assert.ok((await page.locator("#learn-why math").count()) >= 1);
  }
  await close();
});

test("at its default size: 200 updates a second, and a frame of playing fits into one", browserTest, async (t) => {
  const { page, problems, close } = await open({ page: "learn", motion: "no-preference" });
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  // processor time of the page's own thread: a machine that is busy otherwise is not measured along with it
  const busy = async () => {
    const { metrics } = await client.send("Performance.getMetrics");
    const found = (name) => metrics.find((metric) => metric.name === name).value;
    return found("ScriptDuration") + found("LayoutDuration") + found("RecalcStyleDuration");
  };
  await learn(page, {}, 100);
  let rate = 0;
  for (let round = 0; round < 3 && rate < 200; round += 1) {
    const start = await busy();
    // from a timer: the time of scripts that a debugger evaluates is not counted
    await page.evaluate(async () => {
      const load = (path) => import(new URL(path, document.baseURI).href);
      const [{ Run }, { initial }, { loadLibrary }] = await Promise.all(
        ["labs/learn/run.js", "labs/learn/state.js", "engine.js"].map(load),
      );
      const { library } = await loadLibrary();
      const { world, phases } = initial();
      await new Promise((done) => {
        setTimeout(() => done(new Run(library, world, phases).goTo(500)));
      });
    });
    rate = 500 / ((await busy()) - start);
    t.diagnostic(`${rate.toFixed(0)} updates a second of processor time`);
  }
  assert.ok(rate >= 200, `${rate}`);
  for (const speed of ["20", "60", "200"]) {
    await choose(page, "speed", speed);
    let cost = Infinity;
    for (let round = 0; round < 3 && cost > 1000 / 60; round += 1) {
      await goTo(page, 200);
      await page.evaluate(() => {
        window.frames_ = 0;
        const count = () => {
          window.frames_ += 1;
          window.counting = requestAnimationFrame(count);
        };
        count();
      });
      const start = await busy();
      await page.locator("#learn-play").click();
      await page.waitForTimeout(800);
      const spent = ((await busy()) - start) * 1000;
      await page.locator("#learn-play").click();
      const frames = await page.evaluate(() => {
        cancelAnimationFrame(window.counting);
        return window.frames_;
      });
      cost = spent / frames;
      t.diagnostic(`${speed} updates/s: ${cost.toFixed(1)} ms of ${frames} frames in 0.8 s`);
    }
    assert.ok(cost <= 1000 / 60, `${cost} ms`);
  }
  assert.deepEqual(problems, []);
  await close();
});

checkViews("learn", async (page, check) => {
  await goTo(page, 14);
  await check("start");
  await page.locator("#field-learn-words").fill("abcdefgh lkjihgfe");
  await page.keyboard.press("Enter");
  await choose(page, "stop", "on");
  await choose(page, "memory", "previous");
  await choose(page, "estimator", "gae");
  await choose(page, "klPlace", "reward");
  await page.locator("#learn-topic-advantage").click();
  await settled(page);
  await check("long-words");
});
