// How long an edit keeps the page busy: state, all numbers, every cell that changed, style and layout. Counted in
// processor time of the page's own thread, because a machine that is busy with something else would otherwise be
// measured along with it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { browserTest, cell, drawn, numberOf, open } from "./harness.js";

const FRAME = 16;
const EDITS = 40;
const ROUNDS = 3;

const ms = (time) => `${time.toFixed(1)} ms`;

// the promise is one frame for 64 tokens; four times as many take nearly one too (14 to 15 ms),
// and are held to little more; of eight times as many the scripts alone are counted
const ALL = ["ScriptDuration", "LayoutDuration", "RecalcStyleDuration"];
for (const [sequences, motion, most, parts] of [
  [1, "reduce", FRAME, ALL],
  [1, "no-preference", FRAME, ALL],
  [4, "reduce", 1.25 * FRAME, ALL],
  [8, "reduce", FRAME, ["ScriptDuration"]],
]) {
  test(
    `${sequences} × 64 tokens, motion ${motion}: an edit takes at most ${most} ms of ${parts.join(" + ")}`,
    browserTest,
    async (t) => {
      // another page in front, so that the chain is opened by this test alone, in a shell of its own
      const { page, problems, close } = await open({ page: "kl", motion });
      await page.evaluate(async (count) => {
        const load = (path) => import(new URL(path, document.baseURI).href);
        const [{ Shell }, { loadLibrary }, { stateFromSequences }, { withInput }] = await Promise.all(
          ["shell.js", "engine.js", "chain/state.js", "chain/edit/edits.js"].map(load),
        );
        const wave = (n, f) => Array.from({ length: n }, (_, i) => f(i));
        const state = stateFromSequences(
          wave(count, () => ({
            prompt: "?",
            tokens: wave(64, (i) => `t${i + 1}`),
            inputs: {
              score: wave(64, (i) => Number(i === 63)),
              oldLogProb: wave(64, (i) => -0.1 - 0.05 * Math.sin(i)),
              refLogProb: wave(64, (i) => -0.12 - 0.05 * Math.cos(i)),
              value: wave(65, (i) => (i < 64 ? 0.2 + i / 100 : 0)),
            },
          })),
        );
        const { library } = await loadLibrary();
        const shell = new Shell(library);
        await shell.open("chain", state);
        document.querySelector("#page-kl").hidden = true;
        for (const fold of document.querySelectorAll(".fold[aria-expanded=false]")) fold.click();
        const place = { row: "value", sequence: 0, index: 40 };
        // what the page itself puts off until after the frame (cells out of sight) is run, but not counted
        const later = [];
        window.editValue = (value) => {
          const timer = window.setTimeout;
          window.setTimeout = (task) => later.push(task);
          shell.change("chain", withInput(shell.stateOf("chain"), place, value));
          void document.body.offsetWidth;
          window.setTimeout = timer;
        };
        window.runLater = () => later.splice(0).forEach((task) => task());
      }, sequences);
      const client = await page.context().newCDPSession(page);
      await client.send("Performance.enable", { timeDomain: "threadTicks" });
      const busy = async () => {
        const { metrics } = await client.send("Performance.getMetrics");
        const found = (name) => metrics.find((metric) => metric.name === name).value * 1000;
        return parts.reduce((sum, part) => sum + found(part), 0);
      };
      await page.locator(cell("advantage", 40)).focus();
      const cells = await page.locator("[role=gridcell]").count();
      const before = numberOf(await page.locator(cell("advantage", 0)).textContent());
      const far = numberOf(await page.locator(cell("whitened", 63)).textContent());
      // one edit a task, as a reader would make them; again if the machine was too busy to tell
      let median = Infinity;
      for (let round = 0; round < ROUNDS && median > most; round += 1) {
        const times = [];
        for (let k = 0; k < EDITS; k += 1) {
          const start = await busy();
          // from a timer: the time of scripts that a debugger evaluates is not counted
          await page.evaluate(
            (value) =>
              new Promise((done) => {
                setTimeout(() => done(window.editValue(value)));
              }),
            0.5 + k / 100,
          );
          times.push((await busy()) - start);
          await page.evaluate(() => window.runLater());
          await drawn(page);
        }
        times.sort((a, b) => a - b);
        median = times[EDITS / 2];
        t.diagnostic(`${cells} cells: median ${ms(median)}, fastest ${ms(times[0])}, slowest ${ms(times.at(-1))}`);
      }
      // the last column is far out of sight
      assert.notEqual(numberOf(await page.locator(cell("whitened", 63)).textContent()), far);
      assert.notEqual(numberOf(await page.locator(cell("advantage", 0)).textContent()), before);
      assert.equal(numberOf(await page.locator(cell("value", 40)).textContent()), 0.5 + (EDITS - 1) / 100);
      assert.ok(median <= most, `${median} ms`);
      assert.deepEqual(problems, []);
      await close();
    },
  );
}
