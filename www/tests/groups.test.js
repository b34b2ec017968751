import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, edit, numberOf, open, rowOf, setParameter } from "./harness.js";
import { checkLook, exportOf } from "./lab-checks.js";

const PRESETS = ["winner", "near-tied", "equal", "single", "outlier", "unequal", "lengths", "two-sources"];
const preset = (page, id) => page.locator("#choice-groups-preset").selectOption(id);
const first = async (page, row) => (await rowOf(page, row))[0];
const why = (page) => page.locator(".groups-bench .lab-why");

// the textbook: every estimator once more, written from its definition and without the library
const mean = (x) => x.reduce((a, b) => a + b, 0) / x.length;
const deviation = (x, ddof = 1) => Math.sqrt(x.reduce((all, v) => all + (v - mean(x)) ** 2, 0) / (x.length - ddof));
function textbook(groups, lengths, greedy) {
  const all = groups.flat();
  const tokens = lengths.flat();
  const each = (f) => groups.flatMap((s, g) => s.map((v, i) => f(v, i, s, lengths[g], greedy[g])));
  const scaled = (epsilon) => each((v, _, s) => (v - mean(s)) / (deviation(s) + epsilon));
  const whiten = (values) => {
    const laid = values.flatMap((v, i) => Array(tokens[i]).fill(v));
    return values.map((v) => (v - mean(laid)) / Math.sqrt(deviation(laid) ** 2 + 1e-8));
  };
  const centred = each((v, _, s) => v - mean(s));
  return {
    "grpo-verl": scaled(1e-6),
    "grpo-trl": scaled(1e-4),
    "grpo-openrlhf": scaled(1e-9),
    "areal": scaled(1e-5),
    "grpo-population": each((v, _, s) => (v - mean(s)) / deviation(s, 0)),
    "grpo-batch": centred.map((c) => c / (deviation(all) + 1e-4)),
    "nemo": each((v, i, s) => {
      const others = s.filter((_, j) => j !== i);
      const spread = others.length > 1 ? deviation(others) : 0;
      return spread > 0 ? (v - mean(others)) / (spread + 1e-6) : v - mean(others);
    }),
    "dr-grpo": centred,
    "rloo": each((v, i, s) => v - mean(s.filter((_, j) => j !== i))),
    "max-rl": each((v, _, s) => (v - mean(s)) / (mean(s) + 1e-6)),
    "gpg": centred.map((c) => (c * all.length) / all.filter((v) => v !== 0).length),
    "opo": each((v, _, s, n) => v - s.reduce((a, x, j) => a + n[j] * x, 0) / n.reduce((a, b) => a + b, 0)),
    "pass-k": each((v, i, s) => {
      const ranked = [...s].sort((a, b) => b - a);
      return s.indexOf(ranked[0]) === i ? (ranked[0] - ranked[1]) / (deviation(s) + 1e-6) : 0;
    }),
    "remax": each((v, _, s, n, b) => v - b),
    "flash": all.map((v) => v - mean(all)),
    "rf-baseline": whiten(centred),
    "rf": whiten(all),
    "decoupled": scaled(1e-4),
    "gdpo": whiten(scaled(1e-6)),
    "token-baseline": each((v, i, s, n) => {
      const [longest, next] = [...n].sort((a, b) => b - a);
      return mean(
        Array.from({ length: n[i] }, (_, t) => {
          const running = s.filter((_, j) => n[j] > t);
          return n[i] === longest && longest > next && t >= next ? v : v - mean(running);
        }),
      );
    }),
  };
}

test("one winner: the numbers of the survey, and its formula with numbers", browserTest, async () => {
  const { page, problems, close } = await open({ page: "groups" });
  assert.equal(await first(page, "grpo-verl"), 1.499997);
  assert.equal(await first(page, "grpo-trl"), 1.4997);
  assert.equal(await first(page, "grpo-openrlhf"), 1.5);
  assert.equal(await first(page, "grpo-population"), 1.732051);
  assert.equal(await first(page, "dr-grpo"), 0.75);
  assert.equal(await first(page, "rloo"), 1);
  const formulas = await why(page)
    .locator("math")
    .evaluateAll((all) => all.map((one) => one.textContent));
  assert.deepEqual(formulas, ["Ai=si−μgσg+ε", "=1−0.250.5+1e(−6)=1.499997".replace("(−6)", "−6")]);
  assert.match(await why(page).textContent(), /1\.499997000006/);
  assert.match(await why(page).textContent(), /n = 4, mean 0\.25, deviation 0\.5 .*0\.433013/);
  assert.deepEqual(problems, []);
  await close();
});

