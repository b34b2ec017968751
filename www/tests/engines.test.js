// The choice of an engine on the pages that have one: core, simd128, WebGPU.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, keepPicture, numberOf, open, pageModule, serve } from "./harness.js";
import { checkAxe } from "./lab-checks.js";

const report = (page, id) => page.locator(`#engine-report-${id}`);
const choice = (page, id, engine) => page.locator(`#engine-${id}-${engine}`);

/** The report, once it says more than that something is being loaded. */
async function reported(page, id, engine) {
  await page.waitForFunction(
    ([where, start]) => document.querySelector(where).textContent.startsWith(start),
    [`#engine-report-${id}`, { core: "core: ", simd128: "core with simd128: ", webgpu: "WebGPU: " }[engine]],
  );
  return report(page, id).textContent();
}

async function choose(page, id, engine) {
  await choice(page, id, engine).check();
  return reported(page, id, engine);
}

const difference = (text) => Number(/Largest difference from the core: ([\d.e−-]+)/.exec(text)?.[1].replace("−", "-"));

async function openData(options = {}) {
  const opened = await open({ page: "data", ...options });
  await opened.page.locator("#data-sample").click();
  await opened.page.waitForSelector(".rows-body .rows-row");
  return opened;
}

test("logits: each engine tells its time and its difference from the core", browserTest, async (t) => {
  const { page, problems, close } = await open({ page: "logits" });
  assert.ok(await choice(page, "logits", "simd128").isChecked());
  assert.match(await reported(page, "logits", "simd128"), /^core with simd128: [\d.e−-]+ ms\.$/);
  assert.match(await choose(page, "logits", "core"), /ms\. The core is what the others are compared with\.$/);
  assert.match(await choose(page, "logits", "simd128"), /ms\. No difference from the core: the same bits\.$/);
  const shown = () => page.locator("[data-quantity=entropy] dd").getAttribute("title");
  const exact = Number(await shown());
  const text = await choose(page, "logits", "webgpu");
  t.diagnostic(text);
  assert.match(text, /(\d+) of \1 calls ran on .+: \d+ dispatches, .+ sent, .+ read back\./);
  assert.ok(difference(text) > 0 && difference(text) < 1e-6, text);
  // what is shown are the numbers of the GPU, in single precision
  const found = Number(await shown());
  assert.ok(found !== exact && Math.abs(found - exact) < 1e-6, `${found}, ${exact}`);
  assert.equal(found, Math.fround(found));
  // another state is computed by the same engine
  await page.locator("#choice-logits-preset").selectOption("long-tail");
  await page.waitForFunction((before) => {
    const now = document.querySelector("#engine-report-logits").textContent;
    return now !== before && now.startsWith("WebGPU: ") && !now.includes("compiles");
  }, text);
  const tail = await report(page, "logits").textContent();
  t.diagnostic(tail);
  assert.ok(difference(tail) > 0 && difference(tail) < 1e-5, tail);
  // back to the core: its digits
  await page.locator("#choice-logits-preset").selectOption("six");
  await choose(page, "logits", "core");
  assert.equal(Number(await shown()), exact);
  assert.deepEqual(problems, []);
  await close();
});

test("logits: masked entries and every other example run on WebGPU", browserTest, async (t) => {
  const { page, problems, close } = await open({ page: "logits" });
  await choose(page, "logits", "webgpu");
  for (const preset of ["uniform", "one-hot", "two-modes", "masked", "thousand"]) {
    const before = await report(page, "logits").textContent();
    await page.locator("#choice-logits-preset").selectOption(preset);
    await page.waitForFunction((old) => document.querySelector("#engine-report-logits").textContent !== old, before);
    const text = await reported(page, "logits", "webgpu");
    t.diagnostic(`${preset}: ${text}`);
    const same = /No difference from the core/.test(text);
    assert.ok(same || difference(text) < 1e-5, `${preset}: ${text}`);
  }
  assert.deepEqual(problems, []);
  await close();
});

/** Three sequences of two steps, every number finite. */
const FINITE = [1, 1, 2]
  .map((step, sequence) =>
    JSON.stringify({
      step,
      group: "a",
      score: sequence,
      log_probs: [-0.5, -0.3, -1.7, -0.01],
      old_log_probs: [-0.45, -0.35, -1.5, -0.02],
      ref_log_probs: [-0.6, -0.2, -1.6, -0.03],
      values: [0.1, 0.3 + sequence / 7, 0.2, 0.6],
      response_tokens: ["a", "b", "c", "d"],
    }),
  )
  .join("\n");

