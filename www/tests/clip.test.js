import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { browserTest, numberOf, open, repository, setParameter } from "./harness.js";

const screenshots = process.env.SCREENSHOT_DIR ?? join(repository, "target/screenshots");

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const binaryKl = (p, q) => q * Math.log(q / p) + (1 - q) * Math.log((1 - q) / (1 - p));
const seq = (r, n, o) => Math.exp((Math.log(r) + (n - 1) * o) / n);

/** Every loss and gradient by hand, from the papers: r ratio, A advantage, q old probability, n tokens, o log-ratio of the others. */
const PPO = (r, A, low = 0.2, high = 0.2) => [-Math.min(r * A, clamp(r, 1 - low, 1 + high) * A), (A >= 0 ? r <= 1 + high : r >= 1 - low) ? -r * A : 0];
const weighed = (weight, r, A, q) => [-weight * A * Math.log(q * r), -weight * A];
const HAND = {
  surrogate: (r, A) => [-r * A, -r * A],
  ppo: (r, A) => PPO(r, A),
  higher: (r, A) => PPO(r, A, 0.2, 0.28),
  dual: (r, A) => (A < 0 && r > 3 ? [-3 * A, 0] : PPO(r, A)),
  delta: (r, A) => (A < 0 && r > 4 ? [-4 * A, 0] : PPO(r, A)),
  gspo: (r, A, q, n, o) => PPO(seq(r, n, o), A),
  luspo: (r, A, q, n, o) => PPO(seq(r, n, o), A),
  gmpo: (r, A, q, n, o) => {
    const held = (d) => (A > 0 ? Math.min(d, 0.4) : Math.max(d, -0.4));
    const R = Math.exp((held(Math.log(r)) + (n - 1) * held(o)) / n);
    return [-A * R, held(Math.log(r)) === Math.log(r) ? -A * R : 0];
  },
  vespo: (r, A, q, n, o) => {
    const [k, lambda] = A < 0 ? [3, 2] : [2, 3];
    const w = Math.exp(Math.log(r) + (n - 1) * o);
    return weighed(w ** k * Math.exp(lambda * (1 - w)), r, A, q);
  },
  cispo: (r, A, q) => weighed(clamp(r, 0.8, 1.2), r, A, q),
  cispoCap: (r, A, q) => weighed(Math.min(r, 5), r, A, q),
  tis: (r, A, q) => weighed(Math.min(r, 1), r, A, q),
  topr: (r, A, q) => weighed(A > 0 ? 1 : Math.min(r, 1), r, A, q),
  dppoTv: (r, A, q) => weighed(Math.min(r, 3) * Number(A > 0 ? q * r - q <= 0.2 : q * r - q >= -0.2), r, A, q),
  dppoKl: (r, A, q) => weighed(Math.min(r, 3) * Number(binaryKl(q * r, q) <= 0.2 || (A > 0 ? r <= 1 : r >= 1)), r, A, q),
  reinforce: (r, A, q) => weighed(1, r, A, q),
  sapo: (r, A) => {
    const tau = A > 0 ? 1 : 1.05;
    const gate = sigmoid(tau * (r - 1));
    return [-(4 / tau) * gate * A, -4 * gate * (1 - gate) * r * A];
  },
  dro: (r, A, q) => [-(A * Math.log(q * r) - 0.5 * Math.log(r) ** 2), -A + Math.log(r)],
  klCov: (r, A) => [-r * A + 0.1 * Math.abs(Math.log(r)), -r * A + 0.1 * Math.sign(Math.log(r))],
};

const shown = async (page, id, column) => numberOf(await page.locator(`tr[data-loss="${id}"] td[data-column="${column}"]`).innerText());
const example = (page, id) => page.locator("#choice-clip-preset").selectOption(id);
const zeros = (page, id) => page.locator(`tr[data-loss="${id}"] td[data-column=zero]`).innerText();

test("every loss and gradient against formulas written by hand", browserTest, async () => {
  const { page, problems, close } = await open({ page: "clip" });
  await example(page, "all");
  await setParameter(page, "clip-tokens", "3");
  await setParameter(page, "clip-other", "0.1");
  for (const advantage of [1.5, -0.5]) {
    await setParameter(page, "clip-advantage", String(advantage));
    for (const ratio of [0.05, 0.5, 0.9, 1.1, 1.7, 3.5, 8]) {
      await setParameter(page, "clip-ratio", String(ratio));
      const rows = await page.locator("tr[data-loss]").evaluateAll((all) => all.map((row) => [row.dataset.loss, row.children[1].textContent, row.children[2].textContent]));
      assert.equal(rows.length, 19);
      for (const [id, loss, gradient] of rows) {
        const [wanted, slope] = HAND[id](ratio, advantage, 0.1, 3, 0.1);
        for (const [got, by] of [[loss, wanted], [gradient, slope]]) {
          assert.ok(Math.abs(numberOf(got) - by) <= 1e-5 * Math.max(1, Math.abs(by)), `${id} at ${ratio}, A ${advantage}: ${got}, by hand ${by}`);
        }
      }
    }
  }
  assert.deepEqual(problems, []);
  await close();
});