test("nearly tied: the ε of each framework decides", browserTest, async () => {
  const { page, close } = await open({ page: "groups" });
  await preset(page, "near-tied");
  const last = async (row) => (await rowOf(page, row))[3];
  assert.equal(Number((await last("grpo-verl")).toFixed(4)), 1.4706);
  assert.equal(Number((await last("grpo-trl")).toFixed(4)), 0.5);
  assert.equal(Number((await last("grpo-openrlhf")).toFixed(5)), 1.49997);
  assert.equal(Number((await last("grpo-population")).toFixed(4)), 1.7321);
  await page.locator(cell("grpo-trl", 3)).click();
  // σ = 5e-5 against ε = 1e-4: two thirds are lost
  assert.match(
    await why(page).textContent(),
    /Compared with the deviation 5e−5, ε = 0\.0001 is not small: ε alone removes 66\.7 %/,
  );
  await close();
});

test("all estimators agree with the textbook, on two groups of unequal size and length", browserTest, async () => {
  const { page, problems, close } = await open({ page: "groups" });
  await preset(page, "unequal");
  const expected = textbook(
    [
      [1, 0, 1, 0],
      [0, 1],
    ],
    [
      [6, 3, 2, 9],
      [4, 12],
    ],
    [1, 0],
  );
  assert.equal(Object.keys(expected).length, 20);
  for (const [id, values] of Object.entries(expected)) {
    const shown = (await rowOf(page, id)).slice(0, 6);
    for (const [i, value] of values.entries())
      assert.ok(
        Math.abs(shown[i] - value) < 1e-6 * (1 + Math.abs(value)),
        `${id} ${i}: ${shown[i]} instead of ${value}`,
      );
  }
  // and everywhere else, by way of the saved numbers
  for (const [id, scores, lengths] of [
    ["outlier", [[0.2, 0.3, 0.25, 0.25, 0.3, 9]], [[4, 4, 4, 4, 4, 4]]],
    ["lengths", [[1, 1, 0, 0]], [[2, 4, 10, 32]]],
  ]) {
    const state = await page.evaluate(
      async (name) => (await import(new URL("labs/groups/state.js", location.href).href)).presets[name](),
      id,
    );
    const [{ text, file }] = await exportOf(page, "groups", state);
    assert.equal(file, "advantages.csv");
    const [head, ...lines] = text
      .trim()
      .split("\n")
      .map((line) => line.split(","));
    for (const [name, values] of Object.entries(textbook(scores, lengths, [0]))) {
      for (const [i, value] of values.entries()) {
        const got = Number(lines[i][head.indexOf(name)]);
        assert.ok(
          Math.abs(got - value) < 1e-7 * (1 + Math.abs(value)),
          `${id} ${name} ${i}: ${got} instead of ${value}`,
        );
      }
    }
  }
  assert.deepEqual(problems, []);
  await close();
});

test("the numbers put into each formula make the number beside it", browserTest, async () => {
  const { page, close } = await open({ page: "groups" });
  await preset(page, "unequal");
  // a formula as text, evaluated: fractions, roots and brackets as they are nested
  const evaluate = () =>
    why(page)
      .locator("math")
      .nth(1)
      .evaluate((node) => {
        const walk = (one) => {
          const parts = [...one.children].map(walk);
          if (one.localName === "mfrac") return `((${parts[0]})/(${parts[1]}))`;
          if (one.localName === "msqrt") return `Math.sqrt(${parts.join("")})`;
          if (one.children.length > 0) return `${parts.join("")}`;
          return one.textContent.replaceAll("−", "-").replaceAll("·", "*");
        };
        const [, left, right] = [...node.children].map(walk).join("").split("=");
        return { left, right };
      });
  for (const id of [
    "grpo-verl",
    "grpo-trl",
    "grpo-openrlhf",
    "grpo-population",
    "grpo-batch",
    "areal",
    "nemo",
    "dr-grpo",
    "rloo",
    "max-rl",
    "gpg",
    "opo",
    "pass-k",
    "remax",
    "flash",
    "rf-baseline",
    "rf",
    "decoupled",
    "gdpo",
    "token-baseline",
  ]) {
    for (const index of [0, 3, 5]) {
      await page.locator(cell(id, index)).focus();
      const { left, right } = await evaluate();
      assert.match(left, /^[\d\s.e+*/()Mathsqr-]+$/);
      const value = Function(`return ${left}`)();
      assert.ok(Math.abs(value - Number(right)) < 2e-5 * (1 + Math.abs(value)), `${id} ${index}: ${left} = ${right}`);
      assert.equal(Number(right), (await rowOf(page, id))[index]);
    }
  }
  await close();
});

