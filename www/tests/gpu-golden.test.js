// The golden cases of every formula that has a kernel, and one call of each with random numbers, on the browser's own
// GPU (in headless Chromium: SwiftShader) and within the tolerances of tokenwise-gpu. The comparison is
// gpu-shim/golden, compiled for the browser.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { browserTest, launch, repository, serve } from "./harness.js";

const module = process.env.GPU_GOLDEN_DIR ?? join(repository, "target/gpu-golden");
const missing = existsSync(join(module, "golden.js"))
  ? browserTest.skip
  : `${module} is missing: run \`cargo xtask golden --browser\``;
if (missing && process.env.CI === "true") throw new Error(String(missing));
if (missing) console.error(`SKIPPED, the golden cases do not run on the browser's GPU: ${missing}`);

const cases = join(repository, "tests/golden");
const servers = [];
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

test("golden cases agree with the core on the browser's GPU", { skip: missing }, async (t) => {
  const { server, address } = await serve(undefined, module);
  servers.push(server);
  const context = await (await launch()).newContext();
  const page = await context.newPage();
  await page.goto(`${address}golden.js`);
  const adapter = await page.evaluate(async () => {
    const golden = await import(new URL("golden.js", location.href).href);
    await golden.default();
    window.device = await golden.Device.create();
    const { info } = await navigator.gpu.requestAdapter();
    return `${info.vendor} ${info.architecture} ${info.description}`.trim();
  });
  const start = performance.now();
  const onDevice = new Map();
  const onCore = new Map();
  const differences = [];
  let refused = 0;
  const add = (map, key, calls) => map.set(key, (map.get(key) ?? 0) + calls);
  const files = (await readdir(cases, { recursive: true })).filter((file) => file.endsWith(".json")).sort();
  assert.ok(files.length > 50, `${files.length} files of golden cases`);
  for (const file of files) {
    const text = await readFile(join(cases, file), "utf8");
    const told = JSON.parse(await page.evaluate((given) => window.device.run(...given), [file, text]));
    for (const [formula, who, calls] of told.answers) {
      if (who === "device") add(onDevice, formula, calls);
      else if (who === "refused") refused += calls;
      else add(onCore, `${formula}: ${who}`, calls);
    }
    differences.push(...told.differences.map((text) => `${file}: ${text}`));
  }
  // also those without a golden case
  const random = JSON.parse(await page.evaluate(() => window.device.run_random()));
  assert.deepEqual(random.differences, []);
  assert.deepEqual(
    random.answers.filter(([, who, calls]) => who !== "device" || calls !== 1),
    [],
  );
  assert.ok(random.answers.length > 85, `random calls of only ${random.answers.length} formulas`);
  const total = (map) => [...map.values()].reduce((a, b) => a + b, 0);
  const seconds = ((performance.now() - start) / 1000).toFixed(0);
  t.diagnostic(adapter);
  t.diagnostic(
    `${total(onDevice)} calls of ${onDevice.size} formulas on the device, ${total(onCore)} answered by the core, ` +
      `${refused} refused as by the core, in ${seconds} s`,
  );
  t.diagnostic(`${random.answers.length} formulas with random numbers on the device`);
  for (const [what, calls] of onCore) t.diagnostic(`on the core, ${calls} calls: ${what}`);
  assert.deepEqual(differences.slice(0, 5), [], `${differences.length} differences`);
  assert.ok(total(onDevice) > 1500, `only ${total(onDevice)} golden calls ran on the device`);
  assert.ok(onDevice.size > 70, `golden calls of only ${onDevice.size} formulas ran on the device`);
  await context.close();
});
