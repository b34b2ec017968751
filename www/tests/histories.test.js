// Entropy histories in the browser.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { browserTest, chooserOf, numberOf, open } from "./harness.js";
import { BAD, history } from "./histories-files.js";
import { checkViews } from "./lab-checks.js";

const asFile = (name, text) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) });
const give = (page, ...files) => page.locator("#histories-input").setInputFiles(files);
const added = (page, count) =>
  page.waitForFunction((wanted) => document.querySelectorAll("#histories-table tbody tr").length === wanted, count);
const labels = (page) =>
  page.locator("#histories-table input").evaluateAll((fields) => fields.map((field) => field.value));
const numbers = async (page, row) => {
  const cells = page.locator("#histories-table tbody tr").nth(row).locator("[data-number]");
  return Object.fromEntries(
    await cells.evaluateAll((all) => all.map((cell) => [cell.dataset.number, cell.textContent])),
  );
};

test("never empty: the example is there, and gives way to the first file", browserTest, async () => {
  const { page, problems, close } = await open({ page: "histories" });
  assert.deepEqual(await labels(page), ["Questioner", "Solver"]);
  assert.match(await page.locator("#histories-note").textContent(), /invented/);
  await give(
    page,
    asFile("entropy_history_qwen3-4b_solver_v1.json", history([4, 1, 3, 1, 0.5, 0.2])),
    asFile("other.json", history([2, 3, 4], 10)),
  );
  await page.waitForFunction(() => document.querySelector("#histories-table input").value.startsWith("qwen3"));
  assert.deepEqual(await labels(page), ["qwen3-4b_solver_v1", "other"]);
  // by hand: the mean of 4, 1, 3, 1, 0.5, 0.2 is 9.7/6
  assert.deepEqual(await numbers(page, 0), {
    steps: "6",
    mean: "1.61667",
    max: "4",
    min: "0.2",
    first: "4",
    last: "0.2",
    collapse: "from step 4",
  });
  assert.deepEqual(await numbers(page, 1), {
    steps: "3",
    mean: "3",
    max: "4",
    min: "2",
    first: "2",
    last: "4",
    collapse: "never",
  });
  assert.deepEqual(await page.locator("svg.plot text.note").allTextContents(), ["qwen3-4b_solver_v1: step 4"]);
  await page.locator("#undo").click();
  assert.deepEqual(await labels(page), ["Questioner", "Solver"]);
  await page.locator("#redo").click();
  assert.equal((await numbers(page, 1)).mean, "3");
  await page.locator("#histories-sample").click();
  assert.deepEqual(await labels(page), ["Questioner", "Solver"]);
  assert.deepEqual(problems, []);
  await close();
});

for (const [lang, words] of [
  [
    "en",
    [
      /bad\.json: record 2: step 1 comes after step 2/,
      /nan\.json: line 1, record 1: NaN is not a JSON number/,
      /empty\.json: the history is empty/,
    ],
  ],
  [
    "zh",
    [
      /bad\.json: 第 2 条记录：步数 1 排在 2 之后/,
      /nan\.json: 第 1 行，第 1 条记录：NaN 不是 JSON 数字/,
      /empty\.json: 是空的/,
    ],
  ],
]) {
  test(`bad files are named with their record, good ones kept (${lang})`, browserTest, async () => {
    const { page, problems, close } = await open({ page: "histories", lang });
    await give(
      page,
      asFile("bad.json", '[{"step": 2, "entropy": 1}, {"step": 1, "entropy": 1}]'),
      asFile("entropy_history_good.json", history([3, 2])),
      asFile("nan.json", '[{"step": 1, "entropy": NaN}]'),
      asFile("empty.json", "[]"),
    );
    await added(page, 1);
    assert.deepEqual(await labels(page), ["good"]);
    const told = await page.locator("#histories-problems li").allTextContents();
    assert.equal(told.length, 3);
    for (const [i, wanted] of words.entries()) assert.match(told[i], wanted);
    await page.locator("#histories-clear").click();
    assert.equal(await page.locator("#histories-problems li").count(), 0);
    // every kind of fault has its words
    for (const [text] of BAD) {
      await give(page, asFile("x.json", text));
      await page.waitForFunction(() => document.querySelectorAll("#histories-problems li").length === 1);
      assert.doesNotMatch(await page.locator("#histories-problems li").textContent(), /\{\w+\}|histories\./);
      await page.locator("#histories-clear").click();
    }
    assert.deepEqual(await labels(page), ["good"]);
    assert.deepEqual(problems, []);
    await close();
  });
}