test("sums: zero where they must be, marked where they are not", browserTest, async () => {
  const { page, close } = await open({ page: "groups" });
  await preset(page, "unequal");
  const sums = async (id) => (await page.locator(`[role=gridcell][data-row="${id}"]`).allTextContents()).slice(-2);
  for (const id of [
    "grpo-verl",
    "grpo-trl",
    "grpo-openrlhf",
    "grpo-population",
    "grpo-batch",
    "areal",
    "dr-grpo",
    "rloo",
    "max-rl",
    "gpg",
    "decoupled",
  ])
    assert.deepEqual(await sums(id), ["0 ✓", "0 ✓"], id);
  // OPO: per token 8/20 and 12/16, so 2 − 4·0.4 and 1 − 2·0.75
  assert.deepEqual(await sums("opo"), ["0.4", "−0.5"]);
  await page.locator(cell("opo", 6)).click();
  assert.match(await why(page).textContent(), /weighted by the length/);
  await preset(page, "single");
  assert.deepEqual(await sums("rloo"), ["0 ✓", "0.7 ✗"]);
  await page.locator(cell("rloo", 6)).click();
  assert.match(await why(page).textContent(), /must add up to 0.*a group of one/);
  await close();
});

test("degenerate groups: equal scores, a group of one, nothing to refuse by silence", browserTest, async () => {
  const { page, problems, close } = await open({ page: "groups" });
  await preset(page, "equal");
  for (const id of ["grpo-verl", "grpo-trl", "grpo-openrlhf", "grpo-population", "nemo", "dr-grpo", "pass-k", "rf"])
    assert.deepEqual((await rowOf(page, id)).slice(0, 4), [0, 0, 0, 0], id);
  assert.match(await why(page).textContent(), /nothing to learn/);
  assert.match(await page.locator(".groups-prompts").textContent(), /drops this prompt/);
  await preset(page, "single");
  const single = async (id) => (await page.locator(cell(id, 4)).textContent()).trim();
  assert.equal(await single("grpo-verl"), "0.6999993");
  assert.equal(await single("grpo-trl"), "0");
  assert.equal(await single("grpo-openrlhf"), "NaN");
  assert.equal(await single("rloo"), "0.7");
  assert.equal(await single("pass-k"), "—");
  await page.locator(cell("grpo-verl", 4)).click();
  assert.match(await why(page).textContent(), /raw score, as if the mean were 0/);
  await page.locator(cell("pass-k", 0)).click();
  assert.match(await why(page).textContent(), /outside what the formula allows.*groups\[4\]/);
  await page.locator(cell("grpo-openrlhf", 4)).click();
  assert.match(await why(page).textContent(), /spreads to the loss/);
  assert.deepEqual(problems, []);
  await close();
});

test("samples, prompts, lengths, greedy scores and a second source can be changed", browserTest, async () => {
  const { page, problems, close } = await open({ page: "groups" });
  await edit(page, "score", 1, "1");
  assert.deepEqual((await rowOf(page, "dr-grpo")).slice(0, 4), [0.5, 0.5, -0.5, -0.5]);
  await page.locator("[data-more='0']").click();
  assert.equal((await rowOf(page, "dr-grpo")).length, 6);
  await page.locator("#undo").click();
  await edit(page, "length", 2, "12");
  // per token: (4 + 4) / 24
  assert.equal(await first(page, "opo"), 0.6666667);
  await edit(page, "length", 2, "0");
  assert.match(await page.locator(".bubble").textContent(), /whole number from 1 to 64.*Still 12/);
  await setParameter(page, "groups-greedy-0", "0.25");
  assert.deepEqual((await rowOf(page, "remax")).slice(0, 4), [0.75, 0.75, -0.25, -0.25]);
  await page.getByRole("button", { name: "Add a prompt" }).click();
  assert.equal((await rowOf(page, "rloo")).length, 10);
  assert.equal(await page.locator(".columns .span").count(), 3);
  await page.locator("#groups-second").check();
  await edit(page, "format", 0, "0.5");
  assert.equal(await first(page, "total"), 1.5);
  await setParameter(page, "groups-weight", "2");
  assert.equal(await first(page, "total"), 2);
  assert.equal(await first(page, "dr-grpo"), 1.25);
  // each source by itself: 1, 1, 0, 0 and .5, 0, 0, 0 with weight 2
  const [a, b] = [0.5 / (Math.sqrt(1 / 3) + 1e-4), 0.375 / (0.25 + 1e-4)];
  assert.ok(Math.abs((await first(page, "decoupled")) - (a + 2 * b)) < 1e-6);
  await setParameter(page, "groups-weight", "inf");
  assert.match(await page.locator("#problem-groups-weight").textContent(), /finite.*Still 2/);
  assert.equal(await page.locator("#choice-groups-preset").inputValue(), "");
  assert.deepEqual(problems, []);
  await close();
});

