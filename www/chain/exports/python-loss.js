// The loss step of the NumPy script.

import { klInLoss } from "./batch.js";
import { number } from "./python-script.js";

/** @typedef {import("./python-script.js").Script} Script */

/** @param {Script} s */
export function policyLoss(s) {
  weights(s);
  s.part(`the loss of each token: ${s.state.choices.loss}; slope is its derivative by the log-probability`);
  s.line(`a = ${s.weight}`);
  losses[s.state.choices.loss](s);
  s.line("gradient = token_weight * slope", "loss = (token_weight * loss_term).sum()");
  s.show("loss_term");
  s.show("loss");
  if (["ppo", "gspo", "cispo"].includes(s.state.choices.loss)) s.line('show("clip_fraction", held[mask].mean())');
  if (klInLoss(s.state)) priceOfKl(s);
  s.show("gradient");
}

/**
 * What each token weighs in the loss.
 * @param {Script} s
 */
function weights(s) {
  const { choices, parameters } = s.state;
  const { emptyRows, divisor } = /** @type {{ emptyRows: string, divisor: string }} */ (s.result.settings.aggregate);
  const mode = choices.aggregate;
  s.part(`what each token weighs in the loss: ${mode}`);
  if (mode === "token-mean") s.line("token_weight = kept(1 / mask.sum())");
  else if (mode === "token-sum") s.line("token_weight = kept(1.0)");
  else if (mode === "token-sum-norm") s.line(`token_weight = kept(1 / ${number(parameters.scale)})`);
  else if (mode === "prompt-mean") {
    s.groups();
    s.line("prompt_tokens = np.array([sum(mask[row].sum() for row, h in zip(rows, group) if h == g) for g in group])");
    s.line(
      "token_weight = kept(np.repeat(1 / (len(np.unique(group)) * np.maximum(prompt_tokens, 1)), np.diff(offsets)))",
    );
  } else {
    s.line("kept_tokens = np.array([mask[row].sum() for row in rows])");
    s.line(emptyRows === "counted" ? "sequences = len(rows)" : "sequences = (kept_tokens > 0).sum()");
    if (mode === "seq-mean-token-sum") s.line("token_weight = kept(1 / sequences)");
    else if (mode === "seq-mean-token-sum-norm")
      s.line(`token_weight = kept(1 / (sequences * ${number(parameters.scale)}))`);
    else {
      const tokens = `np.maximum(kept_tokens, 1)${divisor === "count" ? "" : " + 1e-8"}`;
      s.line(`token_weight = kept(np.repeat(1 / (sequences * (${tokens})), np.diff(offsets)))`);
    }
  }
  s.show("token_weight");
}

/** @param {Script} s */
function bounds(s) {
  const { clipLow, clipHigh } = s.state.parameters;
  s.line(`low, high = 1 - ${number(clipLow)}, 1 + ${number(clipHigh)}`);
}

/**
 * The ratio as the loss reads it.
 * @param {Script} s
 */
function boundedRatio(s) {
  const bound = s.result.settings.logRatioBound;
  s.line("log_ratio = kept(log_prob - old_log_prob)");
  if (bound === null) s.line("beyond, rho = False, ratio");
  else
    s.line(
      `beyond = np.abs(log_ratio) > ${number(bound)}`,
      `rho = kept(np.exp(np.clip(log_ratio, -${number(bound)}, ${number(bound)})))`,
    );
}

