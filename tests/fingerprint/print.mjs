// Prints the fingerprints of a WebAssembly module: node print.mjs MODULE
import { readFileSync } from "node:fs";

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]));
const { memory, text_start, text_len } = instance.exports;
// both calls before the view: the first one may grow the memory, which detaches earlier views
const [start, length] = [text_start(), text_len()];
process.stdout.write(new TextDecoder().decode(new Uint8Array(memory.buffer, start, length)));
