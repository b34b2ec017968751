import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { pageModule } from "./harness.js";

const folder = new URL("../", import.meta.url);
const areas = (await readdir(new URL("i18n/en/", folder))).sort();

/** @param {string} lang */
async function catalogue(lang) {
  const modules = await Promise.all(areas.map((area) => pageModule(`i18n/${lang}/${area}`)));
  return {
    parts: modules.map((module) => module.default),
    all: Object.assign({}, ...modules.map((module) => module.default)),
  };
}

const [en, zh] = [await catalogue("en"), await catalogue("zh")];

/** @param {string} [under] a folder of the page */
async function sources(under = "") {
  const files = (await readdir(folder, { recursive: true })).filter(
    (file) => file.startsWith(under) && file.endsWith(".js") && !/^(tests|i18n|pkg)/.test(file),
  );
  return Promise.all(files.map((file) => readFile(new URL(file, folder), "utf8")));
}

test("both languages have the same areas, keys and places to fill in, none empty, none twice", async () => {
  assert.deepEqual((await readdir(new URL("i18n/zh/", folder))).sort(), areas);
  const places = (text) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
  for (const [index, area] of areas.entries()) {
    assert.deepEqual(Object.keys(en.parts[index]).sort(), Object.keys(zh.parts[index]).sort(), area);
    for (const key of Object.keys(en.parts[index]))
      assert.deepEqual(places(en.parts[index][key]), places(zh.parts[index][key]), key);
  }
  for (const { parts, all } of [en, zh]) {
    assert.equal(parts.flatMap(Object.keys).length, Object.keys(all).length, "a key stands in two areas");
    for (const [key, text] of Object.entries(all)) assert.ok(text.trim().length > 0, key);
  }
});

test("every key that the page names is there", async () => {
  const text = (await sources()).join("\n");
  const named = [...text.matchAll(/\bt\(\s*"([^"]+)"/g)].map((match) => match[1]);
  assert.ok(named.length > 20);
  for (const key of named) assert.ok(key in en.all, key);
  const shell = await readFile(new URL("index.html", folder), "utf8");
  for (const [, key] of shell.matchAll(/data-i18n="([^"]+)"/g)) assert.ok(key in en.all, key);
});

test("no text is left over", async () => {
  const text = (await sources()).join("\n") + (await readFile(new URL("index.html", folder), "utf8"));
  // whole literals, and patterns such as `row.${key}`; one of placeholders only would match everything
  const literals = new Set([...text.matchAll(/"([\w-]+(?:\.[\w-]+)+)"/g)].map((match) => match[1]));
  const templates = [...text.matchAll(/`([\w-]+\.(?:[\w.-]|\$\{[^}`]*\})*)`/g)].map((match) => match[1]);
  // parts that pages extend begin their keys with the id that the page hands over
  const owners = [...text.matchAll(/\bsuper\([^{}]*\{\s*id: "(\w+)"/g)].map((match) => match[1]);
  assert.ok(owners.length > 3, owners.join());
  for (const [, rest] of text.matchAll(/`\$\{(?:this\.kind\.)?id\}\.((?:[\w.-]|\$\{[^}`]*\})*)`/g))
    for (const owner of owners) templates.push(`${owner}.${rest}`);
  const patterns = templates.map(
    (template) =>
      new RegExp(
        `^${template
          .replace(/\$\{[^}]*\}/g, "\u0000")
          .replaceAll(".", "\\.")
          .replaceAll("\u0000", "[\\w.-]+")}$`,
      ),
  );
  const left = Object.keys(en.all).filter(
    (key) => !literals.has(key) && !patterns.some((pattern) => pattern.test(key)),
  );
  assert.deepEqual(left, []);
});

