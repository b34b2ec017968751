import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, numberOf, open, pageModule } from "./harness.js";
import { checkViews } from "./lab-checks.js";

const set = async (page, name, value) => {
  await page.locator(`#field-budget-${name}`).fill(String(value));
  await page.keyboard.press("Enter");
};
const choose = (page, name, value) => page.locator(`#choice-budget-${name}`).selectOption(value);
/** Every digit of logged keys, or null before they are known. */
const logged = async (page, ...keys) => {
  const titles = await page.evaluate(
    (all) => all.map((key) => document.querySelector(`[data-key="${key}"]`).getAttribute("title")),
    keys,
  );
  const numbers = titles.map((title) => (title === null ? null : numberOf(title)));
  return keys.length === 1 ? numbers[0] : numbers;
};
const CONTROLLED = ["lambda", "beta", "usage_ratio", "B_token"].map((key) => `dual_game/${key}`);
const print = (page) => page.locator("#budget-print").textContent();
const goTo = (page, step) => page.locator("#budget-at").fill(String(step));

/** wH, N, reward std, reward mean; KL */
const ROWS = [
  [300, 4000, 0.4, 0.2, 0.05],
  [200, 4000, 0.3, 0.3, 0.01],
  [120, 4000, 0.5, 0.3, 0.3],
  [80, 2000, 0.2, 0.25, 0.02],
  [0.1, 2000, 0.1, 0.2, 0.08],
];

/** Types five steps of numbers and reads what the controllers made of them. */
async function feed(page) {
  await page.locator("#budget-rewind").click();
  const seen = [];
  for (const row of ROWS) {
    await page.locator("#budget-forward").click();
    for (const [i, name] of ["whSum", "tokenCount", "rewardStd", "rewardSumMean", "kl"].entries())
      await set(page, `input-${name}`, row[i]);
    const n = row[1];
    const [lambda, beta, usage, perToken] = await logged(page, ...CONTROLLED);
    seen.push({ lambda, budget: perToken === null ? null : perToken * n, usage, beta });
  }
  return seen;
}

const close = (got, wanted, what) => {
  if (wanted === null) assert.equal(got, null, what);
  else assert.ok(Math.abs(got - wanted) <= 1e-12 * Math.abs(wanted) + 1e-18, `${what}: ${got}, not ${wanted}`);
};

// computed in Python from the rules of the controllers alone, with the rows above; see the comment of each
const GOLDEN = {
  // B0 = 100, B = B0·max(0.1, 0.5·σ̂ + 0.5·u); step 5 is a collapse: λ to a tenth, B = max(0.001, 2·wH/N)
  "reward-std-usage": {
    lambda: [0.001, 0.0015625, 0.0016625000000000001, 0.0017625000000000002, 0.00011635000000000004],
    budget: [100, 87.5, 100, 70, 0.001],
    usage: [3, 2.2857142857142856, 1.2, 1.1428571428571428, 0.0016666666666666668],
  },
  // B = B0·exp(−5·t/200)
  exponential: {
    lambda: [
      0.0010123450439858336, 0.0015367303317354768, 0.0016728585885712004, 0.001568021170535241, 6.865242679506456e-5,
    ],
    budget: [97.53099120283326, 95.1229424500714, 92.77434863285528, 90.48374180359595, 0.001],
    usage: [3.075945361573287, 2.102542192752048, 1.293460981061558, 0.8841367344605182, 0.0011331484530668263],
  },
  // EMA of the reward 0.2, 0.205, 0.20975, 0.2117625, 0.21117…: with min_delta 0.01 and patience 2 a plateau at step 3
  plateau: {
    lambda: [0.001, 0.0015, 0.0017, 0.0017, 9.01e-5],
    budget: [100, 100, 80, 80, 0.001],
    usage: [3, 2, 1.5, 1, 0.00125],
  },
  // η 0.05, λ at most 0.0015, no guard
  constant: {
    lambda: [0.0015, 0.0015, 0.0015, 0.001, 0],
    budget: [100, 100, 100, 100, 100],
    usage: [3, 2, 1.2, 0.8, 0.001],
  },
};

