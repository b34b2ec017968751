// The chain as a script that needs NumPy and nothing else: the formulas themselves, readable,
// with the numbers of the page.

import { countsAll, flatten, isClipped, klInLoss, tokensOf } from "./batch.js";
import { advantages } from "./python-advantage.js";
import { policyLoss } from "./python-loss.js";
import { array, number, Script } from "./python-script.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */

/**
 * @param {State} state
 * @param {Result} result
 * @returns {string}
 */
export function python(state, result) {
  const script = new Script(flatten(state), state, result);
  kl(script);
  rewards(script);
  advantages(script);
  whitened(script);
  ratios(script);
  policyLoss(script);
  analysis(script);
  return text(script);
}

/** @type {Record<string, string>} */
const ESTIMATES = { k1: "d", abs: "np.abs(d)", k2: "d**2 / 2", k3: "np.expm1(-d) + d" };

/** @param {Script} s */
function kl(s) {
  const { choices } = s.state;
  const { klBounds } = s.result.settings;
  if (choices.kl === "given") {
    s.input("kl");
    s.show("kl");
    return;
  }
  const of = s.input(klInLoss(s.state) ? "logProb" : "oldLogProb");
  s.part(`KL of each token, estimated by ${choices.kl} from log-probabilities`);
  s.line(`d = ${of} - ${s.input("refLogProb")}`);
  const k3 = choices.kl === "k3";
  let value = ESTIMATES[choices.kl];
  if (k3 && klBounds !== "unbounded") {
    s.line(
      klBounds === "k3-only"
        ? "u = np.clip(-d, -20, 20)  # bounded before the exponential"
        : "u = np.minimum(-d, 10)  # bounded before the exponential",
    );
    value = "np.expm1(u) - u";
  }
  const bounded = klBounds === "every" || (k3 && klBounds === "k3-only");
  value = bounded ? `np.clip(${value}, -10, 10)` : value;
  if (choices.placement === "loss-weighted") {
    s.line(`estimate = ${value}`);
    const ratio = `np.exp(${s.input("logProb")} - ${s.input("oldLogProb")})`;
    s.line(`kl = kept(${ratio} * estimate)  # weighted for the policy of now`);
  } else s.line(`kl = kept(${value})`);
  s.show("kl");
}

/** @param {Script} s */
function rewards(s) {
  const { choices, parameters } = s.state;
  const bound = s.result.settings.rewardClip;
  const priced = choices.placement === "reward";
  s.input("score");
  s.part(priced ? "token rewards: the score, less the price of KL" : "token rewards: the score alone");
  const clipped = `np.where(mask, np.clip(score, ${number(-bound)}, ${number(bound)}), score)`;
  const score = isClipped(s.flat, bound) ? clipped : "score";
  if (priced) s.line(`beta = ${number(parameters.beta)}`);
  s.line(`reward = kept(${score}${priced ? " - beta * kl" : ""})`);
  s.show("reward");
  const all = countsAll(s.flat, s.result) ? `(${score}${priced ? " - beta * kl" : ""})` : "reward";
  const remark = all === "reward" ? "" : "  # dropped slots count too";
  s.line(`sequence_score = np.array([${all}[row].sum() for row in rows])${remark}`);
  s.show("sequence_score");
}

/** @param {Script} s */
function whitened(s) {
  const { spread, place, epsilon, divisor } = s.result.settings.whiten;
  s.part("advantages with mean 0 and deviation 1 over all kept tokens");
  s.line("n = mask.sum()");
  const by = divisor === "count" ? "n" : "(n + 1e-8)";
  s.line(`mean = advantage[mask].sum() / ${by}`);
  const correction = spread === "sample" ? " * (n / (n - 1))  # ddof = 1" : "  # ddof = 0";
  s.line(`variance = ((advantage[mask] - mean)**2).sum() / ${by}${correction}`);
  const e = number(epsilon);
  const deviation = {
    "inside-root": `np.sqrt(variance + ${e})`,
    outside: `(np.sqrt(variance) + ${e})`,
    "floor-variance": `np.sqrt(max(variance, ${e}))`,
  }[place];
  s.line(`whitened = kept((advantage - mean) / ${deviation})`);
  for (const name of ["mean", "variance", "whitened"]) s.show(name);
}

/** @param {Script} s */
function ratios(s) {
  s.part("how much more likely each token has become");
  s.line(`ratio = kept(np.exp(${s.input("logProb")} - ${s.input("oldLogProb")}))`);
  s.show("ratio");
}

/** @param {Script} s */
function analysis(s) {
  s.part("what a trainer logs");
  s.line(`probability = kept(np.exp(${s.input("oldLogProb")}))`);
  s.line(
    "entropy = kept(np.where(probability == 0, 0, -probability * old_log_prob))" +
      "  # self-information of the chosen token",
  );
  s.line(`entropy_weight = kept(probability * (1 - probability) * np.abs(${s.weight}))`);
  s.line("weighted_entropy = entropy_weight * entropy");
  for (const name of ["probability", "entropy", "entropy_weight", "weighted_entropy"]) s.show(name);
  s.line(`a, logp = ${s.weight}[mask], old_log_prob[mask]`);
  s.line('show("analysis/entropy_per_token_mean", entropy[mask].mean())');
  s.line('show("analysis/covariance_mean", ((a - a.mean()) * (logp - logp.mean())).mean())');
  s.line('show("analysis/wH_sum", weighted_entropy.sum())');
  s.line('show("analysis/wH_per_token", weighted_entropy.sum() / mask.sum())');
  s.line('show("analysis/reward_sum_mean", np.mean([reward[row].sum() for row in rows]))');
}

/** @param {Script} s */
function text(s) {
  const { flat, state } = s;
  const sequences = state.sequences.map(
    (sequence, i) => `# sequence ${i}, prompt ${flat.groups[i]}: ${tokensOf(sequence)}`,
  );
  return `${[
    '"""The chain of the tokenwise playground, in NumPy alone: every formula written out, the same numbers."""',
    "import numpy as np",
    "",
    'np.seterr(all="ignore")  # NaN and infinity are numbers like others here',
    "",
    "",
    "def kept(x):",
    '    """Dropped slots are 0, whatever stands in them."""',
    "    return np.where(mask, x, 0.0)",
    "",
    "",
    "def show(name, x):",
    '    print(f"{name}: {np.asarray(x, dtype=float).tolist()}")',
    "",
    "",
    ...sequences,
    `offsets = [${flat.offsets.join(", ")}]`,
    "rows = [slice(a, b) for a, b in zip(offsets, offsets[1:])]  # one slice per sequence",
    `mask = np.array(${array(flat.mask.map(Number))}, dtype=bool)  # the tokens that the policy chose itself`,
    ...s.declarations(),
    ...s.lines,
  ].join("\n")}\n`;
}
