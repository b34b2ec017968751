// The package under test: the folder in TOKENWISE_WASM, or what `cargo xtask wasm` built.
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { join } from "node:path";

export const root = fileURLToPath(new URL("../..", import.meta.url));
/** The npm package beside it. */
export const packed = process.env.TOKENWISE_PACKAGE ?? join(root, "target/wasm/package");
export const folder = process.env.TOKENWISE_WASM ?? join(root, "target/wasm/node");
export const tokenwise = await import(pathToFileURL(join(folder, "tokenwise.js")).href);

/** Everything that can be called but the classes, which have capitals. */
export const functions = Object.keys(tokenwise).filter(
  (name) => typeof tokenwise[name] === "function" && /^[a-z]/.test(name),
);

/** Both precisions: the suffix of the functions, the array they read and write, and what rounding may cost. */
export const precisions = [
  { suffix: "", array: Float32Array, tolerance: 1e-6 },
  { suffix: "F64", array: Float64Array, tolerance: 1e-12 },
];

/** Names of formulas as a facade, which is written from the catalogue, has them. */
export const formulasOf = (where) => {
  const text = readFileSync(join(where, "tokenwise.js"), "utf8");
  return [...text.matchAll(/^export const (\w+) = (?:overBatch|alone)\(/gm)].map(([, name]) => name);
};
