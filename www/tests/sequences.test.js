// Several sequences: adding and removing, roles, groups, folding, and what must not be read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, drawn, edit, open, pageModule, rowOf } from "./harness.js";

const texts = (page, row, sequence = 0) =>
  page.locator(`[data-row="${row}"][data-sequence="${sequence}"]`).allTextContents();

test("tokens are added before and after, renamed and removed", browserTest, async () => {
  const { page, problems, close } = await open();
  await page.locator(cell("value", 2)).focus();
  await page.locator("#shape-before").click();
  assert.deepEqual(await texts(page, "token"), ["是", "的", "new", "，", "等于", "2", "！"]);
  // the new state has the value of the one it splits
  assert.deepEqual(await rowOf(page, "value"), [0.2, 0.25, 0.3, 0.3, 0.35, 0.45, 0.6, 0]);
  await page.locator(cell("token", 2)).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("也");
  await page.keyboard.press("Enter");
  assert.deepEqual(await texts(page, "token"), ["是", "的", "也", "，", "等于", "2", "！"]);
  await page.keyboard.press("Delete");
  assert.deepEqual(await texts(page, "token"), ["是", "的", "，", "等于", "2", "！"]);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.row), "token");
  assert.deepEqual(await rowOf(page, "advantage"), [0.621081, 0.611664, 0.596488, 0.569987, 0.50525, 0.395]);
  await page.keyboard.press("Insert");
  assert.deepEqual((await texts(page, "token"))[3], "new");
  await page.locator("#undo").click();
  assert.equal((await texts(page, "token")).length, 6);
  for (let left = 6; left > 1; left -= 1) await page.locator("#shape-remove").click();
  assert.equal((await texts(page, "token")).length, 1);
  assert.ok(await page.locator("#shape-remove").isDisabled());
  assert.deepEqual(problems, []);
  await close();
});

test("roles go round: policy, tool, padding, each with its mark and its word", browserTest, async () => {
  const { page, close } = await open();
  const mask = page.locator(cell("mask", 1));
  const seen = [];
  for (let time = 0; time < 4; time += 1) {
    await drawn(page);
    seen.push([await mask.textContent(), (await mask.getAttribute("aria-label")).replace(/^.*: /, "")]);
    await mask.focus();
    await page.keyboard.press("Space");
  }
  assert.deepEqual(seen, [
    ["●", "policy, kept"],
    ["◇", "tool, dropped"],
    ["○", "padding, dropped"],
    ["●", "policy, kept"],
  ]);
  assert.match(await page.locator("#explain .notes").textContent(), /tool or the environment/);
  await close();
});

test("a group grows by copies: RLOO, GRPO and the mean over all", browserTest, async () => {
  const { page, problems, close } = await open();
  await page.locator("#choice-placement").selectOption("off");
  await page.locator("#choice-advantage").selectOption("rloo");
  await page.locator("#choice-weight").selectOption("raw");
  assert.deepEqual(await rowOf(page, "groupAdvantage"), [0]);
  for (let time = 0; time < 3; time += 1) await page.locator("#shape-copy").click();
  // the copies stand after the first; three of the four lose
  for (const sequence of [1, 2, 3]) {
    if ((await page.locator(cell("score", 5, sequence)).count()) === 0)
      await page.locator(cell("sequence", 0, sequence)).click();
    await edit(page, "score", 5, "0", sequence);
  }
  assert.deepEqual(await rowOf(page, "advantage"), [1, 1, 1, 1, 1, 1]);
  assert.deepEqual((await rowOf(page, "advantage", 3))[0], -0.333333);
  await page.locator("#choice-advantage").selectOption("grpo");
  assert.deepEqual((await rowOf(page, "advantage"))[0], 1.5);
  assert.deepEqual((await rowOf(page, "tokenWeight"))[0], 0.0416667);
  // another group: the winner is alone, the three losers tie
  await page.locator(cell("score", 0)).focus();
  await page.locator("#choice-group").selectOption({ value: "1" });
  assert.deepEqual([(await rowOf(page, "groupAdvantage"))[0], (await rowOf(page, "groupAdvantage", 1))[0]], [0, 0]);
  assert.match(await page.locator(cell("sequence", 0)).textContent(), /group 2/);
  await page.locator("#shape-drop").click();
  assert.equal(await page.locator(".block").count(), 3);
  assert.deepEqual(problems, []);
  await close();
});

