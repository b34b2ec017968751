// No digit, sign, exponent, label or formula is cut: on every page, at three widths and at twice the size, in both
// languages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, open } from "./harness.js";
import { cutTexts } from "./overflow.js";

/** 700 × 450 is what a window of 1400 × 900 shows at 200 %. */
const SIZES = [
  [1400, 900],
  [800, 900],
  [700, 450],
  [360, 740],
];

const settle = (page) =>
  page.evaluate(
    () =>
      new Promise((done) => {
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20)));
      }),
  );

/** Eight sequences of 64 tokens whose numbers have every length. */
async function manyTokens(page) {
  await page.evaluate(async () => {
    const load = (path) => import(new URL(path, document.baseURI).href);
    const [{ stateFromSequences }, { encode }] = await Promise.all(["chain/state.js", "share/link.js"].map(load));
    const wave = (n, f) => Array.from({ length: n }, (_, i) => f(i));
    const sequences = wave(8, (s) => ({
      prompt: "?",
      group: s >> 2,
      tokens: wave(64, (i) => `t${i + 1}`),
      inputs: {
        score: wave(64, (i) => Number(i === 63) / (s + 1)),
        oldLogProb: wave(64, (i) => -(10 ** ((i % 9) - 6)) * (1.234567 + s)),
        refLogProb: wave(64, (i) => -(10 ** ((i % 7) - 4)) * (1.2345678 + s)),
        value: wave(65, (i) => (-1) ** i * 10 ** ((i % 23) - 11) * 1.7654321),
      },
    }));
    location.hash = await encode({ page: "chain", states: { chain: stateFromSequences(sequences) } });
  });
  await page.waitForSelector(".fold");
}

/** What a page shows beside how it opens. */
const MORE = {
  chain: { "64 × 8 tokens": manyTokens },
  data: {
    sample: async (page) => {
      await page.locator("#data-sample").click();
      await page.waitForSelector("#data-results:not([hidden])");
    },
  },
};

for (const lang of ["en", "zh"]) {
  test(`nothing is cut, ${lang}`, browserTest, async () => {
    const { page, problems, close } = await open({ lang, motion: "reduce" });
    const ids = await page.locator(".tab").evaluateAll((all) => all.map((tab) => tab.id.slice(4)));
    assert.ok(ids.length >= 9);
    const found = [];
    const look = async (where) => {
      for (const [width, height] of SIZES) {
        await page.setViewportSize({ width, height });
        await settle(page);
        found.push(...(await page.evaluate(cutTexts)).map((cut) => `${where}, ${width}: ${cut}`));
      }
      await page.setViewportSize({ width: 1400, height: 900 });
    };
    for (const id of ids) {
      await page.locator(`#tab-${id}`).click();
      await page.waitForSelector(`#page-${id}:not([hidden])`);
      await page.waitForSelector("main[aria-busy=false]");
      await settle(page);
      await look(id);
      for (const [name, act] of Object.entries(MORE[id] ?? {})) {
        await act(page);
        await settle(page);
        await look(`${id}, ${name}`);
      }
    }
    assert.equal(found.slice(0, 40).join("\n"), "", `${found.length} texts are cut`);
    assert.deepEqual(problems, []);
    await close();
  });
}
