// Formulas by their names in the catalogue.

import { Batch, Call } from "./bindings.js";
import { held } from "./objects.js";

/** A formula over the tokens of a batch. The other arguments are read first: their getters may free the batch. */
export const overBatch =
  (name, double) =>
  (batch, ...given) =>
    new Call(name, double, given).over(held("batch", batch, Batch));

/** A formula without a batch. */
export const alone =
  (name, double) =>
  (...given) =>
    new Call(name, double, given).alone();
