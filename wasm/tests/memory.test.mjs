// Large results in Node on Linux: what earlier ones lay in is used again.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { packed } from "./load.mjs";

const glibc = process.platform === "linux" && process.report.getReport().header.glibcVersionRuntime;
const skip = glibc ? false : "malloc is another one here";

for (const part of ["", "chain"]) {
  test(`${part || "the whole"}: a result of 4 MB is not 1024 page faults`, { skip }, () => {
    const program = `
      import { Batch, whiten } from ${JSON.stringify(pathToFileURL(join(packed, part, "node.js")).href)};
      const tokens = 1 << 20;
      const batch = Batch.padded(256, 4096, new Uint8Array(tokens).fill(1));
      const values = Float32Array.from({ length: tokens }, (_, index) => index % 7);
      const faults = (calls) => {
        const before = process.resourceUsage().minorPageFault;
        for (let call = 0; call < calls; call += 1) whiten(batch, values);
        return (process.resourceUsage().minorPageFault - before) / calls;
      };
      faults(100); // until the first results were collected
      console.log(faults(100));
    `;
    // limits of malloc's own would switch off what it learns
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(MALLOC_|GLIBC_)/.test(name)));
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
      encoding: "utf8",
      env,
    });
    assert.equal(stderr, "");
    assert.ok(Number(stdout) < 256, `${stdout.trim()} page faults per call`);
  });
}
