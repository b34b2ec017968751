// Own data on the page: the ways in, the table, the text, the histogram, the lint; hostile files;
// a hundred thousand tokens.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { hostile, MARKUP } from "./data-files.js";
import { browserTest, numberOf, open, repository } from "./harness.js";
import { checkViews } from "./lab-checks.js";

const scratch = await mkdtemp(join(tmpdir(), "tokenwise-data-"));
after(() => rm(scratch, { recursive: true }));

const rows = (page) => page.locator(".rows-body .rows-row");
const column = async (page, key) =>
  (await page.locator(`.rows-body .data-cell[data-key="${key}"]`).allTextContents()).map(numberOf);

/** Waits until nothing is under way and the rows are there. */
async function settled(page) {
  await page.waitForSelector("#data-results:not([hidden])");
  await page.waitForFunction(() => document.querySelector(".data-busy")?.hidden !== false);
}

async function drop(page, name, content, where = ".intake") {
  const bytes = [...(typeof content === "string" ? new TextEncoder().encode(content) : content)];
  await page.evaluate(
    ({ name, bytes, where }) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(bytes)], name));
      document
        .querySelector(where)
        .dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    },
    { name, bytes, where },
  );
}

const TWO = `{"step": 1, "group": "a", "score": 1,
 "old_log_probs": [-0.5, -0.25], "ref_log_probs": [-1, -0.5], "response_tokens": ["x", "y"]}
{"step": 2, "group": "b", "score": 0,
 "old_log_probs": [-2, -0.125], "ref_log_probs": [-1.5, -0.25], "response_tokens": ["u", "v"]}
`.replaceAll("\n ", " ");

for (const lang of ["en", "zh"]) {
  test(`${lang}: paste, read, sort, colour, filter, look at a token, walk the text`, browserTest, async () => {
    const { page, problems, close } = await open({ page: "data", lang });
    await page.locator("#data-paste").fill(TWO);
    await page.locator("#data-read").click();
    await settled(page);
    await rows(page).nth(3).waitFor();
    assert.equal(await page.locator('[data-about="sequences"]').textContent(), "2");
    assert.equal(await page.locator('[data-about="tokens"]').textContent(), "4");
    // k1 = old − reference
    assert.deepEqual(await column(page, "kl"), [0.5, 0.25, -0.5, 0.125]);
    await page.locator('.sorter[data-key="kl"]').click();
    await page.waitForSelector('[aria-sort="ascending"] [data-key="kl"]');
    assert.deepEqual(await column(page, "kl"), [-0.5, 0.125, 0.25, 0.5]);
    await page.locator('.sorter[data-key="kl"]').click();
    await page.waitForSelector('[aria-sort="descending"] [data-key="kl"]');
    assert.deepEqual(await column(page, "kl"), [0.5, 0.25, 0.125, -0.5]);
    await page.locator("#choice-data-colour").selectOption("kl");
    await page.waitForSelector('.data-cell.plus[data-key="kl"]');
    const tones = await page
      .locator('.rows-body .data-cell[data-key="kl"]')
      .evaluateAll((all) => all.map((cell) => cell.className.match(/plus|minus/)?.[0] + cell.textContent));
    assert.deepEqual(tones, ["plus+0.5", "plus+0.25", "plus+0.125", "minus−0.5"]);
    assert.equal(
      await page
        .locator(".data-figure rect.curve")
        .evaluateAll((all) => all.filter((bar) => Number(bar.getAttribute("height")) > 1).length),
      4,
    );
    await page.locator("#choice-data-kl").selectOption("k2");
    await page.waitForFunction(() =>
      [...document.querySelectorAll('.rows-body .data-cell[data-key="kl"]')].every(
        (cell) => !cell.textContent.includes("−"),
      ),
    );
    // the column is nine digits wide, with the sign; the whole number is the cell's title
    assert.deepEqual((await column(page, "kl")).sort(), [0.007813, 0.03125, 0.125, 0.125]);
    const whole = page.locator('.rows-body .data-cell[data-key="kl"]', { hasText: "0.007813" });
    assert.equal(await whole.getAttribute("title"), "0.0078125");
    await page.locator("#choice-data-filter-step").selectOption("2");
    await page.waitForFunction(() => document.querySelectorAll(".rows-body .rows-row").length === 2);
    await page.locator('.rows-body .data-cell[data-key="text"]', { hasText: "u" }).click();
    await page.waitForSelector('[data-detail="kl"]');
    assert.equal(await page.locator('[data-detail="kl"]').textContent(), "0.125");
    assert.equal(await page.locator("#data-detail .word").textContent(), "u");
    await page.locator("#data-show-text").click();
    await page.waitForSelector(".flow-token");
    assert.deepEqual(await page.locator(".flow-token").allTextContents(), ["u", "v"]);
    await page.locator(".flow-token.current").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForSelector('.flow-token.current[data-token="1"]');
    assert.equal(await page.evaluate(() => document.activeElement?.dataset.token), "1");
    await page.locator("#data-view-sequences").click();
    await page.waitForFunction(() => document.querySelector(".rows")?.getAttribute("aria-rowcount") === "2");
    // undo goes back through it all
    for (let i = 0; i < 5; i += 1) await page.locator("#undo").click();
    await page.waitForFunction(() => document.querySelectorAll(".rows-body .rows-row").length === 4);
    assert.doesNotMatch(await page.locator("body").innerText(), /\{\w+\}|undefined/);
    assert.deepEqual(problems, []);
    await close();
  });

  test(`${lang}: the sample and its faults; each leads to its token`, browserTest, async () => {
    const { page, problems, close } = await open({ page: "data", lang });
    await page.locator("#data-sample").click();
    await settled(page);
    await page.waitForSelector(".findings li");
    assert.deepEqual(await page.locator(".findings li").evaluateAll((all) => all.map((one) => one.dataset.rule)), [
      "last-token-hidden",
      "not-a-number",
      "tied-group",
    ]);
    await page.locator('[data-rule="not-a-number"] button').click();
    await page.waitForSelector('[data-detail="refLogProbs"]');
    assert.equal(await page.locator('[data-detail="refLogProbs"]').textContent(), "NaN");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "data-rows");
    await page.locator("#data-first").check();
    await page.waitForSelector('[data-rule="ratio-at-first-update"]');
    await page.locator("#field-data-gamma").fill("1.5");
    await page.keyboard.press("Enter");
    assert.match(await page.locator("#problem-data-gamma").textContent(), /1/);
    assert.equal(await page.locator("#field-data-gamma").inputValue(), "1");
    // in the other language everything changes, messages too
    await drop(page, "bad.jsonl", '{"log_probs": [-1, "x"]}');
    await page.waitForSelector("#data-messages .bad");
    await page.locator("#language").click();
    const [heading, message] =
      lang === "en"
        ? ["问题检查", "bad.jsonl，第 1 行：字段 log_probs：应为数字，实际是 x"]
        : ["Issues", "bad.jsonl, line 1: Field log_probs: expected a number, got x"];
    await page.waitForFunction((heading) => document.querySelector(".data-lint h2")?.textContent === heading, heading);
    assert.equal(await page.locator("#data-messages .bad").textContent(), message);
    assert.deepEqual(problems, []);
    await close();
  });
}

