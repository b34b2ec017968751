import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { pageModule } from "./harness.js";

const { default: en } = await pageModule("i18n/en.js");
const { default: zh } = await pageModule("i18n/zh.js");

async function sources() {
  const folder = new URL("../", import.meta.url);
  const files = (await readdir(folder)).filter((file) => file.endsWith(".js"));
  return Promise.all(files.map((file) => readFile(new URL(file, folder), "utf8")));
}

test("both catalogues have the same keys, none empty", () => {
  assert.deepEqual(Object.keys(en).sort(), Object.keys(zh).sort());
  for (const text of [...Object.values(en), ...Object.values(zh)]) assert.ok(text.trim().length > 0);
});

test("both languages fill in the same places", () => {
  const places = (text) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
  for (const key of Object.keys(en)) assert.deepEqual(places(en[key]), places(zh[key]), key);
});

test("every key that the page names is there, and none is left over", async () => {
  const text = (await sources()).join("\n");
  const named = [...text.matchAll(/["'`]((?:[a-z]+\.)[\w.\-]*(?:\$\{[^}]*\})?[\w.\-]*)["'`]/gi)].map((match) => match[1]);
  const used = new Set();
  const stages = ["page", "tool", "preset", "parameter", "choice", "grid", "row", "meaning", "explain", "chart", "summary", "bad", "refused", "compare"];
  for (const name of named.filter((name) => stages.includes(name.split(".")[0]) && !name.endsWith(".js"))) {
    const pattern = new RegExp(`^${name.replace(/\$\{[^}]*\}/g, "[\\w-]+").replaceAll(".", "\\.")}$`);
    const keys = Object.keys(en).filter((key) => pattern.test(key));
    // `refused.${step}` and the like are names of cells elsewhere: only whole literals must exist
    if (!name.includes("${") && /^(value|advantage|mask)\./.test(name) === false && text.includes(`t("${name}"`)) assert.ok(keys.length > 0, name);
    keys.forEach((key) => used.add(key));
  }
  const shell = await readFile(new URL("../index.html", import.meta.url), "utf8");
  for (const [, key] of shell.matchAll(/data-i18n="([^"]+)"/g)) {
    assert.ok(key in en, key);
    used.add(key);
  }
  for (const [, key] of text.matchAll(/"((?:explain|page|tool|grid|meaning)\.[\w.]+)"/g)) used.add(key);
  // built from two names: `choice.${name}.${value}`, `preset.note.${id}`
  const left = Object.keys(en).filter((key) => !used.has(key) && !/^(choice|preset|compare\.why|refused|bad|row|meaning)\./.test(key));
  assert.deepEqual(left, []);
});

test("every row, parameter, choice and example has its words", async () => {
  const text = (await sources()).join("\n");
  const rows = [...text.matchAll(/key: "(\w+)", stage/g)].map((match) => match[1]);
  assert.ok(rows.length > 15);
  const examples = [...text.matchAll(/id: "([\w-]+)",\n\s+state/g)].map((match) => match[1]);
  assert.ok(examples.length >= 5);
  const wanted = [
    ...rows.flatMap((row) => [`row.${row}`, `meaning.${row}`]),
    ...examples.flatMap((id) => [`preset.${id}`, `preset.note.${id}`, `compare.why.${id}`]),
  ];
  for (const key of wanted) assert.ok(key in en, key);
});