for (const [schedule, wanted] of Object.entries(GOLDEN)) {
  test(`five steps by hand, ${schedule}`, browserTest, async () => {
    const { page, problems, close: end } = await open({ page: "budget" });
    await choose(page, "source", "given");
    await choose(page, "schedule", schedule);
    if (schedule === "exponential") await set(page, "alpha", 5);
    if (schedule === "plateau") {
      await set(page, "minDelta", 0.01);
      await set(page, "patience", 2);
    }
    if (schedule === "constant") {
      await choose(page, "guard", "off");
      await set(page, "lambdaRate", 0.05);
      await set(page, "lambdaMax", 0.0015);
    }
    const seen = await feed(page);
    for (const [i, step] of seen.entries()) {
      for (const what of ["lambda", "budget", "usage"]) close(step[what], wanted[what][i], `${what} of step ${i + 1}`);
      // the linear controller of β runs beside: β + 0.01·(KL − 0.02)
      close(step.beta, [0.0013, 0.0012, 0.004, 0.004, 0.0046][i], `beta of step ${i + 1}`);
    }
    const collapse = await page.locator("[data-update=collapse]").count();
    assert.equal(collapse, schedule === "constant" ? 0 : 1);
    assert.deepEqual(problems, []);
    await end();
  });
}

test("warm-up, window of the target, adaptive and fixed β by hand", browserTest, async () => {
  const { page, close: end } = await open({ page: "budget" });
  await set(page, "warmUp", 2);
  await set(page, "rho", 0.5);
  await choose(page, "klFollow", "on");
  await set(page, "klLength", 3);
  const seen = await feed(page);
  // B0 = 0.5·(300 + 200)/2 = 125 from step 3 on; λ would be negative there, and stays 0
  for (const [i, budget] of [null, null, 125, 85, 0.001].entries()) close(seen[i].budget, budget, `B of step ${i + 1}`);
  assert.deepEqual(
    seen.map(({ lambda }) => lambda),
    [0, 0, 0, 0, 0],
  );
  // D = 0.02, 0.02, then 1.1 times the mean of the last three KL
  for (const [i, beta] of [0.0013, 0.0012, 0.00288, 0.00187, 0.00120333333333333].entries())
    assert.ok(Math.abs(seen[i].beta - beta) < 1e-15, `β of step ${i + 1}`);
  await choose(page, "controller", "adaptive");
  // β·(1 + clip(KL/0.02 − 1, ±0.2)·64/10000), five times
  close(await logged(page, "dual_game/beta"), 0.0010025599958030115, "adaptive β");
  await choose(page, "controller", "fixed");
  close(await logged(page, "dual_game/beta"), 0.001, "fixed β");
  await end();
});

/** The rules written again, independent of the library: group C1 in the toy world. */
async function simulate(settings, steps) {
  const { measure } = await pageModule("labs/budget/world.js");
  let [lambda, beta, b0, sigmaMax, usage] = [0, 0.001, null, 0, null];
  const warm = [];
  const log = [];
  for (let step = 1; step <= steps; step += 1) {
    const { whSum, tokenCount, kl, rewardStd } = measure(settings, step, { lambda, beta });
    if (step - 1 < Math.min(100, Math.floor(settings.steps / 10))) sigmaMax = Math.max(sigmaMax, rewardStd);
    let budget = null;
    if (b0 !== null) {
      const sigma = sigmaMax > 0 ? Math.min(1, rewardStd / sigmaMax) : 0;
      budget = b0 * Math.max(0.1, 0.5 * sigma + 0.5 * (usage === null ? 1 : Math.min(usage, 1)));
      lambda = Math.min(10, Math.max(0, lambda + 0.02 * (whSum / tokenCount - budget / tokenCount)));
      usage = whSum / Math.max(budget, 1e-8);
    } else if (warm.push(whSum) === 10) b0 = (0.45 * warm.reduce((a, b) => a + b)) / 10;
    const collapse = step >= 3 && whSum / tokenCount < 1e-4;
    if (collapse) [lambda, budget] = [lambda * 0.1, budget === null ? null : Math.max(0.001, (2 * whSum) / tokenCount)];
    beta = Math.max(1e-6, beta + 0.01 * (kl - 0.02));
    log.push({ lambda, beta, usage, collapse, perToken: budget === null ? null : budget / tokenCount });
  }
  return log;
}

