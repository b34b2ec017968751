// One training step of the document's example, module by module: what each puts out, in which shape, with the numbers
// of now; what flows where; the states written out; the critic's loss.

import { html } from "../../parts/dom.js";
import { short, subscript, visible } from "../../parts/format.js";
import { t } from "../../i18n/index.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */

/** The examples that tell of a whole step. */
const TOLD = ["you-know-one-plus-one", "you-know-surrogate"];

/**
 * The modules in the order in which they run, with the rows that hold what they put out.
 * @type {{ id: string, call: string, fields: [string, string][] }[]}
 */
const MODULES = [
  {
    id: "actor",
    call: "actor.generate_sequences",
    fields: [
      ["responses", "token"],
      ["old_log_probs", "oldLogProb"],
    ],
  },
  { id: "critic", call: "critic.compute_values", fields: [["values", "value"]] },
  { id: "reference", call: "reference.compute_log_prob", fields: [["ref_log_prob", "refLogProb"]] },
  { id: "reward", call: "reward.compute_reward", fields: [["token_level_scores", "score"]] },
  {
    id: "advantage",
    call: "compute_advantage",
    fields: [
      ["token_level_rewards", "reward"],
      ["advantages", "advantage"],
      ["returns", "return"],
    ],
  },
];

/**
 * @param {State} state
 * @param {Result} result
 * @param {string} row
 */
function valuesOf(state, result, row) {
  const { tokens } = state.sequences[0];
  if (row === "token") return tokens.map((token) => `“${visible(token)}”`);
  // the value after the last token is no output of the critic's
  return Array.from(result.rows[row]?.[0] ?? [])
    .slice(0, tokens.length)
    .map(short);
}

/**
 * ½·mean (V − R)², over kept tokens: half of the square is the library's k2 of the two.
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Result} result
 * @returns {number | undefined}
 */
export function criticLoss(library, state, result) {
  const [{ roles }] = state.sequences;
  const returns = result.rows.return?.[0];
  if (!returns) return undefined;
  const batch = library.Batch.padded(
    1,
    roles.length,
    Uint8Array.from(roles, (role) => Number(role === "policy")),
  );
  try {
    const values = Float64Array.from(result.rows.value?.[0] ?? []).subarray(0, roles.length);
    const halves = library.klEstimateF64(
      batch,
      { logProbs: values, refLogProbs: Float64Array.from(returns) },
      { estimator: "k2" },
    );
    return library.meanF64(batch, halves);
  } catch {
    // no kept token: there is no mean
    return undefined;
  } finally {
    batch.free();
  }
}

/**
 * @param {HTMLElement} container
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {Result} result
 */
export function drawStep(container, library, state, result) {
  container.hidden = !TOLD.includes(state.preset) || state.sequences.length !== 1;
  if (container.hidden) return container.replaceChildren();
  const [{ prompt, tokens }] = state.sequences;
  const shape = `(1, ${tokens.length})`;
  const critic = criticLoss(library, state, result);
  const number = (/** @type {number | undefined} */ value) => (value === undefined ? "—" : short(value));
  const boxes = MODULES.map(({ id, call, fields }) =>
    html(
      "li",
      { "data-module": id },
      html("strong", {}, t(`step.${id}`)),
      html("code", {}, `${call}()`),
      ...fields.map(([field, row]) =>
        html("span", { class: "out" }, html("code", {}, field), ` [${valuesOf(state, result, row).join(", ")}]`),
      ),
    ),
  );
  const update = (/** @type {string} */ id, /** @type {string} */ name, /** @type {number | undefined} */ value) =>
    html(
      "div",
      { "data-module": id },
      html("strong", {}, t(`step.${id}`)),
      html("span", { class: "out" }, t(`step.loss.${id}`)),
      html("span", { class: "out" }, html("code", {}, name), " = ", html("output", {}, number(value))),
    );
  const rows = MODULES.flatMap(({ id, fields }) =>
    fields.map(([field, row], at) =>
      html(
        "tr",
        { "data-field": field },
        at === 0 ? html("th", { scope: "rowgroup", rowspan: fields.length }, t(`step.${id}`)) : null,
        html("th", { scope: "row" }, html("code", {}, field)),
        html("td", {}, html("code", {}, shape)),
        html("td", { class: "values" }, `[[${valuesOf(state, result, row).join(", ")}]]`),
        html("td", {}, t(`step.field.${field}`)),
      ),
    ),
  );
  const heads = ["module", "field", "shape", "values", "meaning"];
  container.replaceChildren(
    html("h2", {}, t("step.title")),
    html("p", { class: "quiet" }, t("step.about")),
    html(
      "ol",
      { class: "step-flow", "aria-label": t("step.flow") },
      html("li", { "data-module": "prompt" }, html("strong", {}, t("step.prompt")), html("span", {}, `“${prompt}”`)),
      ...boxes,
      html(
        "li",
        { class: "step-updates" },
        update("criticUpdate", "critic/vf_loss", critic),
        update("actorUpdate", "actor/pg_loss", result.summary.loss),
      ),
    ),
    html(
      "div",
      { class: "scroller", tabindex: 0, role: "region", "aria-label": t("step.table") },
      html(
        "table",
        {},
        html("caption", {}, t("step.table")),
        html("thead", {}, html("tr", {}, ...heads.map((head) => html("th", { scope: "col" }, t(`step.${head}`))))),
        html("tbody", {}, ...rows),
      ),
    ),
    html("h3", {}, t("step.states")),
    html(
      "ol",
      { class: "step-states" },
      ...Array.from({ length: tokens.length + 1 }, (_, i) =>
        html(
          "li",
          { lang: "zh" },
          html("b", {}, `s${subscript(i + 1)}`),
          ` “${visible(prompt + tokens.slice(0, i).join(""))}”`,
        ),
      ),
    ),
  );
}
