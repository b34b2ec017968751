// What the page of histories remembers: the runs with their names and looks, and how they are shown. The points
// themselves lie in a store beside the state, under a fingerprint; a state carries them only where they are few,
// so that a link stays short.

import { initialSmooth, isRecord, readSmooth, readZoom, within } from "../parts/runs-state.js";
import { sampleNames, samplePoints } from "./sample.js";

/** @typedef {{ steps: Float64Array, entropies: Float64Array }} Points */

/**
 * @typedef {object} Run
 * @property {string} key
 * @property {string} label
 * @property {string} file as it was called; "" for what was pasted
 * @property {number} colour 0 to 7
 * @property {boolean} off not drawn
 * @property {string} data where the points are in the store
 * @property {{ steps: number[], entropies: number[] }} [records] the points, if all runs together have few
 */

/**
 * @typedef {object} State
 * @property {Run[]} runs
 * @property {import("../parts/runs-state.js").Smooth} smooth
 * @property {boolean} marked whether collapses are marked
 * @property {number} share below which share of the start an entropy has collapsed
 * @property {[number, number] | null} zoom
 */

export const MOST_RUNS = 50;
/** Points of all runs together that a link carries. */
export const IN_LINK = 800;
const PREFIX = "entropy_history_";

/** @type {Map<string, Points>} */
const store = new Map();

/**
 * @param {Run} run
 * @returns {Points | undefined} nothing where a link came without them
 */
export const pointsOf = (run) => store.get(run.data);

/**
 * @param {Points} points
 * @returns {string} a fingerprint: the same history dropped twice lies in the store once
 */
export function keep(points) {
  let [a, b] = [0x811c9dc5, 0x2f0b4c47];
  for (const part of [points.steps, points.entropies]) {
    const words = new Uint32Array(part.buffer, part.byteOffset, part.length * 2);
    for (let i = 0; i < words.length; i += 1) {
      a = Math.imul(a ^ words[i], 0x01000193) ^ (a >>> 15);
      b = Math.imul(b ^ words[words.length - 1 - i], 0x5bd1e995) ^ (b >>> 13);
    }
  }
  const id = `${points.steps.length}-${[a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("")}`;
  if (!store.has(id)) store.set(id, points);
  return id;
}

/** @returns {State} */
export function initial() {
  const runs = sampleNames.map((sample, colour) => ({
    key: `sample-${sample}`,
    label: sample,
    file: `${PREFIX}${sample.toLowerCase()}.json`,
    colour,
    off: false,
    data: sampleData(sample),
  }));
  return { runs, smooth: initialSmooth(), marked: true, share: 0.5, zoom: null };
}

/** @param {string} sample */
function sampleData(sample) {
  const data = `sample-${sample}`;
  if (!store.has(data)) store.set(data, samplePoints(sample));
  return data;
}

/** @param {Run} run */
export const isSample = (run) => run.data.startsWith("sample-");

/** @param {string} file */
export function labelOf(file) {
  const stem = file.replace(/^.*[/\\]/, "").replace(/\.[^.]*$/, "");
  return stem.replace(/^(entropy_history_|metrics_)/, "") || file;
}

/** Whether a file in a folder is one to be looked for. @param {string} file */
export const isHistory = (file) => file.startsWith(PREFIX) && file.endsWith(".json");

/**
 * @param {State} state
 * @param {{ file: string, label: string, points: Points }[]} loaded
 * @returns {State} the samples give way; a run that waits for its points gets them
 */
export function withLoaded(state, loaded) {
  let runs = state.runs.some((run) => !isSample(run)) ? state.runs : [];
  for (const { file, label, points } of loaded) {
    const data = keep(points);
    const waits = runs.find((run) => !pointsOf(run) && run.file === file) ?? null;
    if (waits) runs = runs.map((run) => (run === waits ? { ...run, data } : run));
    else
      runs = [
        ...runs,
        { key: freshKey(runs), label: freshLabel(runs, label), file, colour: freshColour(runs), off: false, data },
      ];
  }
  return carried({ ...state, runs, zoom: null });
}

/** @param {Run[]} runs */
const freshKey = (runs) => String(1 + runs.reduce((most, { key }) => Math.max(most, Number(key) || 0), 0));