test("every scenario ends where the rules say", browserTest, async () => {
  const { page, problems, close: end } = await open({ page: "budget" });
  const digits = (value) => (value === null ? null : Number(value.toPrecision(5)));
  for (const scenario of ["steady", "falling", "collapse", "noisy", "drift", "plateau"]) {
    await choose(page, "scenario", scenario);
    const log = await simulate({ scenario, seed: 1, steps: 200, tokens: 4000, answerLambda: 30, answerBeta: 100 }, 200);
    for (const step of [9, 60, 150, 200]) {
      await goTo(page, step);
      const wanted = log[step - 1];
      const [lambda, beta, usage, perToken] = await logged(page, ...CONTROLLED);
      const got = { lambda, beta, usage, perToken };
      for (const what of Object.keys(got))
        assert.equal(digits(got[what]), digits(wanted[what]), `${scenario}, step ${step}: ${what}`);
      assert.equal(await page.locator("[data-update=collapse]").count(), wanted.collapse ? 1 : 0);
    }
    const marks = await page.locator("[data-plot=budget] text.note").allTextContents();
    assert.equal(
      marks.includes("collapse"),
      log.some(({ collapse }) => collapse),
      scenario,
    );
  }
  assert.deepEqual(problems, []);
  await end();
});

test("rewound and stepped again: the same bits", browserTest, async () => {
  const { page, close: end } = await open({ page: "budget" });
  await choose(page, "scenario", "noisy");
  await choose(page, "budgetFollow", "on");
  await choose(page, "klFollow", "on");
  await page.locator("#budget-rewind").click();
  const walk = async (count) => {
    const prints = [];
    for (let i = 0; i < count; i += 1) {
      await page.locator("#budget-forward").click();
      prints.push([await print(page), ...(await logged(page, ...CONTROLLED.slice(0, 2)))].join());
    }
    return prints;
  };
  const first = await walk(25);
  assert.equal(new Set(first).size, 25);
  await page.locator("#budget-rewind").click();
  assert.equal(await print(page), "0000000000000000");
  assert.deepEqual(await walk(25), first);
  assert.match(await page.locator("#budget-proof").textContent(), /same bits/);
  for (let i = 0; i < 10; i += 1) await page.locator("#budget-back").click();
  assert.equal((await print(page)).slice(0, 16), first[14].slice(0, 16));
  assert.deepEqual(await walk(10), first.slice(15));
  await goTo(page, 200);
  const last = await print(page);
  await goTo(page, 3);
  await goTo(page, 200);
  assert.equal(await print(page), last);
  // another world, and back by undo
  await set(page, "seed", 2);
  assert.notEqual(await print(page), last);
  await page.locator("#undo").click();
  assert.equal(await print(page), last);
  await end();
});

test("playing is one step of undo, and stops when it should", browserTest, async () => {
  const { page, problems, close: end } = await open({ page: "budget", motion: "no-preference" });
  const at = async () => Number(await page.locator("#budget-at").inputValue());
  const play = page.locator("#budget-play");
  await choose(page, "speed", "30");
  await page.locator("#budget-rewind").click();
  await play.click();
  assert.match(await play.textContent(), /Pause/);
  await page.waitForFunction(() => Number(document.querySelector("#budget-at").value) > 10);
  await play.click();
  const stood = await at();
  await page.waitForTimeout(150);
  assert.equal(await at(), stood);
  await page.locator("#undo").click();
  assert.equal(await at(), 0, "one undo takes all of the playing back");
  // another page comes to the front
  await play.click();
  await page.waitForFunction(() => Number(document.querySelector("#budget-at").value) > 2);
  await page.locator("#tab-chain").click();
  await page.waitForSelector("#page-budget[hidden]", { state: "attached" });
  const left = await at();
  await page.waitForTimeout(200);
  assert.equal(await at(), left);
  await page.locator("#tab-budget").click();
  assert.match(await play.textContent(), /Play/);
  // the window goes to the background
  await play.click();
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
    document.dispatchEvent(new Event("visibilitychange"));
    delete document.hidden;
  });
  assert.match(await play.textContent(), /Play/);
  // the end
  await goTo(page, 195);
  await play.click();
  await page.waitForFunction(() => Number(document.querySelector("#budget-at").value) === 200);
  await page.waitForFunction(() => document.querySelector("#budget-play").textContent.includes("Play"));
  assert.deepEqual(problems, []);
  await end();
});

