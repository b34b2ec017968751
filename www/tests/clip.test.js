import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, numberOf, open, setParameter } from "./harness.js";
import { checkViews } from "./lab-checks.js";
import { evaluate, sidesOf, textOf, treesOf } from "./mathml.js";

const shown = async (page, id, column) =>
  numberOf(await page.locator(`tr[data-loss="${id}"] td[data-column="${column}"]`).innerText());
/** The table in one message: loss and gradient by the id of their row. */
const table = async (page) => {
  const rows = await page
    .locator("tr[data-loss]")
    .evaluateAll((all) =>
      all.map((row) => [
        row.dataset.loss,
        ["loss", "gradient"].map((column) => row.querySelector(`td[data-column="${column}"]`).innerText),
      ]),
    );
  return Object.fromEntries(
    rows.map(([id, [loss, gradient]]) => [id, { loss: numberOf(loss), gradient: numberOf(gradient) }]),
  );
};
/** As the descriptions in www/labs/clip/losses list them. */
const lossIds = (page) =>
  page.evaluate(async () => (await import(new URL("labs/clip/losses.js", document.baseURI).href)).lossIds);
const example = (page, id) => page.locator("#choice-clip-preset").selectOption(id);
const zeros = (page, id) => page.locator(`tr[data-loss="${id}"] td[data-column=zero]`).innerText();

/** The parameters of a loss as its fields show them, by their symbols. */
const parametersOf = async (page, id) =>
  Object.fromEntries(
    await page
      .locator(`[data-numbers="${id}"] .field`)
      .evaluateAll((all) =>
        all.map((field) => [field.querySelector("math").textContent, Number(field.querySelector("input").value)]),
      ),
  );

/**
 * Loss and gradient by the formulas shown.
 * @param {object[]} formulas the loss, what it refers to, the gradient
 * @param {Record<string, number>} symbols
 */
function byFormula(formulas, symbols) {
  const known = { ...symbols };
  const [loss, ...others] = formulas.map(sidesOf);
  const gradient = others.pop();
  for (const [left, right] of others.reverse()) known[textOf(left)] = evaluate(right, known);
  return { loss: evaluate(loss[1], known), gradient: evaluate(gradient[1], known), known };
}

const near = (got, wanted, tolerance) => Math.abs(got - wanted) <= tolerance * Math.max(1, Math.abs(wanted));

test("every loss and gradient is what its formula says", browserTest, async () => {
  const { page, problems, close } = await open({ page: "clip" });
  await example(page, "all");
  const [q, n, other] = [0.1, 3, 0.1];
  await setParameter(page, "clip-tokens", String(n));
  await setParameter(page, "clip-other", String(other));
  const ids = await lossIds(page);
  assert.deepEqual(await page.locator("tr[data-loss]").evaluateAll((all) => all.map((row) => row.dataset.loss)), ids);
  for (const A of [1.5, -0.5]) {
    await setParameter(page, "clip-advantage", String(A));
    const formulas = {};
    for (const id of ids) {
      await page.locator(`#clip-pick-${id}`).click();
      const [symbols, numbers] = [0, 1].map((box) => page.locator(".clip-why .lab-formula").nth(box).locator("math"));
      formulas[id] = {
        symbols: await treesOf(symbols),
        numbers: await treesOf(numbers),
        parameters: await parametersOf(page, id),
      };
    }
    for (const ratio of [0.05, 0.5, 0.9, 1.1, 1.7, 3.5, 8]) {
      await setParameter(page, "clip-ratio", String(ratio));
      const d = Math.log(ratio);
      const rows = await table(page);
      for (const id of ids) {
        const symbols = { A, ρ: ratio, d, n, dother: other, π: q * ratio, πold: q, ...formulas[id].parameters };
        const wanted = byFormula(formulas[id].symbols, symbols);
        for (const column of ["loss", "gradient"]) {
          const got = rows[id][column];
          assert.ok(
            near(got, wanted[column], 1e-5),
            `${id} at ${ratio}, A ${A}: ${column} ${got}, by its formula ${wanted[column]}`,
          );
        }
      }
    }
  }
  assert.deepEqual(problems, []);
  await close();
});

