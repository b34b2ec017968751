// Every row explains itself: the formula with symbols, the same with numbers, in both languages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, edit, open } from "./harness.js";

/** Sets choices and edits, then reads the two formulas of a cell as plain text. */
async function formulas(page, row, index = 0, sequence = 0) {
  await page.locator(cell(row, index, sequence)).focus();
  return page.locator("#explain .formula math").evaluateAll((all) => all.map((one) => one.textContent));
}

const choose = async (page, choices) => {
  for (const [name, value] of Object.entries(choices)) await page.locator(`#choice-${name}`).selectOption(value);
};

/** Of the first example, at the first token. A fraction's parts stand one after the other: `1N` is one over N. */
const FIRST = {
  reward: ["r1=score1−β·KL1", "=0−0.1·0.1"],
  delta: ["δ1=r1+γ·V2−V1", "=(−0.01)+1·0.25−0.2"],
  advantage: ["A1=δ1+γ·λ·A2", "=0.04+1·0.95·0.611664"],
  return: ["R1=A1+V1", "=0.621081+0.2"],
  discountedReturn: ["G1=r1+γ·G2", "=(−0.01)+1·0.965"],
  whitened: ["A~1=A1−μσ2+10−8", "=0.621081−0.5499120.0074886+10−8"],
  ratio: ["ρ1=exp(logπ1−logπold,1)", "=exp((−0.12)−(−0.12))"],
  lossTerm: ["ℓ1=−min(ρ1·A~1,clip(ρ1,1−ε−,1+ε+)·A~1)", "=−min(1·0.822412,clip(1,1−0.2,1+0.28)·0.822412)"],
  tokenWeight: ["W1=1N", "=16"],
  gradient: ["∂L/∂logπ1=−W1·ρ1·A~1·[ρ1≤1+ε+]", "=−0.166667·1·0.822412·[1≤1+0.28]"],
  probability: ["p1=exp(logπold,1)", "=exp((−0.12))"],
  entropy: ["H1=−p1·logπold,1", "=−0.88692·(−0.12)"],
  entropyWeight: ["w1=p1·(1−p1)·|A~1|", "=0.88692·(1−0.88692)·|0.822412|"],
  weightedEntropy: ["w1H1=w1·H1", "=0.0824818·0.10643"],
};

for (const lang of ["en", "zh"]) {
  test(`every row of the first example, ${lang}`, browserTest, async () => {
    const { page, problems, close } = await open({ lang });
    for (const [row, expected] of Object.entries(FIRST)) assert.deepEqual(await formulas(page, row), expected, row);
    const rows = await page
      .locator("[role=gridcell][data-index='1']")
      .evaluateAll((all) => all.map((one) => one.dataset.row));
    assert.ok(rows.length > 17);
    for (const row of rows) {
      await page.locator(cell(row, 1)).focus();
      const text = await page.locator("#explain").innerText();
      assert.doesNotMatch(text, /\{\w+\}|undefined|\?\?/, row);
      assert.match(
        text,
        lang === "zh" ? /对齐到(动作|状态).*t = 2，下标 1/ : /(action|state)-aligned, t = 2, index 1/,
        row,
      );
      assert.ok((await page.locator("#explain .meaning").innerText()).length > 8, row);
    }
    assert.deepEqual(problems, []);
    await close();
  });
}

