import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, open, rowOf } from "./harness.js";

const focused = (page) =>
  page.evaluate(() => {
    const { row, index } = document.activeElement.dataset;
    return row === undefined ? document.activeElement.id || document.activeElement.tagName : `${row}.${index}`;
  });

async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
  return focused(page);
}

test("arrows walk the grid, over the seventh state and back", browserTest, async () => {
  const { page, close } = await open();
  await page.locator(cell("reward", 0)).focus();
  assert.equal(await press(page, "ArrowRight"), "reward.1");
  assert.equal(await press(page, "ArrowDown"), "value.1");
  assert.equal(await press(page, "End"), "value.6");
  assert.equal(await press(page, "ArrowDown"), "delta.5");
  // the column walked from is remembered
  assert.equal(await press(page, "ArrowUp"), "value.6");
  assert.equal(await press(page, "Home"), "value.0");
  assert.equal(await press(page, "ArrowLeft"), "value.0");
  assert.equal(await press(page, "Control+Home"), "token.0");
  assert.equal(await press(page, "ArrowUp"), "token.0");
  assert.equal(await press(page, "Control+End"), "weightedEntropy.5");
  await close();
});

test("one stop in the tab order, wherever the grid was left", browserTest, async () => {
  const { page, close } = await open();
  assert.equal(await page.locator(".grid [tabindex='0']").count(), 1);
  await page.locator(cell("kl", 3)).focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Shift+Tab");
  assert.equal(await focused(page), "kl.3");
  assert.equal(await page.locator(".grid [tabindex='0']").count(), 1);
  await close();
});

test("Enter edits, Esc gives back, typing replaces", browserTest, async () => {
  const { page, close } = await open();
  await page.locator(cell("score", 0)).focus();
  await press(page, "Enter");
  await page.keyboard.type("7");
  // the number still being typed already shows its consequences
  assert.notEqual((await rowOf(page, "advantage"))[0], 0.621081);
  assert.equal(await press(page, "Escape"), "score.0");
  assert.equal((await rowOf(page, "score"))[0], 0);
  assert.equal((await rowOf(page, "advantage"))[0], 0.621081);
  await press(page, "5");
  await press(page, "Enter");
  assert.equal((await rowOf(page, "score"))[0], 5);
  await close();
});

test("results cannot be edited, Space drops a token", browserTest, async () => {
  const { page, close } = await open();
  await page.locator(cell("advantage", 0)).focus();
  await press(page, "Enter");
  assert.equal(await page.locator(".editor").count(), 0);
  await page.locator(cell("mask", 4)).focus();
  await press(page, "Space");
  assert.match(await page.locator(cell("mask", 4)).getAttribute("aria-label"), /tool, dropped/);
  assert.equal(await focused(page), "mask.4");
  await close();
});

test("a bad number keeps the old one and says why beside the cell", browserTest, async () => {
  const { page, close } = await open();
  await page.locator(cell("value", 2)).focus();
  await press(page, "Enter", "Control+a");
  await page.keyboard.type("0,5");
  await press(page, "Enter");
  const bubble = page.locator(".bubble");
  assert.equal(await bubble.textContent(), "Write the decimal point as “.”. Still 0.3.");
  assert.equal((await rowOf(page, "value"))[2], 0.3);
  const [box, near] = [await bubble.boundingBox(), await page.locator(cell("value", 2)).boundingBox()];
  assert.ok(Math.abs(box.y - near.y - near.height) < 12 && Math.abs(box.x - near.x) < 40);
  await press(page, "ArrowRight");
  assert.ok(await bubble.isHidden());
  await page.locator(cell("value", 2)).focus();
  await press(page, "Enter", "Control+a");
  await page.keyboard.type("half");
  await press(page, "Enter");
  assert.match(await bubble.textContent(), /“half” is not a number/);
  await close();
});

test("a second click edits", browserTest, async () => {
  const { page, close } = await open();
  await page.locator(cell("score", 1)).click();
  assert.equal(await page.locator(".editor").count(), 0);
  await page.locator(cell("score", 1)).click({ delay: 20 });
  assert.equal(await page.locator(".editor").count(), 1);
  await close();
});

test("a screen reader hears row, token, value and whether it can be edited", browserTest, async () => {
  const { page, close } = await open();
  assert.equal(await page.locator(cell("advantage", 0)).getAttribute("aria-label"), "advantage, token 1 是: +0.621081");
  assert.equal(
    await page.locator(cell("value", 1)).getAttribute("aria-label"),
    "value, state 2, before 的: 0.25, editable",
  );
  assert.equal(
    await page.locator(cell("value", 6)).getAttribute("aria-label"),
    "value, state 7, after the last token: 0, editable",
  );
  assert.equal(await page.locator(cell("advantage", 0)).getAttribute("aria-readonly"), "true");
  await close();
});
