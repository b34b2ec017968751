// Reads files and computes in a worker, so that the page stays responsive. One request, one answer;
// progress in between.

import { loadLibrary } from "../engine.js";
import { NoEngine } from "../engines/run.js";
import { Dataset } from "./dataset.js";
import { Fault } from "./fault.js";
import { loadReader, MOST_BYTES, partsOf, read } from "./read.js";
import { sampleText } from "./sample.js";
import { LINK_TEXT } from "./state.js";

/** @type {Promise<any> | undefined} */
let loading;
/** @type {Promise<import("./read.js").Reader> | undefined} */
let reading;
/** @type {Map<string, Dataset>} the newest last; the one before it serves while another is being tried */
const datasets = new Map();

/** Tells how far a request is, at most every so often. @param {number} id @param {string} stage */
function teller(id, stage) {
  let last = 0;
  return (/** @type {number} */ share) => {
    const now = performance.now();
    if (now - last < 60) return;
    last = now;
    postMessage({ id, progress: { stage, share } });
  };
}

/** @type {Record<string, (id: number, request: any) => Promise<any> | any>} */
const requests = {
  async load(id, { key, name, data, scoreName, settings, engine }) {
    postMessage({ id, progress: { stage: "read", share: 0 } });
    const text = data === "" && name === "sample.jsonl" ? sampleText() : data;
    const blob = typeof text === "string" ? new Blob([text]) : text;
    if (blob.size > MOST_BYTES)
      throw new Fault("tooLarge", { size: Math.ceil(blob.size / 1048576), most: MOST_BYTES / 1048576 });
    loading ??= loadLibrary();
    reading ??= loadReader();
    const file = read(await reading, name, partsOf(blob, teller(id, "read")), scoreName);
    const { library } = await loading;
    const dataset = new Dataset(library, file);
    const lint = await dataset.compute(settings, engine, teller(id, "compute"));
    datasets.delete(key);
    datasets.set(key, dataset);
    // two of them: the one shown and the one before it
    for (const old of [...datasets.keys()].slice(0, -2)) datasets.delete(old);
    return { ...dataset.about(), lint, content: typeof data === "string" ? data : await linkText(blob, file.kind) };
  },
  async compute(id, { key, settings, engine }) {
    const dataset = found(key);
    const lint = await dataset.compute(settings, engine, teller(id, "compute"));
    const { columns, means, keys, refusals, ran } = dataset.about();
    return { columns, means, keys, refusals, ran, lint };
  },
  order(_, { key, view, filter, sort }) {
    return { order: found(key).order(view, filter, sort) };
  },
  histogram(_, { key, quantity, filter }) {
    return found(key).histogram(quantity, filter);
  },
};

/**
 * The text of a file that is small enough for a link, else null.
 * @param {Blob} blob
 * @param {string} kind
 */
async function linkText(blob, kind) {
  // a letter has at most three bytes for each unit of its length
  if (!["json", "jsonl", "csv"].includes(kind) || blob.size > 3 * LINK_TEXT) return null;
  const text = await blob.text();
  return text.length <= LINK_TEXT ? text : null;
}

/** @param {string} key */
function found(key) {
  const dataset = datasets.get(key);
  if (!dataset) throw new Fault("gone");
  return dataset;
}

/**
 * Copies of all arrays of a result, which then are handed over: that costs the page nothing, however long they are.
 * @param {any} value
 * @param {ArrayBuffer[]} list
 * @returns {any}
 */
function handedOver(value, list) {
  if (ArrayBuffer.isView(value)) {
    const copy = /** @type {Float64Array} */ (value).slice();
    list.push(/** @type {ArrayBuffer} */ (copy.buffer));
    return copy;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, handedOver(entry, list)]));
}

/** One request after the other: an engine may answer later, and a dataset is computed as a whole. */
let last = Promise.resolve();
addEventListener("message", ({ data }) => {
  last = last.then(() => answer(data));
});

/** @param {any} message */
async function answer({ id, type, ...request }) {
  try {
    /** @type {ArrayBuffer[]} */
    const list = [];
    const result = handedOver(await requests[type](id, request), list);
    postMessage({ id, result }, { transfer: list });
  } catch (error) {
    if (error instanceof Fault)
      postMessage({ id, fault: { code: error.code, values: error.values, place: error.place } });
    else if (error instanceof NoEngine)
      postMessage({
        id,
        fault: { code: "engine", values: { engine: error.engine, code: error.code, reason: error.message }, place: {} },
      });
    // a module that trapped cannot be used again, nor can this worker: the page starts another
    else if (error instanceof WebAssembly.RuntimeError) reportError(error);
    else
      postMessage({
        id,
        fault: {
          code: "internal",
          values: { reason: error instanceof Error ? error.message : String(error) },
          place: {},
        },
      });
  }
}
