export default {
  "tables.whole": "A whole number from {low} to {high} is needed. Still {old}.",
  "tables.positive": "A number above 0 is needed. Still {old}.",
  "tables.preset": "Example",
  "tables.own": "own numbers",
  "tables.save": "Save the numbers (CSV)",
  "tables.answer": "answer {number}",
};
