// The layout of the scripts, style sheets and pages: `npm --prefix www/tests run format` fixes what fails here.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const repository = fileURLToPath(new URL("../../", import.meta.url));
const prettier = fileURLToPath(new URL("node_modules/prettier/bin/prettier.cjs", import.meta.url));
const skip = !existsSync(prettier) && "Prettier is missing: run `npm ci` in www/tests";
if (skip && process.env.CI === "true") throw new Error(skip);
if (skip) console.error(`SKIPPED, the layout of the scripts is not checked: ${skip}`);

test("every script, style sheet and page has the layout of the formatter", { skip }, () => {
  const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", "format:check"], {
    cwd: here,
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout + stderr);
});

test("what is checked are the scripts, not what is built or installed", { skip }, () => {
  const ignored = (/** @type {string} */ path) => {
    const { stdout } = spawnSync(process.execPath, [prettier, "--file-info", path], {
      cwd: repository,
      encoding: "utf8",
    });
    return JSON.parse(stdout).ignored;
  };
  for (const path of ["www/main.js", "www/styles/base.css", "wasm/tests/load.mjs"]) assert.equal(ignored(path), false);
  for (const path of ["README.md", "target/playground/main.js", "www/tests/node_modules/x.js"])
    assert.equal(ignored(path), true);
});

test("comments and code end at column 120; a text may go on", async () => {
  const long = [];
  for (const folder of ["www", "wasm/tests", "bench/wasm"]) {
    const files = (await readdir(join(repository, folder), { recursive: true })).filter(
      (file) => /\.(m?js|ts|css)$/.test(file) && !file.includes("node_modules"),
    );
    assert.ok(files.length > 0, folder);
    for (const file of files) {
      const lines = (await readFile(join(repository, folder, file), "utf8")).split("\n");
      lines.forEach((line, i) => {
        if (line.length > 120 && !/^\s*["'`]/.test(line)) long.push(`${folder}/${file}:${i + 1}`);
      });
    }
  }
  assert.deepEqual(long, []);
});