test(
  "files dropped and chosen; undo brings the one before back; a large one is not in the link",
  browserTest,
  async () => {
    const { page, problems, close } = await open({ page: "data" });
    const count = () => page.locator('[data-about="sequences"]').textContent();
    // beside the page, too: the browser would leave for the file
    await drop(page, "two.jsonl", TWO, "header");
    await settled(page);
    assert.equal(await count(), "2");
    const large = TWO.repeat(1000).replaceAll('"step": 2', '"step": 1');
    await page
      .locator("#data-file")
      .setInputFiles({ name: "large.jsonl", mimeType: "application/json", buffer: Buffer.from(large) });
    await page.waitForFunction(() => document.querySelector('[data-about="sequences"]')?.textContent === "2000");
    assert.match(await page.locator("#data-messages").textContent(), /20 KB/);
    await page.locator("#undo").click();
    await page.waitForFunction(() => document.querySelector('[data-about="sequences"]')?.textContent === "2");
    await page.locator("#redo").click();
    await page.waitForFunction(() => document.querySelector('[data-about="sequences"]')?.textContent === "2000");
    await page.locator("#data-filter-sequence").fill("1999");
    await page.locator("#data-filter-sequence").press("Enter");
    await page.waitForFunction(() => document.querySelectorAll(".rows-body .rows-row").length === 2);
    assert.deepEqual(problems, []);
    await close();
  },
);

