import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, keepPicture, numberOf, open, setParameter } from "./harness.js";
import { checkViews } from "./lab-checks.js";

/** The published table of expected gradients: p = softmax(2, 1, 0), ref = (.2, .3, .5), four digits. */
const TRUTH = [0.4035, -0.1955, -0.208];
const PUBLISHED = {
  "truth.forward": [0.5953, TRUTH],
  "loss.k1": [0.5953, [0, 0, 0]],
  "loss.k2": [0.6178, TRUTH],
  "loss.k3": [0.5953, [0.4652, -0.0553, -0.41]],
  "loss.ratio-k3": [0.5953, TRUTH],
  "reward.k1": [0.5953, TRUTH],
};

/** Every row from the definitions, in plain arithmetic and without the library: [expected value, expected gradient]. */
function byHand(logits, q) {
  const total = logits.reduce((sum, z) => sum + Math.exp(z), 0);
  const p = logits.map((z) => Math.exp(z) / total);
  const d = p.map((x, i) => Math.log(x / q[i]));
  const mean = (f) => p.reduce((sum, x, i) => sum + x * f(d[i]), 0);
  // Σ_a p_a f(d_a) ∂log p_a/∂z_v, with ∂log p_a/∂z_v = [a = v] − p_v
  const pull = (f) => p.map((x, v) => p.reduce((sum, y, a) => sum + y * f(d[a]) * (Number(a === v) - x), 0));
  const k = { k1: (x) => x, abs: Math.abs, k2: (x) => (x * x) / 2, k3: (x) => Math.exp(-x) - 1 + x };
  const slope = { k1: () => 1, abs: Math.sign, k2: (x) => x, k3: (x) => 1 - Math.exp(-x) };
  const kl = mean(k.k1);
  const rows = {
    "truth.forward": [kl, p.map((x, i) => x * (d[i] - kl))],
    "truth.other": [q.reduce((sum, y, i) => sum - y * d[i], 0), p.map((x, i) => x - q[i])],
  };
  for (const name of ["k1", "k2", "k3", "abs"]) {
    rows[`loss.${name}`] = [mean(k[name]), pull(slope[name])];
    rows[`reward.${name}`] = [mean(k[name]), pull(k[name])];
  }
  for (const name of ["k1", "k2", "k3"])
    rows[`loss.ratio-${name}`] = [mean(k[name]), pull((x) => slope[name](x) + k[name](x))];
  rows["loss.score-k3"] = rows["loss.ratio-k3"];
  for (const name of ["k1", "k3", "abs"]) rows[`loss.straight-${name}`] = [mean(k[name]), pull((x) => x)];
  return rows;
}

const line = (id) => `tr[data-row="${id}"]`;
const numbers = async (page, id, column) =>
  (await page.locator(`${line(id)} td[data-column="${column}"]`).allTextContents()).map(numberOf);
const choose = (page, id) => page.locator(`[id="kl-pick-${id}"]`).click();
const example = async (page, id) => page.locator("#choice-kl-preset").selectOption(id);

test("the table of expectations: as published, and every row against plain arithmetic", browserTest, async () => {
  const { page, problems, close } = await open({ page: "kl" });
  for (const [id, [value, gradient]] of Object.entries(PUBLISHED)) {
    assert.deepEqual(await numbers(page, id, "value"), [value], id);
    assert.deepEqual(await numbers(page, id, "gradient"), gradient, id);
  }
  const wanted = byHand([2, 1, 0], [0.2, 0.3, 0.5]);
  const ids = await page.locator("tr[data-row]").evaluateAll((all) => all.map((one) => one.dataset.row));
  assert.deepEqual(ids.slice().sort(), Object.keys(wanted).sort());
  // all digits, not only those shown
  const exact = (id, column) =>
    page.locator(`${line(id)} td[data-column="${column}"]`).evaluateAll((all) => all.map((one) => one.title));
  for (const id of ids) {
    const got = [...(await exact(id, "value")), ...(await exact(id, "gradient"))].map(numberOf);
    for (const [i, by] of [wanted[id][0], ...wanted[id][1]].entries())
      assert.ok(Math.abs(got[i] - by) < 1e-12, `${id}: ${got[i]}, by hand ${by}`);
  }
  assert.deepEqual(await numbers(page, "loss.k2", "bias"), [0.0225]);
  assert.deepEqual(await page.locator("[data-share^=policy]").allTextContents(), ["0.6652", "0.2447", "0.0900"]);
  assert.deepEqual(problems, []);
  await close();
});

test("verdicts in words, both languages", browserTest, async () => {
  const words = {
    en: [/zero/, /right/, /other KL/, /right/, /wrong way/],
    zh: [/为零/, /都对/, /另一个 KL/, /都对/, /方向反了/],
  };
  for (const lang of ["en", "zh"]) {
    const { page, close } = await open({ page: "kl", lang });
    for (const [i, id] of ["loss.k1", "loss.k2", "loss.k3", "loss.ratio-k3", "reward.k3"].entries()) {
      assert.match(await page.locator(`${line(id)} .kl-verdict`).innerText(), words[lang][i], id);
    }
    await close();
  }
});

