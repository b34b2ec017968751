// node browser.mjs FOLDER CHROMIUM: runs the measurements in a browser, prints one record per line.

import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { getPriority } from "node:os";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const [folder, executablePath] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const roots = { modules: folder, ort: join(here, "node_modules/onnxruntime-web/dist"), here };
const types = { html: "text/html", js: "text/javascript", mjs: "text/javascript", wasm: "application/wasm" };

const server = createServer(async (request, response) => {
  const [, root, ...rest] = normalize(new URL(request.url, "http://x").pathname).split("/");
  try {
    const body = root === "" ? "<!doctype html>" : await readFile(join(roots[root], ...rest));
    const type = root === "" ? "html" : rest.at(-1).split(".").at(-1);
    response.writeHead(200, { "Content-Type": types[type] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

const started = await chromium.launchServer({
  executablePath,
  args: [
    "--no-sandbox",
    "--no-zygote",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
// a session of its own: what was raised for us does not hold for it
if (getPriority() < 0) await writeFile(`/proc/${started.process().pid}/autogroup`, "-10").catch(() => {});
const browser = await chromium.connect(started.wsEndpoint());
try {
  const page = await browser.newPage();
  page.on("console", (message) => console.error(message.text()));
  await page.exposeFunction("record", (record) => console.log(JSON.stringify(record)));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.evaluate(async () => {
    const { measure } = await import("/here/measure.mjs");
    const ort = await import("/ort/ort.wasm.min.mjs");
    ort.env.wasm.wasmPaths = "/ort/";
    const bare = async (name) => (await WebAssembly.instantiateStreaming(fetch(`/modules/${name}`), {})).instance;
    const packaged = async (name) => {
      const tokenwise = await import(`/modules/${name}/tokenwise.js`);
      await tokenwise.default();
      return tokenwise;
    };
    await measure({
      bare: await bare("bare-simd128.wasm"),
      plain: await bare("bare-plain.wasm"),
      tokenwise: await packaged("package"),
      ort,
      print: (record) => globalThis.record(record),
    });
  });
} finally {
  await browser.close();
  await started.close();
  server.close();
}
