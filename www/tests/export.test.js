// What is copied out of the chain works outside of it: the Rust compiles and runs, the Python runs, the golden cases
// pass, and all of them give the numbers of the page. Rust gives the same bits; NumPy has sums and exponentials of its
// own, so it gets a tolerance.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browserTest, open, repository } from "./harness.js";

const work = join(repository, "target/exports");

/** Skips with a reason where a tool is missing; in CI that is a failure. */
function needs(found, reason) {
  if (browserTest.skip || found) return browserTest;
  if (process.env.CI === "true") throw new Error(reason);
  console.error(`SKIPPED: ${reason}`);
  return { skip: reason };
}

const ownPython = process.env.NUMPY_PYTHON ?? join(repository, "target/xtask/numpy/bin/python");
const python = existsSync(ownPython) ? ownPython : "python3";
const hasNumPy = spawnSync(python, ["-c", "import numpy"]).status === 0;
const hasCargo = spawnSync("cargo", ["--version"], { cwd: repository }).status === 0;

/**
 * Everything the page exports for many states.
 * @type {{ name: string, rust: string, python: string, golden: string, csv: string,
 *   expected: Record<string, number[]> }[]}
 */
let cases = [];
let session;

before(async () => {
  if (browserTest.skip) return;
  session = await open();
  cases = await session.page.evaluate(collect);
  await mkdir(work, { recursive: true });
});
after(() => session?.close());

/** Runs in the page: every example, and a batch with tool tokens and several prompts under every choice there is. */
async function collect() {
  const load = (path) => import(new URL(path, document.baseURI).href);
  const { loadLibrary } = await load("engine.js");
  const { library } = await loadLibrary();
  const [{ compute }, { choiceOptions, profileNames, sequenceOf }, presets, { rust }, { python }, { golden }, { csv }] =
    await Promise.all(
      [
        "compute/compute",
        "state",
        "examples/presets",
        "exports/rust",
        "exports/python",
        "exports/golden",
        "exports/csv",
      ].map((name) => load(`chain/${name}.js`)),
    );
  const first = presets.examples[0].state;
  const sequence = (group, roles, numbers) =>
    sequenceOf({
      group,
      prompt: "",
      tokens: roles.map((_, i) => `t${i}`),
      roles,
      inputs: {
        score: roles.map((role, i) => (role === "policy" ? numbers[i % numbers.length] : NaN)),
        oldLogProb: roles.map((role, i) => (role === "policy" ? -0.3 - 0.17 * i : NaN)),
        refLogProb: roles.map((_, i) => -0.4 - 0.11 * i * numbers[0]),
        kl: roles.map((_, i) => 0.02 * (i - 1)),
        logProb: roles.map((_, i) => (i % 3 === 0 ? null : -0.3 - 0.17 * i + 0.4 * (i % 2 === 0 ? 1 : -1))),
        attention: roles.map((_, i) => 0.1 + i),
        value: [...roles.map((role, i) => (role === "policy" ? 0.2 + 0.05 * i : NaN)), 0.1],
        advantage: roles.map((_, i) => 0.3 * numbers[i % numbers.length] - 0.1 * i),
      },
    });
  const [p, tool, pad] = ["policy", "tool", "padding"];
  const mixed = {
    ...first,
    preset: "",
    only: null,
    tour: null,
    sequences: [
      sequence(3, [p, p, tool, p, p], [0, 0.5, 1]),
      sequence(7, [p, p, p], [1, 0.25]),
      sequence(3, [p, tool, tool, p, p, pad], [0.125, -1, 0.5]),
      sequence(7, [p, p, p, p], [-0.5]),
    ],
    parameters: { ...first.parameters, gamma: 0.97, beta: 0.05, clipLow: 0.1, clipHigh: 0.15 },
    choices: { ...first.choices, kl: "k3" },
  };
  const states = [...(presets.presets ?? presets.examples)].map(({ id, state }) => [id, state]);
  for (const [choice, options] of Object.entries(choiceOptions)) {
    for (const option of options) {
      for (const profile of profileNames) {
        const state = { ...mixed, profile, choices: { ...mixed.choices, [choice]: option } };
        states.push([`${choice} ${option} ${profile}`, state]);
        if (choice === "kl")
          for (const placement of ["loss", "loss-weighted"])
            states.push([`${placement} ${option} ${profile}`, { ...state, choices: { ...state.choices, placement } }]);
        if (choice === "advantage")
          states.push([`one sequence, ${option} ${profile}`, { ...state, sequences: mixed.sequences.slice(1, 2) }]);
      }
    }
  }
  const far = mixed.sequences.map((one) => ({
    ...one,
    inputs: {
      ...one.inputs,
      score: one.inputs.score.map((x) => 30 * x),
      refLogProb: one.inputs.refLogProb.map((x) => 15 * x),
      logProb: one.inputs.logProb.map((x) => (x === null ? null : 9 * x)),
    },
  }));
  for (const profile of profileNames) {
    for (const kl of ["k1", "k2", "k3"])
      states.push([
        `far ${kl} ${profile}`,
        { ...mixed, profile, sequences: far, choices: { ...mixed.choices, kl, placement: "loss" } },
      ]);
    for (const loss of ["ppo", "gspo", "cispo"])
      states.push([
        `far ${loss} ${profile}`,
        { ...mixed, profile, sequences: far, choices: { ...mixed.choices, loss, weight: "raw" } },
      ]);
  }
  return states.flatMap(([name, state]) => {
    const result = compute(library, state);
    // a step that the library refuses ends the Rust program with its error
    if (result.refusals.length > 0) return [];
    const own = compute(library, {
      ...state,
      choices: { ...state.choices, across: "profile", spread: "profile", dual: "profile" },
    }).settings;
    const rows = Object.entries(result.rows)
      .filter(([, row]) => row)
      .map(([key, row]) => [key, row.flatMap((part) => Array.from(part))]);
    const numbers = Object.entries(result.summary)
      .filter(([, number]) => number !== undefined)
      .map(([key, number]) => [key, [number]]);
    const expected = Object.fromEntries([...rows, ...numbers]);
    return [
      {
        name,
        rust: rust(state, result),
        python: python(state, result),
        golden: golden(state, result, own),
        csv: csv(state, result, Object.keys(result.rows)),
        expected,
      },
    ];
  });
}

