
/** What is behind the objects of the classes: `null` after `free()`. */
const inside = new WeakMap();
function held(name, value, Class, expected) {
  const found = value instanceof Class ? inside.get(value) : undefined;
  if (found === undefined) throw wrong(name, expected, value);
  if (found === null) throw new TokenwiseError("freed", name, -1, expected, undefined);
  return found;
}

/** A second handle to what is behind an object. */
function shared(object, behind) {
  const other = Object.create(Object.getPrototypeOf(object));
  inside.set(other, behind);
  return other;
}

export class Batch {
  constructor() {
    throw new TypeError("Batch.padded or Batch.packed");
  }
  static padded(batch, len, mask) {
    return made({ batch, len }, mask);
  }
  static packed(cuSeqlens, mask) {
    return made({ cuSeqlens }, mask);
  }
  clone() {
    return shared(this, held("batch", this, Batch, "a Batch"));
  }
  free() {
    inside.set(this, null);
  }
}
for (const name of ["sequences", "tokens", "kept", "keptSequences"]) {
  Object.defineProperty(Batch.prototype, name, { get() { return held("batch", this, Batch, "a Batch")[name]; }, configurable: true });
}
if (Symbol.dispose) Batch.prototype[Symbol.dispose] = Batch.prototype.free;

/** A batch whose parts fit together. */
function made(layout, mask) {
  const batch = Object.create(Batch.prototype);
  // checked here, for `{ cuSeqlens: undefined }` would pass for the other kind of layout
  if ("cuSeqlens" in layout && !(layout.cuSeqlens instanceof Uint32Array)) throw wrong("cuSeqlens", "a Uint32Array", layout.cuSeqlens);
  layout = { ...layout, ...(layout.cuSeqlens && { cuSeqlens: new Uint32Array(layout.cuSeqlens) }) };
  const counts = inspect(mask, layout);
  inside.set(batch, { layout, mask: new Uint8Array(mask), ...counts });
  return batch;
}
