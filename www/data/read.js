// Files of rollouts, read by the library's reader: a WebAssembly module that is loaded when the first file is opened.

import { Fault } from "./fault.js";
import { COLUMNS, fileName } from "./fields.js";

/** More than anybody would look at; the reader limits the contents. */
export const MOST_BYTES = 200 * 1024 * 1024;
/** What is read from a file at least: asking for a part takes longer than copying it. */
const BLOCK = 1 << 18;

/** @typedef {typeof import("../pkg/reader/reader.js")} Reader */
/** @typedef {import("../pkg/reader/reader.js").PartialFile} PartialFile */
/** @typedef {ReturnType<typeof read>} Read */

/** @returns {Promise<Reader>} */
export async function loadReader() {
  const reader = await import("../pkg/reader/reader.js");
  await reader.default();
  return reader;
}

/**
 * A file as the reader asks for it, part by part; in a worker only.
 * @param {Blob} blob
 * @param {(share: number) => void} progress
 * @returns {PartialFile}
 */
export function partsOf(blob, progress) {
  // only workers have it; the types here are those of a page
  const { FileReaderSync } =
    /** @type {{ FileReaderSync: new () => { readAsArrayBuffer(blob: Blob): ArrayBuffer } }} */ (
      /** @type {unknown} */ (globalThis)
    );
  const files = new FileReaderSync();
  let start = 0;
  let block = new Uint8Array();
  return {
    size: blob.size,
    part(from, length) {
      if (from < start || from + length > start + block.length) {
        progress(from / blob.size);
        start = from;
        block = new Uint8Array(files.readAsArrayBuffer(blob.slice(from, from + Math.max(length, BLOCK))));
      }
      return block.subarray(from - start, from - start + length);
    },
  };
}

/**
 * Everything a file holds, its sequences laid end to end.
 * @param {Reader} reader
 * @param {string} name of the file, "" for a pasted text
 * @param {PartialFile} file
 * @param {string} [scoreName] the name of its score, "" for the usual ones
 */
export function read(reader, name, file, scoreName = "") {
  const all = refusing(() => reader.read(name, file, scoreName));
  const columns = COLUMNS.flatMap((column) => {
    const values = all.column(fileName(column));
    return values ? [[column, values]] : [];
  });
  const { kind, passedOver, padded, parts, offsets, keep, places, steps, scores, scored, firstUpdate } = all;
  const { group, groupNames, prompt, prompts, text, textEnds } = all;
  all.free();
  return {
    kind,
    passedOver,
    padded,
    parts,
    offsets,
    keep,
    columns: /** @type {Partial<Record<import("./fields.js").Column, Float64Array>>} */ (Object.fromEntries(columns)),
    places,
    steps,
    scores,
    scored,
    firstUpdate,
    group,
    groupNames,
    prompt,
    prompts,
    text,
    textEnds,
  };
}

/**
 * The reader says in JSON why it refuses a file.
 * @template T
 * @param {() => T} work
 */
function refusing(work) {
  try {
    return work();
  } catch (error) {
    if (typeof error !== "string") throw error;
    const { code, values, place } = JSON.parse(error);
    throw new Fault(code, values, place);
  }
}