test("blocks fold and unfold by click and by key, and arrows walk over them", browserTest, async () => {
  const { page, close } = await open({ preset: "one-winner" });
  assert.deepEqual(
    await page.locator(".fold").evaluateAll((all) => all.map((one) => one.getAttribute("aria-expanded"))),
    ["true", "true", "false", "false"],
  );
  await page.locator(cell("sequence", 0, 2)).focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(cell("score", 0, 2)).count(), 1);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.row), "sequence");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.row), "sequenceScore");
  await page.keyboard.press("ArrowDown");
  assert.deepEqual(
    await page.evaluate(() => [document.activeElement.dataset.row, document.activeElement.dataset.sequence]),
    ["token", "2"],
  );
  await page.keyboard.press("Control+Home");
  assert.deepEqual(
    await page.evaluate(() => [document.activeElement.dataset.row, document.activeElement.dataset.sequence]),
    ["sequence", "0"],
  );
  await page.keyboard.press("Space");
  assert.equal(await page.locator(cell("score", 0, 0)).count(), 0);
  // a source in a folded block unfolds it
  await page.locator(cell("groupAdvantage", 0, 1)).focus();
  await page.locator("#explain [data-source='sequenceScore.0.0']").click();
  assert.deepEqual(
    await page.evaluate(() => [document.activeElement.dataset.row, document.activeElement.dataset.sequence]),
    ["sequenceScore", "0"],
  );
  await close();
});

test("change V₃: exactly the predicted cells change", browserTest, async () => {
  const { page, close } = await open();
  const snapshot = () =>
    page
      .locator("[role=gridcell]")
      .evaluateAll((all) =>
        Object.fromEntries(all.map((one) => [`${one.dataset.row}.${one.dataset.index}`, one.textContent])),
      );
  await page.locator(cell("value", 2)).focus();
  const predicted = await page
    .locator("[role=gridcell].depends")
    .evaluateAll((all) => all.map((one) => `${one.dataset.row}.${one.dataset.index}`));
  const before = await snapshot();
  await edit(page, "value", 2, "0.5");
  const after = await snapshot();
  const changed = Object.keys(after)
    .filter((id) => before[id] !== after[id])
    .sort();
  const everyToken = (row) => [0, 1, 2, 3, 4, 5].map((i) => `${row}.${i}`);
  // by hand: δ₂ and δ₃ hold V₃; A₁ to A₃ and so R₁ and R₂ follow (R₃ = A₃ + V₃ loses λγ of it);
  // the mean moves every whitened one
  const expected = [
    "value.2",
    "delta.1",
    "delta.2",
    "advantage.0",
    "advantage.1",
    "advantage.2",
    "return.0",
    "return.1",
    ...["whitened", "lossTerm", "gradient", "entropyWeight", "weightedEntropy"].flatMap(everyToken),
  ].sort();
  assert.deepEqual(changed, expected);
  for (const id of changed) if (id !== "value.2") assert.ok(predicted.includes(id), id);
  // what is marked beyond that does not depend on it either: R₃ = δ₃ + γλA₄ + V₃, in which V₃ cancels
  assert.deepEqual(
    predicted.filter((id) => !changed.includes(id)),
    ["return.2"],
  );
  const marked = await page
    .locator(".changed")
    .evaluateAll((all) => all.map((one) => `${one.dataset.row}.${one.dataset.index}`).sort());
  for (const id of changed) assert.ok(marked.includes(id), id);
  // and upstream: what the focused advantage comes from
  await page.locator(cell("delta", 1)).focus();
  const comes = await page
    .locator("[role=gridcell].comes")
    .evaluateAll((all) => all.map((one) => `${one.dataset.row}.${one.dataset.index}`).sort());
  assert.deepEqual(comes, ["kl.1", "mask.1", "mask.2", "reward.1", "score.1", "value.1", "value.2"]);
  await close();
});

