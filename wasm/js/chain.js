// What every package has beside the formulas.

import { Batch } from "./bindings.js";
import { guard } from "./objects.js";

guard(Batch, "batch");

export { Batch };
export { conventions, exp, expF64, ln, lnF64, sqrt, sqrtF64 } from "./bindings.js";
export { TokenwiseError } from "./error.js";
