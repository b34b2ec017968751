// The frame around the pages: tabs, keys, focus, history, the content security policy.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { browserTest, drawn, keepPicture, open, rowOf, setParameter } from "./harness.js";
import { checkAxe } from "./lab-checks.js";

const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.tagName);
const ready = (page) => page.waitForSelector("main[aria-busy=false]");

test("a skip link is the first stop, and keeps the address", browserTest, async () => {
  const { page, problems, close } = await open();
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "skip");
  assert.ok(await page.locator("#skip").evaluate((link) => link.getBoundingClientRect().top >= 0));
  const address = page.url();
  await page.keyboard.press("Enter");
  assert.ok(await page.evaluate(() => document.activeElement.closest("#chain .grid") !== null), "in the grid");
  assert.equal(page.url(), address);
  assert.deepEqual(problems, []);
  await close();
});

test("tabs by keyboard: the page, its title and its address change, the focus stays", browserTest, async () => {
  const { page, problems, close } = await open();
  const ids = await page.locator(".tab").evaluateAll((all) => all.map((tab) => tab.id.slice(4)));
  assert.ok(ids.length >= 9);
  assert.equal(await page.locator(".tab[aria-current=page]").getAttribute("id"), "tab-chain");
  await page.locator("#tab-chain").focus();
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "tab-kl");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#page-kl:not([hidden])");
  await ready(page);
  assert.equal(await focused(page), "tab-kl");
  assert.equal(await page.locator(".tab[aria-current=page]").getAttribute("id"), "tab-kl");
  assert.match(await page.title(), /^KL · tokenwise/);
  await page.waitForFunction(() => /page=kl/.test(location.search));
  assert.ok(await page.locator("#page-chain").isHidden());
  assert.deepEqual(problems, []);
  await close();
});

test("an unknown page in the address is the first page", browserTest, async () => {
  const { page, problems, close } = await open({ page: "constructor" });
  assert.equal(await page.locator(".tab[aria-current=page]").getAttribute("id"), "tab-chain");
  assert.deepEqual(problems, []);
  await close();
});

test("undo and redo, also from within a field and across a change of page", browserTest, async () => {
  const { page, problems, close } = await open();
  const before = await rowOf(page, "advantage");
  await setParameter(page, "gamma", "0.5");
  const after = await rowOf(page, "advantage");
  assert.notDeepEqual(after, before);
  // the field is at rest: the key is the page's
  await page.keyboard.press("Control+z");
  assert.deepEqual(await rowOf(page, "advantage"), before);
  // while something is being typed, it is the field's
  await page.locator("#field-gamma").focus();
  await page.keyboard.type("7");
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Escape");
  assert.deepEqual(await rowOf(page, "advantage"), before);
  // looking at another page is no edit: what was undone can still be redone
  await page.locator("#tab-kl").click();
  await ready(page);
  assert.ok(await page.locator("#redo").isEnabled());
  await page.locator("#redo").click();
  await page.waitForSelector("#page-chain:not([hidden])");
  await ready(page);
  assert.deepEqual(await rowOf(page, "advantage"), after);
  // the last step disables the button, which keeps the focus
  assert.equal(await focused(page), "main");
  assert.deepEqual(problems, []);
  await close();
});

test("the policy is strict, and no page offends against it", browserTest, async () => {
  const text = await readFile(new URL("../index.html", import.meta.url), "utf8");
  const policy = /http-equiv="Content-Security-Policy"\s+content="([^"]+)"/.exec(text)[1];
  const rules = Object.fromEntries(policy.split(";").map((rule) => rule.trim().split(/ (.*)/s)));
  assert.equal(rules["default-src"], "'none'");
  assert.equal(rules["script-src"], "'self' 'wasm-unsafe-eval'");
  assert.equal(rules["style-src"], "'self'");
  assert.equal(rules["base-uri"], "'none'");
  assert.equal(rules["form-action"], "'none'");
  assert.doesNotMatch(policy, /unsafe-inline|'unsafe-eval|https?:|\*/);
  assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?:\/\//);
  const { page, problems, close } = await open();
  await page.evaluate(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      window.violations.push(`${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  for (const id of await page.locator(".tab").evaluateAll((all) => all.map((tab) => tab.id))) {
    await page.locator(`#${id}`).click();
    await ready(page);
    await page.locator("#share-button").click();
    await page.locator("#share-button").click();
  }
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.deepEqual(problems, []);
  // and it works: text inserted as markup runs nothing
  const ran = await page.evaluate(async () => {
    const evil = document.createElement("div");
    evil.innerHTML = '<img src="x:" onerror="window.ran = true">';
    document.body.append(evil);
    await new Promise((resolve) => setTimeout(resolve, 200));
    return window.ran === true;
  });
  assert.equal(ran, false);
  await close();
});

