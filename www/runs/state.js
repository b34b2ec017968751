// What the page of runs remembers: which runs, how they look, what is shown of them. Their numbers lie in a store
// beside the state; a link carries only their names.

import { initialSmooth, isRecord, readSmooth, readZoom, within } from "../parts/runs-state.js";
import { withoutSeed } from "./files.js";
import { readText } from "./read.js";

/** @typedef {import("./read.js").Metrics} Metrics */

/**
 * @typedef {object} Run
 * @property {string} key
 * @property {string} label
 * @property {string} file to find it again
 * @property {number} look 0 to 63: colour and dash
 * @property {boolean} off not drawn
 * @property {string} data where its numbers are in the store
 */

/**
 * @typedef {object} State
 * @property {Run[]} runs
 * @property {string} search what the names of the keys shown contain
 * @property {string[]} closed the groups of keys that are folded
 * @property {import("../parts/runs-state.js").Smooth} smooth
 * @property {boolean} bands whether runs that differ in their seed are drawn as one
 * @property {[number, number] | null} zoom
 * @property {number | null} at the step looked at
 * @property {string} chosen the run whose rollouts are shown
 */

/** @typedef {{ metrics: Metrics, rollouts: { name: string, data: Blob | string } | null }} Stored */

export const MOST_RUNS = 64;
export const EXAMPLE = "example-";

/** @type {Map<string, Stored>} */
const store = new Map();
let stored = 0;

/** @param {Run} run @returns {Stored | undefined} nothing where a link came without it */
export const dataOf = (run) => store.get(run.data);

/** @param {Stored} data @param {string} [id] @returns {string} */
export function keep(data, id) {
  stored += 1;
  const name = id ?? `r${stored}`;
  store.set(name, data);
  return name;
}

/** @param {Run} run */
export const isExample = (run) => run.data.startsWith(EXAMPLE);

/** The labels of the runs in example.json. */
export const examples = ["C0", "C1"].flatMap((group) => [0, 1].map((seed) => `two-digit ${group} seed ${seed}`));

/** @returns {State} */
export const initial = () => ({
  runs: examples.map((label, look) => ({
    key: String(look + 1),
    label,
    file: "",
    look,
    off: false,
    data: EXAMPLE + label,
  })),
  search: "",
  closed: [],
  smooth: initialSmooth(),
  bands: true,
  zoom: null,
  at: null,
  chosen: "",
});

/** @param {Run[]} runs */
const freshKey = (runs) => String(1 + runs.reduce((most, { key }) => Math.max(most, Number(key) || 0), 0));

/** The look that the fewest runs have. @param {Run[]} runs */
function freshLook(runs) {
  const used = Array.from({ length: 64 }, (_, look) => runs.filter((run) => run.look === look).length);
  return used.indexOf(Math.min(...used));
}

/** @param {Run[]} runs @param {string} label */
function freshLabel(runs, label) {
  const taken = new Set(runs.map((run) => run.label));
  let name = label;
  for (let i = 2; taken.has(name); i += 1) name = `${label} (${i})`;
  return name;
}

/**
 * @param {State} state
 * @param {{ label: string, file: string, stored: Stored }[]} loaded
 * @returns {State} the examples give way; a run that waits for its numbers gets them
 */
export function withLoaded(state, loaded) {
  let runs = state.runs.some((run) => !isExample(run)) ? state.runs.filter((run) => !isExample(run)) : [];
  for (const { label, file, stored: numbers } of loaded) {
    const data = keep(numbers);
    const waits = runs.find((run) => !dataOf(run) && run.file === file && file !== "") ?? null;
    if (waits) runs = runs.map((run) => (run === waits ? { ...run, data } : run));
    else if (runs.length < MOST_RUNS)
      runs = [
        ...runs,
        { key: freshKey(runs), label: freshLabel(runs, label), file, look: freshLook(runs), off: false, data },
      ];
  }
  return { ...state, runs, zoom: null, at: null, chosen: "" };
}

/** The state that the page showed last. @type {State | null} */
let shown = null;
/** @param {State} state */
export const remember = (state) => {
  shown = state;
};

/**
 * A run of the learning laboratory beside those shown.
 * @param {string} label
 * @param {{ metrics: string, rollouts: string }} made
 * @returns {State}
 */
export function withRecorded(label, made) {
  const metrics = readText(made.metrics);
  const state = shown ?? initial();
  if ("problem" in metrics) return state;
  const rollouts = { name: "rollouts.jsonl", data: made.rollouts };
  return withLoaded(state, [{ label, file: "", stored: { metrics, rollouts } }]);
}

/** @param {State} state @param {string} key @param {Partial<Run>} change @returns {State} */
export const withRun = (state, key, change) => ({
  ...state,
  runs: state.runs.map((run) => (run.key === key ? { ...run, ...change } : run)),
});

/** @param {State} state @param {string} key @returns {State} */
export const without = (state, key) => ({
  ...state,
  runs: state.runs.filter((run) => run.key !== key),
  chosen: state.chosen === key ? "" : state.chosen,
});

/**
 * How each run is drawn: runs that are drawn as one share a look.
 * @param {State} state
 * @returns {Map<string, { colour: number, dash: number }>} by key
 */
export function looksOf({ runs, bands }) {
  const names = [...new Set(runs.map((run) => withoutSeed(run.label)))];
  return new Map(
    runs.map((run) => {
      const look = bands ? names.indexOf(withoutSeed(run.label)) : run.look;
      // eight colours, then the same ones dashed
      return [run.key, { colour: look % 8, dash: look < 8 ? 0 : (look % 8) + Math.floor(look / 8) }];
    }),
  );
}

/**
 * The runs shown, those that differ in their seed together.
 * @param {State} state
 * @returns {{ name: string, runs: Run[] }[]}
 */
export function groupsOf({ runs, bands }) {
  const on = runs.filter((run) => !run.off && dataOf(run));
  if (!bands) return on.map((run) => ({ name: run.label, runs: [run] }));
  /** @type {Map<string, Run[]>} */
  const groups = new Map();
  for (const run of on) {
    const name = withoutSeed(run.label);
    groups.set(name, [...(groups.get(name) ?? []), run]);
  }
  return [...groups].map(([name, members]) => ({
    name: members.length === 1 ? members[0].label : name,
    runs: members,
  }));
}

/** @param {unknown} value @param {number} most */
const text = (value, most) => (typeof value === "string" ? value.slice(0, most) : "");

/**
 * @param {unknown} data
 * @returns {State | null}
 */
export function read(data) {
  if (!isRecord(data) || !Array.isArray(data.runs)) return null;
  const known = initial().runs.map((run) => run.data);
  /** @type {Run[]} */
  const runs = [];
  for (const each of data.runs.slice(0, MOST_RUNS)) {
    if (!isRecord(each)) continue;
    const given = text(each.data, 60);
    runs.push({
      key: freshKey(runs),
      label: text(each.label, 120) || String(runs.length + 1),
      file: text(each.file, 300),
      look: Math.trunc(within(each.look, 0, 63, runs.length % 64)),
      off: each.off === true,
      data: known.includes(given) || !given.startsWith(EXAMPLE) ? given : "",
    });
  }
  return {
    runs,
    search: text(data.search, 100),
    closed: Array.isArray(data.closed) ? data.closed.slice(0, 200).map((one) => text(one, 100)) : [],
    smooth: readSmooth(data.smooth),
    bands: data.bands !== false,
    zoom: readZoom(data.zoom),
    at: typeof data.at === "number" && Number.isFinite(data.at) ? data.at : null,
    chosen: runs.some((run) => run.key === data.chosen) ? data.chosen : "",
  };
}
