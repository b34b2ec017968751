// The advantage step of the NumPy script.

import { number } from "./python-script.js";

/** @typedef {import("./python-script.js").Script} Script */

/** @param {Script} s */
export function advantages(s) {
  discounted(s);
  s.part(`advantages: ${s.state.choices.advantage}`);
  (estimators[s.state.choices.advantage] ?? ofGroup)(s);
  s.show("advantage");
}

/**
 * A loop from the last token of each sequence to its first.
 * @param {Script} s
 * @param {string} start what is known after the last token
 * @param {string[]} kept what a kept token does
 * @param {string} zero what a dropped token does where it is a step of reward and value 0
 */
function walk(s, start, kept, zero) {
  const steps = s.result.settings.across === "zero-step";
  s.line("for row, after in zip(rows, bootstrap):");
  s.line(`    ${start}`);
  if (steps) s.line("    seen = False");
  s.line("    for t in reversed(range(row.start, row.stop)):");
  s.line("        if mask[t]:");
  for (const line of kept) s.line(`            ${line}`);
  if (steps)
    s.line(
      "            seen = True",
      "        elif seen:  # a dropped token is a step with reward 0 and value 0",
      `            ${zero}`,
    );
}

/** @param {Script} s */
function discounted(s) {
  s.bootstrap();
  s.part("the rewards still to come, discounted");
  s.line(`gamma = ${number(s.state.parameters.gamma)}`, "discounted_return = np.zeros(len(mask))");
  walk(s, "ahead = after", ["ahead = discounted_return[t] = reward[t] + gamma * ahead"], "ahead = gamma * ahead");
  s.show("discounted_return");
}

/** @type {Record<string, (s: Script) => void>} */
const estimators = {
  given: (s) => {
    s.input("advantage");
    s.line(`returns = kept(advantage + ${s.input("value")})`);
    s.show("return");
  },
  gae: (s) => {
    s.input("value");
    s.line(`lam = ${number(s.state.parameters.lambda)}`, "delta, advantage = np.zeros(len(mask)), np.zeros(len(mask))");
    walk(
      s,
      "next_value, next_advantage = after, 0.0",
      [
        "delta[t] = reward[t] + gamma * next_value - value[t]",
        "advantage[t] = delta[t] + gamma * lam * next_advantage",
        "next_value, next_advantage = value[t], advantage[t]",
      ],
      "next_value, next_advantage = 0.0, gamma * next_value + gamma * lam * next_advantage",
    );
    s.line("returns = kept(advantage + value)");
    s.show("delta");
    s.show("return");
  },
  "monte-carlo": (s) => {
    s.line("returns = discounted_return", `advantage = kept(returns - ${s.input("value")})`);
    s.show("return");
  },
  "reinforce-plus-plus": (s) => s.line("advantage = discounted_return"),
  uniform: (s) => {
    s.line(
      "counts = np.array([max(mask[row].sum(), 1) for row in rows])",
      "advantage = kept(np.repeat(sequence_score / counts, np.diff(offsets)))",
    );
  },
  "last-k": (s) => {
    s.line("advantage = np.zeros(len(mask))", "for row, score_of_row in zip(rows, sequence_score):");
    s.line(
      `    last = np.flatnonzero(mask[row])[-${Math.max(1, Math.trunc(s.state.parameters.lastK) || 1)}:] + row.start`,
    );
    s.line("    advantage[last] = score_of_row / max(len(last), 1)");
  },
  attention: (s) => {
    s.line(`shares = kept(${s.input("attention")})`, "totals = np.array([shares[row].sum() for row in rows])");
    s.line("advantage = kept(shares * np.repeat(sequence_score / totals, np.diff(offsets)))");
  },
};

/**
 * Estimators that compare the scores of one prompt's sequences.
 * @param {Script} s
 */
function ofGroup(s) {
  const { group, baselineSingleton } = s.result.settings;
  const ddof = group.spread === "sample" ? 1 : 0;
  const epsilon = number(group.epsilon);
  s.groups();
  s.line(
    "same = group[:, None] == group[None, :]  # which sequences answer the same prompt",
    "size = same.sum(axis=1)",
  );
  s.line("mean_score = np.array([sequence_score[others].mean() for others in same])");
  const deviation = `sequence_score[others].std(ddof=${ddof}) if others.sum() > 1 else 1.0`;
  const deviations = `np.array([${deviation} for others in same])`;
  const alone = (/** @type {string} */ rule, raw = "sequence_score") =>
    ({ zero: "0.0", raw, undefined: "np.nan" })[rule] ?? "0.0";
  const unless = (/** @type {string} */ lone, /** @type {string} */ value) =>
    s.line(`group_advantage = np.where(size < 2, ${lone}, ${value})`);
  /** @type {Record<string, () => void>} */
  const formulas = {
    grpo: () => {
      s.line(`deviation = ${deviations}`, "centred = sequence_score - mean_score");
      // the deviation of a single sequence is 1 in single precision, as in the frameworks
      unless(
        alone(group.singleton, `sequence_score / float(np.float32(1 + ${epsilon}))`),
        `np.where(centred == 0, 0.0, centred / (deviation + ${epsilon}))`,
      );
    },
    "dr-grpo": () => unless(alone(group.singleton), "sequence_score - mean_score"),
    rloo: () => unless(alone(group.singleton), "(sequence_score - mean_score) * (size / np.maximum(size - 1, 1))"),
    "reinforce-baseline": () => unless(alone(baselineSingleton), "sequence_score - mean_score"),
    opo: () => {
      s.line(
        "tokens = np.array([mask[row].sum() for row in rows])",
        "weights = np.array([tokens[others].sum() for others in same])",
      );
      s.line(
        "baseline = np.array([(tokens * sequence_score)[others].sum() for others in same]) / np.maximum(weights, 1)",
      );
      unless(alone(baselineSingleton), "np.where(weights == 0, 0.0, sequence_score - baseline)");
    },
    "max-rl": () => {
      s.line("centred = sequence_score - mean_score");
      unless(alone(group.singleton), `np.where(centred == 0, 0.0, centred / (mean_score + ${epsilon}))`);
    },
    "best-of-group": () => {
      s.line('assert size.min() > 1, "the best of one is no comparison: every prompt needs two sequences"');
      s.line(`deviation = ${deviations}`, "group_advantage = np.zeros(len(rows))", "for g in np.unique(group):");
      s.line(
        "    members = np.flatnonzero(group == g)",
        "    second, best = np.sort(sequence_score[members])[-2:]",
        "    first = members[np.argmax(sequence_score[members])]",
      );
      s.line(
        `    group_advantage[first] = (best - second) / (deviation[first] + ${epsilon}) if best != second else 0.0`,
      );
    },
  };
  formulas[s.state.choices.advantage]();
  s.show("group_advantage");
  s.line("advantage = kept(np.repeat(group_advantage, np.diff(offsets)))");
}