/** The page's name for what a program prints. */
const ANALYSIS = {
  "analysis/entropy_per_token_mean": "entropyPerTokenMean",
  "analysis/covariance_mean": "covarianceMean",
  "analysis/wH_sum": "whSum",
  "analysis/wH_per_token": "whPerToken",
  "analysis/reward_sum_mean": "rewardSumMean",
};
const keyOf = (name) => ANALYSIS[name] ?? name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** `advantage: [1.0, NaN]` and `loss: 0.5`, as Rust and Python print them. */
function printed(text) {
  const numberOf = (word) => Number(word.trim().replace(/^nan$/i, "NaN").replace(/inf$/, "Infinity"));
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const at = line.indexOf(": ");
      return [
        line.slice(0, at),
        line
          .slice(at + 2)
          .replace(/[[\]]/g, "")
          .split(",")
          .map(numberOf),
      ];
    });
}

/** Compares every printed row; returns how many there were. */
function compare(name, text, expected, close) {
  const lines = printed(text);
  for (const [row, values] of lines) {
    const page = expected[keyOf(row)];
    assert.ok(page, `${name}: the page has no ${row}`);
    assert.equal(values.length, page.length, `${name}: ${row}`);
    for (const [i, value] of values.entries())
      assert.ok(close(value, page[i]), `${name}: ${row}[${i}] is ${value}, on the page ${page[i]}`);
  }
  return lines.length;
}

const sameBits = (a, b) => Object.is(a, b) || (a === 0 && b === 0);
const near = (a, b) => Object.is(a, b) || a === b || Math.abs(a - b) <= 1e-12 + 1e-9 * Math.abs(b);

