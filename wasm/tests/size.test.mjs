// What a browser has to fetch, after gzip: the limits hold for every build.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { packed } from "./load.mjs";

const KB = 1024;
// what they have come to with a fifteenth to spare, so that neither grows unseen
const limits = { "": 650 * KB, chain: 130 * KB };
/** The scripts together; the facade has a line for every function. */
const scripts = { "": 14 * KB, chain: 7.7 * KB };
/** What only Node loads. */
const ofNode = ["node.js", "memory.js"];
const scriptsIn = (part) =>
  readdirSync(join(packed, part)).filter((name) => name.endsWith(".js") && !ofNode.includes(name));
const size = (...path) => gzipSync(readFileSync(join(packed, ...path)), { level: 9 }).length;

for (const part of ["", "chain"]) {
  for (const build of ["plain", "simd"]) {
    test(`${part || "the whole"}, ${build}`, () => {
      const bytes = size(part, `tokenwise_${build}.wasm`);
      assert.ok(bytes <= limits[part], `${bytes} bytes, limit ${limits[part]}`);
    });
  }
  test(`${part || "the whole"}, scripts`, () => {
    const bytes = scriptsIn(part)
      .map((name) => size(part, name))
      .reduce((sum, one) => sum + one, 0);
    assert.ok(bytes <= scripts[part], `${bytes} bytes, limit ${scripts[part]}`);
  });
}

// the whole library and wgpu, loaded by those who choose WebGPU
test("with WebGPU", () => {
  const bytes = size("gpu", "tokenwise_gpu.wasm");
  assert.ok(bytes <= 1270 * KB, `${bytes} bytes`);
  const together = scriptsIn("gpu")
    .map((name) => size("gpu", name))
    .reduce((sum, one) => sum + one, 0);
  assert.ok(together <= 25.8 * KB, `${together} bytes of scripts`);
});
