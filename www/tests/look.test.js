import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, drawn, edit, keepPicture, open } from "./harness.js";
import { checkAxe } from "./lab-checks.js";

for (const lang of ["en", "zh"]) {
  for (const theme of ["light", "dark"]) {
    test(`${lang}, ${theme}: no errors, nothing sticks out, no axe violations`, browserTest, async () => {
      // a phone is touched, so it is a page of its own
      for (const widths of [[360], [800, 1400]]) {
        const { page, problems, close } = await open({ lang, theme, width: widths[0], height: 740 });
        for (const width of widths) {
          await page.setViewportSize({ width, height: width === 360 ? 740 : 1000 });
          await page.locator(cell("advantage", 0)).focus();
          await drawn(page);
          await keepPicture(page, `${width}-${theme}-${lang}`);
          await keepPicture(page, `${width}-${theme}-${lang}-full`, { fullPage: true });
          const overflow = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(overflow <= 0, `${width} wide: ${overflow} pixels too wide`);
          await checkAxe(page);
        }
        assert.deepEqual(problems, []);
        await close();
      }
    });
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
for (const lang of ["en", "zh"]) {
  test(`every other example without errors, ${lang}`, browserTest, async () => {
    const { page, problems, close } = await open({ lang });
    for (const preset of PRESETS) {
      await page.locator("#choice-preset").selectOption(preset);
      await drawn(page);
      await keepPicture(page, `preset-${preset}-${lang}`, { fullPage: true });
      const single = (await page.locator(cell("mask", 1)).count()) === 0;
      for (const id of await page
        .locator(`[role=gridcell][data-sequence='0'][data-index='${single ? 0 : 1}']`)
        .evaluateAll((all) => all.map((one) => one.dataset.row))) {
        await page.locator(cell(id, single ? 0 : 1)).focus();
      }
      await drawn(page);
      await checkAxe(page);
      assert.doesNotMatch(await page.locator("body").innerText(), /\{\w+\}|undefined/, preset);
      assert.deepEqual(problems, [], preset);
    }
    await close();
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
  await keepPicture(page, "360-sheet");
  await close();
});
