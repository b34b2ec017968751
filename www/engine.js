// The library itself, compiled to WebAssembly: with 128-bit vectors where the browser has them, else without. Same bits.

// the smallest module with a vector instruction: (func (result v128) i32.const 0 i8x16.splat)
const WITH_VECTORS = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11);

/** @returns {"simd" | "plain"} */
export const bestBuild = () => (WebAssembly.validate(WITH_VECTORS) ? "simd" : "plain");

/** @returns {Promise<{ library: any, build: "simd" | "plain" }>} */
export async function loadLibrary() {
  const build = bestBuild();
  const library = build === "simd" ? await import("./pkg/simd/tokenwise.js") : await import("./pkg/plain/tokenwise.js");
  await library.default();
  return { library, build };
}
