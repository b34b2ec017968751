// Which part of the grid is visible: an edit draws that first.

/** Columns beside the visible ones that are drawn with them, so that a small scroll shows no outdated numbers. */
const BESIDE = 2;

export class Sight {
  /**
   * @param {HTMLElement} scroller
   * @param {() => void} moved
   */
  constructor(scroller, moved) {
    this.scroller = scroller;
    /** @type {Set<number>} sequences that are out of sight */
    this.hidden = new Set();
    this.first = 0;
    this.last = Infinity;
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const sequence = Number(/** @type {HTMLElement} */ (target).dataset.sequence);
          if (isIntersecting) this.hidden.delete(sequence);
          else this.hidden.add(sequence);
        }
        moved();
      },
      { rootMargin: "200px" },
    );
    const measure = () => {
      this.measure();
      moved();
    };
    scroller.addEventListener("scroll", measure, { passive: true });
    new ResizeObserver(measure).observe(scroller);
  }

  /** @param {HTMLElement} grid */
  watch(grid) {
    this.observer.disconnect();
    this.hidden.clear();
    this.last = Infinity;
    for (const block of grid.children) this.observer.observe(block);
  }

  measure() {
    const cells = this.scroller.querySelectorAll("[data-row=token]");
    if (cells.length < 2) return;
    const [one, two] = [cells[0].getBoundingClientRect(), cells[1].getBoundingClientRect()];
    const step = two.left - one.left;
    // two sequences of one token each stand below one another
    if (!(step > 0)) return;
    const start = one.left - this.scroller.getBoundingClientRect().left;
    this.first = Math.floor(-start / step) - BESIDE;
    this.last = Math.ceil((this.scroller.clientWidth - start) / step) + BESIDE;
  }

  /**
   * @param {number} sequence
   * @returns {number[]} the first and the last column in sight
   */
  columns(sequence) {
    return this.hidden.has(sequence) ? [Infinity, Infinity] : [this.first, this.last];
  }
}
