// The declarations as a strict TypeScript compiler sees them.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { folder, formulasOf, functions } from "./load.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const compiler = join(here, "node_modules/typescript/bin/tsc");
const files = ["sample.ts", "sample-rollout.ts"].map((name) => join(here, name));
const sample = files.map((file) => readFileSync(file, "utf8")).join("\n");
const missing = !existsSync(compiler) && process.env.CI !== "true";
const skip = missing ? "TypeScript is not installed: npm ci in wasm/tests" : false;
if (missing) console.warn(`SKIPPED: ${skip}`);

test("the sample uses every function that is written by hand, and most of the others", () => {
  const formulas = new Set(formulasOf(folder));
  const unused = functions.filter((name) => !new RegExp(`\\btokenwise\\.${name}\\(`).test(sample));
  assert.deepEqual(
    unused.filter((name) => !formulas.has(name)),
    [],
  );
  assert.ok(unused.length < functions.length / 10, `not in the sample: ${unused}`);
});

test("the sample compiles under --strict", { skip }, () => {
  const scratch = mkdtempSync(join(tmpdir(), "tokenwise-"));
  try {
    const options = {
      compilerOptions: {
        strict: true,
        noEmit: true,
        target: "ES2022",
        module: "nodenext",
        moduleResolution: "nodenext",
        lib: ["ES2022"],
        exactOptionalPropertyTypes: true,
        types: [],
        paths: { tokenwise: [join(folder, "tokenwise.d.ts")] },
      },
      files,
    };
    const config = join(scratch, "tsconfig.json");
    writeFileSync(config, JSON.stringify(options));
    const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, "--project", config], {
      encoding: "utf8",
    });
    assert.equal(status, 0, stdout + stderr);
  } finally {
    rmSync(scratch, { recursive: true });
  }
});
