// The package as npm packs it: installed from its tarball, run in Node and in a browser, both builds.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { packed } from "./load.mjs";

const chromium =
  process.env.CHROMIUM ??
  ["chromium", "chromium-browser", "google-chrome"].map((name) => `/usr/bin/${name}`).find(existsSync);
const playwright = await import("playwright-core").catch(() => undefined);
const noBrowser = chromium && playwright ? false : "there is no browser";
if (noBrowser) console.warn(`SKIPPED: ${noBrowser}`);

const here = fileURLToPath(new URL(".", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "tokenwise-package-"));
after(() => rmSync(scratch, { recursive: true }));

const run = (command, args) => {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: scratch, encoding: "utf8" });
  assert.equal(status, 0, `${command} ${args.join(" ")}: ${error ?? ""}${stdout}${stderr}`);
  return stdout;
};
const npm = spawnSync("npm", ["--version"]).status === 0;
const skip = npm || process.env.CI === "true" ? false : "npm is not installed";
if (skip) console.warn(`SKIPPED: ${skip}`);

/** The same lines in Node and in a browser; gives what went wrong. */
const program = `
export async function check(tokenwise, all) {
  await tokenwise.default();
  const { Batch, gae, TokenwiseError } = tokenwise;
  const batch = Batch.padded(1, 4, Uint8Array.of(1, 1, 0, 1));
  const input = {
    rewards: Float32Array.of(0, 0, NaN, 1),
    values: Float32Array.of(0.5, 0.5, NaN, 0.5),
    bootstrap: Float32Array.of(0),
  };
  const found = [...gae(batch, input, { lambda: 0.5 }).advantages].join();
  if (found !== "0.125,0.25,0,0.5") return found;
  const logits = Float32Array.of(0, 0, 0, 0);
  const two = Batch.padded(1, 2, Uint8Array.of(1, 1));
  const policy = tokenwise.logProbsAndEntropy(two, { logits, vocab: 2, tokens: Uint32Array.of(0, 1) });
  if (policy.entropy[1] !== Math.fround(Math.LN2)) return String(policy.entropy[1]);
  try {
    gae(batch, input, { lambda: 2 });
    return "not refused";
  } catch (error) {
    if (!(error instanceof TokenwiseError && error instanceof Error)) return String(error);
    if (error.code !== "config" || error.parameter !== "lambda") return String(error);
  }
  return typeof tokenwise.compareProfiles === (all ? "function" : "undefined") ? "" : "compareProfiles";
}
`;

test("the tarball installs", { skip }, () => {
  const tarball = run("npm", ["pack", "--silent", packed]).trim().split("\n").at(-1);
  writeFileSync(join(scratch, "package.json"), JSON.stringify({ private: true, type: "module" }));
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", join(scratch, tarball)]);
  const files = readdirSync(join(scratch, "node_modules/tokenwise"));
  for (const file of ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "index.d.ts", "node.js", "web.js"])
    assert.ok(files.includes(file), file);
  writeFileSync(join(scratch, "check.js"), program);
});

test("it runs in Node", { skip }, () => {
  writeFileSync(
    join(scratch, "node.js"),
    `
    import * as all from "tokenwise";
    import * as chain from "tokenwise/chain";
    import { check } from "./check.js";
    const wrong = [await check(all, true), await check(chain, false)].join("");
    if (wrong !== "") throw new Error(wrong);
  `,
  );
  run("node", ["node.js"]);
});

test("tokenwise/gpu runs in Node, and says that there is no GPU by the one class of errors", { skip }, () => {
  writeFileSync(
    join(scratch, "gpu.js"),
    `
    import { TokenwiseError } from "tokenwise";
    import * as gpu from "tokenwise/gpu";
    import { check } from "./check.js";
    const wrong = await check(gpu, true);
    if (wrong !== "") throw new Error(wrong);
    const error = await gpu.Gpu.create().then(() => "a device", (error) => error);
    if (!(error instanceof TokenwiseError) || error.code !== "no_adapter") throw new Error(String(error));
    const { whyCore } = gpu.Gpu;
    if (whyCore("ppoClip") !== undefined || !/sorted/.test(whyCore("quantile"))) throw new Error("whyCore");
  `,
  );
  run("node", ["gpu.js"]);
});

test("its build without vectors runs where there are none", { skip }, () => {
  writeFileSync(
    join(scratch, "plain.js"),
    `
    import { readFileSync } from "node:fs";
    WebAssembly.validate = () => false;
    const read = [];
    const { Module } = WebAssembly;
    WebAssembly.Module = class extends Module { constructor(bytes) { super(bytes); read.push(bytes.length); } };
    const tokenwise = await import("tokenwise");
    const { check } = await import("./check.js");
    const wrong = await check(tokenwise, true);
    if (wrong !== "") throw new Error(wrong);
    const plain = readFileSync("node_modules/tokenwise/tokenwise_plain.wasm").length;
    if (read.join() !== String(plain)) throw new Error(read.join() + " instead of " + plain);
  `,
  );
  run("node", ["plain.js"]);
});

