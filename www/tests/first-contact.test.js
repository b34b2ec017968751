// What somebody meets who has never seen the page: what it is for, where to begin, what the marks mean, a way back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, drawn, edit, open, rowOf, setParameter, written } from "./harness.js";

const focused = (page) =>
  page.evaluate(
    () => document.activeElement.dataset.row ?? (document.activeElement.id || document.activeElement.tagName),
  );
const inView = (page, selector) =>
  page.locator(selector).evaluate((element) => {
    const { top, bottom, left, right } = element.getBoundingClientRect();
    const seen = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return top >= 0 && bottom <= innerHeight && (seen === element || element.contains(seen));
  });

for (const lang of ["en", "zh"]) {
  test(`the first screen says what the page is for and where to begin, ${lang}`, browserTest, async () => {
    for (const [width, height] of [
      [1400, 900],
      [360, 740],
    ]) {
      const { page, problems, close } = await open({ lang, width, height });
      const lead = await page.locator("#intro").innerText();
      for (const word of ["PPO", "GRPO", lang === "zh" ? "强化学习" : "Reinforcement learning"])
        assert.ok(lead.includes(word), word);
      assert.ok(await inView(page, "#tour-start"), `${width}`);
      await page.locator("#tour-start").click();
      assert.match(await page.locator("#tour h2").textContent(), /1 \/ 13$/);
      await page.locator("#tour-end").click();
      // one key does the same
      await page.keyboard.press("t");
      assert.match(await page.locator("#tour h2").textContent(), /1 \/ 13$/);
      assert.equal(await focused(page), "tour-next");
      assert.deepEqual(problems, []);
      await close();
    }
  });
}

test("the tour: Enter edits where an edit is asked for, and every step is in sight", browserTest, async () => {
  const { page, problems, close } = await open({ height: 900 });
  await page.keyboard.press("t");
  for (let step = 2; step <= 13; step += 1) {
    await page.keyboard.press("PageDown");
    assert.ok(await inView(page, "#tour h2"), `the text of step ${step}`);
    assert.ok(await inView(page, ".cell.here"), `the cell of step ${step}`);
    if (step !== 9 && step !== 12) continue;
    // by the button, as somebody would who has not read the hint
    await page.keyboard.press("PageUp");
    await page.locator("#tour-next").focus();
    await page.keyboard.press("Enter");
    const [text, row] = step === 9 ? ["0.5", "value"] : ["-0.4", "logProb"];
    const before = [await rowOf(page, "advantage"), await rowOf(page, "whitened")];
    assert.equal(await focused(page), row);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Control+a");
    await page.keyboard.type(text);
    await page.keyboard.press("Enter");
    assert.match(await page.locator("#tour h2").textContent(), new RegExp(`${step} / 13$`));
    assert.match(await page.locator("#tour .say").textContent(), /✓/);
    // the step says that the first three advantages change, and all of the whitened ones
    const after = [await rowOf(page, "advantage"), await rowOf(page, "whitened")];
    const changed = after.map((values, i) => values.map((value, at) => value !== before[i][at]));
    if (step === 9) assert.deepEqual(changed, [[true, true, true, false, false, false], Array(6).fill(true)]);
    // a log-probability is not above 0
    if (step === 12)
      assert.deepEqual([(await rowOf(page, "ratio"))[4], (await rowOf(page, "gradient"))[4]], [0.704688, 0]);
  }
  assert.deepEqual(problems, []);
  await close();
});

test("a legend for every mark; an edited example can be reset; the document is explained", browserTest, async () => {
  const { page, problems, close } = await open();
  assert.equal(await page.locator("#legend li").count(), 8);
  for (const word of [/line below/, /line above/, /dot/, /dashed/, /dotted/])
    assert.match(await page.locator("#legend").innerText(), word);
  await page.locator("#choice-against").selectOption("verl-0.9.1");
  assert.ok(await page.locator("#reset").isEnabled());
  await page.locator("#reset").click();
  assert.ok(await page.locator("#reset").isDisabled());
  await edit(page, "value", 2, "0.5");
  await setParameter(page, "gamma", "0.9");
  await page.locator("#reset").click();
  assert.deepEqual([(await rowOf(page, "value"))[2], (await rowOf(page, "advantage"))[0]], [0.3, 0.621081]);
  assert.match(await page.locator("#comparison .about").textContent(), /hand-worked notes/);
  // the exact numbers follow an edit
  const exact = () => page.locator("[data-comparison=reward] tbody tr:nth-child(2) td").first().textContent();
  assert.equal(await exact(), "−0.01");
  await edit(page, "kl", 0, "0.4");
  await drawn(page);
  assert.equal(await exact(), "−0.04");
  assert.deepEqual(problems, []);
  await close();
});