test("no module writes markup, evaluates text or calls abroad", async () => {
  const folder = new URL("../", import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter(
    (file) => file.endsWith(".js") && !/^(tests|pkg)/.test(file),
  );
  assert.ok(files.length > 40);
  for (const file of files) {
    const source = await readFile(new URL(file, folder), "utf8");
    assert.doesNotMatch(source, /\.(inner|outer)HTML|insertAdjacentHTML|DOMParser|createContextualFragment/, file);
    assert.doesNotMatch(source, /document\.write|\beval\(|new Function\(|setAttribute\("(style|on)/, file);
    // an address may be shown as a link, never fetched
    assert.doesNotMatch(
      source,
      /(fetch|import|importScripts|Worker|EventSource|WebSocket|sendBeacon)\(\s*["'`](https?:)?\/\//,
      file,
    );
  }
});

for (const lang of ["en", "zh"]) {
  for (const width of [360, 800, 1400]) {
    test(`header and share panel, ${lang}, ${width} wide`, browserTest, async () => {
      const { page, problems, close } = await open({
        lang,
        width,
        height: 900,
        theme: width === 800 ? "dark" : "light",
        fragment: "#1.AAAA",
      });
      await page.locator("#share-button").click();
      await page.waitForFunction(() => document.querySelector("#share-link").value !== "");
      await page.locator("[data-export=python]").click();
      await page.waitForSelector(".preview");
      await keepPicture(page, `share-${lang}-${width}`);
      const outside = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      assert.ok(outside <= 0, `${outside} pixels too wide`);
      const box = await page.locator("#share-panel").boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= width, JSON.stringify(box));
      await checkAxe(page, "", "header, #notice, #skip");
      assert.deepEqual(problems, []);
      await close();
    });
  }
}

test("on paper there is the content, without what is for the hand", browserTest, async () => {
  const { page, close } = await open({ width: 1000 });
  await page.emulateMedia({ media: "print" });
  assert.ok(await page.locator(".tools").isHidden());
  assert.ok(await page.locator("#chain").isVisible());
  await keepPicture(page, "print", { fullPage: true });
  await close();
});

test("a page looks the same whatever was opened before it", browserTest, async () => {
  const { page, close } = await open();
  const ids = (await page.locator(".tab").evaluateAll((all) => all.map((tab) => tab.id.slice(4)))).reverse();
  const turn = async (id) => {
    await page.locator(`#tab-${id}`).click();
    await page.waitForSelector(`#tab-${id}[aria-current]`);
    await ready(page);
  };
  const boxes = async (where) => {
    await drawn(where);
    return where.evaluate(async () => {
      // a picture takes its width in the frame after it was drawn
      await new Promise((done) => {
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
      });
      const all = [...document.querySelectorAll("main .page:not([hidden]) *")].filter(
        (one) => one instanceof HTMLElement,
      );
      return all.map((one) => {
        const { x, width, height } = one.getBoundingClientRect();
        const { fontSize, color, backgroundColor } = getComputedStyle(one);
        return [
          one.tagName,
          one.className,
          one.id,
          Math.round(x),
          Math.round(width),
          Math.round(height),
          fontSize,
          color,
          backgroundColor,
        ].join(" ");
      });
    });
  };
  for (const id of ids) await turn(id);
  for (const id of ids) {
    await turn(id);
    const late = await boxes(page);
    const fresh = await open({ page: id });
    assert.deepEqual(late, await boxes(fresh.page), id);
    await fresh.close();
  }
  await close();
});