test("dropped and pasted", browserTest, async () => {
  const { page, close } = await open({ page: "histories" });
  await page.evaluate(
    (text) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([text], "entropy_history_dropped.json"));
      document
        .querySelector("footer")
        .dispatchEvent(new DragEvent("dragover", { dataTransfer: transfer, bubbles: true, cancelable: true }));
      document
        .querySelector("footer")
        .dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    },
    history([5, 4]),
  );
  await added(page, 1);
  await page.evaluate(
    (text) => {
      const transfer = new DataTransfer();
      transfer.setData("text", text);
      document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true }));
    },
    history([6, 4]),
  );
  await added(page, 2);
  await page.locator("#histories-intake summary").click();
  await page.locator("#histories-paste").fill(history([7, 4]));
  await page.locator("#histories-add").click();
  await added(page, 3);
  assert.deepEqual(await labels(page), ["dropped", "pasted", "pasted (2)"]);
  assert.equal(await page.locator("#histories-paste").inputValue(), "");
  // a bad text is left where it can be mended
  await page.locator("#histories-paste").fill("[1]");
  await page.locator("#histories-add").click();
  await page.waitForSelector("#histories-problems li");
  assert.equal(await page.locator("#histories-paste").inputValue(), "[1]");
  await close();
});

test("a folder: every history below it, told apart by where it lies; and metrics", browserTest, async () => {
  const { page, problems, close } = await open({ page: "histories" });
  const folder = await mkdtemp(join(tmpdir(), "runs-"));
  for (const run of ["q", "s"]) {
    await mkdir(join(folder, "models", run), { recursive: true });
    await writeFile(join(folder, "models", run, "entropy_history_v1.json"), history(run === "q" ? [3, 2] : [5, 1]));
    await writeFile(join(folder, "models", run, "config.json"), "{}");
  }
  await writeFile(join(folder, "entropy_history_top.json"), history([9]));
  await page.locator("#histories-folder-input").setInputFiles(folder);
  await added(page, 3);
  assert.deepEqual(await labels(page), ["top", "v1 (models/q)", "v1 (models/s)"]);
  assert.equal(await page.locator("#histories-problems li").count(), 0);
  const empty = await mkdtemp(join(tmpdir(), "none-"));
  await writeFile(join(empty, "config.json"), "{}");
  await page.locator("#histories-folder-input").setInputFiles(empty);
  await page.waitForSelector("#histories-problems li");
  assert.match(
    await page.locator("#histories-problems li").textContent(),
    /^none-.*: no entropy_history_\*\.json below/,
  );
  // a folder dropped: its entries as the browser hands them over, in pieces
  const dropped = await page.evaluate(async () => {
    const { filesOf } = await import(new URL("parts/folder.js", document.baseURI).href);
    const { isHistory } = await import(new URL("histories/state.js", document.baseURI).href);
    const file = (name, path) => ({
      name,
      isFile: true,
      isDirectory: false,
      fullPath: path,
      file: (give) => give(new File(["[]"], name)),
    });
    const directory = (name, pieces) => ({
      name,
      isFile: false,
      isDirectory: true,
      createReader: () => ({ readEntries: (give) => give(pieces.shift() ?? []) }),
    });
    const inner = directory("b", [[file("entropy_history_2.json", "/a/b/entropy_history_2.json")]]);
    const outer = directory("a", [
      [file("notes.txt", "/a/notes.txt")],
      [inner, file("entropy_history_1.json", "/a/entropy_history_1.json")],
    ]);
    const transfer = { items: [{ webkitGetAsEntry: () => outer }], files: [new File([], "a")] };
    const { files, folders } = await filesOf(transfer, isHistory);
    return { names: files.map(({ name }) => name), folders };
  });
  assert.deepEqual(dropped, { names: ["entropy_history_2.json", "entropy_history_1.json"], folders: ["a"] });
  await give(page, asFile("metrics_run7.jsonl", '{"step": 1, "policy/entropy": 4}\n{"step": 2, "policy/entropy": 3}'));
  await added(page, 4);
  assert.equal((await labels(page))[3], "run7");
  assert.equal((await numbers(page, 3)).mean, "3.5");
  await rm(folder, { recursive: true });
  await rm(empty, { recursive: true });
  assert.deepEqual(problems, []);
  await close();
});

