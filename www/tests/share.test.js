// Links: everything that is on the page, as text, and back.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { browserTest, drawn, edit, follow, open, pageModule, rowOf, setParameter, written } from "./harness.js";

const { decode, encode, read, write } = await pageModule("share/link.js");

test("numbers that JSON lacks, strings that look like them, and every other letter survive", async () => {
  const states = {
    chain: {
      numbers: [NaN, Infinity, -Infinity, -0, 0, 5e-324, 0.1 + 0.2, null],
      words: ["~NaN", "~~", "~", "是\u0000</script>", "𝔸"],
      yes: true,
    },
  };
  const { snapshot } = await decode(await encode({ page: "chain", states }));
  assert.deepStrictEqual(snapshot, { page: "chain", states });
  assert.deepStrictEqual(read(write(snapshot)), { snapshot });
  const typed = read(write({ page: "x", states: { a: Float64Array.of(NaN, -0, 1) } }));
  assert.deepStrictEqual(typed.snapshot.states.a, [NaN, -0, 1]);
});

test("a link may come with what chat programs add to it", async () => {
  const link = await encode({ page: "kl", states: {} });
  for (const after of ["", ".", ")。", "”", "\n"]) assert.equal((await decode(link + after)).snapshot.page, "kl");
  assert.equal((await decode(encodeURIComponent(link.slice(1)))).snapshot.page, "kl");
});

