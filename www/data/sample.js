// A small batch to begin with: four questions, four answers each,
// with the numbers a trainer would log and three faults for lint to find.

const QUESTIONS = [
  {
    prompt: "请问1+1=2？",
    answers: ["是|的|，|等于|2|！", "是|的|，|1+1|=|2|。", "不|，|等于|3|。", "我|想|是|2|吧|。"],
  },
  {
    prompt: "What is 7 × 8?",
    answers: ["7| ×| 8| =| 56|.", "It| is| 54|.", "Let| me| see|:| 7| ×| 8| is| 56|.", "The| answer| is| 56|."],
  },
  { prompt: "太阳从哪边升起？", answers: ["从|东|边|升|起|。", "太阳|从|东方|升起|。", "东|边|。", "从|东边|。"] },
  {
    prompt: "Is 91 prime?",
    answers: ["No|,| 91| =| 7| ×| 13|.", "Yes|.", "Yes|,| it| is| prime|.", "No|:| 7| divides| it|."],
  },
];
const SCORES = [
  [1, 1, 0, 0.5],
  [1, 0, 1, 1],
  [1, 1, 1, 1],
  [1, 0, 0, 1],
];

/** JSON Lines, always the same. */
export function sampleText() {
  let seed = 20;
  // a linear congruential generator: the sample must not change from visit to visit
  const random = () => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed / 2147483648;
  };
  const round = (/** @type {number} */ x) => Number(x.toFixed(4));
  const lines = [];
  for (const [q, { prompt, answers }] of QUESTIONS.entries()) {
    for (const [a, answer] of answers.entries()) {
      const tokens = answer.split("|");
      const score = SCORES[q][a];
      const oldLogProbs = tokens.map(() => round(-0.02 - 1.8 * random() ** 3));
      const record = {
        step: 12,
        prompt,
        score,
        response_tokens: tokens,
        mask: tokens.map(() => 1),
        old_log_probs: oldLogProbs,
        log_probs: oldLogProbs.map((x) => round(Math.min(-0.001, x + 0.5 * (random() - 0.45)))),
        ref_log_probs: oldLogProbs.map((x) => round(Math.min(-0.001, x + 0.6 * (random() - 0.6)))),
        values: tokens.map((_, t) =>
          round(0.3 + (score - 0.3) * ((t + 1) / (tokens.length + 1)) + 0.1 * (random() - 0.5)),
        ),
      };
      // the faults: an answer whose last token is masked out, a value that is NaN
      if (q === 1 && a === 3) record.mask[tokens.length - 1] = 0;
      const text = JSON.stringify(record);
      lines.push(q === 3 && a === 2 ? text.replace(/"ref_log_probs":\[[^,]*/, '"ref_log_probs":[NaN') : text);
    }
  }
  return `${lines.join("\n")}\n`;
}
