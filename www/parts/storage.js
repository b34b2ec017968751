// Two small preferences. Browsers may refuse storage; the page then forgets them.

/**
 * @param {string} name
 * @returns {string | null}
 */
export function remembered(name) {
  try {
    return localStorage.getItem(`tokenwise.${name}`);
  } catch {
    return null;
  }
}

/**
 * @param {string} name
 * @param {string} value
 */
export function remember(name, value) {
  try {
    localStorage.setItem(`tokenwise.${name}`, value);
  } catch {
    // nothing to do: the choice holds until the page is closed
  }
}
