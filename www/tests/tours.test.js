// The guided tours, by keyboard alone and by button, in both languages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, drawn, edit, keepPicture, open, rowOf } from "./harness.js";
import { checkAxe } from "./lab-checks.js";

const LENGTHS = { story: 13, slips: 9, "dr-grpo": 8, frameworks: 4 };

for (const lang of ["en", "zh"]) {
  test(`every tour from its first step to its last by Page Down, ${lang}`, browserTest, async () => {
    const { page, problems, close } = await open({ lang });
    for (const [tour, length] of Object.entries(LENGTHS)) {
      await page.locator("#choice-preset").selectOption(`tour:${tour}`);
      await page.locator("#tour-next").focus();
      const said = new Set();
      for (let step = 1; step <= length; step += 1) {
        assert.match(await page.locator("#tour h2").textContent(), new RegExp(`${step} / ${length}$`), tour);
        said.add(await page.locator("#tour .say").textContent());
        assert.equal(await page.locator(".cell.here").count(), 1, `${tour} ${step}`);
        // the panel explains the cell the tour stands at
        const here = await page.locator(".cell.here").evaluate((one) => one.getAttribute("data-row"));
        assert.notEqual(here, null);
        if (step < length) await page.keyboard.press("PageDown");
      }
      assert.equal(said.size, length);
      await page.keyboard.press("PageUp");
      assert.match(await page.locator("#tour h2").textContent(), new RegExp(`${length - 1} / ${length}$`));
      await page.keyboard.press("PageDown");
      await page.keyboard.press("PageDown");
      assert.ok(await page.locator("#tour").isHidden());
      assert.deepEqual(problems, []);
    }
    await close();
  });
}

test("a gate opens when the number is edited", browserTest, async () => {
  const { page, close } = await open({ fragment: "&tour=story" });
  for (let step = 1; step < 9; step += 1) await page.locator("#tour-next").click();
  assert.equal(await page.locator("#tour-next").textContent(), "Skip");
  await edit(page, "value", 2, "0.5");
  assert.equal(await page.locator("#tour-next").textContent(), "Next");
  assert.match(await page.locator("#tour .say").textContent(), /✓ done/);
  assert.equal((await rowOf(page, "delta"))[2], -0.145);
  // the next step is told on the example as it was
  await page.locator("#tour-next").click();
  assert.equal((await rowOf(page, "value"))[2], 0.3);
  await page.locator("#tour-end").click();
  assert.ok(await page.locator("#tour").isHidden());
  await close();
});

test("the tour of slips shows the exact numbers it tells", browserTest, async () => {
  const { page, close } = await open({ fragment: "&tour=slips" });
  const expected = [
    ["advantage", 2, 0.596488],
    ["advantage", 0, 0.607069],
    ["delta", 0, 0.04],
    ["advantage", 1, 0.592901],
    ["discountedReturn", 0, 0.955],
    ["whitened", 1, 1.25282],
    ["advantage", 5, 0.333333],
    ["advantage", 0, 0.1786],
    ["entropy", 0, 0.10643],
  ];
  for (const [at, [row, index, value]] of expected.entries()) {
    assert.equal((await rowOf(page, row))[index], value, row);
    assert.deepEqual(await page.locator(".cell.here").evaluate((one) => [one.dataset.row, Number(one.dataset.index)]), [
      row,
      index,
    ]);
    if (at < expected.length - 1) await page.locator("#tour-next").click();
  }
  await close();
});

test("a tour is chosen from the list, and moving along is no step of undo", browserTest, async () => {
  const { page, close } = await open();
  await page.locator("#choice-preset").selectOption("tour:dr-grpo");
  assert.match(await page.locator("#tour h2").textContent(), /Dr\. GRPO in five minutes 1 \/ 8/);
  for (let step = 0; step < 3; step += 1) await page.locator("#tour-next").click();
  assert.equal((await rowOf(page, "groupAdvantage", 3))[0], 7.5e-5);
  await page.locator("#undo").click();
  assert.ok(await page.locator("#tour").isHidden());
  assert.equal(await page.locator(cell("advantage", 0)).textContent(), "+0.621081");
  await close();
});

// the same step of each tour would be the same strip: first, gated and last ones are told apart
const [FIRST, LATER] = [
  [
    ["story", 9],
    ["slips", 1],
  ],
  [
    ["dr-grpo", 8],
    ["frameworks", 4],
  ],
];
const LOOKED = { 360: FIRST, 800: LATER, 1400: FIRST };
for (const lang of ["en", "zh"]) {
  for (const theme of ["light", "dark"]) {
    test(`a tour open, ${lang}, ${theme}: nothing sticks out, no axe violations`, browserTest, async () => {
      for (const [width, tours] of Object.entries(LOOKED)) {
        const { page, problems, close } = await open({ lang, theme, width: Number(width) });
        for (const [tour, step] of tours) {
          await page.locator("#choice-preset").selectOption(`tour:${tour}`);
          for (let at = 1; at < step; at += 1) await page.locator("#tour-next").click();
          await drawn(page);
          await keepPicture(page, `tour-${tour}-${width}-${theme}-${lang}`);
          const overflow = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(overflow <= 0, `${tour}, ${width} wide: ${overflow} pixels too wide`);
          await checkAxe(page, `${tour}, ${width} wide`);
        }
        assert.deepEqual(problems, []);
        await close();
      }
    });
  }
}

test(
  "the focus is never lost: at the first step, at the last, after the end; what is said is one text that changes",
  browserTest,
  async () => {
    const { page, close } = await open({ fragment: "&tour=frameworks" });
    const focused = () => page.evaluate(() => document.activeElement.id);
    await page.evaluate(() => {
      globalThis.said = document.querySelector("#tour .say");
    });
    await page.locator("#tour-next").focus();
    await page.keyboard.press("Enter");
    await page.locator("#tour-back").focus();
    await page.keyboard.press("Enter");
    assert.equal(await focused(), "tour-next", "there is no way back from the first step");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    assert.equal(await focused(), "tour-next");
    await page.keyboard.press("Enter");
    assert.match(await page.locator("#tour h2").textContent(), /4 \/ 4$/);
    assert.ok(
      await page.evaluate(
        () =>
          globalThis.said === document.querySelector("#tour .say") &&
          globalThis.said.getAttribute("aria-live") === "polite",
      ),
    );
    const here = await page.locator(".cell.here").evaluate((one) => [one.dataset.row, one.dataset.index]);
    await page.keyboard.press("Enter");
    assert.ok(await page.locator("#tour").isHidden());
    assert.deepEqual(
      await page.evaluate(() => [document.activeElement.dataset.row, document.activeElement.dataset.index]),
      here,
      "the cell it stood at",
    );
    await close();
  },
);
