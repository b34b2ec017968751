// The arrays and batches that the cases share.
import { tokenwise } from "../load.mjs";

const { Batch } = tokenwise;
export const ln = Math.log;

/** In the precision of `array`; `x` stands in every dropped slot. */
export function data(array, x) {
  const a = (...values) => array.from(values);
  const u = (...values) => Uint32Array.from(values);
  const two = Batch.padded(1, 2, Uint8Array.of(1, 0));
  const three = Batch.padded(1, 3, Uint8Array.of(1, 0, 1));
  const four = Batch.padded(1, 4, Uint8Array.of(1, 1, 0, 1));
  const pair = Batch.padded(2, 2, Uint8Array.of(1, 0, 1, 1));
  const groups = { ids: u(0, 1, 0, 1, 2) };
  const none = -Infinity;
  const logProbs = { logProbs: a(-1, x, -1), refLogProbs: a(-1.5, x, -1) };
  const ratios = { logProbs: a(0, ln(2), x, 0), oldLogProbs: a(0, 0, x, 0), advantages: a(1, 3, x, -1) };
  const same = a(-0.5, x, -1);
  const analysed = { oldLogProbs: a(0, x, 0), advantages: a(1, x, -1), rewards: a(0.25, x, 1) };
  const third = 1 / 3;
  const plain = { spread: "population", epsilon: 0 };
  const sources = { sources: a(0, 100, 0.5, 0.25), weights: Float64Array.of(1, 0.5) };
  const corners = Batch.padded(2, 2, Uint8Array.of(1, 0, 0, 1));
  const still = { logProbs: same, oldLogProbs: same, advantages: a(1, x, 1) };
  const ratio = { logProbs: a(ln(2), x, 0), oldLogProbs: a(0, x, 0), advantages: a(1, x, -1) };
  const quadruple = { oldLogProbs: a(-1, x, ln(4)), rolloutLogProbs: a(-1, x, 0) };
  const apart = { oldLogProbs: a(-1, x, -2), rolloutLogProbs: a(-1.5, x, -1) };
  const policy = (loss, grad, clipFraction = 0, clipFractionLower = 0, kl = 0) => ({
    loss,
    clipFraction,
    clipFractionLower,
    kl,
    grad,
  });
  const corr = (prefix, values) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [`rollout_corr/${prefix}${key}`, value]));
  const agreed = corr("", {
    training_ppl: 1,
    training_log_ppl: 0,
    kl: 0,
    k3_kl: 0,
    rollout_ppl: 1,
    rollout_log_ppl: 0,
    log_ppl_diff: 0,
    log_ppl_abs_diff: 0,
    log_ppl_diff_max: 0,
    log_ppl_diff_min: 0,
    ppl_ratio: 1,
    chi2_token: 0,
    chi2_seq: 0,
  });
  const taught = { logProbs: a(-1, x, -1), oldLogProbs: a(-1, x, -1), teacherLogProbs: a(-0.5, x, -2) };
  const massOf = (mass) => ({ mean: mass, min: mass, max: mass });
  const dot = (values) => ({ count: 2, mean: 2, m2: 2, ...values });
  return {
    x,
    a,
    u,
    two,
    three,
    four,
    pair,
    groups,
    none,
    logProbs,
    ratios,
    same,
    analysed,
    third,
    plain,
    sources,
    corners,
    still,
    ratio,
    quadruple,
    apart,
    policy,
    corr,
    agreed,
    taught,
    massOf,
    dot,
  };
}
