// What can be copied and saved of the chain. The writers are loaded when one of them is asked for.

import { compute } from "../compute/compute.js";
import { visibleRows } from "../rows.js";
import { t } from "../../i18n/index.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../../pages.js").Export} Export */

/**
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 * @param {import("../edit/edits.js").Place} place the chosen cell
 * @returns {Export[]}
 */
export function chainExports(library, state, place) {
  const result = () => compute(library, state);
  const keys = () => visibleRows(state).map((row) => row.key);
  return [
    {
      id: "rust",
      label: t("share.rust"),
      how: "copy",
      make: async () => (await import("./rust.js")).rust(state, result()),
    },
    {
      id: "python",
      label: t("share.python"),
      how: "copy",
      make: async () => (await import("./python.js")).python(state, result()),
    },
    {
      id: "latex",
      label: t("share.latex"),
      how: "copy",
      make: async () => (await import("./latex.js")).latex(library, state, result(), place, keys()),
    },
    {
      id: "golden",
      label: t("share.golden"),
      how: "copy",
      make: async () => (await import("./golden.js")).golden(state, result(), ownSettings(library, state)),
    },
    {
      id: "csv",
      label: t("share.csv"),
      how: "save",
      file: "tokenwise-chain.csv",
      make: async () => (await import("./csv.js")).csv(state, result(), keys()),
    },
  ];
}

/**
 * The profile's own settings, where no choice overrides them.
 * @param {import("../../engine.js").Library} library
 * @param {State} state
 */
const ownSettings = (library, state) =>
  compute(library, { ...state, choices: { ...state.choices, across: "profile", spread: "profile", dual: "profile" } })
    .settings;
