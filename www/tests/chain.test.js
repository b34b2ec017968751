import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, edit, open, rowOf, setParameter } from "./harness.js";

test("an edited score changes what follows from it and nothing else", browserTest, async () => {
  const { page, problems, close } = await open();
  const value = await rowOf(page, "value");
  const entropy = await rowOf(page, "entropy");
  await edit(page, "score", 5, "2");
  assert.deepEqual(await rowOf(page, "reward"), [-0.01, -0.005, 0.005, -0.01, -0.02, 1.995]);
  assert.deepEqual(await rowOf(page, "advantage"), [1.39486, 1.42617, 1.45386, 1.47249, 1.45525, 1.395]);
  assert.deepEqual(await rowOf(page, "return"), [1.59486, 1.67617, 1.75386, 1.82249, 1.90525, 1.995]);
  assert.deepEqual(await rowOf(page, "whitened"), [-1.15493, -0.205304, 0.634668, 1.19957, 0.676734, -1.15073]);
  assert.deepEqual(await rowOf(page, "value"), value);
  assert.deepEqual(await rowOf(page, "entropy"), entropy);
  const changed = await page
    .locator(".changed")
    .evaluateAll((cells) => [...new Set(cells.map((one) => one.dataset.row))]);
  assert.ok(
    changed.includes("advantage") && changed.includes("gradient") && !changed.includes("value"),
    changed.join(),
  );
  assert.deepEqual(problems, []);
  await close();
});

test("γ, by typing and by arrow keys", browserTest, async () => {
  const { page, close } = await open();
  const expected = [0.581366, 0.578273, 0.5702, 0.551515, 0.495497, 0.395];
  await setParameter(page, "gamma", "0.99");
  assert.deepEqual(await rowOf(page, "advantage"), expected);
  await setParameter(page, "gamma", "1");
  await page.locator("#field-gamma").focus();
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator("#field-gamma").inputValue(), "0.99");
  assert.deepEqual(await rowOf(page, "advantage"), expected);
  await page.locator("#field-gamma").hover();
  await page.mouse.wheel(0, -100);
  await page.waitForFunction(() => document.querySelector("#field-gamma").value === "1");
  await close();
});

test("a dropped token is stepped over, and what stands there never matters", browserTest, async () => {
  const { page, close } = await open();
  await page.locator(cell("mask", 2)).click();
  const advantage = [0.644664, 0.636488, 0, 0.569987, 0.50525, 0.395];
  assert.deepEqual(await rowOf(page, "advantage"), advantage);
  assert.deepEqual(await rowOf(page, "whitened"), [0.911737, 0.832763, 0, 0.190389, -0.434955, -1.49993]);
  assert.deepEqual(await rowOf(page, "gradient"), [-0.182347, -0.166553, 0, -0.0380777, 0.086991, 0.299987]);
  for (const row of ["score", "value", "oldLogProb", "kl"]) await edit(page, row, 2, "NaN");
  assert.deepEqual(await rowOf(page, "advantage"), advantage);
  await page.locator(cell("advantage", 2)).focus();
  assert.match(await page.locator("#explain").textContent(), /dropped.*is not used/);
  assert.equal(await page.locator("[data-row=token].dropped").count(), 1);
  await page.locator(cell("kl", 2)).focus();
  assert.match(await page.locator("#explain").textContent(), /Even NaN changes nothing/);
  await close();
});

test("the value after the last token is the bootstrap", browserTest, async () => {
  const { page, close } = await open();
  await edit(page, "value", 6, "0.5");
  assert.deepEqual(await rowOf(page, "advantage"), [1.00797, 1.01892, 1.02518, 1.02124, 0.98025, 0.895]);
  await close();
});

test("a new log-probability moves the ratio, the clip takes the gradient away", browserTest, async () => {
  const { page, close } = await open();
  await edit(page, "logProb", 0, "0.3");
  const ratio = await rowOf(page, "ratio");
  assert.ok(Math.abs(ratio[0] - Math.exp(0.42)) < 1e-5);
  assert.equal((await rowOf(page, "gradient"))[0], 0);
  await page.locator(cell("gradient", 0)).focus();
  assert.match(await page.locator("#explain").textContent(), /Clipped/);
  await edit(page, "logProb", 0, " ");
  assert.deepEqual(await rowOf(page, "ratio"), [1, 1, 1, 1, 1, 1]);
  await close();
});

test("KL from log-probabilities, by three estimators", browserTest, async () => {
  const { page, close } = await open({ preset: "you-know-one-plus-one" });
  await page.locator("#choice-kl").selectOption("k2");
  assert.deepEqual(await rowOf(page, "kl"), [0.00045, 0.0002, 0.00045, 0.0002, 0.00045, 0.00005]);
  await page.locator("#choice-kl").selectOption("given");
  assert.equal(await page.locator(cell("refLogProb", 0)).count(), 0);
  await close();
});

