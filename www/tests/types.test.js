// The page's modules as a strict TypeScript compiler reads their comments,
// with the declarations of the library that it calls.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { folder, repository } from "./harness.js";

const compiler = fileURLToPath(new URL("node_modules/typescript/bin/tsc", import.meta.url));
const page = join(repository, "www");
const declarations = join(folder, "pkg/simd/tokenwise.d.ts");
const reason = !existsSync(compiler)
  ? "TypeScript is missing: run `npm ci` in www/tests"
  : !existsSync(declarations) && `${declarations} is missing: run \`cargo xtask playground --build-only\``;
if (reason && process.env.CI === "true") throw new Error(reason);
if (reason) console.error(`SKIPPED, the types of the page are not checked: ${reason}`);

const OPTIONS = {
  allowJs: true,
  checkJs: true,
  noEmit: true,
  strict: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  noImplicitReturns: true,
  target: "ES2023",
  module: "ES2022",
  moduleResolution: "bundler",
  types: [],
  skipLibCheck: true,
};

/**
 * @param {object} options
 * @param {object} files which
 * @param {Record<string, string>} [beside] files of the test's own
 */
async function check(options, files, beside = {}) {
  const scratch = await mkdtemp(join(tmpdir(), "tokenwise-"));
  try {
    for (const [name, text] of Object.entries(beside)) await writeFile(join(scratch, name), text);
    const config = join(scratch, "tsconfig.json");
    await writeFile(config, JSON.stringify({ compilerOptions: { ...OPTIONS, ...options }, ...files }));
    const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, "--project", config], {
      encoding: "utf8",
      cwd: page,
    });
    return { status, text: stdout + stderr };
  } finally {
    await rm(scratch, { recursive: true });
  }
}

// the package lies beside the modules only where the page is assembled
const PAGE = { lib: ["ES2023", "DOM", "DOM.Iterable", "DOM.AsyncIterable"], rootDirs: [page, folder] };
const WORKER = {
  lib: ["ES2023", "WebWorker", "WebWorker.Iterable", "WebWorker.AsyncIterable"],
  moduleDetection: "legacy",
};

test("every module of the page is well typed", { skip: reason }, async () => {
  const { status, text } = await check(PAGE, {
    include: [join(page, "**/*.js")],
    exclude: [join(page, "tests"), join(page, "sw.js")],
  });
  assert.equal(status, 0, text);
});

test("the service worker is well typed", { skip: reason }, async () => {
  const written = "declare const BUILD: string;\ndeclare const FILES: string[];\n";
  const { status, text } = await check(
    WORKER,
    { files: [join(page, "sw.js"), "written.d.ts"] },
    { "written.d.ts": written },
  );
  assert.equal(status, 0, text);
});

test("a wrong call of the library is found", { skip: reason }, async () => {
  const type = `import(${JSON.stringify(join(page, "engine.js"))}).Library`;
  const wrong = `/** @param {${type}} library */\nexport const root = (library) => library.sqrtF64("4");\n`;
  const { status, text } = await check(PAGE, { files: ["wrong.js"] }, { "wrong.js": wrong });
  assert.notEqual(status, 0);
  assert.match(text, /^[^\n]*wrong\.js\(2,\d+\): error TS2345: [^\n]*string/);
});
