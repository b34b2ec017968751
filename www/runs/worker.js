// Reads metrics beside the page, so that it stays responsive.

import { readFile } from "./read.js";

addEventListener("message", async ({ data: { id, file } }) => {
  let told = 0;
  const result = await readFile(file, (share) => {
    const now = performance.now();
    if (now - told < 80) return;
    told = now;
    postMessage({ id, share });
  });
  const moved = "steps" in result ? [result.steps.buffer, ...result.columns.map((column) => column.buffer)] : [];
  postMessage({ id, result }, { transfer: /** @type {ArrayBuffer[]} */ (moved) });
});