test("a file of every kind: the same numbers by drop and by choice", browserTest, async () => {
  const { page, problems, close } = await open({ page: "data" });
  const fixtures = join(repository, "reader/tests/fixtures");
  const about = (key) => page.locator(`[data-about="${key}"]`).textContent();
  for (const [way, path, sequences, tokens, field] of [
    ["drop", "rollouts.jsonl", "2", /6/, "old_log_probs"],
    ["choose", "unipo.json", "1", /^6$/, "advantages"],
    ["drop", "readings/sequences.csv", "2", /6/, "log_probs"],
    ["choose", "rollouts.parquet", "2", /6/, "old_log_probs"],
    ["drop", "rollouts.safetensors", "2", /6/, "values"],
  ]) {
    const name = path.replace("readings/", "");
    if (way === "drop") await drop(page, name, await readFile(join(fixtures, path)));
    else await page.locator("#data-file").setInputFiles(join(fixtures, path));
    await page.waitForFunction((name) => document.querySelector('[data-about="file"]')?.textContent === name, name);
    await settled(page);
    assert.equal(await about("sequences"), sequences, name);
    assert.match(await about("tokens"), tokens, name);
    assert.ok((await about("fields")).includes(field), name);
  }
  await rows(page).first().click();
  await page.waitForSelector("#data-detail .word");
  assert.equal(await page.locator("#data-detail .word").textContent(), "#11");
  // a binary file stays in memory: undo brings it back all the same
  await page.locator("#data-paste").fill(TWO);
  await page.locator("#data-read").click();
  await page.waitForFunction(() => document.querySelector('[data-about="tokens"]')?.textContent === "4");
  await page.locator("#undo").click();
  await page.waitForFunction(
    () => document.querySelector('[data-about="file"]')?.textContent === "rollouts.safetensors",
  );
  // Zstandard is read
  await drop(page, "zstd.parquet", await readFile(join(fixtures, "zstd.parquet")));
  await page.waitForFunction(() => document.querySelector('[data-about="file"]')?.textContent === "zstd.parquet");
  assert.deepEqual(problems, []);
  await close();
});

test("a sequence opens in the chain with its numbers", browserTest, async () => {
  const { page, problems, close } = await open({ page: "data" });
  await drop(page, "two.jsonl", TWO);
  await settled(page);
  await rows(page).nth(2).click();
  await page.locator("#data-open-chain").click();
  await page.waitForSelector("#page-chain:not([hidden]) [role=gridcell]");
  const header = await page.locator("#page-chain [role=grid]").first().textContent();
  assert.match(header, /u/);
  assert.deepEqual(
    (await page.locator('#page-chain [role=gridcell][data-row="oldLogProb"]').allTextContents()).map(numberOf),
    [-2, -0.125],
  );
  await page.locator("#undo").click();
  await page.waitForSelector("#page-data:not([hidden]) .rows-row");
  assert.deepEqual(problems, []);
  await close();
});

test("hostile files on the page: a message with the name, no script, what was shown stays", browserTest, async () => {
  const { page, problems, close } = await open({ page: "data" });
  await drop(page, "two.jsonl", TWO);
  await settled(page);
  let refused = 0;
  for (const [name, content] of hostile.filter(([, content]) => content.length < 300_000)) {
    const steps = await page.locator("#data-messages").evaluate((messages) => {
      messages.replaceChildren();
      return document.querySelector('[data-about="file"]').textContent;
    });
    await drop(page, name, content);
    // a notice may be told before the file is shown: only an error or the file itself ends the wait
    await page.waitForFunction(
      (name) =>
        (document.querySelector("#data-messages .bad") !== null ||
          document.querySelector('[data-about="file"]').textContent === name) &&
        document.querySelector(".data-busy").hidden,
      name,
    );
    const message = await page.locator("#data-messages .bad").allTextContents();
    if (message.length === 0) continue;
    refused += 1;
    assert.ok(message[0].startsWith(name), `${name}: ${message[0]}`);
    assert.equal(await page.locator('[data-about="file"]').textContent(), steps, `${name} changed what is shown`);
  }
  assert.ok(refused > 25, String(refused));
  // the markup among them is shown as text
  await drop(page, "again.jsonl", hostile[0][1]);
  await page.waitForFunction(() => document.querySelector('[data-about="file"]').textContent === "again.jsonl");
  await rows(page).first().click();
  await page.waitForSelector("#data-detail .word");
  assert.equal(await page.locator("#data-detail .word").textContent(), MARKUP[0]);
  await page.locator("#data-view-text").click();
  await page.waitForSelector(".flow-token");
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(problems, []);
  await close();
});

/** A hundred thousand tokens. */
function many() {
  const numbers = (n, f) => `[${Array.from({ length: n }, (_, i) => f(i).toFixed(5)).join(",")}]`;
  return Array.from({ length: 500 }, (_, s) => {
    const noise = (k) => numbers(200, (i) => -Math.abs(Math.sin(s * 17.3 + i * k)));
    const fields = {
      step: s >> 7,
      group: s >> 2,
      score: s % 2,
      log_probs: noise(1.1),
      old_log_probs: noise(1.11),
      ref_log_probs: noise(1.2),
      values: noise(0.7),
      response_tokens: `[${Array.from({ length: 200 }, (_, i) => `"w${i}"`).join(",")}]`,
    };
    const written = Object.entries(fields).map(([name, value]) => `"${name}":${value}`);
    return `{${written.join(",")}}`;
  }).join("\n");
}