test("an edit marks what it changed: its own group, and what is taken over the batch", browserTest, async () => {
  const { page, close } = await open({ page: "groups" });
  await preset(page, "unequal");
  assert.equal(await page.locator(".changed").count(), 0);
  await edit(page, "score", 4, "3");
  const changed = await page
    .locator(".changed")
    .evaluateAll((all) => all.map((one) => `${one.dataset.row}.${one.dataset.index}`));
  for (const id of ["dr-grpo.4", "dr-grpo.5", "rloo.4", "grpo-batch.0", "rf.0", "flash.3", "gpg.0"])
    assert.ok(changed.includes(id), id);
  for (const id of ["dr-grpo.0", "rloo.1", "grpo-verl.2", "opo.3", "remax.5"]) assert.ok(!changed.includes(id), id);
  await close();
});

test("the curves follow the chosen estimator, in both languages", browserTest, async () => {
  const { page, problems, close } = await open({ page: "groups" });
  assert.equal(await page.locator(".legend .key").count(), 7);
  await page.locator(cell("opo", 0)).click();
  assert.equal(await page.locator(".legend .key").count(), 8);
  await page.locator(cell("opo", 0)).press("ArrowDown");
  assert.match(await why(page).textContent(), /pass@k/);
  await page.locator("#language").click();
  await page.waitForSelector("html[lang=zh-CN]");
  assert.match(await why(page).textContent(), /为什么是.*pass@k.*领先第二名/);
  assert.equal(await first(page, "grpo-verl"), 1.499997);
  for (const id of await page
    .locator("[role=gridcell][data-index='0']")
    .evaluateAll((all) => all.map((one) => one.dataset.row))) {
    await page.locator(cell(id, 0)).focus();
    assert.doesNotMatch(await why(page).innerText(), /\{\w+\}|undefined/, id);
  }
  assert.deepEqual(problems, []);
  await close();
});

test("samples of a group are not joined by lines: nothing lies between them", browserTest, async () => {
  const { page, problems, close } = await open({ page: "groups" });
  for (const id of ["winner", "unequal"]) {
    await preset(page, id);
    const shapes = await page.locator("#page-groups svg.plot").evaluate((plot) =>
      Array.from(plot.querySelectorAll(".curve"), (shape) => ({
        name: shape.localName,
        series: shape.dataset.series,
        dashed: shape.hasAttribute("stroke-dasharray"),
        x: Number(shape.getAttribute("cx")),
      })),
    );
    const samples = await page.locator("[role=gridcell][data-row=score]").count();
    const series = new Set(shapes.map((shape) => shape.series));
    assert.deepEqual(new Set(shapes.map(({ name }) => name)), new Set(["circle"]));
    assert.equal(shapes.length, samples * series.size);
    assert.ok(shapes.every(({ dashed }) => !dashed));
    // equal numbers of several estimators stand beside each other
    assert.equal(new Set(shapes.map(({ x }) => x)).size, shapes.length);
  }
  // the legend shows points too
  assert.equal(await page.locator("#page-groups .legend .sample circle").count(), 7);
  assert.equal(await page.locator("#page-groups .legend .sample line").count(), 0);
  assert.deepEqual(problems, []);
  await close();
});

test("a link's state is checked", browserTest, async () => {
  const { page, close } = await open({ page: "groups" });
  const told = await page.evaluate(async () => {
    const {
      page: { read, initial },
    } = await import(new URL("labs/groups/page.js", location.href).href);
    const good = initial();
    const [prompt] = good.prompts;
    const bad = [
      null,
      5,
      "x",
      [],
      {},
      { prompts: [] },
      { prompts: [1] },
      { prompts: [{}] },
      { prompts: [{ samples: [] }] },
      { prompts: [{ samples: [{ score: "1" }] }] },
      { prompts: [{ samples: [null] }] },
      { prompts: Array(6).fill(prompt) },
      { prompts: [{ ...prompt, samples: Array(11).fill(prompt.samples[0]) }] },
    ];
    const odd = read({
      prompts: [{ samples: [{ score: NaN, length: 1e9, format: "x", more: 1 }], greedy: {} }],
      second: "yes",
      weight: Infinity,
    });
    return { bad: bad.map(read), odd, same: JSON.stringify(read(structuredClone(good))) === JSON.stringify(good) };
  });
  assert.ok(
    told.bad.every((one) => one === null),
    JSON.stringify(told.bad),
  );
  assert.ok(told.same);
  assert.deepEqual(told.odd, {
    prompts: [{ samples: [{ score: NaN, format: 0, length: 4 }], greedy: 0 }],
    second: false,
    weight: 1,
  });
  await close();
});

checkLook("groups", PRESETS);
