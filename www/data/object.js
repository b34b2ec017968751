// A record as a JSON object: its numbers go straight into the columns.

import { excerpt, Fault } from "./fault.js";
import { wordNumber } from "./fields.js";

/** @typedef {import("./scanner.js").Scanner} Scanner */
/** @typedef {import("./feeder.js").Feeder} Feeder */
/** @typedef {import("./fields.js").Field} Field */

/** Records inside of records; a file that nests deeper is not one of rollouts. */
const DEEPEST = 64;
const MOST_NAMES = 40;

/**
 * A document: an object, or a list of them.
 * @param {Scanner} scanner
 * @param {Feeder} feeder
 * @param {(name: string) => Field | undefined} find
 * @param {() => void} step called now and then
 * @param {number} [depth]
 */
export function readDocument(scanner, feeder, find, step, depth = 0) {
  if (depth > DEEPEST) throw scanner.fault("deep", { most: DEEPEST });
  const kind = scanner.kind();
  if (kind === "{") readObject(scanner, { feeder, find, step }, true, depth);
  else if (kind === "[") scanner.list(() => readDocument(scanner, feeder, find, step, depth + 1));
  else throw scanner.fault("noObject", { found: excerpt(scanner.text.slice(scanner.at, Math.min(scanner.end, scanner.at + 41))) });
}

/** @typedef {{ feeder: Feeder, find: (name: string) => Field | undefined, step: () => void }} To */

/**
 * @param {Scanner} scanner
 * @param {To} to
 * @param {boolean} record whether a sequence ends with it
 * @param {number} depth
 */
function readObject(scanner, to, record, depth) {
  if (depth > DEEPEST) throw scanner.fault("deep", { most: DEEPEST });
  const { feeder } = to;
  scanner.object((key) => {
    const field = to.find(key);
    if (!field) {
      if (scanner.kind() === "number" && feeder.passedOver.size < MOST_NAMES) feeder.passedOver.add(excerpt(key));
      scanner.skip();
    } else if (field.kind === "column") readNumbers(scanner, feeder, field);
    else if (field.kind === "mask") readMask(scanner, feeder);
    else if (field.kind === "inside" || field.kind === "list") readInside(scanner, to, field, depth);
    else if (field.kind === "text" || field.kind === "id") readTexts(scanner, feeder, field.kind);
    else if (field.kind === "sequence") scanner.skip();
    else readScalar(scanner, feeder, field);
  });
  if (!record) return;
  to.step();
  try {
    feeder.end();
  } catch (error) {
    if (error instanceof Fault && feeder.countsRecords) error.place = { record: feeder.place };
    throw error;
  }
}

/**
 * More fields of the same record, or records; anything else is passed over.
 * @param {Scanner} scanner
 * @param {To} to
 * @param {Field} field
 * @param {number} depth
 */
function readInside(scanner, to, field, depth) {
  const kind = scanner.kind();
  if (kind === "{") readObject(scanner, to, false, depth + 1);
  else if (kind !== "[") scanner.skip();
  else if (field.kind === "inside") readTexts(scanner, to.feeder, "text");
  else {
    let entered = false;
    scanner.list(() => {
      if (scanner.kind() !== "{") return scanner.skip();
      if (!entered) to.feeder.enter();
      entered = true;
      return readObject(scanner, to, true, depth + 1);
    });
    if (entered) to.feeder.leave();
  }
}

/**
 * A list of numbers, a list of such lists for several sequences, or one number for all tokens.
 * @param {Scanner} scanner
 * @param {Feeder} feeder
 * @param {Extract<Field, { kind: "column" }>} field
 */
function readNumbers(scanner, feeder, field) {
  if (scanner.kind() !== "[") {
    const x = readNumber(scanner, field, true);
    if (x !== undefined) feeder.scalar(field, x);
    return;
  }
  const out = feeder.numbers(field.column);
  rows(scanner, field, (length) => feeder.rowAdded(field.column, length), () => {
    out.push(/** @type {number} */ (readNumber(scanner, field, false)));
  });
}

/**
 * @param {Scanner} scanner
 * @param {Field} field
 * @param {boolean} alone then null is no number at all
 * @returns {number | undefined}
 */
