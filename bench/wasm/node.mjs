// node node.mjs FOLDER: the measurements under Node, one record a line.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import * as ort from 'onnxruntime-web/wasm';

import { measure } from './measure.mjs';

const folder = process.argv[2];
const bare = async (name) => (await WebAssembly.instantiate(await readFile(join(folder, name)), {})).instance;
const packaged = async (name) => {
  const tokenwise = await import(pathToFileURL(join(folder, name, 'tokenwise.js')));
  tokenwise.initSync({ module: await readFile(join(folder, name, 'tokenwise_bg.wasm')) });
  return tokenwise;
};

await measure({
  bare: await bare('bare-simd128.wasm'),
  plain: await bare('bare-plain.wasm'),
  size: await packaged('size'),
  speed: await packaged('speed'),
  ort,
  print: (record) => console.log(JSON.stringify(record)),
});