test("the explanation carries formula, numbers, all digits, alignment and sources", browserTest, async () => {
  const { page, close } = await open();
  await page.locator(cell("advantage", 0)).focus();
  const panel = page.locator("#explain");
  const formulas = await panel.locator("math[display=block]").evaluateAll((all) => all.map((one) => one.textContent));
  assert.deepEqual(formulas, ["A1=δ1+γ·λ·A2", "=0.04+1·0.95·0.611664"]);
  assert.match(await panel.locator("output").textContent(), /^0\.62108053\d+$/);
  const text = await panel.textContent();
  assert.match(text, /Why 0\.621081\?/);
  assert.match(text, /Belongs to token 1 itself, “是”/);
  assert.match(text, /stepped over/);
  assert.deepEqual(await panel.locator(".source").evaluateAll((all) => all.map((one) => one.dataset.source)), [
    "delta.0.0",
    "gamma",
    "lambda",
    "advantage.0.1",
  ]);
  await panel.locator("[data-source='advantage.0.1']").click();
  assert.match(await panel.textContent(), /token 2/);
  await page.locator(cell("value", 1)).focus();
  assert.match(await panel.textContent(), /state before token 2, “的”/);
  // everything that depends on V₂ is marked, nothing else is
  const marked = await page
    .locator(".depends")
    .evaluateAll((all) => all.map((one) => `${one.dataset.row}.${one.dataset.index}`));
  for (const id of ["delta.0", "delta.1", "advantage.0", "advantage.1", "return.1", "whitened.5"])
    assert.ok(marked.includes(id), id);
  for (const id of ["delta.2", "advantage.2", "reward.0", "entropy.0"]) assert.ok(!marked.includes(id), id);
  await close();
});

test("state-aligned rows stand half a column to the left of the token", browserTest, async () => {
  const { page, close } = await open();
  const centre = async (selector) => {
    const box = await page.locator(selector).boundingBox();
    return box.x + box.width / 2;
  };
  const [v1, a1, v2] = [
    await centre(cell("value", 0)),
    await centre(cell("advantage", 0)),
    await centre(cell("value", 1)),
  ];
  assert.ok(v1 < a1 && a1 < v2 && Math.abs((v1 + v2) / 2 - a1) < 1, [v1, a1, v2].join());
  assert.equal(await page.locator("[role=gridcell][data-row=value]").count(), 7);
  await close();
});

test("a refused parameter keeps the old value and says why", browserTest, async () => {
  const { page, close } = await open();
  await setParameter(page, "gamma", "1.5");
  assert.equal(await page.locator("#field-gamma").inputValue(), "1");
  assert.match(await page.locator("#problem-gamma").textContent(), /gamma.*Still 1\./);
  await setParameter(page, "gamma", "abc");
  assert.match(await page.locator("#problem-gamma").textContent(), /“abc” is not a number/);
  await setParameter(page, "gamma", "0.5");
  assert.equal(await page.locator("#problem-gamma").textContent(), "");
  await close();
});

test("without kept tokens the library's refusal is told in words", browserTest, async () => {
  const { page, problems, close } = await open();
  for (let index = 0; index < 6; index += 1) await page.locator(cell("mask", index)).click();
  assert.match(await page.locator(".refusal").first().textContent(), /No token is kept/);
  assert.equal(await page.locator(cell("whitened", 0)).textContent(), "—");
  assert.deepEqual(await rowOf(page, "reward"), [0, 0, 0, 0, 0, 0]);
  // tool, padding, and the policy's again
  for (let time = 0; time < 2; time += 1) await page.locator(cell("mask", 0)).click();
  assert.match(await page.locator(".refusal").first().textContent(), /Too few/);
  assert.deepEqual(problems, []);
  await close();
});

test("undo and redo", browserTest, async () => {
  const { page, close } = await open();
  await edit(page, "score", 5, "2");
  await page.locator("#undo").click();
  assert.equal((await rowOf(page, "score"))[5], 1);
  assert.equal((await rowOf(page, "advantage"))[0], 0.621081);
  await page.locator("#redo").click();
  assert.equal((await rowOf(page, "score"))[5], 2);
  await page.locator(cell("score", 5)).focus();
  await page.keyboard.press("Control+z");
  assert.equal((await rowOf(page, "score"))[5], 1);
  await close();
});

test("the other language keeps every edit and the place", browserTest, async () => {
  const { page, problems, close } = await open();
  await edit(page, "score", 5, "2");
  await setParameter(page, "lambda", "0.9");
  await page.locator(cell("return", 3)).focus();
  const before = await rowOf(page, "advantage");
  await page.locator("#language").click();
  await page.waitForSelector("html[lang=zh-CN]");
  await page.waitForFunction(() => document.title === "链条 · tokenwise 演算台");
  assert.deepEqual(await rowOf(page, "advantage"), before);
  assert.equal(await page.locator("#field-lambda").inputValue(), "0.9");
  assert.match(await page.locator("#explain").textContent(), /回报.*为什么是/);
  assert.match(await page.locator("#explain").textContent(), /对齐到状态：生成第 4 个 token/);
  await page.locator("#language").click();
  await page.waitForSelector("html[lang=en]");
  assert.deepEqual(problems, []);
  await close();
});

test("a library that does not load is told in both languages", browserTest, async () => {
  const { page, close } = await open({ refuse: (path) => path.endsWith(".wasm") });
  const text = await page.locator("#status").textContent();
  assert.match(text, /could not be loaded/);
  assert.match(text, /没能载入/);
  await close();
});
