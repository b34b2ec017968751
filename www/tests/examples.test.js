// The worked examples, digit by digit; the expected numbers were computed without the library.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, numberOf, open, rowOf, setParameter, six } from "./harness.js";

const EXPECTED = {
  "one-plus-one": {
    reward: [-0.01, -0.005, 0.005, -0.01, -0.02, 0.995],
    value: [0.2, 0.25, 0.3, 0.35, 0.45, 0.6, 0],
    delta: [0.04, 0.045, 0.055, 0.09, 0.13, 0.395],
    advantage: [0.621081, 0.611664, 0.596488, 0.569987, 0.50525, 0.395],
    return: [0.821081, 0.861664, 0.896488, 0.919987, 0.95525, 0.995],
    whitened: [0.822412, 0.713593, 0.538228, 0.231992, -0.5161, -1.79013],
    ratio: [1, 1, 1, 1, 1, 1],
    lossTerm: [-0.822412, -0.713593, -0.538228, -0.231992, 0.5161, 1.79013],
    gradient: [-0.137069, -0.118932, -0.0897046, -0.0386654, 0.0860167, 0.298354],
    entropy: [0.10643, 0.0738493, 0.129106, 0.0904837, 0.0475615, 0.019604],
    weightedEntropy: [0.00877858, 0.00374014, 0.00833096, 0.00180751, 0.00113876, 0.000681139],
  },
  "terminal-credit": {
    reward: [-0.01, -0.01, -0.01, -0.01, -0.01, 0.99],
    advantage: [0.607069, 0.596915, 0.586226, 0.574975, 0.5105, 0.39],
  },
  "exact-indices": {
    reward: [-0.01, -0.005, -0.01, -0.015, -0.02, 0.995],
    delta: [0.04, 0.045, 0.04, 0.085, 0.13, 0.395],
    advantage: [0.603256, 0.592901, 0.576738, 0.564987, 0.50525, 0.395],
  },
  "credit-assignments": {
    advantage: [0.1666667, 0.1666667, 0.1666667, 0.1666667, 0.1666667, 0.1666667],
    reward: [0, 0, 0, 0, 0, 1],
  },
  whiten: {
    advantage: [0.1, 0.3, 0.2, -0.1, 0.05],
    return: [0.6, 0.9, 0.9, 0.7, 0.95],
    whitened: [-0.065938, 1.252823, 0.593442, -1.384699, -0.395628],
  },
  "you-know-one-plus-one": {
    kl: [0.03, 0.02, 0.03, 0.02, 0.03, 0.01],
    reward: [-0.0003, -0.0002, -0.0003, -0.0002, -0.0003, 0.9999],
    advantage: [0.1786, 0.1489, 0.1191, 0.0994, 0.0796, 0.0499],
    return: [0.9986, 0.9989, 0.9991, 0.9994, 0.9996, 0.9999],
    probability: [0.88692, 0.923116, 0.860708, 0.904837, 0.951229, 0.980199],
  },
  "you-know-surrogate": {
    lossTerm: [-0.13, -0.1, -0.08, -0.05, -0.03, -0.05],
  },
};

const near = (found, expected, where) => {
  assert.equal(found.length, expected.length, where);
  for (const [index, value] of expected.entries())
    assert.ok(
      Math.abs(found[index] - value) < Math.max(6e-7, 5.1e-6 * Math.abs(value)),
      `${where}[${index}]: ${found[index]} instead of ${value}`,
    );
};

for (const [preset, rows] of Object.entries(EXPECTED)) {
  test(`${preset} shows its exact values`, browserTest, async () => {
    const { page, problems, close } = await open({ preset });
    for (const [row, expected] of Object.entries(rows)) near(await rowOf(page, row), expected, row);
    assert.deepEqual(problems, []);
    await close();
  });
}

const summaryOf = async (page, key) => numberOf(await page.locator(`[data-number=${key}]`).textContent());

test("the five analysis numbers of the surrogate example", browserTest, async () => {
  const { page, close } = await open({ preset: "you-know-surrogate" });
  assert.equal(await summaryOf(page, "entropyPerTokenMean"), 0.0778392);
  assert.equal(await summaryOf(page, "covarianceMean"), -0.000827778);
  assert.equal(await summaryOf(page, "whSum"), 0.00362483);
  assert.ok(Math.abs((await summaryOf(page, "whPerToken")) - 0.000604139) < 1e-9);
  assert.equal(await summaryOf(page, "loss"), -0.0733333);
  assert.equal(await summaryOf(page, "rewardSumMean"), 0.9986);
  await close();
});