test("where the gradient ends", browserTest, async () => {
  const { page, close } = await open({ page: "clip" });
  await example(page, "all");
  assert.equal(await zeros(page, "ppo"), "above 1.2");
  assert.equal(await zeros(page, "higher"), "above 1.28");
  assert.equal(await zeros(page, "gspo"), "above 1.44"); // 1.2², the other token stands still
  assert.equal(await zeros(page, "gmpo"), `above ${Number(Math.exp(0.4).toPrecision(6))}`);
  assert.equal(await zeros(page, "dppoTv"), "above 3"); // 0.1 + 0.2 = 0.3
  assert.equal(await zeros(page, "dro"), `at ${Number(Math.E.toPrecision(6))}`);
  for (const id of ["surrogate", "cispo", "sapo", "vespo", "tis"]) assert.equal(await zeros(page, id), "nowhere");
  await page.locator("#clip-flip").click();
  assert.equal(await zeros(page, "ppo"), "below 0.8");
  assert.equal(await zeros(page, "dual"), "below 0.8 and above 3");
  assert.equal(await zeros(page, "delta"), "below 0.8 and above 4");
  await close();
});

test("dual clip stops a bad token where PPO does not", browserTest, async () => {
  const { page, close } = await open({ page: "clip" });
  await example(page, "dual");
  assert.equal(await shown(page, "ppo", "gradient"), 5);
  assert.equal(await shown(page, "dual", "gradient"), 0);
  assert.equal(await shown(page, "dual", "loss"), 3);
  assert.deepEqual(await page.locator("svg.plot").first().locator("text.note").allTextContents(), ["1−ε", "1+ε", "c", "π = 1"]);
  await setParameter(page, "clip-dual-c", "6");
  assert.equal(await shown(page, "dual", "gradient"), 5);
  await close();
});

test("losses are switched on and off, with their numbers; undo goes back", browserTest, async () => {
  const { page, problems, close } = await open({ page: "clip" });
  const numbers = () => page.locator("[data-numbers]").evaluateAll((all) => all.map((one) => one.dataset.numbers));
  assert.deepEqual((await numbers()).sort(), ["cispo", "gspo", "ppo", "sapo", "sequence"]);
  await page.locator("#clip-on-dual").click();
  assert.ok((await numbers()).includes("dual"));
  assert.equal(await page.locator("#clip-on-dual").getAttribute("aria-pressed"), "true");
  assert.equal(await page.locator("path[data-series=dual]").count(), 2);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "clip-on-dual");
  await page.locator("#clip-on-gspo").click();
  assert.ok(!(await numbers()).includes("sequence"));
  assert.equal(await page.locator("path[data-series=gspo]").count(), 0);
  await page.locator("#undo").click();
  assert.equal(await page.locator("path[data-series=gspo]").count(), 2);
  // the last one stays
  for (const id of ["surrogate", "ppo", "cispo", "sapo", "gspo", "dual"]) await page.locator(`#clip-on-${id}`).click();
  assert.equal(await page.locator("tr[data-loss]").count(), 1);
  assert.deepEqual(problems, []);
  await close();
});

test("the token moves by keys and by pointer, as one step of undo", browserTest, async () => {
  const { page, problems, close } = await open({ page: "clip" });
  const plot = page.locator("svg.plot").first();
  const ratio = async () => numberOf(await page.locator("#field-clip-ratio").inputValue());
  await plot.focus();
  for (let i = 0; i < 5; i += 1) await page.keyboard.press("ArrowLeft");
  assert.ok(Math.abs((await ratio()) - 1.3) < 1e-9);
  assert.equal(await plot.getAttribute("aria-valuetext"), "ρ 1.3");
  assert.equal(await shown(page, "ppo", "gradient"), 0);
  await page.keyboard.press("Shift+ArrowLeft");
  assert.ok(Math.abs((await ratio()) - 0.9) < 1e-9);
  assert.equal(await shown(page, "ppo", "gradient"), -0.9);
  await page.locator("#undo").click();
  assert.equal(await ratio(), 1.5);
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2, { steps: 5 });
  await page.mouse.move(box.x + box.width - 17, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
  assert.ok((await ratio()) > 3.95, String(await ratio()));
  await page.locator("#undo").click();
  assert.equal(await ratio(), 1.5);
  assert.deepEqual(problems, []);
  await close();
});

test("bad numbers keep the old one and say why", browserTest, async () => {
  const { page, problems, close } = await open({ page: "clip", lang: "zh" });
  for (const [name, text] of [["clip-ratio", "11"], ["clip-q", "0"], ["clip-ppo-eps", "-1"], ["clip-tokens", "1.5"], ["clip-advantage", "x"]]) {
    await setParameter(page, name, text);
    assert.match(await page.locator(`#problem-${name}`).innerText(), /仍为/, name);
  }
  // a larger old probability keeps the ratio possible
  await setParameter(page, "clip-q", "0.8");
  assert.ok(numberOf(await page.locator("#field-clip-ratio").inputValue()) <= 1.25);
  assert.deepEqual(problems, []);
  await close();
});