function readNumber(scanner, field, alone) {
  const kind = scanner.kind();
  if (kind === "number") return scanner.number();
  if (kind === "word" || kind === "text") {
    const found = kind === "word" ? scanner.word() : scanner.string();
    if (found === null) return alone ? undefined : NaN;
    const x = typeof found === "string" ? wordNumber(found) : undefined;
    if (x !== undefined) return x;
    throw scanner.fault("notANumber", { field: field.name, found: excerpt(String(found)) });
  }
  throw scanner.fault("notANumber", { field: field.name, found: kind });
}

/**
 * Walks a list, or a list of lists.
 * @param {Scanner} scanner
 * @param {Field} field
 * @param {(length: number) => void} added
 * @param {() => void} entry
 */
function rows(scanner, field, added, entry) {
  let [length, lists] = [0, 0];
  scanner.list(() => {
    if (scanner.peek() !== "[") {
      length += 1;
      entry();
      return;
    }
    lists += 1;
    let inner = 0;
    scanner.list(() => {
      inner += 1;
      entry();
    });
    added(inner);
  });
  if (lists === 0) added(length);
  else if (length > 0) throw scanner.fault("mixed", { field: field.name });
}

/** @param {Scanner} scanner @param {Feeder} feeder */
function readMask(scanner, feeder) {
  const field = /** @type {Field} */ ({ kind: "mask", name: "mask" });
  const kind = scanner.kind();
  if (kind !== "[") {
    const found = kind === "word" ? scanner.word() : kind;
    if (found === null) return;
    throw scanner.fault("notAMask", { found: String(found) });
  }
  const { keep } = feeder.part;
  rows(scanner, field, (length) => feeder.maskAdded(length), () => {
    const next = scanner.kind();
    const found = next === "number" ? scanner.number() : next === "word" ? scanner.word() : next;
    if (found !== true && found !== false && found !== 0 && found !== 1) throw scanner.fault("notAMask", { found: String(found) });
    keep.push(found === true || found === 1);
  });
}

/**
 * What the tokens read like; anything but texts and numbers is passed over.
 * @param {Scanner} scanner
 * @param {Feeder} feeder
 * @param {"text" | "id"} kind
 */
function readTexts(scanner, feeder, kind) {
  if (scanner.kind() !== "[") return scanner.skip();
  const lists = kind === "text" ? feeder.record.texts : feeder.record.ids;
  /** @type {string[]} */
  let row = [];
  let nested = false;
  const entry = () => {
    const next = scanner.kind();
    if (next === "text") row.push(scanner.string());
    else if (next === "number") row.push(`#${scanner.number()}`);
    else {
      row.push("");
      scanner.skip();
    }
  };
  scanner.list(() => {
    if (scanner.kind() !== "[") return entry();
    nested = true;
    row = [];
    scanner.list(entry);
    return lists.push(row);
  });
  if (!nested) lists.push(row);
  return undefined;
}

/**
 * A field with one entry a sequence.
 * @param {Scanner} scanner
 * @param {Feeder} feeder
 * @param {Field} field
 */
function readScalar(scanner, feeder, field) {
  const kind = scanner.kind();
  if (field.kind === "prompt" && kind !== "text") {
    const from = scanner.at;
    scanner.skip();
    const raw = scanner.text.slice(from, scanner.at);
    // a conversation
    if (raw !== "null") feeder.text(field, raw);
  } else if (kind === "text" && (field.kind === "prompt" || field.kind === "group")) feeder.text(field, scanner.string());
  else if (kind !== "[") {
    const x = single(scanner, field, true);
    if (x !== undefined) feeder.scalar(field, x);
  } else {
    scanner.list(() => {
      if (field.kind === "group" && scanner.kind() === "text") feeder.text(field, scanner.string());
      else feeder.listed(field, /** @type {number} */ (single(scanner, field, false)));
    });
  }
}

/**
 * @param {Scanner} scanner
 * @param {Field} field
 * @param {boolean} alone
 */
function single(scanner, field, alone) {
  if (scanner.kind() === "word") {
    const found = scanner.word();
    if (typeof found === "boolean") return Number(found);
    if (found === null) return alone ? undefined : NaN;
    return wordNumber(found);
  }
  return readNumber(scanner, field, alone);
}
