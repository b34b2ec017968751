// Reads long files beside the page, so that it stays responsive.

import { readBytes } from "./read.js";

addEventListener("message", ({ data: { number, bytes, lines } }) => {
  const result = readBytes(bytes, lines);
  const moved = "steps" in result ? [result.steps.buffer, result.entropies.buffer] : [];
  /** @type {any} */ (globalThis).postMessage({ number, result }, moved);
});