test("every row, parameter, choice and example of the chain has its words", async () => {
  const text = (await sources("chain/")).join("\n");
  const rows = [...text.matchAll(/key: "(\w+)",\s+stage/g)].map((match) => match[1]);
  assert.ok(rows.length > 15);
  // some rows mean what a choice says
  const options = (choice) =>
    [...text.match(new RegExp(`^  ${choice}: \\[([^\\]]+)\\]`, "m"))[1].matchAll(/"([\w-]+)"/g)].map(
      (match) => match[1],
    );
  const byChoice = { advantage: "advantage", groupAdvantage: "advantage", lossTerm: "loss", tokenWeight: "aggregate" };
  const meanings = rows.flatMap((row) =>
    byChoice[row] ? options(byChoice[row]).map((option) => `meaning.${byChoice[row]}.${option}`) : [`meaning.${row}`],
  );
  const examples = [
    ...text.matchAll(/id: "([\w-]+)",\n\s+state: (?:state|youKnow)\(\s*"\1"[^]*?\n\s+(comparisons|shows):/g),
  ].map((match) => ({ id: match[1], trap: match[2] === "shows" }));
  assert.ok(
    examples.filter(({ trap }) => trap).length >= 4 && examples.filter(({ trap }) => !trap).length >= 6,
    JSON.stringify(examples),
  );
  const wanted = [
    ...rows.map((row) => `row.${row}`),
    ...meanings,
    ...examples.flatMap(({ id, trap }) => [
      `preset.${id}`,
      `preset.note.${id}`,
      ...(trap ? ["happens", "right", "why"].map((part) => `trap.${part}.${id}`) : [`compare.why.${id}`]),
    ]),
  ];
  for (const key of wanted) assert.ok(key in en.all, key);
});

test("faults of files read as the reader words them", async () => {
  const source = await readFile(new URL("../reader/src/fault.rs", folder), "utf8");
  const table = [...source.matchAll(/^ {4}\w+ "(\w+)" \{[^}]*\}\s*=> "((?:[^"\\]|\\.)*)",$/gm)];
  assert.ok(table.length > 30);
  // the page words these itself: it has no docs/ and no --field, and formats of its own
  const own = ["unknownKind", "noRollout", "io", "stopped", "codec", "twice"];
  for (const [, code, sentence] of table) {
    const shown = en.all[`data.fault.${code}`];
    assert.ok(shown, code);
    if (own.includes(code)) continue;
    const words = sentence.replaceAll(":?}", "}").replaceAll('\\"', "");
    // the page adds a capital letter, mostly a full stop, and sometimes advice
    assert.ok(shown.startsWith(words[0].toUpperCase() + words.slice(1)), `${code}: ${shown} / ${words}`);
  }
});

/** One name for one thing on all pages: the words that the field uses, in both languages. */
const WORDS = {
  "page.keys": [/^Arrows move, Enter edits, Esc cancels/, /^方向键移动，Enter 编辑，Esc 取消/],
  "page.lead": [/boxed number/, /带框的数字/],
  "parameter.lambda": ["GAE λ", "GAE λ"],
  "learn.setting.lambda": ["GAE λ", "GAE λ"],
  "data.setting.lambda": ["GAE λ", "GAE λ"],
  "parameter.beta": ["KL coefficient β", "KL 系数 β"],
  "learn.setting.beta": ["KL coefficient β", "KL 系数 β"],
  "data.setting.beta": ["KL coefficient β", "KL 系数 β"],
  "budget.group.kl": ["KL coefficient β", "KL 系数 β"],
  "budget.group.price": ["Entropy multiplier λ", "熵约束的对偶变量（乘子）λ"],
  "choice.profile": ["Framework", "框架"],
  "profile.paper": ["Papers", "论文"],
  "choice.spread": ["Std divisor", "标准差的除数"],
  "choice.weight": ["Advantage used in the loss", "损失所用的优势"],
  "choice.aggregate": ["Aggregation", "聚合方式"],
  "choice.aggregate.token-sum": ["token sum", "token 求和"],
  "choice.dual": ["Dual clip", "双重裁剪（dual-clip）"],
  "clip.loss.dual": ["Dual clip", "双重裁剪（dual-clip）"],
  "row.ratio": ["probability ratio", "重要性采样比率（ratio）"],
  "explain.value": ["Full precision", "完整精度"],
  "explain.titleInput": ["{value} (input)", "{value}（输入）"],
  "trap.links": ["Discussed in", "相关讨论"],
  "kl.why.threads": ["Discussed in", "相关讨论"],
  "clip.profiles": ["Framework defaults", "框架默认值"],
  "kl.profiles": ["Framework defaults", "框架默认值"],
  "clip.family.weight": ["Weighted log π", "加权的 log π"],
  "data.histogram.label": ["Distribution of {name}", "{name} 的分布"],
  "data.histogram.numbers": [
    /min \{low\}, median \{median\}, max \{high\}/,
    /最小 \{low\}，中位数 \{median\}，最大 \{high\}/,
  ],
  "budget.setting.target": ["target KL", "目标 KL"],
  "budget.setting.answerLambda": ["response to λ", "对 λ 的反应"],
  "histories.column.collapse": ["stays below {share} %", "此后一直低于 {share} %"],
  "tab.data": ["Your data", "我的数据"],
  "data.lint.label": ["Issues", "问题检查"],
  "preset.group-of-one": ["Group of one", "组内只有一个回答"],
  "groups.preset.single": ["A group of one", "组内只有一个回答"],
  "tour.name.slips": ["Find the document's mistakes", "找出文档中的错误"],
  "step.prompt": ["Prompt", "prompt（提示词）"],
  "choice.across.zero-step": ["a step of 0", "在该位置仍走一步"],
  "explain.missing": [/could not be computed/, /无法计算/],
  "refused.unknown": [/could not be computed/, /无法计算/],
};

test("each thing has the name that the field gives it", () => {
  for (const [key, wanted] of Object.entries(WORDS))
    for (const [index, { all }] of [en, zh].entries()) {
      const word = wanted[index];
      if (typeof word === "string") assert.equal(all[key], word, key);
      else assert.match(all[key], word, key);
    }
  // a prompt is 提示词, not 提示 (a hint)
  for (const [key, text] of Object.entries(zh.all)) assert.doesNotMatch(text, /提示(?!词)/, key);
});
