// Text to the clipboard.

/**
 * @param {string} text
 * @returns {Promise<boolean>} whether it is on the clipboard
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByHand(text);
  }
}

/**
 * The old way, for pages without the permission or without HTTPS.
 * @param {string} text
 */
function copyByHand(text) {
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    before?.focus();
  }
}

/**
 * The typographic minus is for reading, programs want the plain one.
 * @param {string} text
 */
export const copyNumber = (text) => copyText(text.replaceAll("−", "-"));
