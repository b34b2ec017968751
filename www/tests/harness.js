// A tiny server for the assembled page, one browser for all tests of a file, and a loud skip where either is missing.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export const repository = fileURLToPath(new URL("../../", import.meta.url));
/** the assembled page */
export const folder = process.env.PLAYGROUND_DIR ?? join(repository, "target/playground");
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
// not the root: every address on the page must be relative
const PREFIX = "/some/sub/path/";
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
};
const FLAGS = [
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** Headless Chromium has WebGPU, in software, only when it is told so. */
const WEBGPU = "--enable-unsafe-webgpu";

/**
 * What a page puts off comes this many milliseconds later still. A test that reads without waiting for what it wants
 * passes on a fast machine and fails on a busy one; with PAGE_DELAY=300 it fails everywhere.
 */
const DELAY = Number(process.env.PAGE_DELAY ?? 0);

/** Runs in the page, before its scripts. @param {number} by */
function putOff(by) {
  const [timer, frame, idle] = [setTimeout, requestAnimationFrame, requestIdleCallback].map((own) => own.bind(window));
  const [noTimer, noFrame] = [clearTimeout, cancelAnimationFrame].map((own) => own.bind(window));
  const frames = new Map();
  window.setTimeout = (task, time = 0, ...given) => timer(task, time + by, ...given);
  window.requestIdleCallback = (task, options) => timer(() => idle(task, options), by);
  window.requestAnimationFrame = (task) => {
    const id = timer(() => frames.set(id, frame(task)), by);
    return id;
  };
  window.cancelAnimationFrame = (id) => {
    noTimer(id);
    noFrame(frames.get(id));
  };
}

/** @returns {Promise<string | null>} why the browser cannot be tested here */
async function reason() {
  if (!existsSync(join(folder, "index.html")))
    return `${folder} is missing: run \`cargo xtask playground --build-only\``;
  if (!existsSync(chromium)) return `${chromium} is missing`;
  try {
    await import("playwright-core");
    await import("axe-core");
  } catch {
    return "node_modules are missing: run `npm ci` in www/tests";
  }
  return null;
}

const missing = await reason();
if (missing && process.env.CI === "true") throw new Error(missing);
if (missing) console.error(`SKIPPED, the page is not tested: ${missing}`);

/** For `test(name, browserTest, …)`: skips with the reason where there is no browser. */
export const browserTest = { skip: missing ?? false };

/**
 * @param {(path: string) => boolean} [refuse] answers 404 for these
 * @param {string} [root]
 */
export async function serve(refuse = () => false, root = folder) {
  const asked = [];
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    asked.push(path);
    const inside = path.startsWith(PREFIX) ? normalize(path.slice(PREFIX.length) || "index.html") : null;
    try {
      if (inside === null || inside.startsWith("..") || refuse(inside)) throw new Error("not here");
      const body = await readFile(join(root, inside));
      response.writeHead(200, { "content-type": TYPES[extname(inside)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  // a test that failed before it stopped the server must not keep the others waiting
  server.unref();
  return { server, asked, address: `http://127.0.0.1:${server.address().port}${PREFIX}` };
}

const browsers = {};

/** The browser, started once; and another one without WebGPU. */
export async function launch(webgpu = true) {
  const { chromium: launcher } = await import("playwright-core");
  const args = webgpu ? [...FLAGS, WEBGPU] : FLAGS;
  browsers[webgpu] ??= await launcher.launch({ executablePath: chromium, args });
  return browsers[webgpu];
}

const servers = [];
after(async () => {
  for (const browser of Object.values(browsers)) await browser.close();
  for (const { server } of servers) {
    server.closeAllConnections();
    server.close();
  }
});

/**
 * @param {{ lang?: string, page?: string, preset?: string, fragment?: string, theme?: "light" | "dark", width?: number,
 *   height?: number, motion?: "reduce" | "no-preference", refuse?: (path: string) => boolean, webgpu?: boolean,
 *   address?: string }} [options] `address`: of a server of the test's own
 */
export async function open({
  lang = "en",
  page: id = "chain",
  preset = "one-plus-one",
  fragment = "",
  theme = "light",
  width = 1400,
  height = 1000,
  motion = "reduce",
  refuse,
  webgpu = true,
  address,
} = {}) {
  const browser = await launch(webgpu);
  let served = address ? { address } : refuse ? undefined : servers.find((entry) => entry.plain);
  if (!served) {
    served = { ...(await serve(refuse)), plain: !refuse };
    servers.push(served);
  }
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: motion,
    hasTouch: width < 500,
    serviceWorkers: "block",
  });
  // a missing element fails at once, not after half a minute each
  // a busy machine may take long to compile the module
  context.setDefaultTimeout(Number(process.env.PATIENCE ?? 60_000));
  if (DELAY > 0) await context.addInitScript(putOff, DELAY);
  const page = await context.newPage();
  const problems = [];
  // the worker would fetch the whole page again for every test; that it is blocked is not a fault of the page
  const blocked = "Service Worker registration blocked by Playwright";
  page.on(
    "console",
    (message) =>
      ["error", "warning"].includes(message.type()) && message.text() !== blocked && problems.push(message.text()),
  );
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(`${served.address}?lang=${lang}&page=${id}&preset=${preset}${fragment}`);
  await page.waitForSelector("main[aria-busy=false]");
  // the start page loads the rest of the library when it is asked for more: not in the middle of a test
  if (!refuse)
    await page.evaluate(async () => {
      await (await import(new URL("engine.js", document.baseURI).href)).loadLibrary();
    });
  // the first drawing is over, and so is what it deferred to the next frame
  await page.evaluate(
    () =>
      new Promise((done) => {
        requestAnimationFrame(() => requestAnimationFrame(done));
      }),
  );
  const failed = await page.locator(".failed").allTextContents();
  if (failed.length > 0 && !refuse) throw new Error(failed.join());
  return { page, problems, close: () => context.close() };
}

/** A table that has no sequences is one sequence. @param {number} sequence */
const ofSequence = (sequence) =>
  sequence === 0 ? `:is([data-sequence="0"], :not([data-sequence]))` : `[data-sequence="${sequence}"]`;

/** @param {string} row @param {number} index @param {number} [sequence] */
export const cell = (row, index, sequence = 0) => `[data-row="${row}"][data-index="${index}"]${ofSequence(sequence)}`;

/** @param {string} text as the page prints numbers */
export const numberOf = (text) =>
  Number(text.replace(/^.*= /, "").trim().replaceAll("−", "-").replace("+", "").replace("∞", "Infinity"));

/** Everything shows the present state: what is outside the view or takes long is drawn after the rest. */
export const drawn = (page) =>
  page.waitForFunction(() => !document.querySelector("[data-behind], [aria-busy=true]:not([hidden] *)"));

/** The address is written when a row of changes is over. */
export const written = (page) => page.waitForFunction(() => !document.documentElement.hasAttribute("data-unwritten"));

/** Follows a link in the open page. @param {string} hash */
export async function follow(page, hash) {
  // the page has heard of the link before this has, and says that it is busy
  await page.evaluate(
    (link) =>
      new Promise((done) => {
        if (location.hash === link) return done();
        window.addEventListener("hashchange", () => done(), { once: true });
        location.hash = link;
      }),
    hash,
  );
  await page.waitForSelector("main[aria-busy=false]");
}

/** The numbers of a row of one sequence, as shown. */
export async function rowOf(page, row, sequence = 0) {
  await drawn(page);
  const texts = await page.locator(`[role=gridcell][data-row="${row}"]${ofSequence(sequence)}`).allTextContents();
  return texts.map(numberOf);
}

/** Six significant digits, as the grid shows them. */
export const six = (values) => values.map((value) => Number(value.toPrecision(6)));

export async function edit(page, row, index, text, sequence = 0) {
  await page.locator(cell(row, index, sequence)).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+a");
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

export async function setParameter(page, name, text) {
  await page.locator(`#field-${name}`).fill(text);
  await page.keyboard.press("Enter");
}

/**
 * The chooser of files that one act opens.
 * @param {() => Promise<void>} act
 */
export async function chooserOf(page, act) {
  const opened = page.waitForEvent("filechooser");
  // The driver tells the page's process to hand its choosers over and does not wait for the answer; keys come another
  // way and can be there first, and the chooser then opens where nobody sees it. An answer to a later message on the
  // same way says that the first has arrived.
  await page.evaluate(() => {});
  await act();
  return opened;
}

/**
 * A picture of the page for people, where SCREENSHOT_DIR says a folder for them; tests do not look at it.
 * @param {string} name
 * @param {{ fullPage?: boolean }} [options]
 */
export async function keepPicture(page, name, options) {
  const kept = process.env.SCREENSHOT_DIR;
  if (kept) await page.screenshot({ path: join(kept, `${name}.png`), ...options });
}

/** A module of the page without imports of its own, for Node. */
export async function pageModule(path) {
  const source = await readFile(new URL(`../${path}`, import.meta.url), "utf8");
  return import(`data:text/javascript,${encodeURIComponent(source)}`);
}
