import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, edit, numberOf, open, setParameter } from "./harness.js";
import { checkLook, exportOf } from "./lab-checks.js";

const PRESETS = ["verl-593", "long-wrong", "unequal-micro", "equal", "empty", "tool"];
const MODES = [
  "token-mean",
  "seq-mean-token-mean",
  "seq-mean-token-sum",
  "seq-mean-token-sum-norm",
  "sum-norm-without-mean",
  "token-sum",
  "prompt-mean",
];

const losses = async (page) => (await page.locator(".agg-loss").allTextContents()).map(numberOf);
const pick = (page, mode) => page.locator(`[data-mode="${mode}"] button`).click();
const weights = async (page) => (await page.locator("[data-weight]").allTextContents()).map(numberOf);
const shares = async (page) => (await page.locator("[data-share]").allTextContents()).map(numberOf);
const total = async (page, key) => numberOf(await page.locator(`[data-total=${key}]`).textContent());
/** A slider by its keys, as a hand would. */
const slide = async (page, key, value) => {
  // with one possibility left there is nothing to slide
  if (await page.locator(`#slider-${key}`).isDisabled()) return assert.equal(value, 1);
  await page.locator(`#slider-${key}`).focus();
  await page.keyboard.press("Home");
  for (let step = 1; step < value; step += 1) await page.keyboard.press("ArrowRight");
};
const preset = (page, id) => page.locator("#choice-aggregate-preset").selectOption(id);

test("the batch of verl#593 under every mode", browserTest, async () => {
  const { page, problems, close } = await open({ page: "aggregate" });
  // from the survey of conventions: 3.333, 6.0, 10.0, 1.0 (TRL), 2.0 (verl in January); the rest by hand
  assert.deepEqual(await losses(page), [3.33333, 6, 10, 1, 2, 20, 6]);
  const expected = {
    "token-mean": [1 / 6, 1 / 6],
    "seq-mean-token-mean": [0.1, 0.5],
    "seq-mean-token-sum": [0.5, 0.5],
    "seq-mean-token-sum-norm": [0.05, 0.05],
    "sum-norm-without-mean": [0.1, 0.1],
    "token-sum": [1, 1],
    "prompt-mean": [0.1, 0.5],
  };
  for (const mode of MODES) {
    await pick(page, mode);
    assert.deepEqual(
      await weights(page),
      expected[mode].map((w) => Number(w.toPrecision(6))),
      mode,
    );
    assert.deepEqual(
      await shares(page),
      [5, 1].map((n, i) => Number((n * expected[mode][i]).toPrecision(6))),
      mode,
    );
    assert.equal(await page.locator(`[data-mode="${mode}"] button`).getAttribute("aria-pressed"), "true");
    assert.equal(await page.locator(".agg-card.chosen").count(), 1);
  }
  assert.match(
    await page.locator('[data-mode="seq-mean-token-mean"] .agg-bias').textContent(),
    /answer with 5 tokens weighs 0\.2 times one of the answer with 1/,
  );
  assert.match(await page.locator('[data-mode="token-mean"] .agg-bias').textContent(), /weighs the same/);
  assert.equal(await page.locator('[data-mode="token-mean"] .agg-bar').count(), 6);
  // a syntax error in a style sheet would leave the bars black
  assert.notEqual(
    await page
      .locator(".agg-bar")
      .first()
      .evaluate((bar) => getComputedStyle(bar).fill),
    "rgb(0, 0, 0)",
  );
  assert.deepEqual(problems, []);
  await close();
});

test("the formula carries the numbers of the batch", browserTest, async () => {
  const { page, close } = await open({ page: "aggregate" });
  const formulas = () => page.locator(".lab-why math").evaluateAll((all) => all.map((one) => one.textContent));
  assert.equal((await formulas())[1], "=206=3.33333");
  await pick(page, "seq-mean-token-mean");
  assert.equal((await formulas())[1], "=12(105+101)=6");
  await pick(page, "seq-mean-token-sum-norm");
  assert.equal((await formulas())[1], "=202·10=1");
  await close();
});

