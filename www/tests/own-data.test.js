// Own data as people have it: texts with padding, one step, impossible numbers, keyboards of other languages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, edit, open, rowOf } from "./harness.js";

const settled = async (page) => {
  await page.waitForSelector("#data-results:not([hidden])");
  await page.waitForFunction(() => document.querySelector(".data-busy")?.hidden !== false);
};
const paste = async (page, text) => {
  await page.locator("#data-paste").fill(text);
  await page.locator("#data-read").click();
  await settled(page);
};

test("padding, one step, impossible numbers; a long response opens where it was looked at", browserTest, async () => {
  const { page, problems, close } = await open({ page: "data" });
  const record = {
    step: 4,
    prompt: "2+2?",
    response_tokens: ["4", "。", "<PAD>"],
    logprobs: [-0.1, 0.2],
    entropies: [0.3, -0.1],
  };
  await paste(page, JSON.stringify(record));
  assert.equal(await page.locator("[data-about=steps]").textContent(), "1 (number 4)");
  const notes = await page.locator(".data-about").innerText();
  assert.match(notes, /In 1 sequence the texts end with padding/);
  assert.match(notes, /1 log-probability is above 0 .*sequence 1, token 2/);
  assert.match(notes, /1 entropy is below 0/);
  assert.ok((await page.locator("[data-key=text]").allTextContents()).includes("4"), "the texts are there");
  assert.doesNotMatch(await page.locator("#page-data").innerText(), /\b1 sequences/);
  // a long response
  const long = Array.from({ length: 500 }, (_, i) => i);
  await paste(
    page,
    JSON.stringify({
      response_tokens: long.map((i) => `w${i + 1}`),
      log_probs: long.map((i) => -3.0440123e-7 * (i + 1)),
    }),
  );
  const texts = await page.locator(".rows-body [data-key=logProbs]").allTextContents();
  for (const text of texts) assert.match(text, /^−\d(\.\d+)?e−\d+$|^−0\.\d+$/, text);
  await page.locator("#data-results").evaluate(() => {});
  await page.locator(".data-table [role=grid], .data-table .rows").first().focus();
  await page.keyboard.press("Home");
  for (let at = 0; at < 400; at += 1) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator("#data-open-chain").click();
  await page.waitForSelector("#page-chain:not([hidden])");
  await page.waitForFunction(() => document.activeElement?.dataset.row === "token");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "w401");
  assert.deepEqual(problems, []);
  await close();
});

// the shape of RLLoggingBoard's own example: a text more than numbers, for the padding
const BOARD = {
  prompt: "Please tell me a joke",
  response: "Why don't scientists trust atoms? They make up everything.",
  response_tokens: [
    "Why",
    " don",
    "'t",
    " scientists",
    " trust",
    " atoms",
    "?",
    " They",
    " make",
    " up",
    " everything",
  ].concat([".", "<PAD>"]),
  logprobs: Array.from({ length: 12 }, (_, i) => -0.1 * (i + 1)),
  ref_logprobs: Array.from({ length: 12 }, (_, i) => -0.11 * (i + 1)),
  values: Array.from({ length: 12 }, (_, i) => 0.05 * (i + 1)),
  token_rewards: Array.from({ length: 12 }, (_, i) => (i === 11 ? 0.5 : -0.001)),
  reward: 0.5,
  step: 4,
};

for (const lang of ["en", "zh"])
  test(
    `RLLoggingBoard: 13 texts, 12 numbers; no heading is cut by the arrow of its order, ${lang}`,
    browserTest,
    async () => {
      const { page, problems, close } = await open({ lang, page: "data" });
      await paste(page, JSON.stringify(BOARD));
      const texts = await page.locator(".rows-body [data-key=text]").allTextContents();
      assert.deepEqual(
        texts.map((text) => text.trim().replace("␣", "")).map((text) => text.replace("·", "")),
        BOARD.response_tokens.slice(0, 12).map((text) => text.trim()),
      );
      assert.match(
        await page.locator(".data-about").innerText(),
        lang === "en" ? /In 1 sequence the texts end with padding/ : /填充/,
      );
      const keys = await page.locator(".sorter").evaluateAll((all) => all.map((one) => one.dataset.key));
      assert.ok(keys.length > 8);
      for (const key of keys) {
        await page.locator(`.sorter[data-key="${key}"]`).click();
        await page.waitForFunction(
          (wanted) => document.querySelector(`.sorter[data-key="${wanted}"] span`).textContent.trim() !== "",
          key,
        );
        const cut = await page
          .locator(`.sorter[data-key="${key}"]`)
          .evaluate((button) => button.scrollWidth - button.clientWidth);
        assert.ok(cut <= 0, `${key} by ${cut} px`);
      }
      assert.deepEqual(problems, []);
      await close();
    },
  );

test("numbers from Chinese keyboards, and a sign key on phones", browserTest, async () => {
  const { page, problems, close } = await open({ width: 360, height: 740 });
  await edit(page, "value", 0, "０．５");
  assert.equal((await rowOf(page, "value"))[0], 0.5);
  await edit(page, "value", 0, "0。25");
  assert.equal((await rowOf(page, "value"))[0], 0.25);
  await page.locator(cell("value", 0)).focus();
  await page.keyboard.press("Enter");
  await page.locator(".cell .sign-key").dispatchEvent("pointerdown");
  await page.keyboard.press("Enter");
  assert.equal((await rowOf(page, "value"))[0], -0.25);
  assert.deepEqual(problems, []);
  await close();
});