test("the address follows an edit, and opens it again", browserTest, async () => {
  const { page, problems, close } = await open();
  await edit(page, "score", 5, "NaN");
  await edit(page, "kl", 0, "-0");
  await setParameter(page, "gamma", "0.9");
  await written(page);
  const link = page.url();
  assert.match(link, /#1\.[\w-]+$/);
  assert.ok(link.length < 2000, `${link.length} letters`);
  const shown = [await rowOf(page, "advantage"), await rowOf(page, "kl"), await rowOf(page, "whitened")];
  await page.goto("about:blank");
  await page.goto(link.replace(/#.*/, "") + (await encodeOf(link)));
  await page.waitForSelector("main[aria-busy=false]");
  assert.deepEqual([await rowOf(page, "advantage"), await rowOf(page, "kl"), await rowOf(page, "whitened")], shown);
  assert.ok(await page.locator("#notice").isHidden());
  assert.ok(await page.locator("#undo").isDisabled());
  assert.deepEqual(problems, []);
  await close();
});

/** A link read and written again is the same link. */
async function encodeOf(link) {
  const { snapshot } = await decode(new URL(link).hash);
  return encode(snapshot);
}

test("every example and tour has a link that brings it back, and a name of its own", browserTest, async () => {
  const first = await open();
  const second = await open({ lang: "en" });
  const address = new URL(second.page.url());
  const grid = async (page) => {
    await drawn(page);
    return page.locator("[role=gridcell]").allTextContents();
  };
  const ids = await first.page.locator("#choice-preset option").evaluateAll((all) => all.map((option) => option.value));
  assert.ok(ids.length >= 12, String(ids));
  for (const id of ids) {
    await first.page.locator("#choice-preset").selectOption(id);
    await first.page.locator("#share-button").click();
    await first.page.waitForFunction(() => document.querySelector("#share-link").value !== "");
    const link = await first.page.locator("#share-link").inputValue();
    await first.page.locator("#share-button").click();
    assert.ok(link.length < 2000, `${id}: ${link.length} letters`);
    const { snapshot } = await decode(new URL(link).hash);
    const tour = /^tour:(.*)/.exec(id)?.[1];
    assert.equal(tour ? snapshot.states.chain.tour.id : snapshot.states.chain.preset, tour ?? id);
    const shown = await grid(first.page);
    const search = tour ? `?lang=en&tour=${tour}` : `?lang=en&preset=${id}`;
    for (const arrive of [
      // the link in the page that shows another example: the next one begins from this
      () => follow(second.page, new URL(link).hash),
      async () => {
        await second.page.goto(address.origin + address.pathname + search);
        await second.page.waitForSelector("main[aria-busy=false]");
      },
    ]) {
      await arrive();
      assert.deepEqual(await grid(second.page), shown, search);
      assert.ok(await second.page.locator("#notice").isHidden(), search);
    }
  }
  assert.deepEqual([first.problems, second.problems], [[], []]);
  await first.close();
  await second.close();
});

test("links of the past open with their numbers", browserTest, async () => {
  const old = JSON.parse(await readFile(new URL("links-v1.json", import.meta.url), "utf8"));
  assert.ok(old.length >= 3);
  for (const { name, fragment, page: id, rows } of old) {
    const { page, problems, close } = await open({ fragment });
    assert.ok(await page.locator("#notice").isHidden(), name);
    assert.equal(await page.locator(".tab[aria-current]").getAttribute("id"), `tab-${id}`, name);
    for (const [row, expected] of Object.entries(rows)) {
      const found = await Promise.all(expected.map((_, sequence) => rowOf(page, row, sequence)));
      assert.deepEqual(found, expected, `${name}: ${row}`);
    }
    assert.deepEqual(problems, [], name);
    await close();
  }
});

test("a link pasted into the open page is a step that can be undone", browserTest, async () => {
  const { page, problems, close } = await open();
  await setParameter(page, "gamma", "0.5");
  const mine = await rowOf(page, "advantage");
  const [{ fragment, rows }] = JSON.parse(await readFile(new URL("links-v1.json", import.meta.url), "utf8"));
  await follow(page, fragment);
  assert.deepEqual(await rowOf(page, "advantage"), rows.advantage[0]);
  await page.locator("#undo").click();
  assert.deepEqual(await rowOf(page, "advantage"), mine);
  await page.locator("#redo").click();
  assert.deepEqual(await rowOf(page, "advantage"), rows.advantage[0]);
  assert.deepEqual(problems, []);
  await close();
});

for (const [lang, words] of [
  ["en", /damaged/],
  ["zh", /损坏/],
]) {
  test(`a broken link gives a message and the default page, ${lang}`, browserTest, async () => {
    const { page, problems, close } = await open({ lang, fragment: "#1.AAAA" });
    assert.match(await page.locator("#notice").innerText(), words);
    assert.equal((await page.locator("[role=gridcell]").count()) > 50, true);
    await page.locator("#notice button").click();
    assert.ok(await page.locator("#notice").isHidden());
    assert.deepEqual(problems, []);
    await close();
  });
}

test("a broken link put into a page at work loses nothing", browserTest, async () => {
  const { page, problems, close } = await open();
  await setParameter(page, "gamma", "0.5");
  const mine = await rowOf(page, "advantage");
  await page.evaluate(() => {
    location.hash = "#7.zzzz";
  });
  await page.waitForSelector("#notice:not([hidden])");
  assert.match(await page.locator("#notice").innerText(), /newer version/);
  assert.deepEqual(await rowOf(page, "advantage"), mine);
  await page.locator("#language").click();
  await page.waitForFunction(() => /更新版本/.test(document.querySelector("#notice").textContent));
  assert.deepEqual(problems, []);
  await close();
});

test("language and theme change nothing of the state, and the address keeps up", browserTest, async () => {
  const { page, problems, close } = await open({ lang: "en" });
  await setParameter(page, "gamma", "0.5");
  const mine = await rowOf(page, "advantage");
  await written(page);
  await page.locator("#language").click();
  await page.waitForFunction(() => document.documentElement.lang === "zh-CN");
  await page.locator("#theme").click();
  assert.deepEqual(await rowOf(page, "advantage"), mine);
  assert.match(page.url(), /lang=zh/);
  await page.reload();
  await page.waitForSelector("main[aria-busy=false]");
  assert.deepEqual(await rowOf(page, "advantage"), mine);
  assert.equal(await page.evaluate(() => document.documentElement.lang), "zh-CN");
  assert.deepEqual(problems, []);
  await close();
});

test("the panel: link, copy, save, a state saved and opened", browserTest, async () => {
  const { page, problems, close } = await open();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await setParameter(page, "lambda", "0.5");
  const mine = await rowOf(page, "advantage");
  await page.locator("#share-button").click();
  assert.equal(await page.locator("#share-button").getAttribute("aria-expanded"), "true");
  await page.waitForFunction(() => document.querySelector("#share-link").value !== "");
  await page.locator("[data-export=link]").click();
  await page.waitForFunction(() => document.querySelector(".said").textContent !== "");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, await page.locator("#share-link").inputValue());
  const coming = page.waitForEvent("download");
  await page.locator("[data-export=state]").click();
  const path = await (await coming).path();
  await page.locator("[data-export=png-0]").click();
  await page.waitForFunction(() => /\.png/.test(document.querySelector(".said").textContent));
  await page.keyboard.press("Escape");
  assert.ok(await page.locator("#share-panel").isHidden());
  assert.equal(await page.evaluate(() => document.activeElement.id), "share-button");
  await setParameter(page, "lambda", "0.1");
  assert.notDeepEqual(await rowOf(page, "advantage"), mine);
  await page.locator("#share-button").click();
  await page.locator("#share-open").setInputFiles(path);
  await page.waitForFunction(() => document.querySelector("#share-panel").hidden);
  assert.deepEqual(await rowOf(page, "advantage"), mine);
  await page.locator("#share-button").click();
  await page
    .locator("#share-open")
    .setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from('{"page":1}') });
  await page.waitForSelector("#notice:not([hidden])");
  assert.deepEqual(await rowOf(page, "advantage"), mine);
  assert.deepEqual(problems, []);
  await close();
});

