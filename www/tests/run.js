// Runs test files one after the other, and once more the few tests that failed: on a busy machine a browser can be too
// late for a test that waits, and a fault of the page fails twice. What passed only then is named at the end.
//
//     node www/tests/run.js [FILE …]      all files of this folder without arguments

import { readdir } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";

/** More failures than this are no accident. */
const MOST_AGAIN = 3;

/**
 * @typedef {{ file: string, name: string }} Failure
 * @param {string[]} files
 * @param {string[]} [names] only these tests
 * @returns {Promise<Failure[]>}
 */
function runFiles(files, names) {
  /** @type {Failure[]} */
  const failures = [];
  const patterns = names?.map((name) => new RegExp(`^${name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$`));
  const tests = run({ files, concurrency: 1, ...(patterns ? { testNamePatterns: patterns } : {}) });
  tests.on("test:fail", ({ name, file, nesting }) => {
    if (nesting === 0) failures.push({ file: file ?? name, name });
  });
  return new Promise((done, failed) => {
    const report = tests.compose(new spec());
    report.on("end", () => done(failures));
    report.on("error", failed);
    report.pipe(process.stdout, { end: false });
  });
}

const folder = fileURLToPath(new URL(".", import.meta.url));
const all = async () =>
  (await readdir(folder)).filter((name) => name.endsWith(".test.js")).map((name) => folder + name);
const given = process.argv.slice(2);
const files = (given.length > 0 ? given : await all()).map((file) => resolve(file)).sort();

const failures = await runFiles(files);
/** @param {Failure} failure */
const shown = ({ file, name }) => `${relative(process.cwd(), file)}: ${name}`;
// what failed as a whole file has no test of that name: then all of the file runs again
const wholeFile = failures.some(({ file, name }) => resolve(file) === resolve(name));
let lasting = failures;
if (failures.length > 0 && failures.length <= MOST_AGAIN) {
  console.log(`\nonce more:\n${failures.map((failure) => `    ${shown(failure)}`).join("\n")}\n`);
  const again = [...new Set(failures.map(({ file }) => resolve(file)))];
  lasting = await runFiles(again, wholeFile ? undefined : failures.map(({ name }) => name));
  if (lasting.length === 0)
    console.log(`\npassed only the second time:\n${failures.map((failure) => `    ${shown(failure)}`).join("\n")}`);
}
process.exitCode = lasting.length > 0 ? 1 : 0;