test("edits, masks and parameters change what follows from them", browserTest, async () => {
  const { page, problems, close } = await open({ page: "aggregate" });
  await edit(page, "loss1", 0, "4");
  assert.deepEqual(await losses(page), [2.33333, 3, 7, 0.7, 1.4, 14, 3]);
  await page.locator(cell("kept0", 4)).click();
  assert.deepEqual(await losses(page), [2.4, 3, 6, 0.6, 1.2, 12, 3]);
  // a dropped slot is never read
  await edit(page, "loss0", 4, "NaN");
  assert.deepEqual(await losses(page), [2.4, 3, 6, 0.6, 1.2, 12, 3]);
  await setParameter(page, "aggregate-scale", "4");
  assert.deepEqual((await losses(page)).slice(3, 5), [1.5, 3]);
  await setParameter(page, "aggregate-prompt", "2");
  assert.equal((await losses(page))[6], 2.4);
  await page.locator("#undo").click();
  assert.equal((await losses(page))[6], 3);
  await setParameter(page, "aggregate-scale", "0");
  assert.match(await page.locator("#problem-aggregate-scale").textContent(), /above 0.*Still 4/);
  await setParameter(page, "aggregate-prompt", "1.5");
  assert.match(await page.locator("#problem-aggregate-prompt").textContent(), /whole number from 1 to 12.*Still 1/);
  await edit(page, "loss0", 0, "x");
  assert.match(await page.locator(".bubble").textContent(), /“x” is not a number. Still 2/);
  assert.equal(await page.locator("#choice-aggregate-preset").inputValue(), "");
  assert.deepEqual(problems, []);
  await close();
});

test("answers and slots come and go, within bounds", browserTest, async () => {
  const { page, close } = await open({ page: "aggregate" });
  const act = (key) => page.locator(`[data-act=${key}]`);
  await act("addAnswer").click();
  assert.deepEqual(await losses(page), [4.28571, 7.33333, 10, 1, 3, 30, 7.33333]);
  await act("removeAnswer").click();
  await act("removeAnswer").click();
  assert.ok(await act("removeAnswer").isDisabled());
  assert.deepEqual(await losses(page), [2, 2, 10, 1, 1, 10, 2]);
  for (let i = 0; i < 6; i += 1) await act("addSlot").click();
  assert.ok(await act("addSlot").isDisabled());
  assert.equal(await page.locator(".columns .token").count(), 16);
  await page.locator("#undo").click();
  assert.equal(await page.locator(".columns .token").count(), 15);
  await close();
});

test(
  "a split: local counts are wrong by what can be reckoned by hand, the step's counts are right",
  browserTest,
  async () => {
    const { page, problems, close } = await open({ page: "aggregate" });
    assert.equal(await total(page, "naive"), 6);
    assert.equal(await total(page, "right"), 3.33333);
    assert.equal(await total(page, "twice"), 1.66667);
    assert.match(await page.locator(".agg-verdict").textContent(), /becomes 6 instead of 3\.33333: 1\.8 times/);
    await slide(page, "micro", 1);
    assert.match(await page.locator(".agg-verdict").textContent(), /happens to be right/);
    // two answers of 8 tokens with loss 1, two of 1 token with loss 3: 22 / 18, against (1 + 3) / 2
    await preset(page, "unequal-micro");
    assert.equal(await total(page, "right"), 1.22222);
    assert.equal(await total(page, "naive"), 2);
    assert.match(await page.locator(".agg-verdict").textContent(), /1\.63636 times/);
    for (const [micro, ranks] of [
      [1, 1],
      [3, 1],
      [4, 1],
      [1, 2],
      [2, 2],
      [1, 4],
    ]) {
      await slide(page, "ranks", ranks);
      await slide(page, "micro", micro);
      assert.equal(await page.locator(".lab-table tbody tr:not(.agg-total)").count(), micro * ranks + 4);
      assert.equal(await total(page, "right"), 1.22222, `${micro}, ${ranks}`);
    }
    // every mode keeps its loss under the step's counts, for every split
    const whole = await losses(page);
    for (const [index, mode] of MODES.entries()) {
      await pick(page, mode);
      for (const [micro, ranks] of [
        [3, 1],
        [2, 2],
      ]) {
        await slide(page, "ranks", ranks);
        await slide(page, "micro", micro);
        assert.equal(await total(page, "right"), whole[index], `${mode}, ${micro}, ${ranks}`);
      }
    }
    assert.deepEqual(problems, []);
    await close();
  },
);

test("weights of a split, token by token", browserTest, async () => {
  const { page, close } = await open({ page: "aggregate" });
  await preset(page, "unequal-micro");
  const [{ text }] = await exportOf(
    page,
    "aggregate",
    await page.evaluate(async () =>
      (await import(new URL("labs/aggregate/state.js", location.href).href)).presets["unequal-micro"](),
    ),
  );
  const lines = text
    .trim()
    .split("\n")
    .map((line) => line.split(","));
  const at = (name) => lines[0].indexOf(name);
  const kept = lines.slice(1, -1).filter((line) => line[at("kept")] === "1");
  assert.equal(kept.length, 18);
  for (const [index, line] of kept.entries()) {
    // 16 tokens of the first part and 2 of the second: (1/16)/2 and (1/2)/2, against 1/18
    assert.ok(Math.abs(Number(line[at("token-mean split naive")]) - (index < 16 ? 1 / 32 : 1 / 4)) < 1e-15);
    assert.ok(Math.abs(Number(line[at("token-mean split global")]) - 1 / 18) < 1e-15);
    assert.ok(Math.abs(Number(line[at("weight seq-mean-token-mean")]) - (index < 16 ? 1 / 32 : 1 / 4)) < 1e-15);
  }
  assert.ok(Math.abs(Number(lines.at(-1)[at("weight token-mean")]) - 22 / 18) < 1e-15);
  assert.equal(await page.locator(".agg-plots rect[data-series=right]").count(), 18);
  assert.equal(await page.locator(".agg-plots circle[data-series=naive]").count(), 18);
  await close();
});