test("a chosen row is explained with its formula, its actions and who uses it; focus stays", browserTest, async () => {
  for (const lang of ["en", "zh"]) {
    const { page, problems, close } = await open({ page: "kl", lang });
    const why = page.locator(".kl-why");
    assert.match(await why.innerText(), /k3/);
    assert.equal(await why.locator("a").first().getAttribute("href"), "https://github.com/huggingface/trl/issues/4967");
    const ids = await page.locator("tr[data-row]").evaluateAll((all) => all.map((one) => one.dataset.row));
    assert.equal(ids.length, 17);
    const seen = new Set();
    for (const id of ids) {
      await choose(page, id);
      assert.equal(await page.evaluate(() => document.activeElement?.id), `kl-pick-${id}`);
      assert.ok((await why.locator("math").count()) >= 2, id);
      assert.equal(await why.locator("tbody tr").count(), 3);
      seen.add(await why.innerText());
    }
    assert.equal(seen.size, ids.length);
    assert.doesNotMatch(await page.locator("body").innerText(), /\{\w+\}|undefined/);
    assert.deepEqual(problems, []);
    await close();
  }
});

test("an edited logit changes everything behind it, and undo gives it back", browserTest, async () => {
  const { page, close } = await open({ page: "kl" });
  await setParameter(page, "kl-policy-0", "0");
  // p = softmax(0, 1, 0): KL(p‖ref) by hand
  const e = Math.E;
  const p = [1 / (2 + e), e / (2 + e), 1 / (2 + e)];
  const q = [0.2, 0.3, 0.5];
  const kl = p.reduce((sum, x, i) => sum + x * Math.log(x / q[i]), 0);
  const round = (x) => Number(x.toFixed(4));
  assert.deepEqual(await numbers(page, "truth.forward", "value"), [round(kl)]);
  assert.deepEqual(
    await numbers(page, "loss.k3", "gradient"),
    p.map((x, i) => round(x - q[i])),
  );
  assert.equal(await page.locator("#choice-kl-preset").inputValue(), "");
  await page.locator("#undo").click();
  assert.deepEqual(await numbers(page, "truth.forward", "value"), [0.5953]);
  await close();
});

test("actions can be added and taken away, written as logits or probabilities", browserTest, async () => {
  const { page, problems, close } = await open({ page: "kl" });
  await page.locator("#choice-kl-form-policy").selectOption("probabilities");
  assert.deepEqual(await numbers(page, "truth.forward", "value"), [0.5953]);
  assert.equal(Number(Number(await page.locator("#field-kl-policy-0").inputValue()).toFixed(6)), 0.665241);
  for (let count = 4; count <= 8; count += 1) await page.locator("#kl-add").click();
  assert.ok(await page.locator("#kl-add").isDisabled());
  assert.equal((await numbers(page, "loss.k3", "gradient")).length, 8);
  for (let count = 7; count >= 2; count -= 1) await page.locator("#kl-remove").click();
  assert.ok(await page.locator("#kl-remove").isDisabled());
  assert.equal((await numbers(page, "loss.k3", "gradient")).length, 2);
  await setParameter(page, "kl-policy-0", "0");
  assert.match(await page.locator("#problem-kl-policy-0").innerText(), /above 0/);
  assert.deepEqual(problems, []);
  await close();
});

test("verl's bound on k3 shortens its expectation", browserTest, async () => {
  const { page, close } = await open({ page: "kl" });
  await example(page, "bound");
  // Σ p·min(k3, 10) with p = softmax(6, 3, 0), by hand
  const weights = [6, 3, 0].map(Math.exp);
  const total = weights.reduce((a, b) => a + b);
  const p = weights.map((weight) => weight / total);
  const ref = [0.2, 0.3, 0.5];
  const k3 = p.map((x, i) => ref[i] / x - 1 + Math.log(x / ref[i]));
  const bounded = p.reduce((sum, x, i) => sum + x * Math.min(10, k3[i]), 0);
  assert.deepEqual(await numbers(page, "loss.k3", "value"), [Number(bounded.toFixed(4))]);
  await page.locator("#choice-kl-bounds").selectOption("unbounded");
  const free = p.reduce((sum, x, i) => sum + x * k3[i], 0);
  assert.deepEqual(await numbers(page, "loss.k3", "value"), [Number(free.toFixed(4))]);
  await close();
});