test("Back and Forward move between tabs and keep what was changed", browserTest, async () => {
  const { page, problems, close } = await open();
  const current = () => page.locator(".tab[aria-current]").getAttribute("id");
  await edit(page, "value", 2, "0.5");
  await page.locator("#tab-kl").click();
  await page.waitForSelector("#page-kl:not([hidden])");
  await page.locator("#tab-clip").click();
  await page.waitForSelector("#page-clip:not([hidden])");
  await setParameter(page, "clip-advantage", "-2");
  await written(page);
  await page.goBack();
  await page.waitForSelector("#page-kl:not([hidden])");
  assert.equal(await current(), "tab-kl");
  await page.goBack();
  await page.waitForSelector("#page-chain:not([hidden])");
  assert.equal((await rowOf(page, "value"))[2], 0.5);
  await page.goForward();
  await page.goForward();
  await page.waitForSelector("#page-clip:not([hidden])");
  assert.equal(await page.locator("#field-clip-advantage").inputValue(), "−2");
  assert.deepEqual(problems, []);
  await close();
});

test("the explanation folds and docks, and remembers it; the tokens stay in sight", browserTest, async () => {
  const { page, problems, close } = await open({ height: 900 });
  const covered = () =>
    page.locator("#chain .row").evaluateAll((rows) => {
      const panel = document.querySelector("#reading").getBoundingClientRect();
      return rows.filter((row) => {
        const { bottom, left } = row.getBoundingClientRect();
        return bottom > panel.top && bottom <= innerHeight && left < panel.right && left >= panel.left - 1;
      }).length;
    });
  await page.locator("#explain-dock").click();
  const before = await covered();
  await page.locator("#explain .sheet").click();
  assert.ok((await covered()) <= Math.max(1, before - 5), `${before} rows, then ${await covered()}`);
  await page.reload();
  await page.waitForSelector("main[aria-busy=false]");
  assert.equal(await page.locator("#explain .sheet").getAttribute("aria-expanded"), "false");
  await page.locator("#explain .sheet").click();
  await page.locator("#explain-dock").click();
  const [grid, panel] = [await page.locator("#chain").boundingBox(), await page.locator("#reading").boundingBox()];
  assert.ok(panel.x >= grid.x + grid.width, "beside the grid");
  // the chart takes the width of its place: its letters keep their size
  await page.waitForFunction(() => {
    const chart = document.querySelector("#chart svg");
    return Math.abs(chart.getBoundingClientRect().width - chart.viewBox.baseVal.width) < 2;
  });
  await page.locator("#explain-dock").click();
  for (const width of [1400, 360]) {
    await page.setViewportSize({ width, height: 700 });
    await page.locator(cell("lossTerm", 0)).evaluate((element) => element.scrollIntoView({ block: "center" }));
    // held in the frame after the scrolling
    await page.waitForFunction(
      (selector) => {
        const { top } = document.querySelector(selector).getBoundingClientRect();
        return top >= 0 && top < 200;
      },
      cell("token", 0),
    );
  }
  assert.deepEqual(problems, []);
  await close();
});

test("from the top to the numbers by two keys", browserTest, async () => {
  const { page, close } = await open();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "skip");
  await page.keyboard.press("Enter");
  assert.ok(await page.evaluate(() => document.activeElement.closest("#chain .grid") !== null));
  await close();
});

test("choices tell the truth", browserTest, async () => {
  const { page, problems, close } = await open();
  // GRPO has normalised: the loss reads its advantages as they are, and says so where they are whitened again
  await page.locator("#choice-advantage").selectOption("grpo");
  assert.equal(await page.locator("#choice-weight").inputValue(), "raw");
  await page.locator("#choice-weight").selectOption("whitened");
  assert.match(await page.locator("#summary .hint").allTextContents().then(String), /normalised within the group/);
  await page.locator("#reset").click();
  // what rounding leaves of 0 is 0
  assert.equal(await page.locator("#number-loss").textContent(), "0");
  await setParameter(page, "beta", "1e308");
  assert.match(await page.locator("#summary .hint").allTextContents().then(String), /beyond the largest number/);
  await page.locator("#reset").click();
  // one cause, told once
  await page.locator("#choice-profile").selectOption("openrlhf-0.11");
  await page.waitForSelector("#differences li");
  const lines = await page.locator("#differences li > span").allTextContents();
  assert.equal(new Set(lines).size, lines.length);
  await page.locator("#reset").click();
  // a message goes with the next act
  await setParameter(page, "gamma", "x");
  await setParameter(page, "lambda", "y");
  assert.equal(await page.locator(".field .problem:not(:empty)").count(), 1);
  // also where the next key comes before a timer
  await page.evaluate(() => {
    for (const name of ["gamma", "lambda"]) {
      const field = /** @type {HTMLInputElement} */ (document.getElementById(`field-${name}`));
      field.value = "x";
      field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    }
  });
  assert.equal(await page.locator(".field .problem:not(:empty)").count(), 1);
  await page.locator(cell("score", 0)).click();
  assert.equal(await page.locator(".field .problem:not(:empty)").count(), 0);
  // the end of a line is seen
  await page.evaluate(async () => {
    const load = (path) => import(new URL(path, document.baseURI).href);
    const [{ stateFromSequences }, { encode }] = await Promise.all(["chain/state.js", "share/link.js"].map(load));
    const state = stateFromSequences([{ tokens: ["a", "\n"], inputs: { oldLogProb: [-1, -1] } }]);
    location.hash = await encode({ page: "chain", states: { chain: state } });
  });
  await page.waitForFunction(() => document.querySelectorAll("[data-row=token]").length === 2);
  assert.equal(await page.locator(cell("token", 1)).textContent(), "⏎");
  assert.deepEqual(problems, []);
  await close();
});
