// What a refused call throws.

/** An object by the name of its class, anything else as it is. */
const plain = (value) =>
  (typeof value === "object" && value !== null) || typeof value === "function"
    ? String(value.constructor?.name ?? "object")
    : value;

export class TokenwiseError extends Error {
  constructor(message, code, parameter, index, expected, got) {
    super(message);
    Object.assign(this, { code, parameter, index, expected, got });
  }
}
Object.defineProperty(TokenwiseError.prototype, "name", {
  value: "TokenwiseError",
  configurable: true,
  writable: true,
});

/** A value of the wrong type, or none where one is needed. */
export function wrongType(parameter, expected, value) {
  const got = plain(value);
  const words = typeof value === "string" ? JSON.stringify(value) : String(got);
  return new TokenwiseError(
    `${parameter}: expected ${expected}, got ${words}`,
    "type",
    parameter,
    undefined,
    expected,
    got,
  );
}

/** An object that was freed. */
export function freed(parameter, expected) {
  const message = `${parameter}: expected ${expected}, got one that was freed`;
  return new TokenwiseError(message, "freed", parameter, undefined, expected, expected.replace(" ", " freed "));
}
