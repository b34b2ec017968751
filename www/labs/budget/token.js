// What the prices of this step do to single tokens: the advantage before and after, by the library's own loss.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { full, short, signed } from "../../parts/format.js";

/** Four tokens that differ in what matters: how likely, and whether the answer was good. */
const TOKENS = [
  { id: "likelyGood", p: 0.8, reference: 0.7, advantage: 1 },
  { id: "rareGood", p: 0.05, reference: 0.02, advantage: 1 },
  { id: "likelyBad", p: 0.8, reference: 0.7, advantage: -1 },
  { id: "rareBad", p: 0.05, reference: 0.02, advantage: -1 },
];

/**
 * @param {import("../../engine.js").Library} library
 * @param {{ lambda: number, beta: number, gamma: number }} prices
 * @returns {{ id: string, p: number, reference: number, advantage: number, weight: number, gated: number, base: number,
 *   modified: number }[]}
 */
export function pricedTokens(library, { lambda, beta, gamma }) {
  const column = (/** @type {(token: typeof TOKENS[0]) => number} */ of) => Float64Array.from(TOKENS, of);
  const logProbs = column(({ p }) => library.lnF64(p));
  const refLogProbs = column(({ reference }) => library.lnF64(reference));
  const advantages = column(({ advantage }) => advantage);
  const batch = library.Batch.padded(1, TOKENS.length, new Uint8Array(TOKENS.length).fill(1));
  try {
    const weights = library.tokenWeightsF64(batch, { logProbs, refLogProbs, advantages });
    const gated = library.tokenWeightsF64(batch, { logProbs, refLogProbs, advantages, weight: "kl-gated" });
    // on the first update the ratio is 1, and the gradient of a sum of losses is −A_mod, token for token
    const input = { logProbs, oldLogProbs: logProbs, refLogProbs, advantages };
    const config = { gamma, aggregate: { mode: /** @type {const} */ ("token-sum") } };
    const base = library.dualGameF64(batch, input, { ...config, lambda: 0, beta: 0 }).grad;
    const modified = library.dualGameF64(batch, input, { ...config, lambda, beta }).grad;
    return TOKENS.map((token, i) => ({
      ...token,
      weight: weights[i],
      gated: gated[i],
      base: 0 - base[i],
      modified: 0 - modified[i],
    }));
  } finally {
    batch.free();
  }
}

/**
 * @param {HTMLElement} container
 * @param {import("../../engine.js").Library} library
 * @param {{ lambda: number, beta: number, gamma: number }} prices
 */
export function drawTokens(container, library, prices) {
  const cell = (/** @type {number} */ value, /** @type {string} */ what, sign = false) =>
    html("td", { class: "number", "data-column": what, title: full(value) }, sign ? signed(value) : short(value));
  const rows = pricedTokens(library, prices).map((token) =>
    html(
      "tr",
      { "data-token": token.id },
      html("th", { scope: "row" }, t(`budget.token.${token.id}`)),
      cell(token.p, "p"),
      cell(token.reference, "reference"),
      cell(token.advantage, "advantage", true),
      cell(token.weight, "weight"),
      cell(token.gated, "gated"),
      cell(token.base, "base", true),
      cell(token.modified, "modified", true),
    ),
  );
  container.replaceChildren(
    html(
      "table",
      {},
      html("caption", {}, t("budget.tokens.caption", { lambda: short(prices.lambda), beta: short(prices.beta) })),
      html(
        "thead",
        {},
        html(
          "tr",
          {},
          html("td", {}),
          ...["p", "reference", "advantage", "weight", "gated", "base", "modified"].map((head) =>
            html("th", { scope: "col" }, t(`budget.tokens.${head}`)),
          ),
        ),
      ),
      html("tbody", {}, ...rows),
    ),
  );
}