test("inside another page there is only the content, and one link out", browserTest, async () => {
  const { page, close } = await open({ fragment: "", preset: "whiten&embed=1" });
  assert.ok(await page.locator("header").isHidden());
  const way = page.locator("#foot a");
  await way.waitFor();
  assert.match(await way.getAttribute("href"), /#1\./);
  await close();
});

test("whatever a page offers to copy or save can be had, in both languages", browserTest, async () => {
  for (const lang of ["en", "zh"]) {
    const { page, problems, close } = await open({ lang });
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    page.on("download", (file) => file.cancel());
    let count = 0;
    for (const id of await page.locator(".tab").evaluateAll((all) => all.map((tab) => tab.id.slice(4)))) {
      await page.locator(`#tab-${id}`).click();
      await page.waitForSelector(`#page-${id}:not([hidden])`);
      await page.waitForSelector("main[aria-busy=false]");
      await page.locator("#share-button").click();
      await page.waitForFunction(() => document.querySelector("[data-export=link]")?.disabled === false);
      await page.waitForSelector("#share-panel .pictures", { state: "attached" });
      const entries = await page
        .locator("[data-export]")
        .evaluateAll((all) => all.map((button) => button.dataset.export));
      for (const entry of entries) {
        const button = page.locator(`[data-export="${entry}"]`);
        await page.locator(".said").evaluate((said) => {
          said.textContent = "";
        });
        await button.click();
        await page.waitForFunction(() => document.querySelector(".said").textContent !== "");
        const said = await page.locator(".said").textContent();
        assert.match(
          said,
          lang === "en" ? /copied\.$|^Saved as [\w.-]+\.$/ : /已复制。$|^已保存为 [\w.-]+。$/,
          `${id}: ${entry}: ${said}`,
        );
        count += 1;
      }
      await page.keyboard.press("Escape");
      assert.ok(await page.locator("#share-panel").isHidden());
    }
    assert.ok(count >= 20, `${count} things to take`);
    assert.deepEqual(problems, []);
    await close();
  }
});
