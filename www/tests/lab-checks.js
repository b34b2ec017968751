// Checks for every laboratory: both languages, both themes, three widths, no violation;
// and what can be saved of it.

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { browserTest, open, repository } from "./harness.js";

const screenshots = process.env.SCREENSHOT_DIR ?? join(repository, "target/screenshots");

export async function checkAxe(page) {
  await page.evaluate(await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  assert.deepEqual(
    violations.map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map((node) => `${node.html} ${node.failureSummary}`)
          .join("; ")}`,
    ),
    [],
  );
}

/** @param {string} id @param {string[]} presets */
export function checkLook(id, presets) {
  for (const [lang, theme, width] of [
    ["en", "light", 1400],
    ["zh", "dark", 1400],
    ["zh", "light", 800],
    ["en", "dark", 800],
    ["en", "light", 360],
    ["zh", "dark", 360],
  ]) {
    test(
      `${id}, ${lang}, ${theme}, ${width} wide: every example without errors, nothing sticks out, no axe violations`,
      browserTest,
      async () => {
        const { page, problems, close } = await open({
          page: id,
          lang,
          theme,
          width,
          height: width === 360 ? 740 : 1000,
        });
        await mkdir(screenshots, { recursive: true });
        await checkAxe(page);
        await page.screenshot({ path: join(screenshots, `${id}-${width}-${theme}-${lang}.png`), fullPage: true });
        for (const preset of presets) {
          await page.locator(`#choice-${id}-preset`).selectOption(preset);
          assert.equal(await page.locator(`#choice-${id}-preset`).inputValue(), preset);
          const overflow = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(overflow <= 0, `${preset}: ${overflow} pixels too wide`);
          assert.doesNotMatch(await page.locator("main").innerText(), /\{\w+\}|undefined|\[object/);
        }
        await checkAxe(page);
        assert.deepEqual(problems, []);
        await close();
      },
    );
  }
}

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
