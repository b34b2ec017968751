import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, numberOf, open, setParameter } from "./harness.js";
import { checkLook, exportOf } from "./lab-checks.js";

const PRESETS = ["six", "uniform", "one-hot", "two-modes", "masked", "thousand", "long-tail"];
const preset = (page, id) => page.locator("#choice-logits-preset").selectOption(id);
const number = async (page, quantity) => numberOf(await page.locator(`[data-quantity=${quantity}] dd`).textContent());
const column = async (page, name) =>
  (await page.locator(`.logits-table tbody [data-column=${name}]`).allTextContents()).map(numberOf);
const why = (page) => page.locator(".logits-bench .lab-why");
const pick = (page, quantity) => page.locator(`[data-quantity=${quantity}] button`).click();
const near = (got, wanted, tolerance = 1e-5) =>
  assert.ok(Math.abs(got - wanted) <= tolerance * (1 + Math.abs(wanted)), `${got} instead of ${wanted}`);
const round = (value, digits) => Number(value.toPrecision(digits));

// the textbook, without the library
function textbook(logits, temperature = 1) {
  const z = logits.map((logit) => logit / temperature);
  const most = Math.max(...z);
  const weights = z.map((x) => Math.exp(x - most));
  const total = weights.reduce((a, b) => a + b, 0);
  const p = weights.map((w) => w / total);
  const terms = p.map((x) => (x === 0 ? 0 : -x * Math.log(x)));
  const H = terms.reduce((a, b) => a + b, 0);
  return {
    p,
    terms,
    H,
    squares: p.reduce((all, x) => all + x * x, 0),
    average: p.reduce((all, x, i) => all + x * terms[i], 0),
  };
}

test("six entries against the textbook, at three temperatures", browserTest, async () => {
  const { page, problems, close } = await open({ page: "logits" });
  const logits = [4, 2.5, 1.5, 1, 0, -1];
  for (const temperature of [1, 0.5, 3]) {
    await setParameter(page, "logits-temperature", String(temperature));
    const { p, terms, H, squares, average } = textbook(logits, temperature);
    near(await number(page, "entropy"), H);
    near(await number(page, "logProb"), Math.log(p[0]));
    near(await number(page, "surprise"), -Math.log(p[0]));
    near(await number(page, "proxy"), terms[0]);
    near(await number(page, "squares"), squares);
    near(await number(page, "choices"), Math.exp(H));
    near(await number(page, "bound"), Math.log(6));
    near(await number(page, "expectedTerm"), average);
    near(await number(page, "gradLogProb"), (1 - p[0]) / temperature);
    near(await number(page, "gradEntropy"), (-p[0] * (Math.log(p[0]) + H)) / temperature);
    assert.deepEqual(
      await column(page, "prob"),
      p.map((x) => round(x, 4)),
    );
    assert.deepEqual(
      await column(page, "term"),
      terms.map((x) => round(x, 4)),
    );
    assert.deepEqual(
      await column(page, "surprise"),
      p.map((x) => round(-Math.log(x), 4)),
    );
    for (const [i, got] of (await column(page, "gradLogProb")).entries())
      near(got, (Number(i === 0) - p[i]) / temperature, 1e-3);
    for (const [i, got] of (await column(page, "gradEntropy")).entries())
      near(got, (-p[i] * (Math.log(p[i]) + H)) / temperature, 1e-3);
    assert.match(await page.locator("tfoot").textContent(), /^sum over the vocabulary1.* = H00$/);
  }
  assert.deepEqual(problems, []);
  await close();
});

test("a thousand equal entries: H is 6.9078, the proxy 0.0069", browserTest, async () => {
  const { page, problems, close } = await open({ page: "logits" });
  await preset(page, "thousand");
  assert.equal(await number(page, "entropy"), 6.90776);
  assert.equal(await number(page, "proxy"), 0.00690776);
  assert.equal(await number(page, "expectedTerm"), 0.00690776);
  assert.equal(await number(page, "bound"), 6.90776);
  assert.equal(await number(page, "choices"), 1000);
  assert.equal(await number(page, "squares"), 0.001);
  await pick(page, "proxy");
  assert.match(
    await why(page).textContent(),
    /Not an entropy.*says 0\.00690776 and is 0\.00690776 on average; the entropy is 6\.90776/,
  );
  // sharper, yet the proxy grows: one logit of 8 against 999 of 0
  await setParameter(page, "logits-z-0", "8");
  const { terms, H } = textbook([8, ...Array(999).fill(0)]);
  near(await number(page, "entropy"), H);
  near(await number(page, "proxy"), terms[0]);
  assert.ok(H < 6.9 && terms[0] > 0.1);
  assert.deepEqual(problems, []);
  await close();
});