test(
  "an answer without a kept token: excluded or counted, and a part that has nothing to average",
  browserTest,
  async () => {
    const { page, close } = await open({ page: "aggregate" });
    await preset(page, "empty");
    // answers: 1 1 1 1 | nothing | 3 3 | 2 2
    assert.deepEqual(await losses(page), [1.75, 2, 4.66667, 1.16667, 3.5, 14, 1.75]);
    assert.match(await page.locator(".agg-verdict").textContent(), /one part has no loss.*No token is kept/);
    assert.equal(await total(page, "right"), 2);
    await page.locator("#choice-aggregate-emptyRows").selectOption("counted");
    assert.deepEqual(await losses(page), [1.75, 1.5, 3.5, 0.875, 3.5, 14, 1.75]);
    assert.equal(await total(page, "right"), 1.5);
    for (const slot of [0, 1, 2, 3]) await page.locator(cell("kept0", slot)).click();
    for (const slot of [0, 1]) await page.locator(cell("kept2", slot)).click();
    for (const slot of [0, 1]) await page.locator(cell("kept3", slot)).click();
    assert.match(await page.locator(".lab-why").textContent(), /No token is kept/);
    await close();
  },
);

test("what stands in dropped slots never matters", browserTest, async () => {
  const { page, close } = await open({ page: "aggregate" });
  await preset(page, "tool");
  // 1 2 . . 3 1 | 2 . 2 | 1 × 6: 17 / 12; (7/4 + 2 + 1) / 3
  assert.deepEqual((await losses(page)).slice(0, 3), [1.41667, 1.58333, 5.66667]);
  assert.equal(await page.locator(cell("loss0", 2)).textContent(), "NaN");
  await close();
});

test("a link's state is checked", browserTest, async () => {
  const { page, close } = await open({ page: "aggregate" });
  const told = await page.evaluate(async () => {
    const {
      page: { read, initial },
    } = await import(new URL("labs/aggregate/page.js", location.href).href);
    const good = initial();
    const answer = good.answers[0];
    const bad = [
      null,
      undefined,
      7,
      "x",
      [],
      {},
      { answers: [] },
      { answers: "no" },
      { answers: [{}] },
      { answers: [null] },
      { ...good, answers: Array(13).fill(answer) },
      { ...good, answers: [answer, { losses: [1], kept: [true] }] },
      { ...good, answers: [{ losses: ["1"], kept: [true] }] },
      { ...good, answers: [{ losses: [1], kept: [1] }] },
      { ...good, answers: [{ losses: Array(17).fill(1), kept: Array(17).fill(true) }] },
    ];
    const odd = read({
      ...good,
      scale: -1,
      perPrompt: 0.5,
      emptyRows: "maybe",
      divisor: 3,
      mode: "constructor",
      ranks: 99,
      micro: 99,
      extra: 1,
    });
    return { bad: bad.map(read), odd, same: JSON.stringify(read(structuredClone(good))) === JSON.stringify(good) };
  });
  assert.ok(
    told.bad.every((one) => one === null),
    JSON.stringify(told.bad),
  );
  assert.ok(told.same);
  const { answers, ...rest } = told.odd;
  assert.equal(answers.length, 2);
  assert.deepEqual(rest, {
    scale: 10,
    perPrompt: 1,
    emptyRows: "excluded",
    divisor: "count",
    mode: "token-mean",
    ranks: 1,
    micro: 1,
  });
  await close();
});

test("Chinese keeps every number and edit", browserTest, async () => {
  const { page, problems, close } = await open({ page: "aggregate" });
  await edit(page, "loss1", 0, "4");
  await pick(page, "seq-mean-token-mean");
  await page.locator("#language").click();
  await page.waitForSelector("html[lang=zh-CN]");
  assert.deepEqual(await losses(page), [2.33333, 3, 7, 0.7, 1.4, 14, 3]);
  assert.match(await page.locator(".lab-why").textContent(), /为什么是 3.*长度偏差/);
  assert.match(await page.locator(".agg-verdict").textContent(), /局部损失的平均恰好是对的：3/);
  assert.equal(await page.locator("#choice-aggregate-preset").inputValue(), "");
  assert.deepEqual(problems, []);
  await close();
});

checkLook("aggregate", PRESETS);
