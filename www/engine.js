// The library itself, compiled to WebAssembly: with 128-bit vectors where the browser has them, else without. Same bits.

// the smallest module with a vector instruction: (func (result v128) i32.const 0 i8x16.splat)
const WITH_VECTORS = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11);

/** @returns {"simd" | "plain"} */
export const bestBuild = () => (WebAssembly.validate(WITH_VECTORS) ? "simd" : "plain");

/** @typedef {typeof import("./pkg/simd/tokenwise.js")} Library */
/** @typedef {import("./pkg/simd/tokenwise.js").Batch} Batch */
/** @typedef {import("./pkg/simd/tokenwise.js").Aggregate} Aggregate */
/** @typedef {import("./pkg/simd/tokenwise.js").AggregateBase} AggregateBase */
/** @typedef {import("./pkg/simd/tokenwise.js").DualClip} DualClip */
/** @typedef {import("./pkg/simd/tokenwise.js").KlConfig} KlConfig */
/** @typedef {import("./pkg/simd/tokenwise.js").EntropyBudgetConfig} EntropyBudgetConfig */

/** @returns {Promise<{ library: Library, build: "simd" | "plain" }>} */
export async function loadLibrary() {
  const build = bestBuild();
  const library = build === "simd" ? await import("./pkg/simd/tokenwise.js") : await import("./pkg/plain/tokenwise.js");
  await library.default();
  return { library, build };
}
