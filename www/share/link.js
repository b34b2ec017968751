// The whole state as a piece of text: for the fragment of a link, and for a file. No imports:
// code that reads untrusted data stands alone.
//
// A link is `#1.` and the base64url of the zlib-compressed JSON. Zlib rather than bare deflate for its checksum: a link
// that lost or changed a letter on its way is refused instead of showing other numbers. The states in it are whole, not
// differences from the examples of today, so an old link keeps its numbers when the examples change.

/** @typedef {import("../shell.js").Snapshot} Snapshot */
/** @typedef {"broken" | "version" | "large"} Problem */

export const VERSION = 1;

/** No state is as large as this; a link that unpacks to more is malicious. */
const BYTES = 2 * 1024 * 1024;
const LETTERS = 1024 * 1024;
const DEPTH = 24;
const PAGES = 32;

/** What JSON cannot hold, under a sign of its own; a string that begins with the sign gets a second one. */
const SIGN = "~";
const SPECIAL = new Map([
  ["NaN", NaN],
  ["inf", Infinity],
  ["-inf", -Infinity],
  ["-0", -0],
]);
/** Names that could reach into an object's prototype. */
const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);

/**
 * @param {Snapshot} snapshot
 * @returns {Promise<string>} with its `#`
 */
export async function encode(snapshot) {
  const bytes = new TextEncoder().encode(write(snapshot));
  const packed = new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate")));
  return `#${VERSION}.${toBase64(new Uint8Array(await packed.arrayBuffer()))}`;
}

/**
 * @param {string} fragment with or without its `#`
 * @returns {Promise<{ snapshot: Snapshot } | { problem: Problem }>}
 */
export async function decode(fragment) {
  if (fragment.length > LETTERS) return { problem: "large" };
  // chat programs add characters to the end of a link
  const found = /^#?(\d{1,6})\.([A-Za-z0-9_-]+)[\s.,;:!?)\]}>"'。，；：！？）】》”’]*$/u.exec(unescaped(fragment));
  if (!found) return { problem: "broken" };
  if (Number(found[1]) !== VERSION) return { problem: Number(found[1]) > VERSION ? "version" : "broken" };
  const packed = fromBase64(found[2]);
  const text = packed && (await inflate(packed));
  if (text === null || text === "large") return { problem: text ?? "broken" };
  return read(text);
}

/**
 * @param {Snapshot} snapshot
 * @returns {string} JSON, in which numbers that JSON lacks have a spelling
 */
export const write = ({ page, states }) =>
  JSON.stringify({ page, states }, (_, value) => {
    // its entries are visited one by one
    if (ArrayBuffer.isView(value)) return Array.from(/** @type {Float64Array} */ (value));
    return spelled(value);
  });

/**
 * The inverse: a snapshot, or what is wrong with the text. Every page still has to read its own state.
 * @param {string} text
 * @returns {{ snapshot: Snapshot } | { problem: Problem }}
 */
export function read(text) {
  if (text.length > BYTES) return { problem: "large" };
  /** @type {unknown} */
  let data;
  try {
    data = plain(JSON.parse(text), 0);
  } catch {
    return { problem: "broken" };
  }
  if (!isRecord(data) || typeof data.page !== "string" || !isRecord(data.states)) return { problem: "broken" };
  if (Object.keys(data.states).length > PAGES) return { problem: "broken" };
  return { snapshot: { page: data.page, states: data.states } };
}

/** @param {unknown} value */
function spelled(value) {
  if (typeof value === "string") return value.startsWith(SIGN) ? SIGN + value : value;
  if (typeof value !== "number" || (Number.isFinite(value) && !Object.is(value, -0))) return value;
  for (const [name, special] of SPECIAL) if (Object.is(special, value)) return SIGN + name;
  return value;
}

/**
 * A copy with only what states are made of; throws at anything else.
 * @param {unknown} value
 * @param {number} depth
 * @returns {unknown}
 */
function plain(value, depth) {
  if (depth > DEPTH) throw new Error("too deep");
  if (typeof value === "string" && value.startsWith(SIGN)) {
    const name = value.slice(SIGN.length);
    if (name.startsWith(SIGN)) return name;
    if (!SPECIAL.has(name)) throw new Error("no such number");
    return SPECIAL.get(name);
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error("1e999 is no number of ours");
  if (Array.isArray(value)) return value.map((entry) => plain(entry, depth + 1));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([name]) => !FORBIDDEN.has(name));
  return Object.fromEntries(entries.map(([name, entry]) => [name, plain(entry, depth + 1)]));
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {string} text */
function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {Uint8Array} bytes */
function toBase64(bytes) {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** @param {string} text */
function fromBase64(text) {
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}

/**
 * @param {Uint8Array<ArrayBuffer>} packed
 * @returns {Promise<string | "large" | null>} null if it is not what was packed
 */
async function inflate(packed) {
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      size += value.byteLength;
      if (size > BYTES) {
        // a few kilobytes can unpack to gigabytes: nothing beyond the limit is unpacked
        reader.cancel().catch(() => {});
        return "large";
      }
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    return null;
  }
}
