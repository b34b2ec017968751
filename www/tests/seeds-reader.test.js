// What a reader of the documents behind the examples looks for: the outputs of the four models, the flow of the data,
// the states, the critic's loss, and the metrics under the names that trainers log.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, edit, numberOf, open } from "./harness.js";

for (const lang of ["en", "zh"]) {
  test(`one training step, module by module, live, ${lang}`, browserTest, async () => {
    const { page, problems, close } = await open({ lang, preset: "you-know-one-plus-one" });
    await page.waitForSelector("#step:not([hidden])");
    const field = async (name) => (await page.locator(`[data-field="${name}"] .values`).textContent()).trim();
    assert.equal(await field("old_log_probs"), "[[−0.12, −0.08, −0.15, −0.1, −0.05, −0.02]]");
    assert.equal(await field("values"), "[[0.82, 0.85, 0.88, 0.9, 0.92, 0.95]]");
    assert.equal(await field("ref_log_prob"), "[[−0.15, −0.1, −0.18, −0.12, −0.08, −0.03]]");
    assert.equal(await field("token_level_scores"), "[[0, 0, 0, 0, 0, 1]]");
    assert.equal(await field("advantages"), "[[0.1786, 0.1489, 0.1191, 0.0994, 0.0796, 0.0499]]");
    assert.equal(await page.locator(".step tbody code", { hasText: "(1, 6)" }).count(), 8);
    assert.deepEqual(
      await page.locator(".step-flow [data-module]").evaluateAll((all) => all.map((one) => one.dataset.module)),
      ["prompt", "actor", "critic", "reference", "reward", "advantage", "criticUpdate", "actorUpdate"],
    );
    const states = await page.locator(".step-states li").allTextContents();
    assert.equal(states.length, 7);
    assert.equal(states[0], "s₁ “你知道1+1=2吗？”");
    assert.equal(states[2], "s₃ “你知道1+1=2吗？是的，”");
    // ½ · mean of the squared advantages, since R − V = A
    const squares = [0.1786, 0.1489, 0.1191, 0.0994, 0.0796, 0.0499].map((a) => a * a);
    const expected = squares.reduce((sum, one) => sum + one, 0) / 12;
    const loss = () => page.locator("[data-module=criticUpdate] output").textContent();
    assert.ok(Math.abs(numberOf(await loss()) - expected) < 1e-7, await loss());
    await edit(page, "value", 0, "0.5");
    await page.waitForFunction(() =>
      document.querySelector('[data-field="values"] .values').textContent.includes("0.5,"),
    );
    assert.deepEqual(problems, []);
    await close();
  });
}

test("the summary has the names that trainers log, correlation and quantiles", browserTest, async () => {
  const { page, problems, close } = await open({ preset: "you-know-surrogate" });
  const summary = await page.locator("#summary").innerText();
  for (const name of ["entropy_per_token_mean", "covariance_mean", "wH_sum", "wH_per_token", "reward_sum_mean", "corr"])
    assert.ok(summary.includes(`analysis/${name}`), name);
  const number = async (key) => numberOf(await page.locator(`#number-${key}`).textContent());
  assert.equal(await number("correlation"), -0.565303);
  // by hand: −p·log p of the six tokens, and (A − mean A)(log p − mean log p)
  const logProbs = [-0.12, -0.08, -0.15, -0.1, -0.05, -0.02];
  const advantages = [0.13, 0.1, 0.08, 0.05, 0.03, 0.05];
  const mean = (list) => list.reduce((sum, one) => sum + one, 0) / list.length;
  const quantile = (list, level) => {
    const sorted = [...list].sort((a, b) => a - b);
    const at = level * (sorted.length - 1);
    return sorted[Math.floor(at)] + (at % 1) * (sorted[Math.ceil(at)] - sorted[Math.floor(at)]);
  };
  const entropies = logProbs.map((x) => -x * Math.exp(x));
  const covariances = logProbs.map((x, i) => (x - mean(logProbs)) * (advantages[i] - mean(advantages)));
  const near = (got, wanted) => assert.ok(Math.abs(got - wanted) < 1e-5 * Math.abs(wanted), `${got}, not ${wanted}`);
  near(await number("entropyP50"), quantile(entropies, 0.5));
  near(await number("entropyP90"), quantile(entropies, 0.9));
  near(await number("covarianceP50"), quantile(covariances, 0.5));
  near(await number("covarianceP90"), quantile(covariances, 0.9));
  // weights with and without the KL gate
  await page.locator("#tab-budget").click();
  await page.waitForSelector("#page-budget:not([hidden])");
  await page.locator("button", { hasText: "Step" }).first().click();
  const cellOf = async (column) =>
    numberOf(await page.locator(`[data-token=rareGood] [data-column=${column}]`).textContent());
  near(await cellOf("gated"), (await cellOf("weight")) * Math.abs(Math.log(0.05) - Math.log(0.02)));
  assert.deepEqual(problems, []);
  await close();
});
