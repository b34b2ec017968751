// Work that can wait, done a little at a time while nothing else is to be done.

/** At most this long at once, in milliseconds: what the reader does next is not to wait for it. */
const SLICE = 4;
/** It is done after this time even if there never is a pause. */
const LATEST = 300;

export class Idle {
  /** @param {(busy: boolean) => void} tell whether there is work left */
  constructor(tell) {
    this.tell = tell;
    /** @type {Iterator<unknown> | null} */
    this.work = null;
    this.waiting = 0;
  }

  /** @param {Iterator<unknown>} work each step a small part of it */
  run(work) {
    this.work = work;
    this.tell(true);
    this.later();
  }

  stop() {
    this.work = null;
    this.tell(false);
  }

  later() {
    if (this.waiting !== 0) return;
    const next = () => {
      this.waiting = 0;
      this.slice();
    };
    // Safari has no idle callbacks
    this.waiting =
      "requestIdleCallback" in window
        ? window.requestIdleCallback(next, { timeout: LATEST })
        : /** @type {Window} */ (window).setTimeout(next, 50);
  }

  slice() {
    const start = performance.now();
    while (this.work && performance.now() - start < SLICE) {
      if (this.work.next().done) return this.stop();
    }
    if (this.work) this.later();
  }
}