test(
  "its declarations resolve",
  { skip: skip || (existsSync(join(here, "node_modules/typescript")) ? false : "TypeScript is not installed") },
  () => {
    writeFileSync(
      join(scratch, "types.ts"),
      `
    import init, { Batch, gae, TokenwiseError } from "tokenwise";
    import { gaeF64 } from "tokenwise/chain";
    import { Gpu, type Answer } from "tokenwise/gpu";
    import * as onGpu from "tokenwise/gpu";
    await init();
    const batch: Batch = Batch.padded(1, 1, Uint8Array.of(1));
    const one = Float32Array.of(1);
    const advantages: Float32Array = gae(batch, { rewards: one, values: one, bootstrap: one }).advantages;
    const gpu: Gpu = await Gpu.create();
    const two: onGpu.Batch = onGpu.Batch.padded(1, 1, Uint8Array.of(1));
    const answer: Answer<{ advantages: Float32Array; returns: Float32Array }> = await gpu.gae(two, {
      rewards: one,
      values: one,
      bootstrap: one,
    });
    answer.report.ran satisfies "gpu" | "core";
    // @ts-expect-error the GPU has no doubles
    void gpu.whiten(two, new Float64Array(1));
    try {
      gaeF64 satisfies Function;
    } catch (error) {
      if (error instanceof TokenwiseError) {
        const code: string = error.code;
        void [code, advantages];
      }
    }
  `,
    );
    const options = [
      "--strict",
      "--noEmit",
      "--target",
      "es2022",
      "--module",
      "nodenext",
      "--moduleResolution",
      "nodenext",
      "--lib",
      "es2022,dom",
    ];
    run("node", [join(here, "node_modules/typescript/bin/tsc"), ...options, "types.ts"]);
  },
);

test("it runs in a browser", { skip: skip || noBrowser }, async () => {
  const types = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };
  const server = createServer((request, response) => {
    const path = join(scratch, normalize(new URL(request.url, "http://x").pathname));
    if (request.url === "/") {
      const imports = {
        tokenwise: "/node_modules/tokenwise/web.js",
        "tokenwise/chain": "/node_modules/tokenwise/chain/web.js",
        "tokenwise/gpu": "/node_modules/tokenwise/gpu/web.js",
      };
      response
        .writeHead(200, { "Content-Type": "text/html" })
        .end(`<!doctype html><script type="importmap">${JSON.stringify({ imports })}</script>`);
    } else if (existsSync(path))
      response.writeHead(200, { "Content-Type": types[extname(path)] ?? "text/plain" }).end(readFileSync(path));
    else response.writeHead(404).end();
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const browser = await playwright.chromium.launch({
    executablePath: chromium,
    args: [
      "--no-sandbox",
      "--headless",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--enable-unsafe-webgpu",
    ],
  });
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const wrong = await page.evaluate(async () => {
      const { check } = await import("/check.js");
      return [await check(await import("tokenwise"), true), await check(await import("tokenwise/chain"), false)].join(
        "",
      );
    });
    assert.equal(wrong, "");
    const { advantages, report, codes } = await page.evaluate(async () => {
      const { TokenwiseError } = await import("tokenwise");
      const { default: init, Batch, Gpu } = await import("tokenwise/gpu");
      await init();
      const gpu = await Gpu.create();
      const batch = Batch.padded(1, 4, Uint8Array.of(1, 1, 0, 1));
      const input = {
        rewards: Float32Array.of(0, 0, NaN, 1),
        values: Float32Array.of(0.5, 0.5, NaN, 0.5),
        bootstrap: Float32Array.of(0),
      };
      const { result, report } = await gpu.call("gae", batch, input, { lambda: 0.5 });
      const refused = async (call) => {
        const error = await call().then(
          () => "not refused",
          (thrown) => thrown,
        );
        return error instanceof TokenwiseError ? error.code : String(error);
      };
      const codes = [
        await refused(() => gpu.gae(batch, input, { lambda: 2 })),
        await refused(() => gpu.gae(batch, { ...input, rewards: new Float32Array(3) })),
        await refused(() => gpu.gae(batch, { ...input, rewards: new Float64Array(4) })),
        await refused(() => gpu.call("nonsense", batch)),
      ];
      // arguments are read before a call yields, so that what they lay in can be freed at once
      const late = gpu.gae(batch, input, { lambda: 0.5 });
      batch.free();
      input.rewards.fill(7);
      const again = (await late).result.advantages.join();
      codes.push(again === result.advantages.join() ? "same" : again, await refused(() => gpu.gae(batch, input)));
      gpu.free();
      codes.push(await refused(() => gpu.gae(batch, input)));
      return { advantages: [...result.advantages], report, codes };
    });
    assert.deepEqual(advantages, [0.125, 0.25, 0, 0.5]);
    assert.equal(report.ran, "gpu");
    assert.ok(report.dispatches > 0 && report.bytesUp > 0 && report.bytesDown > 0 && report.milliseconds >= 0);
    assert.ok(report.adapter.length > 0 && report.reason === null);
    assert.deepEqual(codes, ["config", "length", "type", "type", "same", "freed", "freed"]);
  } finally {
    await browser.close();
    server.close();
  }
});