test("λ = 0.95 in the second example, γ = 0.99 in the third", browserTest, async () => {
  const second = await open({ preset: "you-know-one-plus-one" });
  await setParameter(second.page, "lambda", "0.95");
  near(await rowOf(second.page, "advantage"), [0.155568, 0.132492, 0.108097, 0.09305, 0.077105, 0.0499], "advantage");
  await second.close();
  const third = await open({ preset: "exact-indices" });
  await setParameter(third.page, "gamma", "0.99");
  near(
    await rowOf(third.page, "discountedReturn"),
    [0.887718, 0.906786, 0.920996, 0.940399, 0.96505, 0.995],
    "discountedReturn",
  );
  await third.close();
});

test("the five ways to share the credit", browserTest, async () => {
  const { page, problems, close } = await open({ preset: "credit-assignments" });
  const expected = {
    uniform: [1 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6],
    "last-k": [0, 0, 0, 1 / 3, 1 / 3, 1 / 3],
    attention: [0.05, 0.05, 0.05, 0.15, 0.6, 0.1],
    "monte-carlo": [0.8, 0.75, 0.7, 0.65, 0.55, 0.4],
    // δ = .05 .05 .05 .1 .15 .4 without a price for the KL
    gae: gaeOf([0.05, 0.05, 0.05, 0.1, 0.15, 0.4]),
  };
  for (const [advantage, values] of Object.entries(expected)) {
    await page.locator("#choice-advantage").selectOption(advantage);
    near(await rowOf(page, "advantage"), values, advantage);
  }
  // with every KL priced at 0.1 · 0.1 it is the example of the last token's credit
  await page.locator("#choice-placement").selectOption("reward");
  near(await rowOf(page, "advantage"), [0.607069, 0.596915, 0.586226, 0.574975, 0.5105, 0.39], "gae");
  await page.locator("#choice-advantage").selectOption("last-k");
  await page.locator("#choice-placement").selectOption("off");
  await setParameter(page, "lastK", "1");
  assert.deepEqual(await rowOf(page, "advantage"), [0, 0, 0, 0, 0, 1]);
  assert.deepEqual(problems, []);
  await close();
});

/** The recursion of GAE with γλ = 0.95, written for this test. */
function gaeOf(errors) {
  return errors.map((_, start) => errors.slice(start).reduce((sum, error, steps) => sum + error * 0.95 ** steps, 0));
}

test("whitening by n", browserTest, async () => {
  const { page, close } = await open({ preset: "whiten" });
  await page.locator("#choice-spread").selectOption("population");
  near(await rowOf(page, "whitened"), [-0.073721, 1.400698, 0.663489, -1.54814, -0.442326], "whitened");
  await close();
});

test("published numbers that are wrong are shown beside the exact ones", browserTest, async () => {
  const verdicts = async (preset, row) => {
    const { page, close } = await open({ preset });
    const found = await page.locator(`[data-comparison=${row}] .verdict`).allTextContents();
    const why = await page.locator(".comparison .why").textContent();
    await close();
    return [found, why];
  };
  assert.deepEqual((await verdicts("one-plus-one", "advantage"))[0], ["agrees up to the last digit"]);
  assert.deepEqual((await verdicts("one-plus-one", "reward"))[0], ["agrees"]);
  const [terminal, why] = await verdicts("terminal-credit", "advantage");
  assert.deepEqual(terminal, ["differs"]);
  assert.match(why, /left the values out/);
  assert.deepEqual((await verdicts("exact-indices", "discountedReturn"))[0], ["agrees"]);
  assert.deepEqual((await verdicts("exact-indices", "advantage"))[0], ["differs"]);
  assert.deepEqual((await verdicts("whiten", "whitened"))[0], ["differs", "differs"]);
  assert.deepEqual((await verdicts("credit-assignments", "advantage"))[0], [
    "agrees",
    "agrees up to the last digit",
    "differs",
  ]);
  assert.deepEqual((await verdicts("you-know-one-plus-one", "advantage"))[0], ["differs"]);
  assert.deepEqual((await verdicts("you-know-surrogate", "loss"))[0], ["agrees"]);
});

test("six digits are six digits", () => assert.deepEqual(six([0.6210811859375]), [0.621081]));
