// `node --test www/tests/` finds the files by itself in Node 20; later versions run this one.
import "./catalogues.test.js";
import "./chain.test.js";
import "./data-reader.test.js";
import "./data.test.js";
import "./examples.test.js";
import "./format.test.js";
import "./keyboard.test.js";
import "./look.test.js";
