// The framework switch and the traps, against numbers computed without the library.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, numberOf, open, rowOf } from "./harness.js";

const FRAMEWORKS = ["paper", "verl-0.9.1", "trl-1.16", "openrlhf-0.11"];

const exactly = async (page, row, sequence) => {
  await page.locator(cell(row, 0, sequence)).focus();
  return numberOf(await page.locator("#explain output").textContent());
};

const near = (found, expected, where, allowed = 5e-5) => {
  assert.equal(found.length, expected.length, where);
  for (const [i, value] of expected.entries())
    assert.ok(
      Math.abs(found[i] - value) <= allowed * Math.max(1, Math.abs(value)) || Object.is(found[i], value),
      `${where}[${i}]: ${found[i]} instead of ${value}`,
    );
};

test("one winner and a near tie under each framework", browserTest, async () => {
  const expected = { "one-winner": [1.5, 1.499997, 1.4997, 1.5], "near-tie": [1.5, 1.4706, 0.5, 1.49997] };
  for (const [preset, values] of Object.entries(expected)) {
    const { page, problems, close } = await open({ preset });
    for (const [at, framework] of FRAMEWORKS.entries()) {
      await page.locator("#choice-profile").selectOption(framework);
      assert.ok(
        Math.abs((await exactly(page, "groupAdvantage", preset === "near-tie" ? 3 : 0)) - values[at]) < 5e-6 * 10,
        `${preset} ${framework}`,
      );
    }
    await page.locator("#choice-profile").selectOption("paper");
    await page.locator("#choice-spread").selectOption("population");
    assert.ok(Math.abs((await exactly(page, "groupAdvantage", preset === "near-tie" ? 3 : 0)) - 1.732051) < 1e-6);
    assert.deepEqual(problems, []);
    await close();
  }
});