test("files dropped while others are read wait for their turn", browserTest, async () => {
  const { page, close } = await open({ page: "histories" });
  await page.evaluate(
    (text) => {
      for (const name of ["one", "two", "three"]) {
        const transfer = new DataTransfer();
        transfer.items.add(new File([text], `${name}.json`));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
      }
    },
    history([5, 4]),
  );
  await added(page, 3);
  assert.deepEqual(await labels(page), ["one", "two", "three"]);
  // a file read while another page is open: it is there on return, and does not switch the page
  await page.evaluate(
    (text) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([text], "late.json"));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
      document.querySelector("#page-histories").hidden = true;
    },
    history([5, 4]),
  );
  await page.waitForTimeout(300);
  assert.equal((await labels(page)).length, 3);
  await page.locator("#tab-chain").click();
  await page.waitForSelector("#page-chain:not([hidden])");
  await page.locator("#tab-histories").click();
  await added(page, 4);
  await close();
});

test("smoothing, collapse and zoom change the picture", browserTest, async () => {
  const { page, close } = await open({ page: "histories" });
  await give(page, asFile("a.json", history([0, 3, 0, 3, 0, 3, 0])));
  await added(page, 1);
  // the heights of the curve, in the picture's units
  const heights = () =>
    page
      .locator('svg.plot path[data-series="1"]')
      .getAttribute("d")
      .then((d) => [...d.matchAll(/[ML][\d.]+ ([\d.]+)/g)].map((match) => Number(match[1])));
  const raw = await heights();
  const [zero, three] = [raw[0], raw[1]];
  const value = (height) => (3 * (zero - height)) / (zero - three);
  await page.locator("#choice-histories-smooth").selectOption("mean");
  await page.locator("#histories-window").fill("3");
  assert.equal(await page.locator('svg.plot path[data-series="raw-1"]').count(), 1);
  // the raw curve keeps the axis where it was, so heights can be compared: 0, 1, 2, 1, 2, 1, 0
  for (const [i, wanted] of [0, 1, 2, 1, 2, 1, 0].entries())
    assert.ok(Math.abs(value((await heights())[i]) - wanted) < 0.01);
  await page.locator("#choice-histories-smooth").selectOption("ema");
  await page.locator("#histories-weight").fill("0.5");
  for (const [i, wanted] of [0, 1.5, 0.75, 1.875].entries())
    assert.ok(Math.abs(value((await heights())[i]) - wanted) < 0.01);
  await page.locator("#choice-histories-smooth").selectOption("none");
  await page.locator("#histories-sample").click();
  const step = async () => Number((await numbers(page, 1)).collapse.match(/\d+/)?.[0] ?? NaN);
  const half = await step();
  await page.locator("#histories-share").fill("20");
  assert.ok((await step()) > half);
  assert.match(await page.locator("[data-head=collapse]").textContent(), /20 %/);
  await page.locator("#histories-share").fill("1");
  assert.ok(Number.isNaN(await step()));
  assert.equal(await page.locator("svg.plot line.note").count(), 0);
  const ticks = () => page.locator("svg.plot text.axis:not(.side):not(.title)").allTextContents();
  const all = await ticks();
  await page.locator("#histories-zoom-in").click();
  const closer = await ticks();
  assert.notDeepEqual(closer, all);
  assert.ok(
    closer.map(numberOf).every((tick) => tick >= 60 && tick <= 181),
    closer.join(),
  );
  await page.locator("#histories-zoom-right").click();
  assert.ok((await ticks()).map(numberOf).every((tick) => tick >= 120 && tick <= 240));
  await page.locator("#histories-zoom-all").click();
  assert.deepEqual(await ticks(), all);
  // drag
  const box = await page.locator("#histories-plot svg.plot").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 100);
  await page.mouse.up();
  assert.notDeepEqual(await ticks(), all);
  await page.locator("#undo").click();
  assert.deepEqual(await ticks(), all);
  await close();
});