test("what looks like a mistake is told", browserTest, async () => {
  const { page, problems, close } = await open({ preset: "masked-reward" });
  assert.deepEqual(await page.locator(".hint").allTextContents(), [
    "There is a score on a dropped token (sequence 1, token 2): no recursion reads it.",
    "All scores of group 1 are equal: no answer in it has an advantage.",
  ]);
  await page.locator("#choice-profile").selectOption("verl-0.9.1");
  assert.equal(await page.locator(".hint").count(), 1);
  await page.locator("#choice-preset").selectOption("one-plus-one");
  assert.equal(await page.locator(".hint").count(), 0);
  await page.locator("#field-beta").fill("0");
  await page.keyboard.press("Enter");
  assert.deepEqual(await page.locator(".hint").allTextContents(), ["β is 0: the KL has no effect."]);
  assert.deepEqual(problems, []);
  await close();
});

test("a state from outside is checked", async () => {
  const { readState, stateFromSequences, limits } = await pageModule("chain/state.js");
  const one = stateFromSequences([
    { tokens: ["a", "b"], inputs: { score: [0, 1], value: [0.5, 0.25], refLogProb: [-1, -2] } },
  ]);
  assert.deepEqual(one.sequences[0].inputs.value, [0.5, 0.25, 0]);
  assert.equal(one.choices.kl, "k1");
  assert.deepEqual(readState(JSON.parse(JSON.stringify(one))), one);
  const special = {
    ...one,
    sequences: [{ ...one.sequences[0], inputs: { ...one.sequences[0].inputs, score: [NaN, -Infinity] } }],
    extra: 1,
    profile: "nobody",
    choices: { kl: "k9", loss: "gspo" },
    parameters: { gamma: "1", beta: 3 },
  };
  const read = readState(special);
  assert.deepEqual(
    [read.profile, read.choices.kl, read.choices.loss, read.parameters.gamma, read.parameters.beta, read.extra],
    ["paper", "given", "gspo", 1, 3, undefined],
  );
  assert.ok(Number.isNaN(read.sequences[0].inputs.score[0]));
  const bad = [
    null,
    1,
    "x",
    [],
    {},
    { sequences: [] },
    { sequences: [{}] },
    { sequences: [{ tokens: [] }] },
    { sequences: [{ tokens: ["a"], roles: ["king"] }] },
    { sequences: [{ tokens: ["a"], inputs: { score: [1, 2] } }] },
    { sequences: [{ tokens: ["a"], inputs: { score: ["1"] } }] },
    { sequences: [{ tokens: ["a"], inputs: { score: [null] } }] },
    { sequences: [{ tokens: ["x".repeat(limits.text + 1)] }] },
    { sequences: [{ tokens: Array(limits.tokens + 1).fill("a") }] },
    { sequences: Array(limits.sequences + 1).fill({ tokens: ["a"] }) },
    { sequences: Array(20).fill({ tokens: Array(250).fill("a") }) },
    { sequences: [{ tokens: ["a"], group: -1 }] },
    { sequences: [{ tokens: ["a"], group: 0.5 }] },
  ];
  for (const data of bad) assert.equal(readState(data), null, JSON.stringify(data)?.slice(0, 80));
});

test("every preset and every step of every tour is read back as it is", browserTest, async () => {
  const { page, problems, close } = await open();
  const failed = await page.evaluate(async () => {
    const load = (path) => import(new URL(path, document.baseURI).href);
    const [{ presets }, { tours, stateAt }, { readState }, { page: chain }] = await Promise.all(
      ["chain/examples/presets.js", "chain/tours/tours.js", "chain/state.js", "chain/page.js"].map(load),
    );
    const states = [
      ...presets.map(({ state }) => state),
      ...tours.flatMap((tour) => tour.steps.map((_, step) => stateAt(tour, step))),
    ];
    const same = (state) =>
      JSON.stringify(readState(JSON.parse(JSON.stringify(state)))) === JSON.stringify(state) &&
      JSON.stringify(chain.read(state)) === JSON.stringify(state);
    return [presets.length, states.filter((state) => !same(state)).map((state) => state.preset)];
  });
  assert.deepEqual(failed, [15, []]);
  assert.deepEqual(problems, []);
  await close();
});