test(
  "switching marks the cells that change, ghosts them in the chart and names the convention",
  browserTest,
  async () => {
    for (const [lang, cause] of [
      ["en", /the ε beside the group's deviation: 1e−6 against 0\.0001/],
      ["zh", /组内标准差旁的 ε：1e−6 与 0\.0001/],
    ]) {
      const { page, problems, close } = await open({ lang, preset: "near-tie" });
      await page.waitForSelector("[data-difference~=groupAdvantage]");
      assert.match(await page.locator("[data-difference~=groupAdvantage]").textContent(), cause);
      await page.locator(cell("groupAdvantage", 0, 3)).focus();
      assert.match(await page.locator("#explain .elsewhere").textContent(), cause);
      await page.waitForFunction(() => document.querySelectorAll("#chart .ghost").length === 4);
      assert.ok(await page.locator(`${cell("groupAdvantage", 0, 3)}.differs`).count());
      await page.waitForFunction(
        (selector) => /TRL 1\.16[:：]/.test(document.querySelector(selector).getAttribute("aria-label")),
        cell("groupAdvantage", 0, 3),
      );
      assert.equal(await page.locator(`${cell("score", 0, 0)}.differs`).count(), 0);
      // the profile chosen before becomes the one compared with
      await page.locator("#choice-profile").selectOption("openrlhf-0.11");
      assert.equal(await page.locator("#choice-against").inputValue(), "verl-0.9.1");
      await page.locator("#choice-against").selectOption("none");
      await page.waitForFunction(() => document.querySelectorAll(".differs, #differences h2").length === 0);
      assert.deepEqual(problems, []);
      await close();
    }
  },
);

test("whitening, divisors and the second clip differ where the frameworks differ", browserTest, async () => {
  const { page, problems, close } = await open({ preset: "whiten" });
  await page.locator("#choice-profile").selectOption("openrlhf-0.11");
  near(
    await rowOf(page, "whitened"),
    [-0.073721, 1.400698, 0.663489, -1.54814, -0.442326],
    "OpenRLHF whitens by n",
    1e-5,
  );
  await page.waitForSelector("[data-difference~=whitened]");
  assert.match(
    await page.locator("[data-difference~=whitened]").textContent(),
    /the variance in whitening: by n against by n − 1/,
  );
  await page.locator("#choice-profile").selectOption("verl-0.9.1");
  near(
    await rowOf(page, "whitened"),
    [-0.065938, 1.252823, 0.593442, -1.384699, -0.395628],
    "verl whitens by n − 1",
    1e-5,
  );
  await page.locator("#choice-against").selectOption("paper");
  // n + 1e−8 is only seen beyond the sixth digit
  await page.waitForFunction(() =>
    /Only beyond the sixth digit.*n \+ 1e−8/.test(document.querySelector("#differences").textContent),
  );
  assert.ok((await page.locator(".slightly").count()) > 2);
  assert.deepEqual(problems, []);
  await close();
});

test("tool tokens: stepped over by verl, a step of 0 in TRL and OpenRLHF", browserTest, async () => {
  const { page, close } = await open({ preset: "tool-tokens" });
  const stepped = [0.428687, 0.45125, 0, 0, 0.475, 0.5];
  const zeroed = [0.340578, 0.358503, 0, 0, 0.475, 0.5];
  for (const [framework, expected] of [
    ["verl-0.9.1", stepped],
    ["trl-1.16", zeroed],
    ["openrlhf-0.11", zeroed],
    ["paper", stepped],
  ]) {
    await page.locator("#choice-profile").selectOption(framework);
    assert.deepEqual(await rowOf(page, "advantage"), expected, framework);
  }
  await page.waitForSelector("[data-difference~=advantage]");
  assert.match(
    await page.locator("[data-difference~=advantage]").textContent(),
    /a dropped token between two kept ones: stepped over against a step of 0/,
  );
  await close();
});

const TRAPS = {
  "mask-leak": { leaks: [5.7, 6, -100], masked: [0.95, 1, 0] },
  "tool-tokens": {
    naive: [0.38689, 0.407253, 0.428687, 0.45125, 0.475, 0.5],
    zeroed: [0.340578, 0.358503, 0, 0, 0.475, 0.5],
    stepped: [0.428687, 0.45125, 0, 0, 0.475, 0.5],
  },
  "masked-reward": { allSlots: [0.7071, 0, -0.7071, -0.7071], keptSlots: [NaN, 0, NaN, NaN] },
  "dr-grpo-factor": { withoutB: [2], drGrpo: [1], tokenMean: [3.3333], sequenceMean: [6], sequenceSum: [10] },
  // p · (slope − mean slope) are the expected gradients: ∇KL(ref‖π) for k3, ∇KL(π‖ref) for k2 and ratio·k3
  "k3-in-loss": {
    k3: [0.699341, -0.225909, -4.55336],
    k1: [1, 1, 1],
    k2: [1.201832, -0.203633, -1.714459],
    k3weighted: null,
  },
  "group-of-one": {
    verl: [1.154699, -0.577349, -0.577349, 0.699999],
    trl: [1.1545, -0.57725, -0.57725, 0],
    openrlhf: [1.1547, -0.57735, -0.57735, NaN],
    paper: [1.1547, -0.57735, -0.57735, 0],
  },
  "one-winner": {
    verl: [1.499997, -0.499999, -0.499999, -0.499999],
    trl: [1.4997, -0.4999, -0.4999, -0.4999],
    openrlhf: [1.5, -0.5, -0.5, -0.5],
    population: [1.732051, -0.57735, -0.57735, -0.57735],
    noDeviation: [0.75, -0.25, -0.25, -0.25],
  },
  "near-tie": {
    verl: [-0.490196, -0.490196, -0.490196, 1.470588],
    trl: [-0.166667, -0.166667, -0.166667, 0.5],
    openrlhf: [-0.49999, -0.49999, -0.49999, 1.49997],
    population: [-0.57735, -0.57735, -0.57735, 1.732051],
    noDeviation: [-0.000025, -0.000025, -0.000025, 0.000075],
  },
};

for (const lang of ["en", "zh"]) {
  test(`each trap shows what happens and what is right, ${lang}`, browserTest, async () => {
    for (const [preset, cases] of Object.entries(TRAPS)) {
      const { page, problems, close } = await open({ lang, preset });
      for (const [way, expected] of Object.entries(cases)) {
        const shown = (await page.locator(`[data-way=${way}] td`).allTextContents()).slice(0, -1).map(numberOf);
        if (preset === "masked-reward" && way === "keptSlots")
          assert.ok(
            shown.every((value) => !(Math.abs(value) > 0)),
            shown.join(),
          );
        else if (expected) near(shown, expected, `${preset} ${way}`, 1e-4);
      }
      assert.equal(await page.locator(".story dd").count(), 3);
      for (const link of await page.locator(".threads a").all()) {
        assert.match(await link.getAttribute("href"), /^https:\/\/github\.com\/[\w-]+\/[\w-]+\/(issues|pull)\/\d+$/);
        assert.deepEqual(
          [await link.getAttribute("target"), await link.getAttribute("rel")],
          ["_blank", "noopener noreferrer"],
        );
      }
      // a way is shown in the grid, with its own numbers
      const [way] = Object.keys(cases);
      await page.locator(`[data-case=${way}]`).click();
      assert.deepEqual(problems, []);
      await close();
    }
  });
}

test("averaged with p, k2 and ratio·k3 push along ∇KL(π‖ref), k3 alone along ∇KL(ref‖π)", browserTest, async () => {
  const { page, close } = await open({ preset: "k3-in-loss" });
  const p = [0.665241, 0.244728, 0.0900306];
  const pushed = async (way) => {
    await page.locator(`[data-case=${way}]`).click();
    const slopes = await rowOf(page, "klGradient");
    const mean = slopes.reduce((sum, slope, i) => sum + p[i] * slope, 0);
    return slopes.map((slope, i) => p[i] * (slope - mean));
  };
  near(await pushed("k3"), [0.4652, -0.0553, -0.41], "k3", 1e-4);
  near(await pushed("k2"), [0.4035, -0.1955, -0.208], "k2", 1e-4);
  near(await pushed("k3weighted"), [0.4035, -0.1955, -0.208], "ratio·k3", 1e-4);
  near(await pushed("k1"), [0, 0, 0], "k1", 1e-6);
  await close();
});
