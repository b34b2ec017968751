// The folder that `cargo xtask playground --build-only` writes: small, fast, and usable offline.

import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { browserTest, folder, launch, rowOf, serve, setParameter } from "./harness.js";

const sealed = !browserTest.skip && /^const BUILD = /.test(await readFile(join(folder, "sw.js"), "utf8"));
if (!sealed && process.env.CI === "true") throw new Error(`${folder} was not assembled by cargo xtask playground`);
if (!sealed) console.error(`SKIPPED, offline is not tested: ${folder} was not assembled by cargo xtask playground`);
const sealedTest = { skip: !sealed };

const contexts = [];
after(async () => Promise.all(contexts.map((context) => context.close())));

async function visit(address) {
  const browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 } });
  contexts.push(context);
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(address);
  await page.waitForSelector("main[aria-busy=false]");
  return { page, problems, context };
}

const stop = (server) =>
  new Promise((resolve) => {
    server.closeAllConnections();
    server.close(resolve);
  });

/** The worker has taken everything and answers. */
const kept = (page) =>
  page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller)
      await new Promise((resolve) =>
        navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }),
      );
  });

test("with the server gone: reload, edit, every other page, both languages", sealedTest, async () => {
  const { server, address } = await serve();
  const { page, problems } = await visit(`${address}?lang=en`);
  await kept(page);
  const before = await rowOf(page, "advantage");
  await stop(server);
  await page.reload();
  await page.waitForSelector("main[aria-busy=false]");
  assert.deepEqual(await rowOf(page, "advantage"), before);
  await setParameter(page, "gamma", "0.5");
  assert.notDeepEqual(await rowOf(page, "advantage"), before);
  for (const id of await page.locator(".tab").evaluateAll((all) => all.map((tab) => tab.id))) {
    await page.locator(`#${id}`).click();
    await page.waitForSelector("main[aria-busy=false]");
    assert.equal(await page.locator(".failed").count(), 0, id);
  }
  // the reader of files has not been loaded before
  await page.locator("#tab-data").click();
  await page.locator("#data-sample").click();
  await page.waitForSelector(".rows-body .rows-row");
  await page.locator("#language").click();
  await page.waitForFunction(() => document.documentElement.lang === "zh-CN");
  // another address of the same page, never visited before
  await page.goto(`${address}index.html?page=kl&lang=zh`);
  await page.waitForSelector("main[aria-busy=false]");
  assert.equal(await page.locator(".tab[aria-current]").getAttribute("id"), "tab-kl");
  assert.deepEqual(problems, []);
});

test("the GPU's module is kept once it was loaded, not before", sealedTest, async () => {
  const { server, address } = await serve();
  const { page, problems } = await visit(`${address}?lang=en&page=logits`);
  await kept(page);
  const modules = () =>
    page.evaluate(async () => {
      const cache = await caches.open((await caches.keys())[0]);
      return (await cache.keys()).map(({ url }) => url).filter((url) => url.includes("/pkg/gpu/"));
    });
  const choose = async () => {
    await page.locator("#engine-logits-webgpu").check();
    await page.waitForFunction(() =>
      document.querySelector("#engine-report-logits").textContent.includes("difference from the core"),
    );
  };
  assert.deepEqual(await modules(), []);
  await choose();
  for (const since = Date.now(); (await modules()).length < 5 && Date.now() - since < 20_000;)
    await page.waitForTimeout(50);
  assert.ok((await modules()).some((url) => url.endsWith("bindings_bg.wasm")));
  await stop(server);
  await page.reload();
  await page.waitForSelector("main[aria-busy=false]");
  await choose();
  assert.deepEqual(problems, []);
});

test("a new build is seen at the next load, and the old one is forgotten", sealedTest, async () => {
  const copy = await mkdtemp(join(tmpdir(), "tokenwise-page-"));
  await cp(folder, copy, { recursive: true });
  const { server, address } = await serve(undefined, copy);
  const { page } = await visit(address);
  await kept(page);
  const names = () => page.evaluate(() => caches.keys());
  const [old] = await names();
  const catalogue = join(copy, "i18n/en/shell.js");
  await writeFile(catalogue, (await readFile(catalogue, "utf8")).replace('"tool.undo": "Undo"', '"tool.undo": "Back"'));
  const worker = join(copy, "sw.js");
  await writeFile(worker, (await readFile(worker, "utf8")).replace(/^const BUILD = "\w+"/, 'const BUILD = "new"'));
  await page.goto(`${address}?lang=en`);
  await page.waitForSelector("main[aria-busy=false]");
  assert.equal(await page.locator("#undo").textContent(), "Back");
  for (const since = Date.now(); (await names()).includes(old) && Date.now() - since < 20_000;)
    await page.waitForTimeout(50);
  assert.equal((await names()).length, 1);
  assert.match((await names())[0], /^tokenwise \/some\/sub\/path\/ new$/);
  await stop(server);
  await page.reload();
  await page.waitForSelector("main[aria-busy=false]");
  assert.equal(await page.locator("#undo").textContent(), "Back");
  await rm(copy, { recursive: true });
});

test("the first load is at most 350 KB gzip in all", sealedTest, async () => {
  const { server, asked, address } = await serve();
  const { page } = await visit(address);
  // what the worker fetches later for offline use does not delay the page
  const first = [
    ...new Set(await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => entry.name))),
  ];
  const sizes = new Map([["index.html", gzipSync(await readFile(join(folder, "index.html"))).length]]);
  for (const name of first) {
    const path = decodeURIComponent(new URL(name).pathname.replace(/^\/some\/sub\/path\//, ""));
    if (path !== "sw.js") sizes.set(path, gzipSync(await readFile(join(folder, path))).length);
  }
  assert.ok(sizes.size > 20 && asked.length >= sizes.size - 1, "something was not counted");
  const total = [...sizes.values()].reduce((a, b) => a + b, 0);
  const largest = [...sizes]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 5)
    .map(([path, size]) => `${path} ${size}`);
  console.log(`first load: ${sizes.size} files, ${total} bytes gzip; largest: ${largest.join(", ")}`);
  assert.ok(total <= 350_000, `${total} bytes: ${largest.join(", ")}`);
  await stop(server);
});

test("interactive soon: the median of three first visits", sealedTest, async () => {
  const { server, address } = await serve();
  const times = [];
  for (let round = 0; round < 3; round += 1) {
    // a context of its own has an empty cache
    const { page, context } = await visit(address);
    times.push(await page.evaluate(() => performance.getEntriesByName("interactive")[0].startTime));
    await context.close();
  }
  const median = times.sort((a, b) => a - b)[1];
  console.log(`interactive after ${times.map(Math.round).join(", ")} ms`);
  // one second is what is promised; the rest is for a machine that is busy with other things
  assert.ok(median <= 3000, `${median} ms`);
  await stop(server);
});