test("the KL by each estimate, in the reward and in the loss", browserTest, async () => {
  const { page, problems, close } = await open({ preset: "you-know-one-plus-one" });
  assert.deepEqual(await formulas(page, "kl"), ["KL1=logπold,1−logπref,1", "=(−0.12)−(−0.15)"]);
  await choose(page, { kl: "abs" });
  assert.deepEqual(await formulas(page, "kl"), ["KL1=|logπold,1−logπref,1|", "=|(−0.12)−(−0.15)|"]);
  await choose(page, { kl: "k2" });
  assert.deepEqual(await formulas(page, "kl"), ["KL1=12(logπold,1−logπref,1)2", "=12((−0.12)−(−0.15))2"]);
  await choose(page, { kl: "k3" });
  assert.deepEqual(await formulas(page, "kl"), [
    "KL1=exp(logπref,1−logπold,1)−1+(logπold,1−logπref,1)",
    "=exp((−0.15)−(−0.12))−1+((−0.12)−(−0.15))",
  ]);
  await choose(page, { placement: "loss" });
  assert.deepEqual(await formulas(page, "reward"), ["r1=score1", "=0"]);
  assert.deepEqual(await formulas(page, "kl"), [
    "KL1=exp(logπref,1−logπ1)−1+(logπ1−logπref,1)",
    "=exp((−0.15)−(−0.12))−1+((−0.12)−(−0.15))",
  ]);
  assert.deepEqual(await formulas(page, "klTerm"), ["βKL1=β·KL1", "=0.01·0.000445534"]);
  assert.deepEqual(await formulas(page, "klGradient"), [
    "∂βKL/∂logπ1=W1·β·(1−exp(logπref,1−logπ1))",
    "=0.166667·0.01·(1−exp((−0.15)−(−0.12)))",
  ]);
  assert.match((await formulas(page, "gradient"))[0], /\+∂βKL\/∂logπ1$/);
  await choose(page, { kl: "k2" });
  assert.deepEqual(await formulas(page, "klGradient"), [
    "∂βKL/∂logπ1=W1·β·(logπ1−logπref,1)",
    "=0.166667·0.01·((−0.12)−(−0.15))",
  ]);
  await choose(page, { placement: "loss-weighted", kl: "k3" });
  assert.match((await formulas(page, "kl"))[0], /^KL1=ρ1·\(exp/);
  assert.deepEqual(problems, []);
  await close();
});

test("each way to an advantage", browserTest, async () => {
  const { page, problems, close } = await open({ preset: "credit-assignments" });
  assert.deepEqual(await formulas(page, "advantage"), ["A1=S1n", "=16"]);
  assert.deepEqual(await formulas(page, "sequenceScore"), ["S1=Σtrt", "=0+0+0+0+0+1"]);
  await choose(page, { advantage: "last-k" });
  assert.deepEqual(await formulas(page, "advantage", 5), ["A6=S1min(k,n)·[j>n−k]", "=1min(3,6)·[6>6−3]"]);
  await choose(page, { advantage: "attention" });
  assert.deepEqual(await formulas(page, "advantage", 4), ["A5=S1·u5Σu", "=1·0.61"]);
  await choose(page, { advantage: "monte-carlo" });
  assert.deepEqual(await formulas(page, "advantage"), ["A1=G1−V1", "=1−0.2"]);
  await choose(page, { advantage: "reinforce-plus-plus" });
  assert.deepEqual(await formulas(page, "advantage"), ["A1=G1", "=1"]);
  assert.deepEqual(problems, []);
  await close();
});

test("each group estimator, with the group's scores, mean and deviation", browserTest, async () => {
  const { page, problems, close } = await open({ preset: "one-winner" });
  const expected = {
    grpo: ["A^1=S1−μgroupσgroup+10−6", "=1−0.250.5+10−6"],
    "dr-grpo": ["A^1=S1−μgroup", "=1−0.25"],
    rloo: ["A^1=S1−μothers", "=1−0"],
    "reinforce-baseline": ["A^1=S1−μgroup", "=1−0.25"],
    opo: ["A^1=S1−ΣnSΣn", "=1−0.25"],
    "max-rl": ["A^1=S1−μgroupμgroup+10−6", "=1−0.250.25+10−6"],
    "best-of-group": ["A^1=(S1−Ssecond)σgroup+10−6·[S1≥Sbest]", "=(1−0)0.5+10−6·[1≥1]"],
  };
  const values = { "grpo": "1.5", "rloo": "1", "max-rl": "2.99999", "best-of-group": "2" };
  for (const [advantage, [symbols, numbers]] of Object.entries(expected)) {
    await choose(page, { advantage });
    assert.deepEqual(await formulas(page, "groupAdvantage"), [symbols, numbers], advantage);
    assert.match(await page.locator("#explain .notes").textContent(), /Scores in group 1: 1, 0, 0, 0\./);
    assert.deepEqual(
      await formulas(page, "advantage"),
      [`A1,1=A^1=${symbols.slice(4)}`, `=${values[advantage] ?? "0.75"}${numbers}`],
      advantage,
    );
  }
  assert.deepEqual(problems, []);
  await close();
});

test("each loss and each mean, with the clip and the second clip", browserTest, async () => {
  const { page, problems, close } = await open({ preset: "you-know-surrogate" });
  await edit(page, "logProb", 0, "-0.02");
  const terms = {
    surrogate: ["ℓ1=−ρ1·A1", "=−1.10517·0.13"],
    reinforce: ["ℓ1=−A1·logπ1", "=−0.13·(−0.02)"],
    cispo: ["ℓ1=−clip(ρ1,1−ε−,1+ε+)·A1·logπ1", "=−clip(1.10517,1−0.2,1+0.28)·0.13·(−0.02)"],
    gspo: ["ℓ1=−min(ρ¯1·A1,clip(ρ¯1,1−ε−,1+ε+)·A1)", "=−min(1.01681·0.13,clip(1.01681,1−0.2,1+0.28)·0.13)"],
  };
  for (const [loss, expected] of Object.entries(terms)) {
    await choose(page, { loss });
    assert.deepEqual(await formulas(page, "lossTerm"), expected, loss);
  }
  assert.match((await formulas(page, "sequenceRatio"))[1], /^=exp\(16·0\.1\)$/);
  assert.deepEqual(await formulas(page, "gradient"), ["∂L/∂logπ1=−ρ¯1n·(ΣW·A)", "=−1.016816·0.0733333"]);
  await choose(page, { loss: "ppo", dual: "both" });
  assert.deepEqual(await formulas(page, "lossTerm"), [
    "ℓ1=−min(min(ρ1,c)·A1,clip(ρ1,1−ε−,1+ε+)·A1)",
    "=−min(min(1.10517,3)·0.13,clip(1.10517,1−0.2,1+0.28)·0.13)",
  ]);
  await choose(page, { dual: "negative" });
  await edit(page, "advantage", 0, "-0.13");
  await edit(page, "logProb", 0, "1.5");
  assert.deepEqual(await formulas(page, "lossTerm"), [
    "ℓ1=min(−min(ρ1·A1,clip(ρ1,1−ε−,1+ε+)·A1),−c·A1)",
    "=min(−min(5.05309·(−0.13),clip(5.05309,1−0.2,1+0.28)·(−0.13)),−3·(−0.13))",
  ]);
  // beyond the second bound: 3 · 0.13, and nothing pushes any more
  assert.deepEqual(
    [await page.locator(cell("lossTerm", 0)).textContent(), await page.locator(cell("gradient", 0)).textContent()],
    ["+0.39", "0"],
  );
  await choose(page, { dual: "off" });
  assert.equal(await page.locator(cell("lossTerm", 0)).textContent(), "+0.656902");
  const weights = {
    "token-sum": ["W1=1", "=1"],
    "seq-mean-token-sum": ["W1=1B", "=11"],
    "seq-mean-token-mean": ["W1=1B·n", "=11·6"],
    "seq-mean-token-sum-norm": ["W1=1B·L", "=11·10"],
    "token-sum-norm": ["W1=1L", "=110"],
    "prompt-mean": ["W1=1P·Ngroup", "=11·6"],
  };
  for (const [aggregate, expected] of Object.entries(weights)) {
    await choose(page, { aggregate });
    assert.deepEqual(await formulas(page, "tokenWeight"), expected, aggregate);
  }
  assert.deepEqual(problems, []);
  await close();
});

test("a dropped token that is stepped on says what it carries", browserTest, async () => {
  const { page, problems, close } = await open({ preset: "tool-tokens" });
  assert.deepEqual(await formulas(page, "advantage", 1), ["A2=δ2+γ·λ·A5", "=0+1·0.95·0.475"]);
  await choose(page, { across: "zero-step" });
  assert.deepEqual(await formulas(page, "delta", 1), ["δ2=r2+γ·0−V2", "=0+1·0−0.5"]);
  assert.deepEqual(await formulas(page, "advantage", 1), ["A2=δ2+γ·λ·A′3", "=(−0.5)+1·0.95·0.903687"]);
  await page.locator(cell("advantage", 3)).focus();
  assert.match(await page.locator("#explain .notes").textContent(), /carries 0\.95125 past it/);
  assert.deepEqual(problems, []);
  await close();
});

for (const lang of ["en", "zh"]) {
  test(`a number that is not finite tells where it began, ${lang}`, browserTest, async () => {
    const { page, problems, close } = await open({ lang });
    const told = async (row, index) => {
      await page.locator(cell(row, index)).focus();
      const line = page.locator("#explain .not-finite");
      if ((await line.count()) === 0) return null;
      return {
        text: await line.innerText(),
        from: await line.locator("button").evaluateAll((all) => all.map((one) => one.dataset.source)),
      };
    };
    assert.equal(await told("advantage", 0), null, "a finite one says nothing");
    await edit(page, "value", 3, "nan");
    // the first token's advantage takes it from three tokens later; so do the mean and every whitened one
    for (const [row, index] of [
      ["advantage", 0],
      ["delta", 2],
      ["whitened", 5],
      ["gradient", 1],
    ]) {
      const { text, from } = await told(row, index);
      assert.deepEqual(from, ["value.0.3"], row);
      assert.match(
        text,
        lang === "zh"
          ? /最先出现的非有限数是.*= NaN ——它是输入/s
          : /first number on the way here that is not finite.*= NaN — it is an input/s,
      );
    }
    assert.equal(await told("advantage", 5), null, "it does not look back");
    await page.locator(cell("whitened", 5)).focus();
    await page.locator("#explain .not-finite button").click();
    assert.deepEqual(
      await page.evaluate(() => [document.activeElement.dataset.row, document.activeElement.dataset.index]),
      ["value", "3"],
    );
    assert.equal(await page.locator("#explain .not-finite").count(), 0, "an input is what it is");
    await page.locator("#undo").click();
    // e^1000 is beyond the largest number though both logarithms are finite
    await edit(page, "logProb", 1, "1000");
    const here = await told("ratio", 1);
    assert.deepEqual(here.from, []);
    assert.match(here.text, lang === "zh" ? /公式在这里溢出/ : /here the formula overflows/);
    await choose(page, { loss: "surrogate" });
    const later = await told("lossTerm", 1);
    assert.deepEqual(later.from, ["ratio.0.1"]);
    assert.match(
      later.text,
      lang === "zh" ? /= ∞ ——它的来源全是有限数/ : /= ∞ — everything it is computed from is finite/,
    );
    assert.deepEqual(problems, []);
    await close();
  });
}
