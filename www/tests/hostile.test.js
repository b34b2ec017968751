// Thousands of malicious or damaged links: a message, the default page, nothing run,
// nothing lost.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { deflateSync, deflateRawSync } from "node:zlib";
import { browserTest, follow, open, pageModule, rowOf, setParameter, written } from "./harness.js";

const { decode, encode } = await pageModule("share/link.js");
const old = JSON.parse(await readFile(new URL("links-v1.json", import.meta.url), "utf8"));

/** The same numbers every time, so that a failure can be found again. */
function dice(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const link = (text, compress = deflateSync) => `#1.${compress(text).toString("base64url")}`;
const PROBLEMS = ["broken", "version", "large"];

/** Decodes, and checks that the answer is one of the two it may be. */
async function tried(fragment) {
  const answer = await decode(fragment);
  if ("problem" in answer) assert.ok(PROBLEMS.includes(answer.problem), answer.problem);
  else {
    assert.equal(typeof answer.snapshot.page, "string");
    assert.equal(Object.getPrototypeOf(answer.snapshot.states), Object.prototype);
  }
  return answer;
}

test("5000 random fragments", async () => {
  const roll = dice(1);
  const letters = "ABCXYZabcxyz0189-_.#%=+/~ \u0000é是\ud800\"'<>&";
  for (let i = 0; i < 5000; i += 1) {
    let text = ["#", "#1.", "1.", "#1.eJy", "#01.", "#999."][roll(6)];
    for (let k = roll(60); k > 0; k -= 1) text += letters[roll(letters.length)];
    assert.ok("problem" in (await tried(text)), text);
  }
});

test("4000 true links with letters changed, lost, doubled or moved: never other numbers", async () => {
  const roll = dice(2);
  for (let i = 0; i < 4000; i += 1) {
    const { fragment } = old[i % old.length];
    const at = 3 + roll(fragment.length - 3);
    const letter = "ABCDEFabcdef0123456789-_"[roll(24)];
    const ways = [
      fragment.slice(0, at) + letter + fragment.slice(at + 1),
      fragment.slice(0, at) + fragment.slice(at + 1),
      fragment.slice(0, at),
      fragment.slice(0, at) + letter + fragment.slice(at),
      fragment + letter,
      fragment.slice(0, 3) + fragment.slice(at),
    ];
    const changed = ways[roll(ways.length)];
    const answer = await tried(changed);
    // the last letter of base64 may have bits that say nothing
    if ("snapshot" in answer) assert.equal(await encode(answer.snapshot), fragment, changed);
  }
});

test("true JSON of every wrong shape", async () => {
  const wrong = [
    "null",
    "1",
    '"x"',
    "[]",
    "{}",
    '{"page":"chain"}',
    '{"states":{}}',
    '{"page":1,"states":{}}',
    '{"page":"chain","states":[]}',
    '{"page":"chain","states":null}',
    '{"page":null,"states":{}}',
    '{"page":{"toString":1},"states":{}}',
    '{"page":"chain","states":{"chain":"~what"}}',
    '{"page":"chain","states":{"chain":1e999}}',
    "{",
    "\ufeff{}",
    '{"page":"chain","states":{}}x',
    `{"page":"chain","states":${"[".repeat(5000)}${"]".repeat(5000)}}`,
    `{"page":"chain","states":{"chain":${'{"a":'.repeat(60)}1${"}".repeat(60)}}}`,
    `{"page":"chain","states":{${Array.from({ length: 50 }, (_, i) => `"p${i}":1`).join()}}}`,
  ];
  for (const text of wrong) assert.equal((await tried(link(text))).problem, "broken", text.slice(0, 60));
  assert.equal((await tried(link('{"page":"chain","states":{}}', deflateRawSync))).problem, "broken");
  assert.equal((await tried(`#1.${Buffer.from([0xff, 0xfe]).toString("base64url")}`)).problem, "broken");
  assert.equal((await tried(link(Buffer.from([0x22, 0xff, 0x22])))).problem, "broken");
});

test("names that reach for prototypes reach nothing", async () => {
  const reach = '"__proto__":{"polluted":1}';
  const chain = `"chain":{${reach},"a":[{${reach}}]}`;
  const states = `{${reach},"constructor":{"prototype":{"polluted":1}},${chain}}`;
  const text = `{"page":"chain","states":${states},${reach}}`;
  const { snapshot } = await tried(link(text));
  assert.equal({}.polluted, undefined);
  assert.deepEqual(snapshot.states, { chain: { a: [{}] } });
  assert.equal(snapshot.states.chain.polluted, undefined);
  assert.ok(!Object.hasOwn(snapshot.states, "constructor"));
});

test("a small link that unpacks to fifty times the limit is not unpacked", async () => {
  const bomb = link(Buffer.alloc(100 * 1024 * 1024, "["));
  assert.ok(bomb.length < 1_000_000);
  const before = process.memoryUsage().rss;
  const since = performance.now();
  assert.equal((await decode(bomb)).problem, "large");
  assert.ok(performance.now() - since < 5000);
  assert.ok(process.memoryUsage().rss - before < 200e6);
  assert.equal((await decode(`#1.${"A".repeat(2_000_000)}`)).problem, "large");
});

/** States that are true JSON and no state of any page; run through every page's own reader. */
const CRUEL = [
  null,
  true,
  0,
  NaN,
  -0,
  Infinity,
  "",
  "x",
  [],
  [[]],
  {},
  { sequences: [] },
  { sequences: [null] },
  { sequences: [{}] },
  { sequences: [{ tokens: [] }] },
  { sequences: "abc" },
  { sequences: [{ tokens: ["<img src=x onerror=alert(1)>"], inputs: { score: ["<script>alert(1)</script>"] } }] },
  { sequences: [{ tokens: ["a"], inputs: { score: [1, 2, 3] } }] },
  { sequences: [{ tokens: ["a"], inputs: { value: [NaN] } }] },
  { sequences: [{ tokens: Array(100_000).fill("a") }] },
  { sequences: Array(10_000).fill({ tokens: ["a"] }) },
  { length: 1e9 },
  { length: -1 },
  { parameters: { gamma: "1" } },
  { parameters: { gamma: NaN } },
  { choices: { kl: "__proto__" } },
  { choices: { kl: "constructor" } },
  { profile: "toString" },
  { tour: { id: "constructor", step: -1 } },
  { preset: "__proto__" },
  { only: ["constructor"] },
  { toString: 1 },
  { valueOf: null, hasOwnProperty: 1 },
];

test("cruel and spoilt states through every page's reader: none throws", browserTest, async () => {
  const { page, problems, close } = await open();
  const failures = await page.evaluate(async (cruel) => {
    const { pages } = await import(new URL("pages.js", document.baseURI).href);
    let state = 7;
    const roll = (below) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const odd = () =>
      [
        null,
        true,
        -1,
        0,
        1.5,
        1e308,
        NaN,
        -0,
        Infinity,
        "",
        "__proto__",
        "𝔸".repeat(300),
        [],
        {},
        [NaN],
        [null],
        [[1]],
        { a: 1 },
      ][roll(18)];
    /** A copy with one thing in it exchanged, added or taken away. */
    const spoilt = (value, depth = 0) => {
      if (typeof value !== "object" || value === null || roll(4) === 0 || depth > 6) return odd();
      if (Array.isArray(value)) {
        if (value.length === 0) return [odd()];
        const at = roll(value.length);
        if (roll(5) === 0) return value.slice(0, at);
        if (roll(5) === 0) return [...value, ...value, ...value];
        return value.map((one, i) => (i === at ? spoilt(one, depth + 1) : one));
      }
      const keys = Object.keys(value);
      if (keys.length === 0) return { a: odd() };
      const key = keys[roll(keys.length)];
      const { [key]: chosen, ...rest } = value;
      return roll(4) === 0 ? rest : { ...rest, [key]: spoilt(chosen, depth + 1) };
    };
    const found = [];
    let tried = 0;
    for (const { id, load } of pages) {
      const { page: each } = await load();
      const candidates = [...cruel, ...Array.from({ length: 400 }, () => spoilt(each.initial()))];
      for (const candidate of candidates) {
        tried += 1;
        try {
          each.read(candidate);
        } catch (error) {
          found.push(`${id}.read threw ${error.message} for ${JSON.stringify(candidate)?.slice(0, 100)}`);
        }
      }
      if (each.read(each.initial()) === null) found.push(`${id} refuses its own initial state`);
    }
    return { found, tried };
  }, CRUEL);
  assert.deepEqual(failures.found, []);
  assert.ok(failures.tried >= 400, String(failures.tried));
  assert.deepEqual(problems, []);
  await close();
});

test("every page writes its initial state into a link and reads it back the same", browserTest, async () => {
  const { page, close } = await open();
  const different = await page.evaluate(async () => {
    const load = (path) => import(new URL(path, document.baseURI).href);
    const [{ pages }, link] = await Promise.all([load("pages.js"), load("share/link.js")]);
    const found = [];
    for (const { id, load: get } of pages) {
      const { page: each } = await get();
      // as the page itself would spell it: the order of keys in an object does not matter
      const first = each.read(each.initial());
      const fragment = await link.encode({ page: id, states: { [id]: first } });
      const { snapshot } = await link.decode(fragment);
      const back = each.read(snapshot.states[id]);
      if (link.write({ page: id, states: { [id]: back } }) !== link.write({ page: id, states: { [id]: first } }))
        found.push(id);
      if (fragment.length > 2000) found.push(`${id}: ${fragment.length} letters`);
    }
    return found;
  });
  assert.deepEqual(different, []);
  await close();
});

test("spoilt states that a page takes can be drawn", browserTest, async () => {
  const { page, problems, close } = await open();
  const count = Number(process.env.SPOILT ?? 10);
  const fragments = await page.evaluate(async (wanted) => {
    const load = (path) => import(new URL(path, document.baseURI).href);
    const [{ pages }, link] = await Promise.all([load("pages.js"), load("share/link.js")]);
    let state = 11;
    const roll = (below) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const odd = (value) =>
      typeof value === "number"
        ? [NaN, Infinity, -Infinity, -0, 0, -1, 1e308, 5e-324, 0.5, 1e9][roll(10)]
        : typeof value === "string"
          ? ["", "<b>x</b>", "\u202e\u0000", "是".repeat(50)][roll(4)]
          : value === null
            ? 1
            : !value;
    /** A copy with some numbers and words in it exchanged for odd ones of the same kind. */
    const spoilt = (value) => {
      if (Array.isArray(value)) return value.map((one) => (roll(3) === 0 ? spoilt(one) : one));
      if (typeof value === "object" && value !== null)
        return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, roll(2) === 0 ? spoilt(one) : one]));
      return roll(2) === 0 ? odd(value) : value;
    };
    const found = [];
    for (const { id, load: get } of pages) {
      const { page: each } = await get();
      let taken = 0;
      for (let tries = 0; tries < 60 * wanted && taken < wanted; tries += 1) {
        const candidate = spoilt(each.initial());
        if (each.read(candidate) === null) continue;
        taken += 1;
        found.push([id, await link.encode({ page: id, states: { [id]: candidate } })]);
      }
    }
    return found;
  }, count);
  const told = [];
  for (const [id, fragment] of fragments) {
    await follow(page, fragment);
    assert.ok(await page.locator(`#page-${id}`).isVisible(), id);
    // what is drawn in the next frame; a state may ask for more work than a test can wait for
    await page.evaluate(
      () =>
        new Promise((done) => {
          requestAnimationFrame(() => setTimeout(done));
        }),
    );
    if (problems.length > 0) told.push(`${id}: ${problems.splice(0).join("; ")} ${fragment}`);
  }
  assert.deepEqual(told, []);
  assert.ok(fragments.length >= count, String(fragments.length));
  await close();
});