/** How long the page's own thread was busy with one thing, in milliseconds. */
function longestTask(events) {
  const names = new Map(
    events.filter(({ name }) => name === "thread_name").map(({ pid, tid, args }) => [`${pid} ${tid}`, args.name]),
  );
  const tasks = events.filter(
    ({ ph, pid, tid, tdur }) => ph === "X" && tdur !== undefined && names.get(`${pid} ${tid}`) === "CrRendererMain",
  );
  assert.ok(tasks.length > 50, "the page's thread is not in the trace");
  return Math.max(...tasks.map(({ tdur }) => tdur / 1000));
}

test("a hundred thousand tokens: the page never stands still; stop stops", browserTest, async () => {
  const { page, problems, close } = await open({ page: "data" });
  await drop(page, "two.jsonl", TWO);
  await settled(page);
  // from the disk: bytes handed over by the test would keep the page busy
  const text = many();
  const file = async (name, content = text) => {
    const path = join(scratch, name);
    await writeFile(path, content);
    return path;
  };
  const browser = page.context().browser();
  // the time of the processor, not of the clock: other work on the machine may stop the page;
  // one of three attempts must be smooth
  const longest = [];
  for (let attempt = 0; attempt < 3 && !(Math.min(...longest) <= 50); attempt += 1) {
    await browser.startTracing(page, { categories: ["toplevel", "__metadata"] });
    await page.locator("#data-file").setInputFiles(await file(`many${attempt}.jsonl`));
    await page.waitForFunction(
      (name) => document.querySelector('[data-about="file"]')?.textContent === name,
      `many${attempt}.jsonl`,
    );
    await page.locator('.sorter[data-key="loss"]').click();
    await page.waitForSelector('[aria-sort="ascending"] [data-key="loss"]');
    await page.locator("#data-rows").evaluate((grid) => {
      grid.scrollTop = grid.scrollHeight / 2;
    });
    await page.waitForFunction(
      () => Number(document.querySelector(".rows-body .rows-row:last-child")?.dataset.row) > 40_000,
    );
    longest.push(longestTask(JSON.parse((await browser.stopTracing()).toString()).traceEvents));
  }
  assert.ok(Math.min(...longest) <= 50, `longest tasks: ${longest.join(", ")} ms`);
  assert.match(await page.locator('[data-about="tokens"]').textContent(), /100000/);
  // the first of the ascending losses is not above the next
  await page.locator("#data-rows").evaluate((grid) => {
    grid.scrollTop = 0;
  });
  await page.waitForSelector('[data-row="0"]');
  const losses = (
    await page
      .locator('.rows-body .data-cell[data-key="loss"]')
      .evaluateAll((all) =>
        all.sort((a, b) => a.parentElement.dataset.row - b.parentElement.dataset.row).map((cell) => cell.textContent),
      )
  ).map(numberOf);
  assert.ok(losses.every((loss, i) => i === 0 || loss >= losses[i - 1]));
  // a load that is stopped leaves what was there; four times as long, so that the button is there to be clicked
  const shown = await page.locator('[data-about="file"]').textContent();
  // at the first sign of work: the file may be read before a click from outside arrives
  await page.evaluate(() => {
    const busy = document.querySelector(".data-busy");
    const observer = new MutationObserver(() => {
      if (busy.hidden) return;
      observer.disconnect();
      document.querySelector("#data-stop").click();
    });
    observer.observe(busy, { attributes: true });
  });
  await page.locator("#data-file").setInputFiles(await file("stopped.jsonl"));
  await page.waitForFunction(() => /[Ss]topped/.test(document.querySelector("#data-messages").textContent));
  await settled(page);
  assert.equal(await page.locator('[data-about="file"]').textContent(), shown);
  await page.locator('.sorter[data-key="sequence"]').click();
  await page.waitForSelector('[aria-sort="ascending"] [data-key="sequence"]');
  assert.deepEqual(problems, []);
  await close();
});

test("the table by keys alone", browserTest, async () => {
  const { page, close } = await open({ page: "data" });
  await page.locator("#data-sample").click();
  await settled(page);
  await rows(page).first().waitFor();
  await page.locator("#data-rows").focus();
  await page.keyboard.press("End");
  await page.waitForFunction(() => document.querySelector(".rows-row.active")?.dataset.row === "87");
  assert.equal(await page.locator("#data-rows").getAttribute("aria-activedescendant"), "data-row-87");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#data-detail dd");
  assert.match(await page.locator("#data-detail h2").textContent(), /5/);
  await close();
});

checkViews("data", async (page, check) => {
  await check("start");
  await page.locator("#data-sample").click();
  await settled(page);
  await rows(page).nth(2).click();
  await page.waitForSelector("#data-detail dd");
  await check("tokens");
  await page.locator("#data-view-text").click();
  await page.waitForSelector(".flow-token.current");
  await check("text");
  await page.locator("#data-view-sequences").click();
  await page.waitForFunction(() => document.querySelector(".rows")?.getAttribute("aria-rowcount") === "17");
  await check("sequences");
});
