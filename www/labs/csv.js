// Tables as comma-separated text. Numbers with all their digits, so that they come back the same.

/** @param {string | number} value */
const cell = (value) => {
  const text = String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/**
 * @param {string[]} head
 * @param {(string | number)[][]} rows
 * @returns {string}
 */
export const csv = (head, rows) => [head, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
