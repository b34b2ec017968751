import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { browserTest, cell, edit, open, repository } from "./harness.js";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

async function check(page) {
  // labels of cells outside the view are set in the next task
  await page.waitForTimeout(50);
  await page.evaluate(await readFile(axe, "utf8"));
  return page.evaluate(() => globalThis.axe.run());
}

const screenshots = process.env.SCREENSHOT_DIR ?? join(repository, "target/screenshots");

for (const lang of ["en", "zh"]) {
  for (const theme of ["light", "dark"]) {
    for (const width of [360, 800, 1400]) {
      test(
        `${lang}, ${theme}, ${width} wide: no errors, nothing sticks out, no axe violations`,
        browserTest,
        async () => {
          const { page, problems, close } = await open({ lang, theme, width, height: width === 360 ? 740 : 1000 });
          await page.locator(cell("advantage", 0)).focus();
          await mkdir(screenshots, { recursive: true });
          const name = join(screenshots, `${width}-${theme}-${lang}`);
          await page.screenshot({ path: `${name}.png` });
          await page.screenshot({ path: `${name}-full.png`, fullPage: true });
          const overflow = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(overflow <= 0, `${overflow} pixels too wide`);
          const { violations } = await check(page);
          const told = violations.map(
            ({ id, nodes }) =>
              `${id}: ${nodes
                .slice(0, 3)
                .map((node) => `${node.html} ${node.failureSummary}`)
                .join("; ")}`,
          );
          assert.deepEqual(told, []);
          assert.deepEqual(problems, []);
          await close();
        },
      );
    }
  }
}

const PRESETS = [
  "terminal-credit",
  "credit-assignments",
  "exact-indices",
  "whiten",
  "you-know-one-plus-one",
  "you-know-surrogate",
  "mask-leak",
  "tool-tokens",
  "masked-reward",
  "dr-grpo-factor",
  "k3-in-loss",
  "group-of-one",
  "one-winner",
  "near-tie",
];
for (const preset of PRESETS) {
  test(`${preset} in both languages without errors`, browserTest, async () => {
    for (const lang of ["en", "zh"]) {
      const { page, problems, close } = await open({ lang, preset });
      await page.screenshot({ path: join(screenshots, `preset-${preset}-${lang}.png`), fullPage: true });
      const single = (await page.locator(cell("mask", 1)).count()) === 0;
      for (const id of await page
        .locator(`[role=gridcell][data-sequence='0'][data-index='${single ? 0 : 1}']`)
        .evaluateAll((all) => all.map((one) => one.dataset.row))) {
        await page.locator(cell(id, single ? 0 : 1)).focus();
      }
      const { violations } = await check(page);
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`),
        [],
      );
      assert.doesNotMatch(await page.locator("body").innerText(), /\{\w+\}|undefined/);
      assert.deepEqual(problems, []);
      await close();
    }
  });
}

test("dark by the system, light by choice, and the choice is remembered", browserTest, async () => {
  const { page, close } = await open({ theme: "dark" });
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const dark = await ground();
  await page.locator("#theme").click();
  const light = await ground();
  assert.notEqual(dark, light);
  await page.reload();
  await page.waitForSelector("main[aria-busy=false]");
  assert.equal(await ground(), light);
  await close();
});

test("changed cells pulse once, and only with leave to move", browserTest, async () => {
  const running = (page) =>
    page.evaluate(() => document.getAnimations().filter((one) => !(one instanceof CSSTransition)).length);
  const still = await open({ motion: "reduce" });
  await edit(still.page, "score", 5, "2");
  assert.equal(await running(still.page), 0);
  await still.close();
  const moving = await open({ motion: "no-preference" });
  await edit(moving.page, "score", 5, "2");
  assert.ok((await running(moving.page)) > 20);
  await moving.close();
});

test("on a phone the explanation is a sheet that can be put away", browserTest, async () => {
  const { page, close } = await open({ width: 360, height: 740 });
  const body = page.locator("#explain-body");
  const toggle = page.locator(".explain .sheet");
  const shown = await body.isVisible();
  await toggle.click();
  assert.notEqual(await body.isVisible(), shown);
  await page.screenshot({ path: join(screenshots, "360-sheet.png") });
  await close();
});