test(
  "samples: the same seed the same picture, the next seed another; means within their errors",
  browserTest,
  async () => {
    const { page, problems, close } = await open({ page: "kl" });
    const bars = () =>
      page
        .locator("rect[data-series='loss.k1']")
        .evaluateAll((all) => all.map((one) => one.getAttribute("height")).join());
    const before = await bars();
    await page.locator("#kl-again").click();
    const after = await bars();
    assert.notEqual(after, before);
    await setParameter(page, "kl-seed", "1");
    assert.equal(await bars(), before);
    await page.locator("#kl-samples").focus();
    await page.keyboard.press("End");
    await page.waitForFunction(() => document.querySelector(".kl-amount")?.textContent === "100000");
    // the variances of one token under p, by hand
    const p = [2, 1, 0].map((z) => Math.exp(z) / (Math.exp(2) + Math.E + 1));
    const d = p.map((x, i) => Math.log(x / [0.2, 0.3, 0.5][i]));
    const estimators = { k1: (x) => x, abs: Math.abs, k2: (x) => (x * x) / 2, k3: (x) => Math.exp(-x) - 1 + x };
    for (const [name, k] of Object.entries(estimators)) {
      const row = page.locator(`[data-sampled="loss.${name}"]`);
      const mean = p.reduce((sum, x, i) => sum + x * k(d[i]), 0);
      const variance = p.reduce((sum, x, i) => sum + x * (k(d[i]) - mean) ** 2, 0);
      const [shown, error] = (await row.locator("[data-column=mean]").innerText()).split("±").map(numberOf);
      assert.ok(Math.abs(shown - mean) < 5 * Math.sqrt(variance / 1e5), `${name}: ${shown} ${mean}`);
      assert.ok(Math.abs(error - Math.sqrt(variance / 1e5)) < 1e-4, `${name}: ${error}`);
      const spread = numberOf(await row.locator("[data-column=variance]").innerText());
      assert.ok(Math.abs(spread / variance - 1) < 0.05, `${name}: ${spread} ${variance}`);
    }
    await page.locator("#choice-kl-together").selectOption("64");
    await keepPicture(page, "kl-samples", { fullPage: true });
    assert.deepEqual(problems, []);
    await close();
  },
);

test("curves: the slope of ratio·k3 lies on that of k2, until the ratio is another", browserTest, async () => {
  const { page, close } = await open({ page: "kl" });
  const slope = (id) =>
    page.locator(`.kl-pair >> nth=0 >> figure >> nth=1 >> path[data-series="${id}"]`).getAttribute("d");
  assert.equal(await slope("loss.ratio-k3"), await slope("loss.k2"));
  await setParameter(page, "kl-ratio", "2");
  assert.notEqual(await slope("loss.ratio-k3"), await slope("loss.k2"));
  await setParameter(page, "kl-ratio", "-1");
  assert.match(await page.locator("#problem-kl-ratio").innerText(), /above 0/);
  await close();
});

test("states from outside are checked", browserTest, async () => {
  const { page, close } = await open({ page: "kl" });
  const answers = await page.evaluate(async () => {
    const { page: kl } = await import("./labs/kl/page.js");
    const good = kl.initial();
    const bad = [
      null,
      7,
      "x",
      [],
      { policy: 3 },
      { policy: { form: "logits", values: [1] } },
      { policy: { form: "logits", values: [1, 2] } },
      { policy: { form: "logits", values: [1, "2", 3] } },
      { policy: { form: "logits", values: [1, NaN, 3] } },
      { reference: { form: "probabilities", values: [0, 1, 1] } },
      { policy: { form: "logits", values: new Array(1e6).fill(0) } },
    ];
    return {
      same: JSON.stringify(kl.read(JSON.parse(JSON.stringify(good)))) === JSON.stringify(good),
      bad: bad.map((data) => (JSON.stringify(kl.read(data)) === JSON.stringify(good) ? "plain" : kl.read(data))),
      mended: kl.read({ samples: 1e12, seed: -1, chosen: "x", ratio: 0, together: "1", bounds: {}, extra: 1 }),
      good,
    };
  });
  assert.ok(answers.same);
  assert.deepEqual(answers.bad, [null, null, null, "plain", null, null, null, null, null, null, null]);
  assert.deepEqual(answers.mended, answers.good);
  await close();
});

test("tables and curves as CSV", browserTest, async () => {
  const { page, close } = await open({ page: "kl" });
  const files = await page.evaluate(async () => {
    const { page: kl } = await import("./labs/kl/page.js");
    const { loadLibrary } = await import("./engine.js");
    const { library } = await loadLibrary();
    const state = kl.initial();
    const view = kl.mount(document.createElement("div"), {
      library,
      state: () => state,
      change: () => {},
      open: async () => {},
    });
    return Promise.all(view.exports(state).map(async ({ file, make }) => [file, await make()]));
  });
  const table = Object.fromEntries(files)["kl-expectations.csv"].trim().split("\n");
  assert.equal(table[0], "placement,estimate,expected,bias,gradient_1,gradient_2,gradient_3,verdict");
  assert.equal(table.length, 18);
  const k3 = table.find((row) => row.startsWith("loss,k3,")).split(",");
  assert.ok(Math.abs(Number(k3[4]) - 0.4652409557748218) < 1e-12);
  assert.equal(Object.fromEntries(files)["kl-curves.csv"].trim().split("\n").length, 322);
  assert.match(Object.fromEntries(files)["kl-samples.csv"], /^estimate,what,at,value\nk1,mean,,/);
  await close();
});

checkViews("kl", async (page, check) => {
  await check("start");
});