test("the states cover every example and choice", browserTest, () => {
  assert.ok(cases.length > 150, `${cases.length} states`);
});

test(
  "the Python runs and gives the numbers of the page",
  needs(hasNumPy, `no NumPy for ${python}: cargo xtask test --only browser installs it`),
  async () => {
    const list = join(work, "scripts.json");
    await writeFile(list, JSON.stringify(cases.map((one) => one.python)));
    const driver = [
      "import contextlib, io, json, sys",
      "out = []",
      "for code in json.load(open(sys.argv[1])):",
      "    page = io.StringIO()",
      "    with contextlib.redirect_stdout(page):",
      "        exec(compile(code, '<copied>', 'exec'), {'__name__': '__main__'})",
      "    out.append(page.getvalue())",
      "print(json.dumps(out))",
    ].join("\n");
    const run = spawnSync(python, ["-W", "error", "-c", driver, list], { encoding: "utf8", maxBuffer: 1 << 28 });
    assert.equal(run.status, 0, run.stderr);
    const texts = JSON.parse(run.stdout);
    for (const [i, { name, expected }] of cases.entries())
      assert.ok(compare(name, texts[i], expected, near) > 18, name);
  },
);

test("the Rust compiles without a warning and gives the bits of the page", needs(hasCargo, "no cargo"), async () => {
  const crate = join(work, "rust");
  await rm(join(crate, "src"), { recursive: true, force: true });
  await mkdir(join(crate, "src/bin"), { recursive: true });
  const manifest = [
    '[package]\nname = "copied"\nversion = "0.0.0"\nedition = "2021"',
    "[workspace]",
    `[dependencies]\ntokenwise = { path = ${JSON.stringify(join(repository, "core"))} }`,
  ];
  await writeFile(join(crate, "Cargo.toml"), manifest.join("\n\n"));
  // programs that differ in numbers only compile alike; among the others every choice has its place
  const shapes = new Map(
    cases.map((one) => [
      one.rust.replace(/^ *let \w+ = \[.*\];$|^ *\/\/ sequence .*$|(?<=[ (-])\d[\d.e-]*/gm, ""),
      one,
    ]),
  );
  const chosen = [...shapes.values()];
  assert.ok(chosen.length > 40, `${chosen.length} programs`);
  // the first as it was copied, the others as modules of one program: linking each would take minutes
  await writeFile(join(crate, "src/bin/first.rs"), chosen[0].rust);
  for (const [i, { rust }] of chosen.entries())
    await writeFile(join(crate, `src/case_${i}.rs`), rust.replace("fn main()", "pub fn main()"));
  const modules = chosen.map((_, i) => `mod case_${i};`).join("\n");
  const calls = chosen.map((_, i) => `    println!("== ${i}");\n    case_${i}::main()?;`).join("\n");
  await writeFile(
    join(crate, "src/main.rs"),
    `#![deny(warnings)]\n${modules}\n\nfn main() -> Result<(), tokenwise::Error> {\n${calls}\n    Ok(())\n}\n`,
  );
  const cargo = (...words) =>
    spawnSync(
      "cargo",
      ["run", "--quiet", "--manifest-path", join(crate, "Cargo.toml"), "--target-dir", join(work, "build"), ...words],
      { encoding: "utf8", maxBuffer: 1 << 28 },
    );
  const alone = cargo("--bin", "first");
  assert.equal(alone.status, 0, alone.stderr);
  compare(chosen[0].name, alone.stdout, chosen[0].expected, sameBits);
  const all = cargo("--bin", "copied");
  assert.equal(all.status, 0, all.stderr);
  const texts = all.stdout.split(/^== \d+\n/m).slice(1);
  assert.equal(texts.length, chosen.length);
  for (const [i, { name, expected }] of chosen.entries())
    assert.ok(compare(name, texts[i], expected, sameBits) > 14, name);
});

test("the golden cases pass", needs(hasCargo, "no cargo"), async () => {
  const folder = join(work, "golden");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  let count = 0;
  for (const [i, { name, golden }] of cases.entries()) {
    const { cases: steps } = JSON.parse(golden);
    assert.ok(steps.length >= 2, name);
    count += steps.length;
    await writeFile(join(folder, `${i}.json`), golden);
  }
  const run = spawnSync("cargo", ["xtask", "golden", folder], {
    cwd: repository,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  assert.equal(run.status, 0, run.stdout.slice(0, 4000) + run.stderr);
  assert.match(run.stdout, new RegExp(`^${count} passed, 0 failed$`, "m"));
});

test("the table holds every digit, and no token becomes a formula", browserTest, () => {
  for (const { name, csv, expected } of cases) {
    const [head, ...lines] = csv
      .trimEnd()
      .split("\r\n")
      .map((line) => line.split(","));
    const last = head.indexOf("value");
    // one line more per sequence, for the state after its last token
    assert.equal(lines.length, expected.value.length, name);
    assert.deepEqual(
      lines.map((line) => Number(line[last])),
      expected.value,
      name,
    );
    const rewards = lines.filter((line) => line[4] !== "").map((line) => Number(line[head.indexOf("reward")]));
    assert.deepEqual(
      rewards.map((x) => x + 0),
      expected.reward.map((x) => x + 0),
      name,
    );
  }
});

test(
  "LaTeX: the chosen formula with symbols and numbers, the table, and a stranger's token as nothing but letters",
  browserTest,
  async () => {
    const text = await session.page.evaluate(async () => {
      const load = (path) => import(new URL(path, document.baseURI).href);
      const { library } = await (await load("engine.js")).loadLibrary();
      const [{ compute }, { examples }, { latex }, { csv }, { withInput }] = await Promise.all(
        ["compute/compute", "examples/presets", "exports/latex", "exports/csv", "edit/edits"].map((name) =>
          load(`chain/${name}.js`),
        ),
      );
      const { state } = examples[0];
      const cruel = {
        ...state,
        sequences: state.sequences.map((one) => ({
          ...one,
          tokens: ["\\input{x}", "a_b^c", "=cmd|' /C calc'!A0", "50%", "\n}", "$&#~"],
        })),
      };
      const place = { row: "advantage", sequence: 0, index: 0 };
      const result = compute(library, cruel);
      // the fifth token is below the average and falls below 1 − ε: its gradient is clipped
      const clipped = withInput(state, { row: "logProb", sequence: 0, index: 4 }, -0.4);
      const gradient = { row: "gradient", sequence: 0, index: 4 };
      return [
        latex(library, state, compute(library, state), place, ["reward", "advantage"]),
        latex(library, cruel, result, place, ["advantage"]),
        csv(cruel, result, ["reward"]),
        latex(library, clipped, compute(library, clipped), gradient, ["gradient"]),
      ];
    });
    assert.match(text[0], /A_\{1\}&= \\delta_\{1\}\+\\gamma \\cdot \\lambda \\cdot A_\{2\}/);
    assert.match(text[0], /&=0\.04\+1\\cdot 0\.95\\cdot 0\.611664/);
    assert.match(text[0], /\$A\$ & \$0\.621081\$ & \$0\.611664\$/);
    assert.match(text[1], /\\textbackslash\{\}input\\\{x\\\} & a\\_b\\textasciicircum\{\}c & =cmd/);
    const depth = [...text[1].replace(/\\[{}]/g, "")].reduce(
      (open, letter) => open + (letter === "{" ? 1 : letter === "}" ? -1 : 0),
      0,
    );
    assert.equal(depth, 0);
    assert.match(text[2], /,'=cmd/);
    // a clipped gradient is 0 by the formula that stands there
    assert.match(text[3], /\\cdot \(-0\.5161\)\\cdot \[1-0\.2\\le 0\.704688\] \\\\\n +&= 0\n/);
  },
);
