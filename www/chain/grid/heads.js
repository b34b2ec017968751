// Keeps the tokens of a sequence in sight while its rows scroll by. The grid scrolls sideways by itself, so that CSS
// cannot hold a line of it at the top of the window.

/** Rows that stay below a held line, so that it never covers the last ones. */
const BELOW = 2;

export class Heads {
  /**
   * @param {HTMLElement} scroller
   * @param {() => number} top where the window begins: below what sticks there already
   */
  constructor(scroller, top) {
    this.scroller = scroller;
    this.top = top;
    this.waiting = false;
    window.addEventListener("scroll", () => this.later(), { passive: true });
    window.addEventListener("resize", () => this.later(), { passive: true });
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.place();
    });
  }

  place() {
    const top = this.top();
    /** @type {[HTMLElement, number][]} */
    const moves = [];
    for (const block of this.scroller.querySelectorAll(".block")) {
      const head = block.querySelector(".row.head");
      if (!(head instanceof HTMLElement) || !(block instanceof HTMLElement)) continue;
      const start = block.getBoundingClientRect().top + head.offsetTop - block.offsetTop;
      const most = block.offsetHeight - (head.offsetTop - block.offsetTop) - (1 + BELOW) * head.offsetHeight;
      moves.push([head, Math.round(Math.max(0, Math.min(top - start, most)))]);
    }
    // read first, then write: one layout
    for (const [head, by] of moves) {
      const moved = by > 0 ? `translateY(${by}px)` : "";
      if (head.style.transform === moved) continue;
      head.style.transform = moved;
      head.classList.toggle("held", by > 0);
    }
  }
}
