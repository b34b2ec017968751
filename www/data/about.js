// What was read, in numbers; and what lint found in it.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { short } from "../parts/format.js";
import { fileName } from "./fields.js";
import { findingText, quantityName } from "./words.js";

/** @typedef {import("./types.js").Loaded} Loaded */

const SHOWN = 12;

/** @param {HTMLElement} container @param {Loaded} data @param {string} name */
export function drawAbout(container, data, name) {
  const dropped = data.tokens - data.kept;
  const groups = data.groupNames.length;
  const pairs = [
    ["file", name === "" ? t("data.pasted") : name],
    ["sequences", data.sequences],
    ["tokens", dropped > 0 ? t("data.about.keptOf", { kept: data.kept, tokens: data.tokens }) : data.tokens],
    ["groups", groups === 0 ? "—" : groups],
    [
      "steps",
      data.steps.length === 0
        ? "—"
        : data.steps.length > 3
          ? t("data.about.stepRange", {
              count: data.steps.length,
              low: data.steps[0],
              high: data.steps[data.steps.length - 1],
            })
          : t("data.about.stepList", { count: data.steps.length, steps: data.steps.join(t("data.list")) }),
    ],
    ["fields", data.fields.length === 0 ? t("data.about.noFields") : data.fields.map(fileName).join(t("data.list"))],
  ];
  const list = pairs.map(([key, value]) =>
    html("div", {}, html("dt", {}, t(`data.about.${key}`)), html("dd", { "data-about": key }, String(value))),
  );
  const computed = data.keys.filter((key) => !data.fields.includes(key)).map(quantityName);
  const notes = [];
  if (data.padded > 0) notes.push(t("data.about.padded", { count: data.padded }));
  notes.push(...impossible(data));
  if (computed.length > 0) notes.push(t("data.about.computed", { names: computed.join(t("data.list")) }));
  for (const { quantity, message } of data.refusals)
    notes.push(t("data.about.refused", { name: quantityName(quantity), message }));
  container.replaceChildren(
    html("h2", {}, t("data.about.label")),
    html("dl", { class: "about" }, ...list),
    ...notes.map((note) => html("p", { class: "quiet" }, note)),
  );
}

/** Fields that cannot have numbers on one side of 0. */
const SIDES = [
  ...["logProbs", "oldLogProbs", "refLogProbs", "rolloutLogProbs"].map((key) => ({ key, word: "positive", sign: 1 })),
  ...["entropies", "oldEntropies"].map((key) => ({ key, word: "negative", sign: -1 })),
];

/**
 * Numbers that no distribution has.
 * @param {Loaded} data
 */
const impossible = (data) =>
  SIDES.flatMap(({ key, word, sign }) => {
    const values = data.fields.includes(key) ? data.columns[key] : undefined;
    if (!values) return [];
    let [count, first] = [0, -1];
    for (let slot = 0; slot < values.length; slot += 1) {
      if (data.keep[slot] !== 1 || !(values[slot] * sign > 0)) continue;
      count += 1;
      if (first < 0) first = slot;
    }
    if (count === 0) return [];
    const place = { sequence: data.sequence[first] + 1, token: data.token[first] + 1 };
    return [t(`data.about.${word}`, { count, name: quantityName(key), ...place })];
  });

/**
 * @param {HTMLElement} container
 * @param {Loaded} data
 * @param {boolean} all whether every finding is listed
 * @param {{ go: (sequence: number, token: number | null) => void, more: () => void }} handlers
 */
export function drawLint(container, data, all, { go, more }) {
  const { lint } = data;
  if (!lint) {
    container.replaceChildren(html("h2", {}, t("data.lint.label")), html("p", { class: "quiet" }, t("data.lint.none")));
    return;
  }
  const total = Object.values(lint.counts).reduce((sum, count) => sum + count, 0);
  const summary = Object.entries(lint.counts)
    .filter(([, count]) => count > 0)
    .map(([rule, count]) => `${count} × ${t(`data.rule.${rule}`)}`);
  const shown = all ? lint.findings : lint.findings.slice(0, SHOWN);
  const items = shown.map((finding) => {
    const { sequence, token } = finding;
    const where = t(token === null ? "data.lint.sequence" : "data.lint.token", {
      sequence: sequence + 1,
      place: t(`data.place.${data.kind}`, { place: data.place[sequence] }),
      token: (token ?? 0) + 1,
    });
    return html(
      "li",
      { "data-rule": finding.rule },
      html("button", { type: "button", class: "link", onclick: () => go(sequence, token) }, where),
      " ",
      findingText(finding),
    );
  });
  const rest = total - shown.length;
  const canShow = !all && lint.findings.length > SHOWN;
  container.replaceChildren(
    html("h2", {}, t("data.lint.label")),
    html(
      "p",
      { id: "data-lint-summary" },
      total === 0
        ? t("data.lint.clean", { sequences: short(data.sequences) })
        : t("data.lint.found", { count: total, rules: summary.join(t("data.list")) }),
    ),
    html("ol", { class: "findings" }, ...items),
    ...(canShow
      ? [
          html(
            "button",
            { type: "button", class: "small", onclick: more },
            t("data.lint.all", { count: lint.findings.length }),
          ),
        ]
      : []),
    ...(rest > 0 && !canShow ? [html("p", { class: "quiet" }, t("data.lint.rest", { count: rest }))] : []),
  );
}
