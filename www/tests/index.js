// `node --test www/tests/` finds the files by itself in Node 20; later versions run this one.
import "./catalogues.test.js";
import "./chain.test.js";
import "./examples.test.js";
import "./explain.test.js";
import "./export.test.js";
import "./format.test.js";
import "./frameworks.test.js";
import "./hostile.test.js";
import "./keyboard.test.js";
import "./look.test.js";
import "./offline.test.js";
import "./save.test.js";
import "./sequences.test.js";
import "./share.test.js";
import "./shell.test.js";
import "./speed.test.js";
import "./tours.test.js";
