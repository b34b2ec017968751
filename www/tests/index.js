// `node --test www/tests/` finds the files by itself in Node 20; later versions run this one.
import "./aggregate.test.js";
import "./catalogues.test.js";
import "./chain.test.js";
import "./clip.test.js";
import "./examples.test.js";
import "./format.test.js";
import "./groups.test.js";
import "./keyboard.test.js";
import "./kl.test.js";
import "./logits.test.js";
import "./look.test.js";
import "./plot.test.js";