test("dozens of hostile links through the address bar: nothing runs, nothing is lost", browserTest, async () => {
  const { page, problems, close } = await open();
  await page.evaluate(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
    window.alert = () => window.violations.push("alert");
  });
  await setParameter(page, "gamma", "0.5");
  const mine = await rowOf(page, "advantage");
  const evil = "<img src=x onerror=alert(1)><script>alert(1)</script>";
  const states = [
    {
      sequences: [{ tokens: [evil, "javascript:alert(1)", "}}{{"], prompt: evil, inputs: {} }],
      preset: evil,
      only: [evil],
    },
    {
      sequences: [{ tokens: ["a"], inputs: { score: [NaN], oldLogProb: [Infinity], value: [-Infinity, NaN] } }],
      parameters: { gamma: NaN, lambda: -1, beta: Infinity, clipLow: -5, lastK: 1e300, scale: 0 },
    },
    {
      sequences: [{ tokens: ["a"], roles: ["tool"] }],
      choices: { advantage: "best-of-group", aggregate: "prompt-mean" },
    },
  ];
  const links = [
    ...CRUEL.slice(0, 20).map((state) => ({ page: "chain", states: { chain: state } })),
    ...states.map((state) => ({ page: "chain", states: { chain: state } })),
    { page: evil, states: { [evil]: 1, nowhere: {} } },
    { page: "toString", states: {} },
    { page: "kl", states: { kl: evil, clip: 7, data: null, budget: [] } },
  ];
  const fragments = [
    ...(await Promise.all(links.map(encode))),
    "#1.",
    "#1.AAAA",
    "#9.AAAA",
    `#${evil}`,
    "#javascript:alert(1)",
    "#main",
    "#1.%",
    old[0].fragment.slice(0, -9),
  ];
  for (const fragment of fragments) {
    await follow(page, fragment);
  }
  await written(page);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.equal(await page.locator("img, script:not([type=module])").count(), 0);
  for (let back = 0; back < 60 && (await page.locator("#undo").isEnabled()); back += 1) {
    if (JSON.stringify(await rowOf(page, "advantage").catch(() => [])) === JSON.stringify(mine)) break;
    await page.locator("#undo").click();
    await page.waitForSelector("main[aria-busy=false]");
  }
  assert.deepEqual(await rowOf(page, "advantage"), mine);
  assert.deepEqual(problems, []);
  await close();
});

test("hostile links as the first thing the page sees", browserTest, async () => {
  for (const fragment of [
    "#1.AAAA",
    "#2.AAAA",
    "#%00",
    "#1.",
    await encode({ page: "nowhere", states: { nowhere: 1 } }),
    await encode({ page: "chain", states: { chain: { sequences: [{ tokens: ["<b>x</b>"] }] } } }),
  ]) {
    const { page, problems, close } = await open({ fragment });
    assert.ok((await page.locator("[role=gridcell]").count()) > 5, fragment);
    assert.equal(await page.locator("#chain b, .page b").count(), 0, fragment);
    assert.deepEqual(problems, [], fragment);
    await close();
  }
});
