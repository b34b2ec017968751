// Undo and redo over whole states: states are never changed in place, so keeping them is cheap.

/** @template S */
export class History {
  /** @param {S} start */
  constructor(start) {
    /** @type {S[]} */
    this.past = [];
    /** @type {S[]} */
    this.future = [];
    this.present = start;
  }

  /** @param {S} next */
  push(next) {
    this.past.push(this.present);
    if (this.past.length > 200) this.past.shift();
    this.present = next;
    this.future = [];
  }

  /**
   * Replaces the present without a step of its own: one turn of a wheel is one edit, not twenty.
   * @param {S} next
   */
  amend(next) {
    this.present = next;
    this.future = [];
  }

  /**
   * Replaces the present without an edit, for instance when another page is opened: what was undone can still be
   * redone.
   * @param {S} next
   */
  turn(next) {
    this.present = next;
  }

  /** @returns {boolean} */
  undo() {
    const previous = this.past.pop();
    if (previous === undefined) return false;
    this.future.push(this.present);
    this.present = previous;
    return true;
  }

  /** @returns {boolean} */
  redo() {
    const next = this.future.pop();
    if (next === undefined) return false;
    this.past.push(this.present);
    this.present = next;
    return true;
  }
}