test("own data: each engine tells its time and its difference from the core", browserTest, async (t) => {
  const { page, problems, close } = await open({ page: "data" });
  await page.locator("#data-paste").fill(FINITE);
  await page.locator("#data-read").click();
  await page.waitForSelector(".rows-body .rows-row");
  assert.match(await reported(page, "data", "simd128"), /^core with simd128: [\d.e−-]+ ms\.$/);
  const cells = async (key) =>
    (await page.locator(`.rows-body .data-cell[data-key="${key}"]`).allTextContents()).map(numberOf);
  const before = await cells("gaeAdvantage");
  assert.equal(before.length, 12);
  const text = await choose(page, "data", "webgpu");
  t.diagnostic(text);
  assert.match(text, /(\d+) of \1 calls ran on .+: \d+ dispatches/);
  assert.ok(difference(text) > 0 && difference(text) < 1e-6, text);
  for (const [i, found] of (await cells("gaeAdvantage")).entries())
    assert.ok(Math.abs(found - before[i]) < 1e-5, `${found}, ${before[i]}`);
  // another setting is computed there too
  await page.locator("#field-data-gamma").fill("0.9");
  await page.keyboard.press("Enter");
  await page.waitForFunction((old) => document.querySelector("#engine-report-data").textContent !== old, text);
  assert.ok(difference(await reported(page, "data", "webgpu")) < 1e-6);
  assert.notDeepEqual(await cells("gaeAdvantage"), before);
  assert.match(await choose(page, "data", "simd128"), /No difference from the core: the same bits\.$/);
  assert.match(await choose(page, "data", "core"), /The core is what the others are compared with\.$/);
  assert.deepEqual(problems, []);
  await close();
});

test(
  "own data with a number that is not finite: the core answers those calls, and the page says why",
  browserTest,
  async () => {
    const { page, problems, close } = await openData();
    const text = await choose(page, "data", "webgpu");
    const [, calls, all] = /(\d+) of (\d+) calls ran on/.exec(text).map(Number);
    assert.ok(calls > 0 && calls < all, text);
    assert.match(text, /On the core: .*gae.*: a number is not finite or exceeds the range of f32$/);
    assert.ok(difference(text) < 1e-5, text);
    // in the language of the page
    await page.locator("#language").click();
    await page.waitForFunction(() => document.documentElement.lang === "zh-CN");
    assert.match(await report(page, "data").textContent(), /gae.*: 有数值不是有限数，或超出 f32 的范围$/);
    // every other reason too, also one of a call that was wrong, and why an engine could not be had
    const told = await page.evaluate(async () => {
      const load = (path) => import(new URL(path, document.baseURI).href);
      const [{ EngineSwitch }, { default: texts }] = await Promise.all(
        ["engines/switch.js", "i18n/en/engines.js"].map(load),
      );
      const codes = Object.keys(texts).flatMap((key) => /^engines\.why\.(.+)$/.exec(key)?.[1] ?? []);
      const own = new EngineSwitch("tried", { choose: () => {}, nameOf: String });
      const device = { adapter: "x", asked: 1, calls: 0, dispatches: 0, bytesUp: 0, bytesDown: 0, first: false };
      const why = (code) => {
        const cost = { milliseconds: 1, device: { ...device, core: { gae: { code, reason: "in English" } } } };
        own.show({ engine: "webgpu", cost, difference: null });
        return own.report.textContent;
      };
      const answers = [...codes, "config", "overflow"].map((code) => why(code).split("gae: ")[1]);
      own.failed("webgpu", { code: "no_adapter", reason: "in English" });
      return [...answers, own.report.textContent];
    });
    assert.ok(told.length > 25);
    for (const text of told) {
      assert.match(text, /[\u4e00-\u9fff]{2}/, text);
      assert.doesNotMatch(text.replace(/（in English）/, ""), /English/, text);
    }
    assert.deepEqual(problems, []);
    await close();
  },
);

test("an engine is chosen by the keyboard alone, and is no part of a link", browserTest, async () => {
  const { page, problems, close } = await open({ page: "logits" });
  const address = page.url();
  await choice(page, "logits", "simd128").focus();
  await page.keyboard.press("ArrowRight");
  assert.ok(await choice(page, "logits", "webgpu").isChecked());
  await reported(page, "logits", "webgpu");
  assert.equal(page.url(), address);
  assert.ok(await page.locator("#undo").isDisabled());
  assert.deepEqual(problems, []);
  await close();
});

