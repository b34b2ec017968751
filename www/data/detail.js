// All numbers of the token looked at, with every digit.

import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { full, visible } from "../parts/format.js";
import { textOf } from "./flow.js";
import { fitsChain, samplesOf } from "./to-chain.js";
import { quantityMeaning, quantityName } from "./words.js";

/**
 * @param {HTMLElement} container
 * @param {import("./types.js").Loaded} data
 * @param {{ sequence: number, token: number }} at
 * @param {{ open: (sequences: number[]) => void, text: (() => void) | null }} handlers `text` where it is not shown
 *   already
 */
export function drawDetail(container, data, at, { open, text }) {
  const samples = samplesOf(data, at.sequence);
  const slot = data.offsets[at.sequence] + at.token;
  const word = textOf(data, slot);
  const kept = data.keep[slot] === 1;
  const group = data.groupNames[data.group[at.sequence]];
  const pairs = data.keys.map((key) =>
    html(
      "div",
      {},
      html("dt", { title: quantityMeaning(key) }, quantityName(key)),
      html("dd", { "data-detail": key }, full(data.columns[key][slot])),
    ),
  );
  const facts = [
    t("data.detail.place", {
      sequence: at.sequence + 1,
      place: t(`data.place.${data.kind}`, { place: data.place[at.sequence] }),
    }),
    Number.isNaN(data.step[at.sequence]) ? "" : t("data.detail.step", { step: data.step[at.sequence] }),
    group === undefined ? "" : t("data.detail.group", { group }),
    data.scored[at.sequence] === 1 ? t("data.detail.score", { score: full(data.score[at.sequence]) }) : "",
    kept ? "" : t("data.detail.dropped"),
  ].filter((fact) => fact !== "");
  container.replaceChildren(
    html(
      "h2",
      {},
      t("data.detail.label", { token: at.token + 1 }),
      ...(word === "" ? [] : [" ", html("span", { class: "word" }, visible(word))]),
    ),
    html("p", { class: "quiet" }, facts.join(t("data.comma"))),
    html("dl", { class: "numbers" }, ...pairs),
    html(
      "p",
      { class: "buttons" },
      html(
        "button",
        { type: "button", id: "data-open-chain", onclick: () => open([at.sequence]) },
        t("data.detail.open"),
      ),
      ...(samples.length > 1 && fitsChain(data, samples)
        ? [
            html(
              "button",
              { type: "button", id: "data-open-group", onclick: () => open(samples) },
              t("data.detail.openGroup", { count: samples.length }),
            ),
          ]
        : []),
      ...(text ? [html("button", { type: "button", id: "data-show-text", onclick: text }, t("data.detail.text"))] : []),
    ),
  );
}