test("no curve is asked at a bound, and none where a probability would be above 1", browserTest, async () => {
  const { page, close } = await open({ page: "clip" });
  const found = await page.evaluate(async () => {
    const { page: clip } = await import("./labs/clip.js");
    const { loadLibrary } = await import("./engine.js");
    const { library } = await loadLibrary();
    const state = { ...clip.read({ q: 0.5, most: 4 }), on: ["ppo", "higher", "cispo", "gspo"] };
    const view = clip.mount(document.createElement("div"), { library, state: () => state, change: () => {}, open: async () => {} });
    const [{ make, file }] = view.exports(state);
    return { file, text: await make() };
  });
  assert.equal(found.file, "clip-curves.csv");
  const [head, ...lines] = found.text.trim().split("\n");
  assert.equal(head, "loss,ratio,value,gradient");
  const ratios = lines.map((line) => Number(line.split(",")[1]));
  assert.ok(ratios.length > 200);
  for (const bound of [0.8, 1.2, 1.28, 1.44]) assert.ok(!ratios.includes(bound));
  assert.ok(ratios.every((ratio) => ratio > 0 && ratio < 2));
  await close();
});

test("framework numbers come from the library and can be taken over", browserTest, async () => {
  const { page, close } = await open({ page: "clip" });
  const line = (key) => page.locator(`tr[data-convention="${key}"] td`).allTextContents();
  assert.deepEqual(await line("dual_clip.bound"), ["off", "3", "off", "off"]);
  assert.deepEqual(await line("gspo.clip"), ["0.0003 / 0.0004", "0.2 / 0.2", "0.2 / 0.2", "0.2 / 0.2"]);
  assert.deepEqual(await line("cispo.bounds"), ["1 − 0.2 … 1 + 0.2", "1 − 0.2 … 1 + 0.2", "≤ 5", "1 − 0.2 … 1 + 0.2"]);
  await page.locator("#clip-take-paper").click();
  assert.equal(await page.locator("#field-clip-gspo-low").inputValue(), "0.0003");
  assert.equal(await zeros(page, "gspo"), "above 1.0008");
  await close();
});

test("each loss explains itself in both languages", browserTest, async () => {
  for (const lang of ["en", "zh"]) {
    const { page, problems, close } = await open({ page: "clip", lang });
    for (const id of ["overview", "dual", "higher", "keeps", "soft", "outlier", "rare", "bad", "all"]) await example(page, id);
    const seen = new Set();
    for (const id of Object.keys(HAND)) {
      await page.locator(`#clip-pick-${id}`).click();
      assert.equal(await page.evaluate(() => document.activeElement?.id), `clip-pick-${id}`);
      assert.ok((await page.locator(".clip-why math").count()) >= 4, id);
      seen.add(await page.locator(".clip-why").innerText());
    }
    assert.equal(seen.size, 19);
    await page.locator("#clip-flip").click();
    assert.doesNotMatch(await page.locator("body").innerText(), /\{\w+\}|undefined|NaN/);
    assert.deepEqual(problems, []);
    await close();
  }
});

test("states from outside are checked", browserTest, async () => {
  const { page, close } = await open({ page: "clip" });
  const answers = await page.evaluate(async () => {
    const { page: clip } = await import("./labs/clip.js");
    const good = clip.initial();
    return {
      good,
      same: clip.read(JSON.parse(JSON.stringify(good))),
      bad: [null, 3, "x", []].map((data) => clip.read(data)),
      mended: clip.read({ advantage: NaN, q: 7, ratio: -1, scale: {}, most: 3, tokens: 1e9, other: "x", on: ["nothing", 5], values: { "ppo.eps": 99, evil: 1 }, chosen: "x" }),
      possible: clip.read({ q: 0.9, ratio: 50 }).ratio,
    };
  });
  assert.deepEqual(answers.same, answers.good);
  assert.deepEqual(answers.bad, [null, null, null, null]);
  assert.deepEqual({ ...answers.mended, chosen: "ppo" }, answers.good);
  assert.ok(answers.possible < 1 / 0.9);
  await close();
});

for (const lang of ["en", "zh"]) {
  for (const theme of ["light", "dark"]) {
    for (const width of [360, 800, 1400]) {
      test(`${lang}, ${theme}, ${width} wide: nothing sticks out, no axe violations`, browserTest, async () => {
        const { page, problems, close } = await open({ page: "clip", lang, theme, width, height: width === 360 ? 740 : 1000 });
        await mkdir(screenshots, { recursive: true });
        if (theme === "dark") await example(page, "all");
        await page.waitForTimeout(100);
        await page.screenshot({ path: join(screenshots, `clip-${width}-${theme}-${lang}.png`), fullPage: true });
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(overflow <= 0, `${overflow} pixels too wide`);
        await page.evaluate(await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`), []);
        assert.deepEqual(problems, []);
        await close();
      });
    }
  }
}
