// Entropy histories, good and bad, for the tests with and without a browser.

/** @param {number[]} entropies */
export const history = (entropies, first = 1) =>
  JSON.stringify(entropies.map((entropy, i) => ({ step: first + i, entropy })));

/** Texts, the problem each has and what its message fills in: those of the command's reader, and further ones. */
export const BAD = [
  ["", "nothing", {}],
  [" \n ", "nothing", {}],
  ["{}", "array", { got: "{}" }],
  ["5", "array", { got: "5" }],
  ["[]", "empty", {}],
  ["[ \n ]", "empty", {}],
  ['[{"step": 1, "entropy": 1},\n 5]', "object", { record: 2, got: "5" }],
  ["[null]", "object", { record: 1, got: "null" }],
  ['[{"step": 1, "entropy": 1},\n {"st', "early", { line: 2, record: 2 }],
  ['[{"step": 1, "entropy": 1},\n {"step": 2, "entropy": 1}', "early", { line: 2, record: 2 }],
  ['[{"step": 1, "entropy": 1},\n', "early", { line: 1, record: 2 }],
  ['[{"step": 1, "entropy": NaN}]', "nan", { line: 1, record: 1, got: "NaN" }],
  ['[{"step": 1, "entropy": 1},\n {"step": 2, "entropy": -Infinity}]', "nan", { line: 2, record: 2, got: "-Infinity" }],
  ['[{"step": 1}]', "missing", { record: 1, field: "entropy" }],
  ['[{"step": 1, "entropy": 1}, {"entropy": 1}]', "missing", { record: 2, field: "step" }],
  ['[{"step": 1.5, "entropy": 1}]', "step", { record: 1, got: "1.5" }],
  ['[{"step": -1, "entropy": 1}]', "step", { record: 1, got: "-1" }],
  ['[{"step": "1", "entropy": 1}]', "step", { record: 1, got: '"1"' }],
  ['[{"step": 1, "entropy": null}]', "entropy", { record: 1, got: "null" }],
  ['[{"step": 1, "entropy": 1e999}]', "entropy", { record: 1, got: "Infinity" }],
  ['[{"step": 2, "entropy": 1}, {"step": 2, "entropy": 1}]', "twice", { record: 2, step: 2 }],
  ['[{"step": 2, "entropy": 1}, {"step": 1, "entropy": 1}]', "order", { record: 2, step: 1, previous: 2 }],
  ["[] x", "after", { line: 1, near: "x" }],
  ['[{"step": 1, "entropy": 1}]\n[]', "after", { line: 2, near: "[]" }],
  ['[{"step": 1, "entropy": 1},]', "malformed", { line: 1, record: 2, near: "]" }],
  ["[\n{'step': 1}]", "malformed", { line: 2, record: 1, near: "{'step': 1}]" }],
  ["step,entropy", "malformed", { line: 1, record: 1, near: "step,entropy" }],
  ['[{"step": 1, "entropy": "N]aN, [" x}]', "malformed", { line: 1, record: 1, near: '{"step": 1, "entropy": "N]aN,' }],
];
