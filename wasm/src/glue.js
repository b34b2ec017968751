
/** What a refused call throws. */
export class TokenwiseError extends Error {
  constructor(message, code, parameter, index, expected, got) {
    super(message);
    Object.assign(this, { code, parameter, index, expected, got });
  }
}
Object.defineProperty(TokenwiseError.prototype, "name", { value: "TokenwiseError", configurable: true, writable: true });

