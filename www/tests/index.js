// `node --test www/tests/` finds the files by itself in Node 20; later versions run this one.
import { readdir } from "node:fs/promises";

for (const file of (await readdir(import.meta.dirname ?? new URL(".", import.meta.url))).sort()) {
  if (file.endsWith(".test.js")) await import(`./${file}`);
}
