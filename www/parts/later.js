// Drawing that can wait until the numbers are on the screen. It is marked from the change on, not from the moment it is
// drawn: whoever waits for the page to be up to date must not take what is still shown for the answer.

/**
 * Marks an element that does not show the present state yet.
 * @param {HTMLElement} element
 * @param {boolean} behind
 */
export function tellBehind(element, behind) {
  element.toggleAttribute("data-behind", behind);
}

export class Later {
  /** @param {HTMLElement} element what is drawn later */
  constructor(element) {
    this.element = element;
    this.waiting = 0;
  }

  /** @param {() => void} task takes the place of one that still waits */
  run(task) {
    clearTimeout(this.waiting);
    tellBehind(this.element, true);
    this.waiting = window.setTimeout(() => {
      tellBehind(this.element, false);
      task();
    });
  }

  /** Forgets what waits. */
  stop() {
    clearTimeout(this.waiting);
    tellBehind(this.element, false);
  }
}