/** @param {Run[]} runs @param {string} label */
function freshLabel(runs, label) {
  const taken = new Set(runs.map((run) => run.label));
  let name = label;
  for (let i = 2; taken.has(name); i += 1) name = `${label} (${i})`;
  return name;
}

/** The colour that the fewest runs have. @param {Run[]} runs */
function freshColour(runs) {
  const used = Array.from({ length: 8 }, (_, colour) => runs.filter((run) => run.colour === colour).length);
  return used.indexOf(Math.min(...used));
}

/**
 * The points within the state if they are few.
 * @param {State} state
 * @returns {State}
 */
export function carried(state) {
  const few = total(state) <= IN_LINK;
  const runs = state.runs.map(({ records: _, ...run }) => {
    const points = few && !isSample(run) ? pointsOf(run) : undefined;
    return points
      ? { ...run, records: { steps: Array.from(points.steps), entropies: Array.from(points.entropies) } }
      : run;
  });
  return { ...state, runs };
}

/** @param {State} state */
const total = (state) =>
  state.runs.reduce((sum, run) => sum + (isSample(run) ? 0 : (pointsOf(run)?.steps.length ?? 0)), 0);

/** Whether a link would come without points. @param {State} state */
export const leftOut = (state) => state.runs.some((run) => !isSample(run) && !run.records);

/**
 * @param {State} state
 * @param {string} key
 * @param {Partial<Run>} change
 * @returns {State}
 */
export const withRun = (state, key, change) => ({
  ...state,
  runs: state.runs.map((run) => (run.key === key ? { ...run, ...change } : run)),
});

/** @param {State} state @param {string} key @returns {State} */
export const without = (state, key) => carried({ ...state, runs: state.runs.filter((run) => run.key !== key) });

/**
 * @param {State} state
 * @param {string} key
 * @param {number} by −1 or 1
 * @returns {State}
 */
export function moved(state, key, by) {
  const from = state.runs.findIndex((run) => run.key === key);
  const to = from + by;
  if (from < 0 || to < 0 || to >= state.runs.length) return state;
  const runs = state.runs.slice();
  [runs[from], runs[to]] = [runs[to], runs[from]];
  return { ...state, runs };
}

/**
 * @param {unknown} data
 * @returns {State | null}
 */
export function read(data) {
  if (!isRecord(data) || !Array.isArray(data.runs)) return null;
  let room = IN_LINK;
  /** @type {Run[]} */
  const runs = [];
  for (const each of data.runs.slice(0, MOST_RUNS)) {
    if (!isRecord(each)) continue;
    const label = typeof each.label === "string" ? each.label.slice(0, 120) : "";
    const file = typeof each.file === "string" ? each.file.slice(0, 200) : "";
    const base = {
      key: freshKey(runs),
      label: label || `${runs.length + 1}`,
      file,
      colour: Math.trunc(within(each.colour, 0, 7, runs.length % 8)),
      off: each.off === true,
    };
    const sample = sampleNames.find((name) => each.data === `sample-${name}`);
    const points = sample ? null : readRecords(each.records, room);
    room -= points?.steps.length ?? 0;
    const given = typeof each.data === "string" ? each.data.slice(0, 60) : "";
    runs.push({
      ...base,
      data: sample ? sampleData(sample) : points ? keep(points) : given.startsWith("sample-") ? "" : given,
    });
  }
  return carried({
    runs,
    smooth: readSmooth(data.smooth),
    marked: data.marked !== false,
    share: within(data.share, 0.01, 0.99, 0.5),
    zoom: readZoom(data.zoom),
  });
}

/**
 * @param {unknown} records
 * @param {number} room
 * @returns {Points | null}
 */
function readRecords(records, room) {
  if (!isRecord(records) || !Array.isArray(records.steps) || !Array.isArray(records.entropies)) return null;
  const { steps, entropies } = records;
  const good =
    steps.length > 0 &&
    steps.length <= room &&
    steps.length === entropies.length &&
    steps.every((step, i) => Number.isFinite(step) && (i === 0 || step > steps[i - 1])) &&
    entropies.every(Number.isFinite);
  return good ? { steps: Float64Array.from(steps), entropies: Float64Array.from(entropies) } : null;
}