test("the formulas with numbers give what stands at their end", browserTest, async () => {
  const { page, close } = await open({ page: "clip" });
  await example(page, "all");
  for (const [A, ratio] of [
    [1.5, 1.1],
    [1.5, 3.5],
    [-0.5, 0.5],
    [-0.5, 1.7],
  ]) {
    await setParameter(page, "clip-advantage", String(A));
    await setParameter(page, "clip-ratio", String(ratio));
    for (const id of await lossIds(page)) {
      await page.locator(`#clip-pick-${id}`).click();
      const formulas = await treesOf(page.locator(".clip-why .lab-formula").nth(1).locator("math"));
      const { loss, gradient } = byFormula(formulas, {});
      for (const [got, formula] of [
        [loss, formulas[0]],
        [gradient, formulas.at(-1)],
      ]) {
        const end = evaluate(sidesOf(formula)[2], {});
        assert.ok(near(got, end, 1e-4), `${id} at ${ratio}, A ${A}: ${got}, shown ${end}`);
      }
    }
  }
  await close();
});

test("no two losses look the same", browserTest, async () => {
  const { page, close } = await open({ page: "clip" });
  const looks = await page.locator(".clip-switch svg").evaluateAll((all) => all.map((one) => one.outerHTML));
  assert.equal(looks.length, (await lossIds(page)).length);
  assert.equal(new Set(looks).size, looks.length);
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
  assert.deepEqual(await page.locator("svg.plot").first().locator("text.note").allTextContents(), [
    "1−ε",
    "1+ε",
    "c",
    "π = 1",
  ]);
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
  for (const [name, text] of [
    ["clip-ratio", "11"],
    ["clip-q", "0"],
    ["clip-ppo-eps", "-1"],
    ["clip-tokens", "1.5"],
    ["clip-advantage", "x"],
  ]) {
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
    const { page: clip } = await import("./labs/clip/page.js");
    const { loadLibrary } = await import("./engine.js");
    const { library } = await loadLibrary();
    const state = { ...clip.read({ q: 0.5, most: 4 }), on: ["ppo", "higher", "cispo", "gspo"] };
    const view = clip.mount(document.createElement("div"), {
      library,
      state: () => state,
      change: () => {},
      open: async () => {},
    });
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
    const examples = page.locator("#choice-clip-preset option:not([disabled])");
    for (const id of await examples.evaluateAll((all) => all.map(({ value }) => value))) await example(page, id);
    await example(page, "all");
    const seen = new Set();
    for (const id of await lossIds(page)) {
      await page.locator(`#clip-pick-${id}`).click();
      assert.equal(await page.evaluate(() => document.activeElement?.id), `clip-pick-${id}`);
      assert.ok((await page.locator(".clip-why math").count()) >= 4, id);
      seen.add(await page.locator(".clip-why").innerText());
    }
    assert.equal(seen.size, (await lossIds(page)).length);
    await page.locator("#clip-flip").click();
    assert.doesNotMatch(await page.locator("body").innerText(), /\{\w+\}|undefined|NaN/);
    assert.deepEqual(problems, []);
    await close();
  }
});

test(
  "a broken formula leaves no bracket or comma alone, nor an open bracket at the end of a line",
  browserTest,
  async () => {
    const { page, problems, close } = await open({ page: "clip", width: 360, height: 740 });
    await page.waitForSelector("#page-clip math.broken");
    const parts = await page
      .locator("#page-clip math.broken > *")
      .evaluateAll((all) => all.map(({ textContent }) => textContent));
    for (const part of parts) {
      assert.doesNotMatch(part, /^[)\],]/, part);
      assert.doesNotMatch(part, /[([]$/, part);
    }
    assert.deepEqual(problems, []);
    await close();
  },
);

test("states from outside are checked", browserTest, async () => {
  const { page, close } = await open({ page: "clip" });
  const answers = await page.evaluate(async () => {
    const { page: clip } = await import("./labs/clip/page.js");
    const good = clip.initial();
    return {
      good,
      same: clip.read(JSON.parse(JSON.stringify(good))),
      bad: [null, 3, "x", []].map((data) => clip.read(data)),
      mended: clip.read({
        advantage: NaN,
        q: 7,
        ratio: -1,
        scale: {},
        most: 3,
        tokens: 1e9,
        other: "x",
        on: ["nothing", 5],
        values: { "ppo.eps": 99, evil: 1 },
        chosen: "x",
      }),
      possible: clip.read({ q: 0.9, ratio: 50 }).ratio,
    };
  });
  assert.deepEqual(answers.same, answers.good);
  assert.deepEqual(answers.bad, [null, null, null, null]);
  assert.deepEqual({ ...answers.mended, chosen: "ppo" }, answers.good);
  assert.ok(answers.possible < 1 / 0.9);
  await close();
});

checkViews("clip", async (page, check) => {
  await check("start");
  await example(page, "all");
  await check("all");
});
