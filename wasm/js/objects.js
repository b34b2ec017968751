// Objects of the module: one that was freed is refused with a TokenwiseError; wasm-bindgen would report a null pointer.

import { freed, wrongType } from "./error.js";

const gone = new WeakSet();

/** Refuses anything but an object of a class that was not freed. */
export function held(name, value, Class) {
  const expected = `a ${Class.name}`;
  if (!(value instanceof Class)) throw wrongType(name, expected, value);
  if (gone.has(value)) throw freed(name, expected);
  return value;
}

/**
 * Lets the methods and getters of a class check the object itself and, by `arguments_`, their first argument:
 * `{ method: ["name", Class] }`.
 */
export function guard(Class, name = "this", arguments_ = {}) {
  const { prototype } = Class;
  const { free } = prototype;
  for (const [key, property] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (["constructor", "free", "__destroy_into_raw"].includes(key)) continue;
    const part = property.get ? "get" : "value";
    const method = property[part];
    const checked = function (...given) {
      held(name, this, Class);
      if (arguments_[key]) held(arguments_[key][0], given[0], arguments_[key][1]);
      return method.apply(this, given);
    };
    Object.defineProperty(prototype, key, { ...property, [part]: checked });
  }
  prototype.free = function () {
    if (gone.has(this)) return;
    gone.add(this);
    free.call(this);
  };
  if (Symbol.dispose) prototype[Symbol.dispose] = prototype.free;
}
