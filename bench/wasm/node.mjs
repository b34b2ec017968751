// node node.mjs FOLDER: runs the measurements in Node, prints one record per line.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import * as ort from "onnxruntime-web/wasm";

// as the package does in Node
import "../../wasm/js/memory.js";

import { measure } from "./measure.mjs";

const folder = process.argv[2];
const bare = async (name) => (await WebAssembly.instantiate(await readFile(join(folder, name)), {})).instance;
const packaged = async (name) => {
  const tokenwise = await import(pathToFileURL(join(folder, name, "tokenwise.js")));
  tokenwise.initSync({ module: await readFile(join(folder, name, "bindings_bg.wasm")) });
  return tokenwise;
};

await measure({
  bare: await bare("bare-simd128.wasm"),
  plain: await bare("bare-plain.wasm"),
  tokenwise: await packaged("package"),
  ort,
  print: (record) => console.log(JSON.stringify(record)),
});
