// What the package exports, what it declares, and what the smaller package has of it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { folder, formulasOf, functions, tokenwise } from "./load.mjs";

// the build of the chain beside this one
const chainFolder = folder.replace(/node(?=(-simd)?$)/, "chain");
const chain = await import(pathToFileURL(join(chainFolder, "tokenwise.js")).href);

test("there is what is not in the catalogue", () => {
  const classes = [
    "Batch",
    "DualGame",
    "EntropyBudget",
    "Histogram",
    "LinearKl",
    "RoleBaselines",
    "RunningMoments",
    "TokenwiseError",
  ];
  const exported = Object.keys(tokenwise).filter((name) => /^[A-Z]/.test(name));
  assert.deepEqual(exported.sort(), classes);
  const special = [
    "adaptiveKl",
    "analysisEntries",
    "analysisMerge",
    "coMomentsCorrelation",
    "coMomentsCovariance",
    "coMomentsMerge",
    "compareProfiles",
    "compareProfilesF64",
    "conventions",
    "exp",
    "expF64",
    "fixedKl",
    "lint",
    "ln",
    "lnF64",
    "momentsMean",
    "momentsMerge",
    "momentsVariance",
    "parseRejection",
    "parseWeightBound",
    "reduceMetric",
    "roleBaseline",
    "roleBaselineF64",
    "sqrt",
    "sqrtF64",
  ];
  const known = new Set(formulasOf(folder));
  assert.ok(known.size > 200);
  assert.deepEqual(functions.filter((name) => !known.has(name)).sort(), special);
});

for (const [name, where, exports] of [
  ["the whole", folder, tokenwise],
  ["the chain", chainFolder, chain],
]) {
  const declarations = readFileSync(join(where, "tokenwise.d.ts"), "utf8");
  test(`${name}: every export is declared with a comment, and every declaration exported`, () => {
    const declared = [...declarations.matchAll(/^export function (\w+)\(/gm)].map(([, name]) => name);
    const exported = Object.keys(exports).filter((name) => /^[a-z]/.test(name));
    assert.deepEqual(declared.sort(), exported.sort());
    for (const name of declared)
      assert.match(declarations, new RegExp(`\\*/\nexport function ${name}\\(`), `${name} has no comment`);
  });

  test(`${name}: the declarations leave nothing open`, () => {
    assert.ok(!/: any\b|\bany\[\]|<any>|: unknown\[\]/.test(declarations));
  });
}

test("the chain has its formulas, and no name that its module does not know", () => {
  const names = formulasOf(chainFolder);
  assert.ok(names.includes("gaeF64") && names.includes("ppoClip") && !names.includes("gspo"));
  for (const name of names) {
    assert.equal(typeof tokenwise[name], "function", name);
    assert.throws(
      () => chain[name](),
      (error) => error.parameter !== "name" && error.code === "type",
      name,
    );
  }
});