test("masked entries count 0, and what careless code gets is told", browserTest, async () => {
  const { page, problems, close } = await open({ page: "logits" });
  await preset(page, "masked");
  const { p, H } = textbook([2, 1, 0]);
  near(await number(page, "entropy"), H);
  near(await number(page, "bound"), Math.log(3));
  assert.deepEqual((await column(page, "prob")).slice(3), [0, 0]);
  assert.deepEqual((await column(page, "term")).slice(3), [0, 0]);
  assert.deepEqual((await column(page, "gradEntropy")).slice(3), [0, 0]);
  assert.deepEqual((await column(page, "surprise")).slice(3), [Infinity, Infinity]);
  assert.match(
    await why(page).textContent(),
    /H = 0\.832396\. Code that multiplies p and z without care computes 0·\(−∞\) there and gets NaN/,
  );
  assert.ok((await why(page).locator("a[href$='/trl/issues/7221']").count()) === 1);
  // one more masked by its button, and back
  await page.locator("#logits-mask-2").click();
  near(await number(page, "entropy"), textbook([2, 1]).H);
  assert.equal(await page.locator("#logits-mask-2").getAttribute("aria-pressed"), "true");
  await page.locator("#logits-mask-2").click();
  near(await number(page, "entropy"), H);
  near(p[2], (await column(page, "prob"))[2], 1e-3);
  // nothing left to draw from
  for (const i of [0, 1, 2]) await page.locator(`#logits-mask-${i}`).click();
  assert.match(await why(page).textContent(), /no distribution/);
  assert.ok(Number.isNaN(await number(page, "entropy")));
  await setParameter(page, "logits-z-0", "inf");
  assert.match(await why(page).textContent(), /no distribution/);
  assert.deepEqual(problems, []);
  await close();
});

test("formulas with numbers, for the sampled token that is chosen", browserTest, async () => {
  const { page, close } = await open({ page: "logits" });
  await preset(page, "two-modes");
  const { p, H } = textbook([3, 3, -2, -2, -2]);
  const numbers = async () =>
    why(page)
      .locator("math")
      .nth(1)
      .evaluate((node) => node.textContent);
  assert.match(
    await why(page)
      .locator("math")
      .first()
      .evaluate((node) => node.textContent),
    /^H=−∑vpvlogpv$/,
  );
  assert.match(await numbers(), new RegExp(`=${String(round(H, 6)).replace(".", "\\.")}$`));
  await pick(page, "logProb");
  // −ln(2 + 3 e⁻⁵)
  assert.match(await why(page).textContent(), /Why −0\.703203\?/);
  await page.locator("#logits-chosen-3").check();
  near(await number(page, "logProb"), Math.log(p[3]));
  assert.match(await why(page).textContent(), /sampled token “so”/);
  for (const quantity of ["surprise", "proxy", "squares", "choices", "gradLogProb", "gradEntropy", "entropy"]) {
    await pick(page, quantity);
    assert.equal(await page.locator(`[data-quantity=${quantity}] button`).getAttribute("aria-pressed"), "true");
    assert.equal(numberOf((await numbers()).split("=").at(-1)), await number(page, quantity), quantity);
    assert.doesNotMatch(await why(page).innerText(), /\{\w+\}|undefined/);
  }
  await close();
});

test("entries, texts, the rest and the temperature can be changed; what is refused is said", browserTest, async () => {
  const { page, problems, close } = await open({ page: "logits" });
  await page.getByRole("button", { name: "Add an entry" }).click();
  near(await number(page, "entropy"), textbook([4, 2.5, 1.5, 1, 0, -1, 0]).H);
  await page.locator("#undo").click();
  await page.locator("#logits-text-0").fill('two,"2"');
  await page.keyboard.press("Tab");
  assert.match(await why(page).textContent(), /“two,"2"”/);
  await setParameter(page, "logits-count", "3");
  await setParameter(page, "logits-rest", "1");
  near(await number(page, "entropy"), textbook([4, 2.5, 1.5, 1, 0, -1, 1, 1, 1]).H);
  assert.match(await page.locator(".logits-rest").textContent(), /3 more, each with logit 1/);
  await setParameter(page, "logits-temperature", "0");
  assert.match(await page.locator("#problem-logits-temperature").textContent(), /temperature.*Still 1\./);
  await setParameter(page, "logits-count", "10001");
  assert.match(await page.locator("#problem-logits-count").textContent(), /0 to 10000.*Still 3/);
  await setParameter(page, "logits-z-1", "abc");
  assert.match(await page.locator("#problem-logits-z-1").textContent(), /“abc” is not a number. Still 2\.5/);
  // the focus stays where the reader types
  await page.locator("#field-logits-z-1").focus();
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.evaluate(() => document.activeElement.id), "field-logits-z-1");
  assert.equal(await page.locator("#field-logits-z-1").inputValue(), "2.6");
  assert.equal(await page.locator("#choice-logits-preset").inputValue(), "");
  assert.deepEqual(problems, []);
  await close();
});