test("without a mouse: choose, rename, recolour, reorder, hide, zoom, remove", browserTest, async () => {
  const { page, close } = await open({ page: "histories" });
  const chooser = await chooserOf(page, () => page.locator("#histories-choose").press("Enter"));
  assert.ok(chooser.isMultiple());
  await chooser.setFiles([
    asFile("a.json", history([3, 2, 1])),
    asFile("b.json", history([4, 4, 4])),
    asFile("c.json", history([2, 2, 2])),
  ]);
  await added(page, 3);
  const focused = () => page.evaluate(() => document.activeElement.id);
  await page.locator("#histories-label-1").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("first run");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "histories-up-1", "Tab goes on although the name was taken");
  assert.deepEqual(await labels(page), ["first run", "b", "c"]);
  assert.match(await page.locator("#histories-legend").textContent(), /first run/);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.deepEqual(await labels(page), ["b", "first run", "c"]);
  assert.equal(await focused(), "histories-down-1");
  await page.locator("#histories-look-1").focus();
  const dash = () => page.locator('svg.plot path[data-series="1"]').getAttribute("class");
  const before = await dash();
  await page.keyboard.press("Enter");
  assert.notEqual(await dash(), before);
  await page.locator("#histories-key-2").focus();
  await page.keyboard.press("Space");
  assert.equal(await page.locator('svg.plot path[data-series="2"]').count(), 0);
  assert.equal(await focused(), "histories-key-2");
  await page.locator("#histories-plot svg.plot").focus();
  await page.keyboard.press("+");
  assert.ok(await page.locator("#histories-plot .legend button.small").first().isVisible());
  await page.keyboard.press("0");
  await page.locator("#histories-remove-1").focus();
  await page.keyboard.press("Enter");
  assert.deepEqual(await labels(page), ["b", "c"]);
  assert.equal(await focused(), "histories-remove-3");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  assert.equal(await focused(), "histories-choose");
  assert.equal(await page.locator("#histories-table tbody tr").count(), 0);
  await close();
});

test("pictures: an SVG with its legend that stands alone, a PNG of twice the size", browserTest, async () => {
  const { page, problems, close } = await open({ page: "histories" });
  const saved = async (kind) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(`#histories-${kind}`).click()]);
    assert.equal(download.suggestedFilename(), `policy_entropy.${kind}`);
    return readFile(await download.path());
  };
  const text = (await saved("svg")).toString();
  assert.match(text, /^<\?xml/);
  assert.match(text, /Questioner/);
  assert.match(text, /Solver \(below 50 % from step \d+\)/);
  assert.doesNotMatch(text, /class=|var\(--/);
  const png = await saved("png");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  const width = Number(/width="(\d+)"/.exec(text)[1]);
  assert.equal(png.readUInt32BE(16), 2 * width);
  if (process.env.SCREENSHOT_DIR) await writeFile(join(process.env.SCREENSHOT_DIR, "histories-export.png"), png);
  assert.equal(await page.locator(".histories-aside").count(), 0);
  assert.deepEqual(problems, []);
  await close();
});

