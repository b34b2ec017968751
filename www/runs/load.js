// From files to runs: metrics are read in a worker; where there is none, here.

import { merged, readFile, readText } from "./read.js";

/** @typedef {import("./read.js").Metrics} Metrics */
/** @typedef {import("./read.js").Fault} Fault */

/** @type {Worker | null} */
let worker = null;
let count = 0;
/** @type {Map<number, { done: (result: Metrics | Fault | null) => void, progress: (share: number) => void }>} */
const waiting = new Map();

function start() {
  const made = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  made.addEventListener("message", ({ data: { id, share, result } }) => {
    const request = waiting.get(id);
    if (share !== undefined) request?.progress(share);
    else {
      waiting.delete(id);
      request?.done(result);
    }
  });
  made.addEventListener("error", (event) => {
    event.preventDefault();
    for (const { done } of waiting.values()) done(null);
    waiting.clear();
    worker = null;
  });
  return made;
}

/**
 * @param {Blob} file
 * @param {(share: number) => void} progress
 * @returns {Promise<Metrics | Fault>}
 */
async function read(file, progress) {
  worker ??= start();
  count += 1;
  const id = count;
  const result = await new Promise((/** @type {(result: Metrics | Fault | null) => void} */ done) => {
    waiting.set(id, { done, progress });
    worker?.postMessage({ id, file });
  });
  return result ?? readFile(file, progress);
}

/**
 * @param {import("./files.js").Found} found
 * @param {(share: number) => void} progress
 * @returns {Promise<{ label: string, file: string, stored: import("./state.js").Stored } | (Fault & { name: string })>}
 */
export async function load(found, progress) {
  /** @type {{ prefix: string, metrics: Metrics }[]} */
  const parts = [];
  // the metrics first: what else there is may repeat them
  const files = found.metrics
    .slice()
    .sort((a, b) => Number(b.name === "metrics.jsonl") - Number(a.name === "metrics.jsonl"));
  for (const file of files) {
    const metrics = await read(file, progress);
    if ("problem" in metrics) {
      // beside good metrics a file of another kind is no fault
      if (parts.length === 0 && file === files.at(-1)) return { ...metrics, name: file.name };
      continue;
    }
    parts.push({ prefix: file.name.startsWith("timing") ? "timing/" : "", metrics });
  }
  for (const file of found.histories) {
    const metrics = await read(file, progress);
    // the name of the only one is that of the run, and would keep runs from being compared
    const stem = found.histories.length === 1 ? "" : `${file.name.replace(/^entropy_history_|\.json$/gi, "")}/`;
    if ("problem" in metrics) return { ...metrics, name: file.name };
    parts.push({ prefix: `entropy_history/${stem}`, metrics });
  }
  const label = (found.about && (await named(found.about))) || found.label;
  const rollouts = found.rollouts ? { name: found.rollouts.name, data: found.rollouts } : null;
  return { label, file: found.file, stored: { metrics: merged(parts), rollouts } };
}

/**
 * What a run calls itself: its task and group, and its seed.
 * @param {File} about
 */
async function named(about) {
  try {
    const data = JSON.parse(await about.text());
    const word = (/** @type {string} */ key) =>
      ["string", "number"].includes(typeof data[key]) && String(data[key]).length <= 60 ? String(data[key]) : "";
    const name = [word("task"), word("group") || word("name") || word("label")].filter(Boolean).join(" ");
    return name && word("seed") ? `${name} seed ${word("seed")}` : name;
  } catch {
    return "";
  }
}

/** @param {string} text @returns {Metrics | Fault} */
export const readPasted = (text) => readText(text);
