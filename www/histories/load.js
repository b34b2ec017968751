// From files to histories: short ones at once, long ones in a worker.

import { readBytes } from "./read.js";

/** Above this many bytes, reading would block the page noticeably. */
const LONG = 200_000;
export const MOST_BYTES = 200_000_000;

/** @type {Worker | null} */
let worker = null;
let count = 0;
/** @type {Map<number, (result: any) => void>} */
const waiting = new Map();

/**
 * @param {ArrayBuffer} bytes
 * @param {boolean} lines
 * @returns {Promise<import("./read.js").Points | import("./read.js").Fault>}
 */
function besides(bytes, lines) {
  if (!worker) {
    worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data: { number, result } }) => {
      waiting.get(number)?.(result);
      waiting.delete(number);
    });
    worker.addEventListener("error", () => {
      // a browser without module workers: the file is read on this thread
      for (const answer of waiting.values()) answer(null);
      waiting.clear();
      worker = null;
    });
  }
  const number = count;
  count += 1;
  return new Promise((resolve) => {
    waiting.set(number, (result) => resolve(result ?? readBytes(bytes, lines)));
    // copied, not moved: if the worker fails, the bytes are still here
    worker?.postMessage({ number, bytes, lines });
  });
}

/**
 * @param {File} file
 * @returns {Promise<import("./read.js").Points | import("./read.js").Fault>}
 */
export async function load(file) {
  if (file.size > MOST_BYTES)
    return { problem: "large", values: { size: Math.round(file.size / 1e6), most: MOST_BYTES / 1e6 } };
  let bytes;
  try {
    bytes = await file.arrayBuffer();
  } catch {
    return { problem: "unreadable", values: {} };
  }
  const lines = /\.(jsonl|ndjson)$/i.test(file.name);
  return bytes.byteLength > LONG ? besides(bytes, lines) : readBytes(bytes, lines);
}