/** @type {Record<string, (s: Script) => void>} */
const losses = {
  ppo: (s) => {
    const { dual, dualClip } = s.result.settings;
    boundedRatio(s);
    bounds(s);
    if (dual !== "off") s.line(`c = ${number(dualClip)}  # the second clip`);
    s.line(`free = ${dual === "both" ? "np.minimum(rho, c)" : "rho"}`);
    s.line("loss_term = np.maximum(-a * free, -a * np.clip(rho, low, high))");
    if (dual === "negative") s.line("loss_term = np.where(a < 0, np.minimum(loss_term, -a * c), loss_term)");
    s.line("loss_term = kept(loss_term)", "held = ((a > 0) & (free > high)) | ((a < 0) & (free < low))");
    const [negative, positive] =
      dual === "both" ? ["max(high, c)", "min(high, c)"] : [dual === "negative" ? "c" : "np.inf", "high"];
    s.line(`flat = ((a < 0) & ((rho < low) | (rho > ${negative}))) | ((a >= 0) & (rho > ${positive})) | beyond`);
    s.line("slope = kept(np.where(flat, 0.0, -a * rho))");
  },
  gspo: (s) => {
    const { form, logRatioCap } = s.result.settings.gspo;
    bounds(s);
    s.line("counts = np.array([max(mask[row].sum(), 1) for row in rows])");
    s.line("mean_log_ratio = np.array([kept(log_prob - old_log_prob)[row].sum() for row in rows]) / counts");
    if (logRatioCap === null) s.line("capped, sequence_ratio = False, np.exp(mean_log_ratio)");
    else
      s.line(
        `capped = np.repeat(mean_log_ratio > ${number(logRatioCap)}, np.diff(offsets))`,
        `sequence_ratio = np.exp(np.minimum(mean_log_ratio, ${number(logRatioCap)}))`,
      );
    s.line("sequence_ratio = kept(np.repeat(sequence_ratio, np.diff(offsets)))  # one for all tokens of a sequence");
    s.show("sequence_ratio");
    s.line("loss_term = kept(np.maximum(-a * sequence_ratio, -a * np.clip(sequence_ratio, low, high)))");
    s.line("held = ((a > 0) & (sequence_ratio > high)) | ((a < 0) & (sequence_ratio < low))");
    s.line("slope = kept(np.where(held | capped, 0.0, -a * sequence_ratio))");
    if (form === "sequence")
      s.line(
        "slope = kept(np.repeat([slope[row].sum() for row in rows] / counts, np.diff(offsets)))" +
          "  # every token moves the one ratio",
      );
  },
  cispo: (s) => {
    const { cispo } = s.result.settings;
    boundedRatio(s);
    if (cispo.kind === "absolute") s.line(`low, high = 0.0, ${number(cispo.high)}`);
    else s.line(`low, high = 1 - ${number(cispo.low)}, 1 + ${number(cispo.high)}`);
    s.line(
      "slope = kept(-np.clip(rho, low, high) * a)  # the bounded ratio is a constant",
      "loss_term = kept(slope * log_prob)",
    );
    s.line(`held = ((rho < low) | (rho > high))${cispo.kind === "absolute" ? " & (a > 0)" : ""}`);
  },
  surrogate: (s) => s.line("slope = loss_term = kept(-a * ratio)"),
  reinforce: (s) => s.line("slope = kept(-a)", "loss_term = kept(-a * log_prob)"),
};

/** @type {Record<string, string>} */
const SLOPES = { k1: "np.ones(len(mask))", abs: "np.sign(d)", k2: "d", k3: "1 - np.exp(-d)" };

/**
 * β·KL as a part of the loss, and its own gradient beside the policy's.
 * @param {Script} s
 */
function priceOfKl(s) {
  const { choices, parameters } = s.state;
  const { klBounds } = s.result.settings;
  s.part("β·KL as a part of the loss, with a gradient of its own");
  s.line(`beta = ${number(parameters.beta)}`, "kl_term = kept(beta * kl)", "kl_loss = (token_weight * kl_term).sum()");
  s.show("kl_term");
  s.show("kl_loss");
  if (choices.kl === "given") return;
  const k3 = choices.kl === "k3";
  /** @type {string[]} */
  const beyond = [];
  if (k3 && klBounds === "k3-only") beyond.push("(np.abs(d) > 20)", "(np.expm1(u) - u > 10)");
  else if (klBounds === "every")
    beyond.push(
      ...(k3 ? ["(-d > 10)", "(np.expm1(u) - u > 10)"] : [`(np.abs(${choices.kl === "k2" ? "d**2 / 2" : "d"}) > 10)`]),
    );
  s.line(`kl_slope = ${SLOPES[choices.kl]}`);
  if (beyond.length > 0) s.line(`kl_slope = np.where(${beyond.join(" | ")}, 0.0, kl_slope)  # flat beyond a bound`);
  if (choices.placement === "loss-weighted") s.line("kl_slope = ratio * (kl_slope + estimate)  # the weight moves too");
  s.line("kl_gradient = kept(beta * token_weight * kl_slope)", "gradient = gradient + kl_gradient");
  s.show("kl_gradient");
}