test("with reduced motion only numbers move while it plays", browserTest, async () => {
  const { page, close: end } = await open({ page: "budget", motion: "reduce" });
  const curve = () => page.locator("[data-plot=lambda] path.curve").getAttribute("d");
  await choose(page, "speed", "30");
  const before = await curve();
  await page.locator("#budget-play").click();
  await page.waitForFunction(() => Number(document.querySelector("#budget-at").value) > 90);
  assert.equal(await curve(), before);
  await page.locator("#budget-play").click();
  assert.notEqual(await curve(), before);
  await end();
});

test("inputs: typed numbers stay, go back to the script, and are refused with a reason", browserTest, async () => {
  const { page, close: end } = await open({ page: "budget" });
  const scripted = await page.locator("#field-budget-input-whSum").inputValue();
  await set(page, "input-whSum", 500);
  assert.equal(await logged(page, "analysis/wH_sum"), 500);
  await set(page, "answerLambda", 0);
  assert.equal(await logged(page, "analysis/wH_sum"), 500);
  await page.locator("#undo").click();
  await page.getByRole("button", { name: "Σ wH: back to the script" }).click();
  assert.equal(await page.locator("#field-budget-input-whSum").inputValue(), scripted);
  for (const [name, value, words] of [
    ["input-tokenCount", "0", /at least 1/],
    ["input-tokenCount", "2.5", /whole number/],
    ["input-kl", "NaN", /finite/],
    ["input-rewardStd", "-1", /negative/],
    ["lambdaRate", "-1", /positive/],
    ["steps", "5", /from 10 to 1000/],
    ["warmUp", "0", /at least 1/],
    ["share", "2", /0, 1|between/],
    ["gain", "-1", /Still 1\.2/],
  ]) {
    const field = page.locator(`#field-budget-${name}`);
    const old = await field.inputValue();
    await set(page, name, value);
    assert.match(await page.locator(`#problem-budget-${name}`).textContent(), words);
    assert.equal(await field.inputValue(), old);
  }
  await end();
});

test("the formula of λ has the numbers of the step", browserTest, async () => {
  const { page, close: end } = await open({ page: "budget" });
  await choose(page, "source", "given");
  await feed(page);
  await goTo(page, 2);
  const text = (await page.locator("[data-update=lambda] .formula").textContent()).replaceAll(/\s/g, "");
  // λ 0.001, η 0.02, wH 200, B 87.5, N 4000
  assert.match(text, /=min\(10,max\(0,0\.001\+0\.02\(2004000−87\.54000\)\)\)=0\.0015625$/);
  assert.match(
    (await page.locator("[data-update=linear] .formula").textContent()).replaceAll(/\s/g, ""),
    /max\(1e−6,0\.0013\+0\.01\(0\.01−0\.02\)\)=0\.0012$/,
  );
  await end();
});

