// Formulas on WebGPU: the functions of the same names as methods, each with a promise of its result and a report.

import { Batch, Call, Gpu } from "./bindings.js";
import { wrongType } from "./error.js";
import { guard, held } from "./objects.js";

guard(Gpu, "gpu");

const formulas = new Set();

/** Adds a method. Its arguments are read before it yields, in the order of the function's own. */
export function formula(method, name, overBatch) {
  formulas.add(method);
  const value = async function (...given) {
    const gpu = held("gpu", this, Gpu);
    if (!overBatch) return gpu.alone(new Call(name, false, given));
    const [batch, ...rest] = given;
    const call = new Call(name, false, rest);
    return gpu.over(call, held("batch", batch, Batch));
  };
  Object.defineProperty(Gpu.prototype, method, { value, configurable: true, writable: true });
}

/** Any formula by its name. */
Gpu.prototype.call = async function (name, ...given) {
  if (!formulas.has(name)) throw wrongType("name", "the name of a formula", name);
  return this[name](...given);
};

export { Gpu };
