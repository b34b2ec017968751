// Every public function of the core's stages has its exports and its declarations.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { folder, functions, root, tokenwise } from "./load.mjs";

const source = join(root, "core/src");
const stages = readdirSync(source, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .filter((name) => existsSync(join(source, name, "mod.rs")))
  .filter((name) => readFileSync(join(source, name, "mod.rs"), "utf8").match(/\*\*(Stage|Before stage)/));

/** The names in the `pub use` lines of a module; hidden ones are not public. */
function publicNames(path) {
  const text = readFileSync(path, "utf8").replace(/#\[doc\(hidden\)\]\s*pub use [^;]*;/g, "");
  return [...text.matchAll(/^pub use ([^;]*);/gm)].flatMap(([, path]) => {
    const names = path.includes("{") ? path.replace(/^.*\{|\}.*$/gs, "").split(",") : [path.split("::").pop()];
    return names.map((name) => name.trim().split(" as ").pop()).filter((name) => name !== "");
  });
}

const camelCase = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
// counts, ids and text: there is no precision to choose
const single = ["group_tokens", "pf_ppo_indices", "response_mask_from_eos", "parse_rejection", "parse_weight_bound"];
// the size of a buffer that the calls make themselves; what writes into its input, where a call gives a fresh array
const internal = ["optimal_baseline_columns", "whiten_in_place"];
// types with methods of their own, and what stands for them
const states = {
  FixedKl: "fixedKl", LinearKl: "LinearKl", EntropyBudget: "EntropyBudget", DualGame: "DualGame", AdaptiveKl: "adaptiveKl", RoleBaseline: "RoleBaselines", Histogram: "Histogram",
  RunningMoments: "RunningMoments", Moments: "moments", CoMoments: "coMoments", Analysis: "analysisSums", Batch: "Batch",
  Reduction: "reduceMetric",
};
const declarations = readFileSync(join(folder, "tokenwise.d.ts"), "utf8");

test("the stages are found", () => {
  for (const stage of ["policy", "divergence", "reward", "advantage", "rollout", "loss", "metric", "control"]) assert.ok(stages.includes(stage), stage);
});

for (const stage of [...stages, "."]) {
  const all = publicNames(join(source, stage, stage === "." ? "lib.rs" : "mod.rs"));
  const names = all.filter((name) => /^[a-z]/.test(name) && !internal.includes(name));
  test(`every function of ${stage === "." ? "the crate root" : stage} is exported`, () => {
    assert.ok(all.length > 0);
    for (const name of names) {
      const exported = single.includes(name) ? [camelCase(name)] : [camelCase(name), `${camelCase(name)}F64`];
      for (const js of exported) assert.equal(typeof tokenwise[js], "function", `${js} is missing`);
    }
    for (const name of all.filter((name) => name in states)) assert.equal(typeof tokenwise[states[name]], "function", `${name} is missing`);
  });
}

test("every public function of math is exported", () => {
  const text = readFileSync(join(source, "math/mod.rs"), "utf8");
  const names = [...text.matchAll(/^pub fn ([a-z_0-9]+)/gm)].map(([, name]) => name);
  assert.ok(names.length > 0);
  for (const name of names) assert.equal(typeof tokenwise[`${camelCase(name)}F64`], "function", `${name} is missing`);
});

test("every export is declared with a comment, and every declaration exported", () => {
  const declared = [...declarations.matchAll(/^export function (\w+)\(/gm)].map(([, name]) => name);
  assert.deepEqual([...declared].sort(), [...functions].sort());
  for (const name of declared) assert.match(declarations, new RegExp(`\\*/\nexport function ${name}\\(`), `${name} has no comment`);
});

test("the declarations leave nothing open", () => {
  assert.ok(!/: any\b|\bany\[\]|<any>/.test(declarations));
});