test("fifty files of a hundred thousand records", browserTest, async () => {
  const { page, problems, close } = await open({ page: "histories" });
  // made in the page: that many bytes would take long to hand over
  await page.evaluate(() => {
    const transfer = new DataTransfer();
    for (let run = 0; run < 51; run += 1) {
      let text = "[";
      for (let step = 1; step <= (run < 50 ? 100_000 : 2); step += 1)
        text += `${step > 1 ? "," : ""}{"step":${step},"entropy":${(4 - run * 0.05 - step * 2e-5).toFixed(4)}}`;
      transfer.items.add(new File([`${text}]`], `entropy_history_run${String(run).padStart(2, "0")}.json`));
    }
    globalThis.longest = 0;
    let last = performance.now();
    globalThis.beat = setInterval(() => {
      globalThis.longest = Math.max(globalThis.longest, performance.now() - last);
      last = performance.now();
    }, 10);
    last = performance.now();
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  });
  await added(page, 50);
  const stood = await page.evaluate(() => globalThis.longest);
  // a busy machine is slow, but the page must never have stood still for the seconds that reading takes
  assert.ok(stood < 3000, `stood still for ${stood} ms`);
  assert.match(await page.locator("#histories-problems li").textContent(), /run50\.json: not read: at most 50/);
  assert.equal((await numbers(page, 0)).steps, "100000");
  assert.equal((await numbers(page, 49)).first, "1.55");
  const points = await page
    .locator("svg.plot path")
    .evaluateAll((paths) => paths.reduce((sum, path) => sum + path.getAttribute("d").split(/[ML]/).length - 1, 0));
  assert.ok(points > 2000 && points < 30_000, `${points} points drawn`);
  assert.match(await page.locator("#histories-note").textContent(), /too many points for a link/);
  const began = Date.now();
  await page.locator("#choice-histories-smooth").selectOption("mean");
  assert.ok(Date.now() - began < 8000);
  assert.deepEqual(problems, []);
  await close();
});

test("what a link carries: few points whole, many not at all, hostile ones mended", browserTest, async () => {
  const { page, close } = await open({ page: "histories" });
  const read = (data) =>
    page.evaluate(
      async (text) => (await import(new URL("histories/page.js", document.baseURI).href)).page.read(JSON.parse(text)),
      JSON.stringify(data),
    );
  for (const nothing of [null, 1, "x", [], {}, { runs: 3 }]) assert.equal(await read(nothing), null);
  const whole = {
    key: "1",
    label: "a",
    file: "a.json",
    colour: 2,
    off: false,
    data: "?",
    records: { steps: [1, 5], entropies: [2, 1] },
  };
  const state = await read({
    runs: [
      whole,
      { ...whole, records: { steps: [2, 1], entropies: [1, 1] } },
      { label: "x".repeat(999), colour: 99 },
      7,
    ],
    smooth: { kind: "evil", window: 1e9, weight: 5 },
    share: -1,
    zoom: [5, 1],
  });
  assert.deepEqual(
    state.runs.map(({ label }) => label.length),
    [1, 1, 120],
  );
  assert.deepEqual(state.runs[0].records, whole.records);
  assert.equal(state.runs[1].records, undefined, "steps that do not grow are not taken");
  assert.deepEqual([state.smooth, state.share, state.zoom], [{ kind: "none", window: 9, weight: 0.9 }, 0.5, null]);
  assert.deepEqual(await read(state), state);
  const many = await read({
    runs: [
      { ...whole, records: { steps: Array.from({ length: 801 }, (_, i) => i), entropies: new Array(801).fill(1) } },
    ],
  });
  assert.equal(many.runs[0].records, undefined);
  // a run whose points were left out gets them from the file of the same name
  const refilled = await page.evaluate(async () => {
    const { read, withLoaded, pointsOf } = await import(new URL("histories/state.js", document.baseURI).href);
    const waiting = read({ runs: [{ label: "mine", file: "a.json", colour: 5 }] });
    const points = { steps: Float64Array.of(1, 2), entropies: Float64Array.of(4, 3) };
    const next = withLoaded(waiting, [{ file: "a.json", label: "a", points }]);
    return {
      before: pointsOf(waiting.runs[0]) === undefined,
      runs: next.runs.map(({ label, colour }) => [label, colour]),
      there: pointsOf(next.runs[0]) !== undefined,
    };
  });
  assert.deepEqual(refilled, { before: true, runs: [["mine", 5]], there: true });
  await close();
});

checkViews("histories", async (page, check) => {
  await page.locator("#choice-histories-smooth").selectOption("mean");
  await give(page, asFile("entropy_history_a-rather-long-name-of-an-experiment_v2.json", '[{"step": 1}]'));
  await page.waitForSelector("#histories-problems li");
  await page.locator("#histories-intake summary").click();
  await check("problem");
});