test("the curves: τ moves by keys, −log p on average lies on H, and the proxy peaks at 1/e", browserTest, async () => {
  const { page, close } = await open({ page: "logits" });
  const plot = page.locator("svg.plot").first();
  assert.equal(await plot.getAttribute("role"), "slider");
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  const moved = Number(await page.locator("#field-logits-temperature").inputValue());
  assert.ok(moved > 1 && moved < 2, String(moved));
  near(await number(page, "entropy"), textbook([4, 2.5, 1.5, 1, 0, -1], moved).H);
  const told = await page.evaluate(async () => {
    const at = (path) => import(new URL(path, location.href).href);
    const { library } = await (await at("engine.js")).loadLibrary();
    const { overSharpness, overTemperature } = await at("labs/logits/compute.js");
    const { presets } = await at("labs/logits/state.js");
    return { sharp: overSharpness(library, 100), over: overTemperature(library, presets["long-tail"]()) };
  });
  for (const { entropy, expectedSurprise } of [told.sharp, told.over]) {
    for (const [k, value] of entropy.entries()) near(expectedSurprise[k], value, 1e-9);
  }
  const { x, entropy, term } = told.sharp;
  near(x[0], 0.01, 1e-9);
  assert.ok(
    entropy.every((value, k) => k === 0 || value < entropy[k - 1]),
    "H falls all the way",
  );
  const peak = x[term.indexOf(Math.max(...term))];
  assert.ok(Math.abs(peak - Math.exp(-1)) < 0.02, String(peak));
  near(told.over.entropy[0], textbook([8, 6, 4, ...Array(5000).fill(-1)], 0.05).H);
  near(told.over.entropy.at(-1), textbook([8, 6, 4, ...Array(5000).fill(-1)], 5).H);
  await close();
});

test("the numbers can be saved, the texts of tokens too", browserTest, async () => {
  const { page, close } = await open({ page: "logits" });
  const [{ text, file }] = await exportOf(page, "logits", {
    entries: [
      { text: "a,b", logit: 1 },
      { text: '"', logit: -2 },
    ],
    chosen: 1,
    temperature: 1,
    rest: { count: 2, logit: 0 },
  });
  assert.equal(file, "logits.csv");
  const lines = text.trim().split("\n");
  assert.equal(lines.length, 4);
  assert.match(lines[1], /^"a,b",1,1,0,0\.\d+,/);
  assert.match(lines[2], /^"""",1,-2,1,/);
  assert.match(lines[3], /^\(rest\),2,0,0,/);
  const { p } = textbook([1, -2, 0, 0]);
  near(Number(lines[3].split(",")[4]), p[2], 1e-12);
  await close();
});

test("a link's state is checked; Chinese keeps the numbers", browserTest, async () => {
  const { page, problems, close } = await open({ page: "logits" });
  const told = await page.evaluate(async () => {
    const {
      page: { read, initial },
    } = await import(new URL("labs/logits/page.js", location.href).href);
    const good = initial();
    const bad = [
      null,
      1,
      "x",
      [],
      {},
      { entries: [] },
      { entries: [good.entries[0]] },
      { entries: Array(65).fill(good.entries[0]) },
      {
        entries: [
          { text: 1, logit: 1 },
          { text: "", logit: 1 },
        ],
      },
      {
        entries: [
          { text: "a", logit: "1" },
          { text: "", logit: 1 },
        ],
      },
      {
        entries: [
          { text: "x".repeat(25), logit: 1 },
          { text: "", logit: 1 },
        ],
      },
      { entries: [null, null] },
    ];
    const odd = read({
      entries: [
        { text: "a", logit: -Infinity, more: 1 },
        { text: "b", logit: NaN },
      ],
      chosen: 7,
      temperature: -1,
      rest: { count: 1e9, logit: "x" },
      extra: {},
    });
    return { bad: bad.map(read), odd, same: JSON.stringify(read(structuredClone(good))) === JSON.stringify(good) };
  });
  assert.ok(
    told.bad.every((one) => one === null),
    JSON.stringify(told.bad),
  );
  assert.ok(told.same);
  assert.deepEqual(told.odd, {
    entries: [
      { text: "a", logit: -Infinity },
      { text: "b", logit: NaN },
    ],
    chosen: 0,
    temperature: 1,
    rest: { count: 0, logit: 0 },
  });
  await pick(page, "proxy");
  const before = await number(page, "entropy");
  await page.locator("#language").click();
  await page.waitForSelector("html[lang=zh-CN]");
  assert.equal(await number(page, "entropy"), before);
  assert.match(await why(page).textContent(), /它不是熵/);
  assert.deepEqual(problems, []);
  await close();
});

checkLook("logits", PRESETS);