test("prices on single tokens: A_mod by hand", browserTest, async () => {
  const { page, close: end } = await open({ page: "budget" });
  await set(page, "gain", 1.5);
  const [lambda, beta] = [await logged(page, "dual_game/lambda"), await logged(page, "dual_game/beta")];
  assert.ok(lambda > 0 && beta > 0);
  for (const [id, p, reference, a] of [
    ["likelyGood", 0.8, 0.7, 1],
    ["rareGood", 0.05, 0.02, 1],
    ["likelyBad", 0.8, 0.7, -1],
    ["rareBad", 0.05, 0.02, -1],
  ]) {
    const shown = async (column) =>
      numberOf(await page.locator(`[data-token=${id}] [data-column=${column}]`).getAttribute("title"));
    const base = a > 0 ? a : 1.5 * a;
    const weight = p * (1 - p) * Math.abs(a);
    const modified = base - lambda * weight * (-Math.log(p) - 1) - beta * (Math.log(p) - Math.log(reference));
    assert.equal(await shown("base"), base);
    assert.ok(Math.abs((await shown("weight")) - weight) < 1e-15);
    assert.ok(Math.abs((await shown("modified")) - modified) < 1e-12);
  }
  await end();
});

test("without a mouse: step, slide, choose, type", browserTest, async () => {
  const { page, close: end } = await open({ page: "budget" });
  await page.locator("#budget-rewind").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "budget-forward");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Space");
  assert.equal(await page.locator("#budget-at").inputValue(), "2");
  assert.equal(await page.evaluate(() => document.activeElement.id), "budget-forward", "focus stays on the button");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "budget-at");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator("#budget-where").textContent(), /step 3 of 200/);
  await page.keyboard.press("End");
  assert.equal(await page.locator("#budget-forward").getAttribute("aria-disabled"), "true");
  await page.locator("#field-budget-target").focus();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.locator("#field-budget-target").inputValue(), "0.04");
  await end();
});

test("what a link may carry: hostile states are mended, never thrown", browserTest, async () => {
  const { page, close: end } = await open({ page: "budget" });
  const read = (data) =>
    page.evaluate(async (text) => {
      const { page: module } = await import(new URL("labs/budget/page.js", document.baseURI).href);
      return module.read(JSON.parse(text));
    }, JSON.stringify(data));
  for (const nothing of [null, 3, "x", []]) assert.equal(await read(nothing), null);
  const mended = await read({
    at: 1e9,
    speed: 1e9,
    settings: { steps: 1e12, scenario: "<b>", lambda: "0", rho: 0.3, seed: -1, more: 1 },
    edits: { 5: { whSum: 3, kl: null, evil: 1 }, "-1": { whSum: 1 }, 9999: { whSum: 1 }, __proto__: { whSum: 1 } },
  });
  assert.equal(mended.at, 200);
  assert.equal(mended.speed, 10);
  assert.equal(mended.settings.steps, 200);
  assert.equal(mended.settings.scenario, "falling");
  assert.equal(mended.settings.rho, 0.3);
  assert.equal("more" in mended.settings, false);
  assert.deepEqual(mended.edits, { 5: { whSum: 3 } });
  // numbers that only the library can refuse: said on the page, which stays usable
  const shown = await page.evaluate(async () => {
    const address = (path) => new URL(path, document.baseURI).href;
    const [{ page: module }, { loadLibrary }] = await Promise.all([
      import(address("labs/budget/page.js")),
      import(address("engine.js")),
    ]);
    const { library } = await loadLibrary();
    const told = [];
    for (const data of [
      { at: 50, settings: { lambda: -1 } },
      { at: 50, settings: { controller: "adaptive", beta: -1 } },
      { at: 50, edits: { 5: { tokenCount: 0 } } },
      { at: 50, settings: { gain: -3, whRange: "on", whLow: 2, whHigh: 1 } },
    ]) {
      const state = module.read(data);
      document.querySelector("#page-budget")?.remove();
      const place = document.querySelector("#content").appendChild(document.createElement("div"));
      place.id = "page-budget";
      module.mount(place, { library, state: () => state, change: () => {}, open: async () => {} }).draw(state, true);
      told.push(place.querySelector(".refusal").textContent);
    }
    return told;
  });
  for (const text of shown) assert.match(text, /Outside what the formula allows \(.+\)\./);
  await end();
});

checkViews("budget", async (page, check) => {
  await choose(page, "scenario", "collapse");
  await goTo(page, 130);
  await check("collapse");
});
