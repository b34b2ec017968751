// Checks for every laboratory: both languages, both themes, three widths, no violation;
// and what can be saved of it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";
import { browserTest, drawn, keepPicture, open } from "./harness.js";

/**
 * @param {string} [what] for the message
 * @param {string} [where] a selector, default everything
 */
export async function checkAxe(page, what = "", where = "") {
  await drawn(page);
  if (!(await page.evaluate(() => "axe" in globalThis)))
    await page.evaluate(await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  // the whole result lists every element that passed: sending it takes three times as long as the check
  const found = await page.evaluate(async (part) => {
    const { violations } = await globalThis.axe.run(part || document);
    return violations.map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map((node) => `${node.html} ${node.failureSummary}`)
          .join("; ")}`,
    );
  }, where);
  assert.deepEqual(found, [], what);
}

/** Both languages and both themes at every width, without all of their combinations. */
const LOOKS = [
  ["en", "light", 1400],
  ["zh", "dark", 1400],
  ["zh", "light", 800],
  ["en", "dark", 800],
  ["en", "light", 360],
  ["zh", "dark", 360],
];

/** Nothing is wider than the window, and no text is left without its words. */
async function checkFit(page, what) {
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  assert.ok(overflow <= 0, `${what}: ${overflow} pixels too wide`);
  assert.doesNotMatch(await page.locator("body").innerText(), /\{\w+\}|undefined|\[object/, what);
}

/**
 * A page in every look: no errors, nothing sticks out, no axe violations.
 * @param {string} id
 * @param {(page: any, check: (view: string) => Promise<void>) => Promise<void>} visit calls `check` for each view
 */
export function checkViews(id, visit) {
  for (const [lang, theme, width] of LOOKS) {
    const name = `${id}, ${lang}, ${theme}, ${width} wide: no errors, nothing sticks out, no axe violations`;
    test(name, browserTest, async () => {
      const height = width === 360 ? 740 : 1000;
      const { page, problems, close } = await open({ page: id, lang, theme, width, height });
      let views = 0;
      await visit(page, async (view) => {
        views += 1;
        await keepPicture(page, `${id}-${view}-${width}-${theme}-${lang}`, { fullPage: true });
        await checkFit(page, view);
        await checkAxe(page);
      });
      assert.ok(views > 0);
      assert.deepEqual(problems, []);
      await close();
    });
  }
}

/**
 * A laboratory in every look, with each of its examples.
 * @param {string} id
 * @param {string[]} presets
 */
export const checkLook = (id, presets) =>
  checkViews(id, async (page, check) => {
    await check("start");
    for (const preset of presets) {
      await page.locator(`#choice-${id}-preset`).selectOption(preset);
      assert.equal(await page.locator(`#choice-${id}-preset`).inputValue(), preset);
      await checkFit(page, preset);
    }
    await checkAxe(page);
  });

/** The text of an export of a page, without the shell. */
export const exportOf = (page, id, state) =>
  page.evaluate(
    async ([name, given]) => {
      const { page: definition } = await import(new URL(`labs/${name}/page.js`, location.href).href);
      const { loadLibrary } = await import(new URL("engine.js", location.href).href);
      const { library } = await loadLibrary();
      const present = given ?? definition.initial();
      const view = definition.mount(document.createElement("div"), {
        library,
        state: () => present,
        change: () => {},
        open: async () => {},
      });
      return Promise.all(
        view
          .exports(present)
          .map(async (one) => ({ id: one.id, file: one.file, label: one.label, text: await one.make() })),
      );
    },
    [id, state],
  );
