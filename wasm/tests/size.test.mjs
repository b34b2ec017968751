// What a browser has to fetch, after gzip: the limits hold for every build.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { packed } from "./load.mjs";

const KB = 1024;
// the whole: what it has come to, so that it does not grow unseen (it varies by 1 % with the folder it is built in); 90 KB is what it should be
const limits = { "": 128.5 * KB, chain: 26 * KB };
const glue = { "": 15.25 * KB, chain: 7 * KB };
const size = (...path) => gzipSync(readFileSync(join(packed, ...path)), { level: 9 }).length;

for (const part of ["", "chain"]) {
  for (const build of ["plain", "simd"]) {
    test(`${part || "the whole"}, ${build}`, () => {
      const bytes = size(part, `tokenwise_${build}.wasm`);
      assert.ok(bytes <= limits[part], `${bytes} bytes, limit ${limits[part]}`);
    });
  }
  test(`${part || "the whole"}, glue`, () => {
    const bytes = size(part, "tokenwise.js");
    assert.ok(bytes <= glue[part], `${bytes} bytes, limit ${glue[part]}`);
  });
}
