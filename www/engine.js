// The library itself, compiled to WebAssembly: with 128-bit vectors where the browser has them, else without.
// Same bits.

// the smallest module with a vector instruction: (func (result v128) i32.const 0 i8x16.splat)
const WITH_VECTORS = Uint8Array.of(
  0,
  97,
  115,
  109,
  1,
  0,
  0,
  0,
  1,
  5,
  1,
  96,
  0,
  1,
  123,
  3,
  2,
  1,
  0,
  10,
  8,
  1,
  6,
  0,
  65,
  0,
  253,
  15,
  11,
);

/** @returns {"simd" | "plain"} */
export const bestBuild = () => (WebAssembly.validate(WITH_VECTORS) ? "simd" : "plain");

/** @typedef {typeof import("./pkg/simd/tokenwise.js")} Library */
/** @typedef {import("./pkg/simd/tokenwise.js").Batch} Batch */
/** @typedef {import("./pkg/simd/tokenwise.js").Aggregate} Aggregate */
/** @typedef {import("./pkg/simd/tokenwise.js").AggregateBase} AggregateBase */
/** @typedef {import("./pkg/simd/tokenwise.js").DualClip} DualClip */
/** @typedef {import("./pkg/simd/tokenwise.js").KlConfig} KlConfig */
/** @typedef {import("./pkg/simd/tokenwise.js").EntropyBudgetConfig} EntropyBudgetConfig */

/** @type {Partial<Record<"simd" | "plain", Promise<Library>>>} */
const builds = {};

/**
 * One of the two builds of the whole library, loaded once.
 * @param {"simd" | "plain"} build
 */
export const loadBuild = (build) => (builds[build] ??= loadWhole(build));

/** The whole library, loaded once: the build that fits the browser. */
export async function loadLibrary() {
  const build = bestBuild();
  return { library: await loadBuild(build), build };
}

/** @param {"simd" | "plain"} build @returns {Promise<Library>} */
async function loadWhole(build) {
  try {
    const library =
      build === "simd" ? await import("./pkg/simd/tokenwise.js") : await import("./pkg/plain/tokenwise.js");
    await library.default();
    return library;
  } catch (error) {
    // without a network it may be there later
    delete builds[build];
    throw error;
  }
}

/** A function was asked for that the start page has not loaded. */
export class NotLoaded extends Error {
  name = "NotLoaded";
}

/**
 * The part of the library that the start page opens with. A function that is not in it throws
 * {@link NotLoaded} until `complete` has loaded the rest; what pages hold is then the whole library.
 * @returns {Promise<{ library: Library, build: "simd" | "plain", complete: () => Promise<void> }>}
 */
export async function loadStart() {
  const build = bestBuild();
  const chain =
    build === "simd" ? await import("./pkg/chain-simd/tokenwise.js") : await import("./pkg/chain-plain/tokenwise.js");
  await chain.default();
  /** @type {Record<string | symbol, any>} */
  let loaded = chain;
  let completed = false;
  const library = new Proxy(/** @type {Library} */ ({}), {
    get: (_, name) => {
      if (!completed && loaded[name] === undefined) throw new NotLoaded(String(name));
      return loaded[name];
    },
  });
  const complete = async () => {
    ({ library: loaded } = await loadLibrary());
    completed = true;
  };
  return { library, build, complete };
}
