// Every formula of the chain, with its numbers, evaluates to the cell that it explains: for every preset, profile,
// estimator and loss. The formulas are built by the page's own functions, here without a browser.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { browserTest, folder } from "./harness.js";
import { sidesOf, textOf } from "./mathml.js";
import { rangeOf } from "./mathml-bounds.js";

/** As much of an element as formulas are made of. */
class Piece {
  constructor(tag) {
    this.tag = tag;
    this.children = [];
    this.own = "";
  }
  setAttribute() {}
  append(child) {
    if (typeof child === "string") this.own += child;
    else this.children.push(child);
  }
  get text() {
    return this.own + this.children.map((child) => child.text).join("");
  }
}

const page = {};
before(async () => {
  if (browserTest.skip) return;
  globalThis.document ??= { createElementNS: (_, tag) => new Piece(tag) };
  const load = (path) => import(pathToFileURL(join(folder, path)).href);
  const paths = [
    "chain/formulas/formulas.js",
    "chain/compute/compute.js",
    "chain/examples/presets.js",
    "chain/rows.js",
    "chain/state.js",
  ];
  Object.assign(page, ...(await Promise.all(paths.map(load))));
  page.library = await load("pkg/plain/tokenwise.js");
  await page.library.default({ module_or_path: await readFile(join(folder, "pkg/plain/bindings_bg.wasm")) });
});

/** Where the policy has moved to since the samples were drawn: within the clip, on both sides of it, far beyond. */
const MOVES = [0.02, 0.32, -0.4, 1.5, -1.6, 0, 26, -0.1, 3, -26];
/** Each framework's bounds, ties, groups of one: what a preset alone does not reach. */
const VARIANTS = {
  "as it is": (state) => state,
  moved: (state) => moved(state, 0),
  "moved otherwise": (state) => moved(state, 3),
  "a group of one beside a tied one": (state) => ({
    ...moved(state, 1),
    sequences: [0, 1, 2, 0].flatMap((group, at) => {
      const first = moved(state, at).sequences[0];
      return at === 1
        ? [
            { ...first, group: 1 },
            { ...first, group: 1 },
          ]
        : [{ ...first, group }];
    }),
  }),
};

/** @param {object} state @param {number} from */
const moved = (state, from) => ({
  ...state,
  sequences: state.sequences.map((one, s) => ({
    ...one,
    inputs: {
      ...one.inputs,
      logProb: one.inputs.oldLogProb.map((old, i) => Number((old + MOVES[(from + s + i) % MOVES.length]).toFixed(6))),
      // every other token argues for the opposite
      advantage: one.inputs.advantage.map((a, i) => (i % 2 === 0 ? a : -a)),
    },
  })),
});

/** Choices that are no part of the product are taken in turn, each at its own pace. */
function inTurn(choices, turn) {
  const take = (name, every) => page.choiceOptions[name][Math.floor(turn / every) % page.choiceOptions[name].length];
  return {
    ...choices,
    kl: take("kl", 1),
    placement: take("placement", 1),
    across: take("across", 2),
    spread: take("spread", 3),
    weight: take("weight", 1),
    dual: take("dual", 1),
    aggregate: take("aggregate", 1),
  };
}

const almost = (value) => 1e-9 * Math.max(1e-3, Math.abs(value));

/** @returns {string | null} what is wrong with the explanation of a cell */
function fault(state, result, place) {
  const value = result.rows[place.row]?.[place.sequence]?.[place.index];
  if (value === undefined) return null;
  const formula = page.withNumbers(page.library, state, result, place);
  if (!formula) return null;
  page.checked += 1;
  // an advantage of a group is explained in two steps, each of which has to be true
  for (const side of sidesOf(formula).slice(1)) {
    let range;
    try {
      range = rangeOf(side);
    } catch (error) {
      return error.message;
    }
    const [low, high] = range;
    const holds = Number.isNaN(value)
      ? Number.isNaN(low)
      : value === low || value === high || (low - almost(low) <= value && value <= high + almost(high));
    if (!holds) return `${textOf(side)} is ${low} to ${high}, the cell ${value}`;
  }
  return null;
}

test("every formula evaluates to its cell", browserTest, async (t) => {
  const { presets, profileNames, choiceOptions, rows, cellCount } = page;
  const faults = new Map();
  let [turn, states] = [0, 0];
  page.checked = 0;
  for (const preset of presets)
    for (const profile of profileNames)
      for (const advantage of choiceOptions.advantage)
        for (const loss of choiceOptions.loss) {
          const [name, variant] = Object.entries(VARIANTS)[(turn + presets.indexOf(preset)) % 4];
          const own = turn % 9 === 0 ? preset.state.choices : inTurn(preset.state.choices, turn);
          const state = variant({ ...preset.state, profile, choices: { ...own, advantage, loss } });
          const result = page.computeUnder(page.library, state, page.library.conventions(profile));
          states += 1;
          for (const row of rows) {
            if (row.shown && !row.shown(state)) continue;
            for (const s of state.sequences.keys())
              for (let index = 0; index < cellCount(row, state, s); index += 1) {
                const place = { row: row.key, sequence: s, index };
                const found = fault(state, result, place);
                if (!found) continue;
                const { choices } = state;
                const where = `${preset.id}, ${profile}, ${name}, ${Object.values(choices).join(" ")}, ${s}.${index}`;
                const kind = `${row.key}, ${row.key.toLowerCase().endsWith("advantage") ? advantage : loss}`;
                faults.set(kind, [...(faults.get(kind) ?? []), `${where}: ${found}`]);
              }
          }
          turn += 1;
        }
  t.diagnostic(`${page.checked} formulas of ${states} states`);
  assert.ok(page.checked > 100_000);
  const told = [...faults].map(([kind, all]) => `${kind}: ${all.length}, such as ${all.slice(0, 3).join("\n    ")}`);
  assert.equal(told.join("\n"), "");
});
