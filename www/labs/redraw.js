// Replaces the content of an element without losing the focus.

/**
 * @param {HTMLElement} container
 * @param {(Node | string)[]} children an element that may have the focus needs an id
 */
export function redraw(container, ...children) {
  const focused = container.contains(document.activeElement)
    ? /** @type {HTMLElement} */ (document.activeElement).id
    : "";
  container.replaceChildren(...children);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}