test("the module of the GPU is loaded when it is chosen, not before", browserTest, async () => {
  const { server, asked, address } = await serve();
  const { page, problems, close } = await open({ page: "logits", address });
  const loaded = () => asked.filter((path) => path.includes("/pkg/gpu/") || path.includes("/pkg/plain/"));
  await reported(page, "logits", "simd128");
  assert.deepEqual(loaded(), []);
  await choose(page, "logits", "webgpu");
  assert.ok(loaded().some((path) => path.endsWith("/pkg/gpu/bindings_bg.wasm")));
  assert.deepEqual(problems, []);
  await close();
  server.closeAllConnections();
  server.close();
});

test("a module that cannot be loaded: the page says so and goes on", browserTest, async () => {
  const refuse = (path) => path.startsWith("pkg/gpu/");
  for (const id of ["logits", "data"]) {
    const { page, close } = await (id === "data" ? openData({ refuse }) : open({ page: id, refuse }));
    // the choice may have gone back before a check could see it
    await choice(page, id, "webgpu").click();
    await page.waitForFunction(
      (where) => document.querySelector(where).textContent.startsWith("WebGPU cannot be used here"),
      `#engine-report-${id}`,
    );
    assert.ok(await choice(page, id, "simd128").isChecked());
    assert.equal(await page.locator(".failed").count(), 0);
    await choose(page, id, "core");
    await close();
  }
});

test("without WebGPU: the choice is not offered or explains itself, the rest is as before", browserTest, async () => {
  for (const id of ["logits", "data"]) {
    const options = { webgpu: false };
    const { page, problems, close } = await (id === "data" ? openData(options) : open({ page: id, ...options }));
    await reported(page, id, "simd128");
    if (await choice(page, id, "webgpu").isEnabled()) {
      await choice(page, id, "webgpu").click();
      await page.waitForFunction(
        (where) => document.querySelector(where).textContent.startsWith("WebGPU cannot be used here"),
        `#engine-report-${id}`,
      );
      assert.ok(await choice(page, id, "simd128").isChecked());
    } else assert.match(await page.locator(`#engine-${id}`).textContent(), /WebGPU \(this browser has none\)/);
    if (id === "logits") {
      await page.locator("#choice-logits-preset").selectOption("uniform");
      assert.equal(await page.locator("[data-quantity=choices] dd").textContent(), "8");
    }
    // the browser itself warns that there is no adapter
    assert.deepEqual(
      problems.filter((text) => !/adapter/i.test(text)),
      [],
    );
    await close();
  }
});

for (const [lang, theme, width] of [
  ["en", "light", 1400],
  ["zh", "dark", 1400],
  ["zh", "light", 360],
  ["en", "dark", 360],
]) {
  test(`the switch, ${lang}, ${theme}, ${width} wide: fits, and no axe violations`, browserTest, async () => {
    for (const id of ["logits", "data"]) {
      const options = { lang, theme, width, height: width === 360 ? 740 : 1000 };
      const { page, problems, close } = await (id === "data" ? openData(options) : open({ page: id, ...options }));
      await choice(page, id, "webgpu").check();
      await page.waitForFunction(
        (where) =>
          /\d (ms|毫秒)/.test(document.querySelector(where).textContent) &&
          /SwiftShader|\d (kB|B)/.test(document.querySelector(where).textContent),
        `#engine-report-${id}`,
      );
      await checkAxe(page);
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      assert.ok(overflow <= 0, `${id}: ${overflow} pixels too wide`);
      await keepPicture(page, `engines-${id}-${width}-${theme}-${lang}`, { fullPage: true });
      assert.deepEqual(problems, []);
      await close();
    }
  });
}

test("work is told at every run what it was told before, and errors are told too", async () => {
  const { replayed } = await pageModule("engines/replay.js");
  let runs = 0;
  const asked = [];
  const ask = async (name, [x]) => {
    asked.push([name, x]);
    if (x === 13) throw new RangeError("thirteen");
    return x + 1;
  };
  const sum = await replayed(ask, (call) => {
    runs += 1;
    const a = call("one", [1]);
    const b = call("two", [a]);
    let c = 0;
    try {
      c = call("three", [13]);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      c = -1;
    }
    return a + b + c;
  });
  assert.equal(sum, 4);
  assert.equal(runs, 4);
  assert.deepEqual(asked, [
    ["one", 1],
    ["two", 2],
    ["three", 13],
  ]);
  await assert.rejects(
    replayed(ask, (call) => call("four", [13])),
    RangeError,
  );
});
