// Calls with small numbers whose results can be seen by eye.
import { tokenwise } from "./load.mjs";

const { Batch, RoleBaselines } = tokenwise;
const ln = Math.log;

/** `[name, arguments, expected]` of every function with two precisions; `x` stands in every dropped slot. */
export function cases(array, x) {
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
  return [
    [
      "shift",
      [
        Batch.padded(1, 3, Uint8Array.of(1, 1, 1)),
        { raw: a(x, 0.25, 0.5, 0.75, x), width: 1, rawLayout: { batch: 1, len: 5 } },
      ],
      [0.25, 0.5, 0.75],
    ],
    ["tokenLogProbs", [two, { logits: a(none, 3, x, x), vocab: 2, tokens: u(1, 99) }], [0, 0]],
    [
      "logProbsAndEntropy",
      [two, { logits: a(0, none, x, x), vocab: 2, tokens: u(0, 99) }],
      { logProbs: [0, 0], entropy: [0, 0] },
    ],
    ["entropy", [two, { logits: a(1.5, 1.5, x, x), vocab: 2 }, { temperature: 0.5 }], [ln(2), 0]],
    ["sumSquaredProbs", [two, { logits: a(0, 0, 0, 0, x, 0, 0, 0), vocab: 4 }], [0.25, 0]],
    [
      "logitsGradient",
      [two, { logits: a(0, 0, x, x), vocab: 2, tokens: u(1, 0), gradLogProbs: a(1, x), gradEntropy: a(0, x) }],
      [-0.5, 0.5, 0, 0],
    ],

    ["klEstimate", [three, logProbs, { estimator: "k2" }], [0.125, 0, 0]],
    ["klGradient", [three, logProbs, { estimator: "k3", gradient: "straight-through" }], [0.5, 0, 0]],
    [
      "klImportanceWeighted",
      [
        two,
        { logProbs: a(ln(2), x), refLogProbs: a(ln(2) - 0.5, x), oldLogProbs: a(0, x) },
        { kl: { estimator: "k2" } },
      ],
      [0.25, 0],
    ],
    [
      "klImportanceWeightedGradient",
      [
        two,
        { logProbs: a(-1, x), refLogProbs: a(-1.5, x), oldLogProbs: a(-1, x), gradKl: a(1, x) },
        { kl: { estimator: "k2" } },
      ],
      [0.625, 0],
    ],
    ["klExact", [two, { logits: a(0, none, x, x), refLogits: a(0, 0, x, x), vocab: 2 }], [ln(2), 0]],
    [
      "klExactGradient",
      [two, { logits: a(1, 1, x, x), refLogits: a(0, 0, x, x), vocab: 2, gradKl: a(1, x) }],
      [0, 0, 0, 0],
    ],

    ["placeScores", [pair, a(1, 5)], [1, 0, 0, 5]],
    ["shapeRewards", [three, { scores: a(0, x, 1), kl: a(0.5, x, -0.25) }, { beta: 0.5 }], [-0.25, 0, 1.125]],
    [
      "klInReward",
      [
        three,
        { scores: a(0, x, 1), oldLogProbs: a(-1, x, -0.5), refLogProbs: a(-1.5, x, -0.5) },
        { beta: 0.5, kl: { estimator: "k1" } },
      ],
      { rewards: [-0.25, 0, 1], meanKl: 0.25 },
    ],
    [
      "klInScores",
      [three, { scores: a(1), oldLogProbs: a(-1, x, -0.5), refLogProbs: a(-1.5, x, -1) }, { beta: 0.25 }],
      [0.75],
    ],
    ["clippedRewards", [four, { scores: a(20), kl: a(1, 0, x, 1) }, { beta: 0.5 }], [-0.5, 0, 0, 9.5]],
    [
      "repetitionPenalty",
      [Batch.padded(1, 6, Uint8Array.of(1, 1, 1, 1, 1, 0)), u(5, 5, 5, 5, 5, 7), { ngram: 2 }],
      [-0.75],
    ],
    [
      "lengthPenaltyGroup",
      [
        { sizes: u(2) },
        { scores: a(1, 1), outputs: u(10, 20), inputs: u(0, 0), turns: u(1, 1) },
        { outputWeight: 0.5 },
      ],
      [0.75, 0.5],
    ],
    ["stopProperlyPenalty", [{ scores: a(1, 1), truncated: Uint8Array.of(0, 1) }, { coefficient: 0.25 }], [1, 0.25]],
    ["missingEosPenalty", [{ scores: a(1, 1), ended: Uint8Array.of(1, 0) }, { penalty: 0.5 }], [1, 0.5]],
    [
      "rewardScaleClip",
      [a(-1, 0, 1, 4), { kind: "map", fromLow: 0, fromHigh: 4, toLow: -1, toHigh: 1 }],
      { scores: [-1, -1, -0.5, 1], clipFraction: 0.25 },
    ],
    ["rewardScaleClip", [a(-1, 2), { kind: "clip", low: 0, high: 4 }], { scores: [0, 2], clipFraction: 0.5 }],
    [
      "rewardScaleClip",
      [a(-1, 2), { kind: "shift-scale-clip", bias: 1, scale: 2, bound: 5 }],
      { scores: [0, 5], clipFraction: 0.5 },
    ],
    [
      "overlongPenalty",
      [
        { scores: a(1, 1, 1, 1), lengths: u(6, 7, 10, 12) },
        { maxLen: 10, buffer: 4, floor: "factor" },
      ],
      [1, 0.75, 0, 0],
    ],

    ["discountedReturns", [four, { rewards: a(0, 1, x, 2), bootstrap: a(0) }, { gamma: 0.5 }], [1, 2, 0, 2]],
    [
      "gae",
      [four, { rewards: a(0, 0, x, 1), values: a(0.5, 0.5, x, 0.5), bootstrap: a(0) }, { lambda: 0.5 }],
      { advantages: [0.125, 0.25, 0, 0.5], returns: [0.625, 0.75, 0, 1] },
    ],
    [
      "gae",
      [
        four,
        { rewards: a(0, 0, x, 1), values: a(0.5, 0.5, x, 0.5), bootstrap: a(0) },
        { lambda: 0.5, across: "zero-step" },
      ],
      { advantages: [-0.0625, -0.125, 0, 0.5], returns: [0.4375, 0.375, 0, 1] },
    ],
    [
      "monteCarloAdvantage",
      [three, { rewards: a(0.5, x, 1), values: a(0.25, x, 0.5), bootstrap: a(0) }, { gamma: 0.5 }],
      { advantages: [0.75, 0, 0.5], returns: [1, 0, 1] },
    ],
    ["uniformCredit", [four, a(3)], [1, 1, 0, 1]],
    ["lastKCredit", [four, a(1), { k: 2 }], [0, 0.5, 0, 0.5]],
    ["attentionCredit", [four, { scores: a(2), weights: a(1, 2, x, 1) }], [0.5, 1, 0, 0.5]],
    ["groupRelative", [groups, a(1, 4, 3, 4, 7), { spread: "population", epsilon: 0 }], [-1, 0, 1, 0, 0]],
    ["leaveOneOut", [{ sizes: u(3, 1) }, a(0, 1, 5, 7), { singleton: "raw" }], [-3, -1.5, 4.5, 7]],
    ["broadcast", [Batch.packed(u(0, 2, 3), Uint8Array.of(1, 0, 1)), a(0.5, -0.5)], [0.5, 0, -0.5]],
    ["sequenceSums", [pair, a(0.5, x, 1, -2)], [0.5, -1]],
    ["whiten", [four, a(-3, 0, x, 3), { scale: "unit", spread: "population", epsilon: 0 }], [-3, 0, 0, 3]],

    [
      "gaeDecoupled",
      [four, { rewards: a(0, 0, x, 1), values: a(0.5, 0.5, x, 0.5), bootstrap: a(0) }, { lambdaPolicy: 0.5 }],
      { advantages: [0.125, 0.25, 0, 0.5], returns: [1, 1, 0, 1] },
    ],
    [
      "gaeDecoupled",
      [
        four,
        { rewards: a(0, 0, x, 1), values: a(0.5, 0.5, x, 0.5), bootstrap: a(0) },
        { lambdaPolicy: { alpha: 2 / 3 } },
      ],
      { advantages: [0.125, 0.25, 0, 0.5], returns: [1, 1, 0, 1] },
    ],
    [
      "tdLambda",
      [four, { rewards: a(0, 0, x, 1), values: a(0.5, 0.5, x, 0.5), bootstrap: a(0) }, { lambda: 0.5 }],
      [0.625, 0.75, 0, 1],
    ],
    [
      "nStepReturns",
      [four, { rewards: a(1, 2, x, 4), values: a(0, 1, x, 2), bootstrap: a(8) }, { n: 2, gamma: 0.5 }],
      [2.5, 6, 0, 8],
    ],
    ["upgo", [four, { rewards: a(0, 0, x, 1), values: a(0.5, 0.75, x, 0.5), bootstrap: a(0) }], [0.75, 1, 0, 1]],
    [
      "vtrace",
      [
        three,
        {
          rewards: a(0, x, 1),
          values: a(0.5, x, 0.25),
          bootstrap: a(0),
          logProbs: a(-1, x, -1),
          oldLogProbs: a(-1, x, -2),
        },
        { lambda: 0.5 },
      ],
      { targets: [0.625, 0, 1], advantages: [0.125, 0, 0.75] },
    ],
    [
      "retrace",
      [
        three,
        {
          rewards: a(0, x, 1),
          values: a(0.5, x, 0.25),
          actionValues: a(0.5, x, 0.75),
          bootstrap: a(2),
          logProbs: a(-1, x, -0.5),
          oldLogProbs: a(-1, x, -1),
        },
        { gamma: 0.5 },
      ],
      [0.75, 0, 2],
    ],
    [
      "pufferAdvantage",
      [three, { rewards: a(1, x, 2), values: a(0.5, x, 1), bootstrap: a(0), ratios: a(0.5, x, 4) }, { variant: "v4" }],
      [1.5, 0, 1],
    ],
    [
      "remax",
      [three, { rewards: a(0.25, x, 1), baselines: a(0.5) }],
      { advantages: [0.75, 0, 0.5], returns: [1.25, 0, 1] },
    ],
    [
      "reinforcePlusPlus",
      [three, { rewards: a(1, x, 4), bootstrap: a(0) }, { gamma: 0.5, whiten: plain }],
      { advantages: [-1, 0, 1], returns: [3, 0, 4] },
    ],
    ["opdAdvantage", [three, { teacherLogProbs: a(-0.5, x, -2), oldLogProbs: a(-1, x, -1) }], [0.5, 0, -1]],
    [
      "opdAdvantage",
      [
        three,
        { teacherLogProbs: a(-0.5, x, -2), oldLogProbs: a(-1, x, -1), advantages: a(1, x, 1) },
        { coefficient: 0.5 },
      ],
      [1.25, 0, 0.5],
    ],
    ["minillmAdvantage", [three, { teacherLogProbs: a(-0.5, x, -2), oldLogProbs: a(-1, x, -1) }], [-0.25, 0, -1]],
    [
      "leaveOneOutScaled",
      [{ sizes: u(4, 1) }, a(3, 0, 0, 0, 7), { epsilon: 0 }],
      [3, -1 / Math.sqrt(3), -1 / Math.sqrt(3), -1 / Math.sqrt(3), 0],
    ],
    ["normalizeScores", [{ sizes: u(2, 2) }, a(0, 2, 5, 7), { own: "left-out", deviation: "off" }], [-2, 2, -2, 2]],
    ["gpgAdvantage", [{ sizes: u(2, 2) }, a(1, 0, 0, 0)], [2, -2, 0, 0]],
    ["maxRl", [{ sizes: u(4, 2) }, a(1, 0, 0, 0, 0, 0), { divisor: "if-positive" }], [3, -1, -1, -1, 0, 0]],
    ["bestOfGroup", [{ ids: u(0, 1, 0, 1, 0) }, a(1, 2, 4, 2, 3.5), { scale: "unit" }], [0, 0, 0.5, 0, 0]],
    [
      "lengthWeightedBaseline",
      [Batch.packed(u(0, 1, 5), Uint8Array.of(1, 1, 0, 1, 1)), { sizes: u(2) }, a(0, 1)],
      [-0.75, 0.25],
    ],
    ["decoupledScores", [{ sizes: u(2) }, sources, plain], [-0.5, 0.5]],
    ["gdpo", [corners, { sizes: u(2) }, sources, { group: plain, whiten: plain }], [-1, 0, 0, 1]],
    ["reinforcePlusPlusBaseline", [corners, { sizes: u(2) }, a(0, 4), { whiten: plain }], [-1, 0, 0, 1]],
    [
      "optimalTokenBaseline",
      [
        Batch.padded(2, 2, Uint8Array.of(1, 1, 1, 0)),
        { sizes: u(2) },
        { rewards: a(0, 1, 0, x), oldLogProbs: a(0, 0, 0, x), sumPiSquared: a(2, 2, 4, x), isWeights: a(1, 1, 1, x) },
        { epsilon: 0 },
      ],
      { advantages: [0.75, 1, -0.25, 0], returns: [1, 1, 0, 0] },
    ],
    [
      "tirOptimalTokenBaseline",
      [
        Batch.padded(2, 2, Uint8Array.of(1, 1, 0, 1)),
        { sizes: u(2) },
        { rewards: a(0, 1, x, 0), oldLogProbs: a(0, 0, x, 0), sumPiSquared: a(2, 2, x, 4) },
        { epsilon: 0 },
      ],
      { advantages: [0.75, 1, 0, -0.25], returns: [1, 1, 0, 0] },
    ],
    ["roleBaseline", [new RoleBaselines(2, 0.5), { roles: u(0, 1), scores: a(0, 0) }], [0, 0]],

    [
      "aggregate",
      [pair, a(1, x, 3, 4), { mode: "seq-mean-token-mean" }],
      { loss: 2.25, weights: [0.5, 0, 0.25, 0.25] },
    ],
    [
      "aggregate",
      [pair, a(1, x, 3, 4), { mode: "seq-mean-token-sum-norm", scale: 2 }],
      { loss: 2, weights: [0.25, 0, 0.25, 0.25] },
    ],
    [
      "aggregate",
      [pair, a(1, x, 3, 4), { mode: "prompt-mean", groups: { ids: u(0, 0) }, tokens: u(4) }],
      { loss: 2, weights: [0.25, 0, 0.25, 0.25] },
    ],
    [
      "aggregate",
      [pair, a(1, x, 3, 4), { mode: "token-mean", counts: { tokens: 8, ranks: 2 } }],
      { loss: 2, weights: [0.25, 0, 0.25, 0.25] },
    ],
    [
      "surrogate",
      [three, { logProbs: same, oldLogProbs: same, advantages: a(1, x, -0.5) }],
      { loss: -0.25, grad: [-0.5, 0, 0.25] },
    ],
    [
      "ppoClip",
      [four, ratios, { clipHigh: 0.5 }],
      { loss: -1.5, clipFraction: third, clipFractionLower: 0, kl: -ln(2) / 3, grad: [-third, 0, 0, third] },
    ],
    [
      "ppoClip",
      [four, ratios, { clipHigh: 0.5, dualClip: { bothSigns: 1.25 }, logRatioBound: null }],
      { loss: -1.25, clipFraction: 0, clipFractionLower: third, kl: -ln(2) / 3, grad: [-third, 0, 0, third] },
    ],
    ["surrogate", [three, { ...still, weights: a(2, x, 0) }], { loss: -1, grad: [-1, 0, 0] }],
    ["reinforce", [three, { ...still, advantages: a(1, x, -0.5) }], policy(0, [-0.5, 0, 0.25])],
    [
      "cispo",
      [three, ratio, { bounds: { kind: "relative", low: 0.5, high: 0.5 } }],
      policy(-0.75 * ln(2), [-0.75, 0, 0.5], 0.5, 0, -ln(2) / 2),
    ],
    [
      "cispo",
      [three, ratio, { bounds: { kind: "absolute", high: 1.5 } }],
      policy(-0.75 * ln(2), [-0.75, 0, 0.5], 0.5, 0, -ln(2) / 2),
    ],
    ["tisLoss", [three, ratio], policy(-0.5 * ln(2), [-0.5, 0, 0.5], 0.5, 0, -ln(2) / 2)],
    [
      "clipCov",
      [three, { ...still, advantages: a(1, x, 3), selected: Uint8Array.of(0, 1, 1) }],
      policy(-0.5, [-0.5, 0, 0], 0.5),
    ],
    [
      "clipCovSelection",
      [four, { logProbs: a(-4, -1, x, -1), oldLogProbs: a(-4, -1, x, -1), advantages: a(-2, 1, x, 1) }, { seed: 7 }],
      [1, 0, 0, 0],
    ],
    ["klCov", [three, { ...still, advantages: a(1, x, 3) }], policy(-2, [-0.5, 0, -1.5], 0.5)],
    [
      "dppoTv",
      [three, { logProbs: a(ln(0.75), x, ln(0.5)), oldLogProbs: a(ln(0.5), x, ln(0.5)), advantages: a(1, x, 1) }],
      policy(ln(2) / 2, [0, 0, -0.5], 0.5, 0, -ln(1.5) / 2),
    ],
    [
      "dppoKl",
      [three, { logProbs: a(ln(0.75), x, ln(0.25)), oldLogProbs: a(ln(0.25), x, ln(0.25)), advantages: a(1, x, -1) }],
      policy(-ln(4) / 2, [0, 0, 0.5], 0.5, 0, -ln(3) / 2),
    ],
    [
      "dro",
      [three, { logProbs: a(-0.5, x, -1), oldLogProbs: a(-1, x, -1), advantages: a(1, x, 1) }, { beta: 2 }],
      policy(0.875, [0, 0, -0.5], 0, 0, -0.25),
    ],
    ["gmpo", [three, { ...still, advantages: a(1, x, 2) }], policy(-1.5, [-0.75, 0, -0.75])],
    ["gspo", [three, { ...still, advantages: a(1, x, 0) }], policy(-0.5, [-0.25, 0, -0.25])],
    ["gspo", [three, { ...still, advantages: a(1, x, 0) }, { form: "token" }], policy(-0.5, [-0.5, 0, 0])],
    [
      "luspo",
      [
        Batch.padded(2, 2, Uint8Array.of(1, 1, 1, 0)),
        { logProbs: a(-0.5, -1, -0.25, x), oldLogProbs: a(-0.5, -1, -0.25, x), advantages: a(1, 1, -1, x) },
      ],
      policy(-0.5, [-0.5, -0.5, 0.5, 0]),
    ],
    [
      "gvpo",
      [
        pair,
        { ids: u(0, 0) },
        { logProbs: a(-0.5, x, -0.25, -1), oldLogProbs: a(-0.5, x, -0.25, -1), advantages: a(1, x, -1, -1) },
        { beta: 0.5 },
      ],
      { loss: 1, grad: [-0.5, 0, 0.5, 0.5] },
    ],
    [
      "positiveNll",
      [
        Batch.padded(2, 2, Uint8Array.of(1, 1, 1, 0)),
        { logProbs: a(-0.5, -1.5, -9, x), scores: a(1, -1) },
        { mu: 0.5 },
      ],
      { loss: 0.5, grad: [-0.25, -0.25, 0, 0] },
    ],
    ["sapo", [three, still, { tauNegative: 2 }], policy(-2, [-0.5, 0, -0.5])],
    ["vespo", [three, still], { loss: 0.75, phiMean: 1, grad: [-0.5, 0, -0.5] }],
    [
      "topkLogProbs",
      [two, { logits: a(2, 2, none, x, x, x), vocab: 3, tokens: u(1, 0, 99, 99), k: 2 }],
      [-ln(2), -ln(2), 0, 0],
    ],
    [
      "topkLogitsGradient",
      [two, { logits: a(0, 0, x, x), vocab: 2, tokens: u(0, 1, 99, 99), k: 2, gradLogProbs: a(1, -0.5, x, x) }],
      [0.75, -0.75, 0, 0],
    ],
    [
      "klLoss",
      [three, { logProbs: a(-1, x, -2), refLogProbs: a(-1.5, x, -1) }, { kl: { estimator: "k2" }, coefficient: 0.5 }],
      { loss: 0.15625, aggregated: 0.3125, mean: 0.3125, grad: [0.125, 0, -0.25] },
    ],
    [
      "opdLoss",
      [three, taught],
      {
        loss: 0.25,
        clipFraction: 0,
        clipFractionLower: 0,
        kl: 0,
        absLoss: 0.75,
        lossMin: -0.5,
        lossMax: 1,
        grad: [-0.25, 0, 0.5],
      },
    ],
    [
      "opdLoss",
      [three, taught, { route: "supervised", kl: { estimator: "k2" }, maxLoss: null }],
      {
        loss: 0.3125,
        clipFraction: 0,
        clipFractionLower: 0,
        kl: 0,
        absLoss: 0.3125,
        lossMin: 0.125,
        lossMax: 0.5,
        grad: [-0.25, 0, 0.5],
      },
    ],
    [
      "refKl",
      [
        three,
        {
          logProbs: a(ln(0.5), x, ln(0.25)),
          oldLogProbs: a(ln(0.5), x, ln(0.75)),
          refLogProbs: a(ln(0.5) + 0.5, x, ln(0.25) + 1),
        },
        { drift: 0 },
      ],
      {
        loss: -0.25,
        refKl: 0.75,
        fallen: 0.5,
        mismatchFallen: third - 1 + ln(3),
        mismatchKept: 0,
        grad: [-0.25, 0, 0],
      },
    ],
    [
      "iwOpd",
      [three, { logProbs: a(-1, x, -2), oldLogProbs: a(-1, x, -2), teacherLogProbs: a(-0.5, x, -2.5) }],
      {
        loss: -0.25,
        meanAdvantage: 0.0625,
        meanAbsAdvantage: 0.5,
        meanWeight: 1.375,
        minWeight: 1.25,
        maxWeight: 1.5,
        grad: [-0.375, 0, 0.3125],
      },
    ],
    [
      "forwardKlTopk",
      [
        two,
        { logProbs: a(ln(0.5) - 1, x), teacherLogProbs: a(ln(0.5), x), k: 1, teacherIds: u(7, 0), studentIds: u(7, 0) },
      ],
      {
        loss: 0.5,
        lossMin: 0.5,
        lossMax: 0.5,
        studentMass: massOf(Math.exp(-1) / 2),
        teacherMass: massOf(0.5),
        overlap: { ratio: 1, tokenAdvantage: -0.5 },
        losses: [0.5, 0],
        grad: [-0.5, 0],
      },
    ],
    [
      "topkJsd",
      [two, { logProbs: a(ln(0.25), x), teacherLogProbs: a(ln(0.5), x), k: 1 }, { beta: 0 }],
      { loss: ln(4 / 3) / 2, grad: [-third, 0] },
    ],
    [
      "mixedKlTopk",
      [two, { logProbs: a(0, 0, x, x), teacherLogProbs: a(1, 1, x, x), k: 2 }],
      { loss: 0, grad: [0, 0, 0, 0], gradEntropies: [0, 0] },
    ],
    [
      "mixedKlTopk",
      [
        two,
        { logProbs: a(ln(0.5), x), teacherLogProbs: a(0, x), k: 1, entropies: a(ln(2), x) },
        { forward: 0, outside: -2 },
      ],
      { loss: 1 - ln(2), grad: [-1, 0], gradEntropies: [-1, 0] },
    ],
    [
      "generalizedJsd",
      [two, { logits: a(0, 0, x, x), teacherLogits: a(0, none, x, x), vocab: 2 }, { beta: 0 }],
      { loss: ln(2), gradLogits: [-0.5, 0.5, 0, 0] },
    ],
    [
      "bypassLoss",
      [three, { logProbs: a(0, x, 0), oldLogProbs: a(0, x, 0), advantages: a(1, x, 1) }],
      {
        loss: -1,
        clipFraction: 0,
        clipFractionLower: 0,
        kl: 0,
        metrics: agreed,
        weights: [1, 0, 1],
        keep: [1, 0, 1],
        grad: [-0.5, 0, -0.5],
      },
    ],
    [
      "tokenWeights",
      [
        three,
        { logProbs: a(ln(0.5), x, 0), refLogProbs: a(ln(0.5) - 2, x, -1), advantages: a(-4, x, 1), weight: "kl-gated" },
      ],
      [2, 0, 0],
    ],
    ["advantageJump", [four, a(1, 3, x, 2.5)], [0, 2, 0, 0.5]],
    [
      "structuralWeights",
      [three, { logProbs: a(-1, x, -1), advantages: a(1, x, 1), complexity: a(2, x, 2) }],
      [0, 0, 0],
    ],
    [
      "trieComplexity",
      [
        Batch.padded(3, 2, Uint8Array.of(1, 1, 1, 1, 1, 0)),
        { sizes: u(3) },
        { tokens: u(7, 1, 7, 2, 7, 9), rewards: a(0, 1, 0, 3, 5, x) },
      ],
      [0, 1, 0, 1, 0, 0],
    ],
    [
      "dualGame",
      [
        three,
        {
          logProbs: a(-2, x, -1),
          oldLogProbs: a(-2, x, -1),
          refLogProbs: a(-2.5, x, -1),
          advantages: a(1, x, -1),
          weight: "structural",
          structural: a(0.5, x, 0.5),
        },
        { gamma: 1.5, lambda: 0.5, beta: 0.25 },
      ],
      { loss: 0.4375, clipFraction: 0, clipFractionUpper: 0, clipFractionLower: 0, kl: 0, grad: [-0.3125, 0, 0.75] },
    ],
    [
      "valueLoss",
      [three, { predictions: a(1, x, 2), values: a(1, x, 1), returns: a(0, x, 2) }],
      { loss: 0.3125, clipFraction: 0.5, grad: [0.5, 0, 0] },
    ],
    ["entropyBonus", [three, a(1, x, 3), { coefficient: 0.5 }], { loss: -1, grad: [-0.25, 0, -0.25] }],

    ["mean", [three, a(1, x, 2)], 1.5],
    ["variance", [three, a(1, x, 3), { spread: "population" }], 1],
    ["correlation", [four, { x: a(1, 2, x, 3), y: a(3, 2, x, 1) }], -1],
    ["explainedVariance", [three, { values: a(1, x, 1), returns: a(0, x, 4) }, { epsilon: 0 }], 0],
    ["klMeans", [three, logProbs], { k1: 0.25, abs: 0.25, k2: 0.0625, k3: (Math.exp(-0.5) - 0.5) / 2 }],
    ["clipFractions", [four, ratios], { clipped: third, low: 0, high: third, dual: 0 }],
    ["effectiveSampleSize", [four, a(2, 2, x, 0)], 2],
    ["quantile", [Batch.padded(1, 5, Uint8Array.of(1, 1, 0, 1, 1)), a(3, -1, x, 0, 7), { level: 0.5 }], 1.5],
    ["rowMeans", [pair, a(1, x, 3, 4)], [1, 3.5]],
    ["rowNormalize", [three, a(1, x, 3), { floor: 1e-8 }], [-1, 0, 1]],
    [
      "varianceProxy",
      [
        pair,
        { oldLogProbs: a(none, x, none, none), sumPiSquared: a(0, x, 0, 1), advantages: a(2, x, 1, 1) },
        { gradientNorm: 1 },
      ],
      {
        "variance_proxy/proxy1_signal_strength": 1,
        "variance_proxy/proxy2_total_power": 3.5,
        "variance_proxy/proxy3_pure_noise": 2.5,
        "variance_proxy/expected_a_squared": 2.5,
        "variance_proxy/expected_w": 2,
      },
    ],
    [
      "verlMetrics",
      [pair, { scores: a(2, x, 1, 3), advantages: a(1, x, -2, 4), responseLengths: { tokens: u(1, 2), limit: 2 } }],
      {
        "critic/score/mean": 3,
        "critic/score/max": 4,
        "critic/score/min": 2,
        "critic/advantages/mean": 1,
        "critic/advantages/max": 4,
        "critic/advantages/min": -2,
        "response_length/mean": 1.5,
        "response_length/max": 2,
        "response_length/min": 1,
        "response_length/clip_ratio": 0.5,
        "response_length_non_aborted/mean": 1.5,
        "response_length_non_aborted/max": 2,
        "response_length_non_aborted/min": 1,
        "response_length_non_aborted/clip_ratio": 0.5,
        "response/aborted_ratio": 0,
      },
    ],
    [
      "trlMetrics",
      [
        pair,
        {
          entropies: a(1, x, 2, 3),
          completionLengths: u(1, 2),
          truncated: Uint8Array.of(0, 1),
          rewards: {
            groups: { sizes: u(2) },
            sources: a(1, 1),
            sourceWeights: Float64Array.of(0.5),
            names: ["exact"],
          },
        },
      ],
      {
        "completions/mean_length": 1.5,
        "completions/min_length": 1,
        "completions/max_length": 2,
        "completions/clipped_ratio": 0.5,
        "completions/mean_terminated_length": 1,
        "completions/min_terminated_length": 1,
        "completions/max_terminated_length": 1,
        reward: 0.5,
        reward_std: 0,
        frac_reward_zero_std: 1,
        entropy: 2,
        "rewards/exact/mean": 1,
        "rewards/exact/std": 0,
      },
    ],
    [
      "openrlhfMetrics",
      [
        pair,
        { rewards: a(1, x, 0.5, 0.5), scores: a(2, 1), valueLoss: { loss: 0.25, clipFraction: 0 } },
        { klUse: "loss" },
      ],
      {
        "train/reward": 1.5,
        "train/return": 1,
        "train/response_length": 1.5,
        "train/critic_loss": 0.25,
      },
    ],
    ["moments", [three, a(1, x, 3)], dot()],
    [
      "coMoments",
      [three, { x: a(1, x, 3), y: a(0, x, -4) }],
      { count: 2, meanX: 2, meanY: -2, m2X: 2, m2Y: 8, coMoment: -4 },
    ],
    [
      "analysis",
      [three, analysed],
      {
        "analysis/entropy_per_token_mean": 0,
        "analysis/covariance_mean": 0,
        "analysis/wH_sum": 0,
        "analysis/wH_per_token": 0,
        "analysis/reward_sum_mean": 1.25,
      },
    ],
    [
      "analysisSums",
      [three, analysed],
      {
        moments: { count: 2, meanX: 0, meanY: 0, m2X: 2, m2Y: 0, coMoment: 0 },
        entropySum: 0,
        whSum: 0,
        rewardSum: 1.25,
        sequences: 1,
      },
    ],

    ["rolloutWeights", [three, quadruple], { weights: [1, 0, 2], factor: 1 }],
    [
      "rolloutWeights",
      [three, quadruple, { bound: { kind: "zero", lower: 0.5, upper: 2 }, logBound: null }],
      { weights: [1, 0, 0], factor: 1 },
    ],
    [
      "rolloutGate",
      [three, quadruple, { level: "token", upper: 2 }],
      { weights: [1, 0, 0], filtered: 0.5, kl: -ln(2) },
    ],
    ["rolloutRejection", [three, apart, { criteria: [{ option: "token-k2", upper: 0.25 }] }], [1, 0, 0]],
    ["klMask", [three, apart, { tau: 0.125 }], [1, 0, 0]],
    ["sequenceVeto", [pair, { oldLogProbs: a(-1, x, -20, -1), rolloutLogProbs: a(-1, x, -1, -1) }], [1, 0, 0, 0]],
    [
      "sequenceVeto",
      [pair, { oldLogProbs: a(-1, x, -2, -1), rolloutLogProbs: a(-2, x, -2, -1) }, { upper: 2 }],
      [0, 0, 1, 1],
    ],
    [
      "m2poMask",
      [
        Batch.padded(1, 4, Uint8Array.of(1, 0, 1, 1)),
        { oldLogProbs: a(-1, x, -3, -1), rolloutLogProbs: a(-1.5, x, -1, -1) },
        { tau: 0.2 },
      ],
      [1, 0, 0, 1],
    ],
    [
      "offPolicySequenceMask",
      [pair, { logProbs: a(-2, x, -2, -1), oldLogProbs: a(-1, x, -1, -1), advantages: a(1, x, -1, -1) }],
      [1, 0, 0, 0],
    ],
    [
      "highEntropyMask",
      [Batch.padded(1, 6, Uint8Array.of(1, 1, 0, 1, 1, 1)), a(0.5, 2, x, 1, 0.25, 0), { share: 0.25 }],
      [0, 1, 0, 1, 0, 0],
    ],
    ["dynamicSamplingFilter", [{ sizes: u(2, 2, 1) }, a(1, 1, 0, 1, 1)], [0, 1, 1]],
    [
      "dynamicSamplingFilter",
      [{ sizes: u(2, 2, 1) }, a(1, 1, 0, 1, 1), { kind: "mean-between", low: 0, high: 1 }],
      [0, 1, 0],
    ],
    ["pfPpoWeights", [a(-2, 0.5, 1), { kind: "max-min" }], [1 + 1e-8, 1e-8, 1 + 1e-8]],
    ["pfPpoWeights", [a(-2, 0.5, 1)], [4 + 1e-8, 0.25 + 1e-8, 1 + 1e-8]],
    [
      "probabilityDifference",
      [three, { oldLogProbs: a(0, x, none), rolloutLogProbs: a(none, x, none) }],
      {
        "training/rollout_probs_diff_valid": 1,
        "training/rollout_probs_diff_max": 1,
        "training/rollout_probs_diff_mean": 0.5,
        "training/rollout_probs_diff_std": Math.sqrt(0.5),
        "training/rollout_actor_probs_pearson_corr": NaN,
      },
    ],
    ["rolloutMismatch", [three, { oldLogProbs: a(0, x, 0), rolloutLogProbs: a(0, x, 0) }], agreed],
    [
      "rolloutWeightMetrics",
      [three, { oldLogProbs: a(0, x, 0), rolloutLogProbs: a(0, x, 0) }],
      corr("rollout_is_", {
        mean: 1,
        std: 0,
        max: 1,
        min: 1,
        eff_sample_size: (1 + 1e-8) ** 2,
        ratio_fraction_high: 0,
        ratio_fraction_low: 0,
        seq_mean: 1,
        seq_std: 0,
        seq_max: 1,
        seq_min: 1,
        seq_max_deviation: 0,
        seq_fraction_high: 0,
        seq_fraction_low: 0,
      }),
    ],
    ["rolloutRejectionMetrics", [three, apart], corr("rollout_rs_", { masked_fraction: 0, seq_masked_fraction: 0 })],

    [
      "compareProfiles",
      [
        two,
        { sizes: u(1) },
        { rewards: a(1, x), scores: a(0), logProbs: a(-1, x), oldLogProbs: a(-1, x) },
        ["trl-1.16", "trl-1.16"],
      ],
      [],
    ],
    [
      "compareProfiles",
      [
        Batch.padded(1, 1, Uint8Array.of(0)),
        { sizes: u(1) },
        { rewards: a(x), scores: a(0), logProbs: a(x), oldLogProbs: a(x) },
        ["verl-0.9.1", "trl-1.16"],
        { gamma: 0.5, estimator: "leave-one-out" },
      ],
      ["ppo_clip", "gspo", "gmpo", "cispo", "sapo"].map((result) => ({
        result,
        shape: "scalar",
        index: null,
        values: [NaN, 0],
        refused: [null, null],
        difference: NaN,
        count: 1,
        causes: [{ convention: "empty_loss", values: ["Nan", "Zero"] }],
      })),
    ],

    ["exp", [0], 1],
    ["ln", [1], 0],
    ["sqrt", [2.25], 1.5],
  ];
}

const moments = { count: 2, mean: 2, m2: 2 };
const coMoments = { count: 2, meanX: 2, meanY: -2, m2X: 2, m2Y: 8, coMoment: -4 };
const sums = { moments: coMoments, entropySum: 1, whSum: 0.5, rewardSum: 3, sequences: 2 };

/** The functions that know no precision. */
export const plainCases = [
  [
    "conventions",
    ["paper"],
    {
      "divisor": "Count",
      "across": "StepOver",
      "gae.lambda": "1.0",
      "whiten.spread": "Sample",
      "whiten.place": "InsideRoot",
      "group.epsilon": "0.0",
      "singleton": "Zero",
      "baseline.singleton": "Zero",
      "gpg.factor": "Exact",
      "score_slots": "Kept",
      "kl.bounds": "Unbounded",
      "kl_loss.estimator": "K3",
      "kl_reward.beta": "0.001",
      "reward.clip": "inf",
      "overlong.floor": "Factor",
      "aggregate.empty_rows": "Excluded",
      "aggregate.divisor": "Count",
      "log_ratio_bound": "None",
      "dual_clip.bound": "None",
      "dual_clip.signs": "NegativeOnly",
      "reported_kl": "Bounded",
      "gspo.form": "Sequence",
      "gspo.log_ratio_cap": "None",
      "gspo.mode": "SequenceMeanTokenMean",
      "gspo.clip": "[0.0003, 0.0004]",
      "gmpo.clip": "[0.4, 0.4]",
      "cispo.bounds": "Relative { low: 0.2, high: 0.2 }",
      "value.clip": "Some(0.5)",
      "entropy.coefficient": "0.01",
      "rollout.level": "Token",
      "rollout.bound": "Truncate { upper: 2.0 }",
      "rollout.log_bound": "Unbounded",
      "rollout.unscored": "Nan",
      "minillm.from": "Token",
      "minillm.length": "Kept",
      "empty_mean": "Refused",
      "empty_loss": "Refused",
    },
  ],
  ["groupTokens", [Batch.padded(3, 2, Uint8Array.of(1, 1, 1, 0, 1, 0)), { ids: Uint32Array.of(1, 0, 1) }], [1, 3]],
  ["pfPpoIndices", [{ weights: Float64Array.of(0, 2.5, 0), draws: 4 }, { seed: 7 }], [1, 1, 1, 1]],
  [
    "responseMaskFromEos",
    [
      { batch: 2, len: 4 },
      { tokens: Uint32Array.of(20, 1, 0, 0, 78, 2, 1, 0), eos: Uint32Array.of(1, 2) },
    ],
    [1, 1, 0, 0, 1, 1, 0, 0],
  ],
  [
    "parseRejection",
    ["seq_sum_k1, token_k3", "2.0, 0.01"],
    [
      { option: "seq-sum-k1", lower: 0.5, upper: 2 },
      { option: "token-k3", lower: 0, upper: 0.01 },
    ],
  ],
  ["parseWeightBound", ["2.0"], { kind: "truncate", upper: 2 }],
  ["parseWeightBound", ["0.5_5.0"], { kind: "zero", lower: 0.5, upper: 5 }],
  [
    "lint",
    [
      Batch.padded(2, 2, Uint8Array.of(1, 0, 1, 1)),
      {
        rewards: Float64Array.of(0, 0.5, 0, 1),
        oldLogProbs: Float64Array.of(-1, 0, -1, NaN),
        scores: Float64Array.of(1, 1),
        groups: Uint32Array.of(0, 0),
      },
    ],
    {
      counts: {
        "not-a-number": 1,
        "reward-on-dropped-slot": 1,
        "last-token-hidden": 0,
        "nothing-kept": 0,
        "ratio-at-first-update": 0,
        "returns-disagree": 0,
        "group-not-centred": 0,
        "tied-group": 1,
      },
      findings: [
        {
          rule: "reward-on-dropped-slot",
          sequence: 0,
          token: 1,
          field: "rewards",
          numbers: { value: 0.5 },
          spoilt: null,
        },
        {
          rule: "not-a-number",
          sequence: 1,
          token: 1,
          field: "oldLogProbs",
          numbers: { value: NaN, more: 0 },
          spoilt: {},
        },
        { rule: "tied-group", sequence: 0, token: null, field: null, numbers: { size: 2, score: 1 }, spoilt: null },
      ],
    },
  ],
  [
    "lint",
    [
      Batch.packed(Uint32Array.of(0, 1, 2), Uint8Array.of(1, 1)),
      {
        logProbs: Float64Array.of(0, 1),
        oldLogProbs: Float64Array.of(0, 0),
        values: Float64Array.of(0.5, NaN),
        advantages: Float64Array.of(0.25, NaN),
        returns: Float64Array.of(1, NaN),
        firstUpdate: Uint8Array.of(0, 1),
        scores: Float64Array.of(NaN, 1),
        scored: Uint8Array.of(0, 1),
      },
      { tolerance: 0.125, limit: 2 },
    ],
    {
      counts: {
        "not-a-number": 1,
        "reward-on-dropped-slot": 0,
        "last-token-hidden": 0,
        "nothing-kept": 0,
        "ratio-at-first-update": 1,
        "returns-disagree": 1,
        "group-not-centred": 0,
        "tied-group": 0,
      },
      findings: [
        {
          rule: "returns-disagree",
          sequence: 0,
          token: 0,
          field: null,
          numbers: { returned: 1, value: 0.5, advantage: 0.25, wanted: 0.75, more: 0 },
          spoilt: null,
        },
        {
          rule: "not-a-number",
          sequence: 1,
          token: 0,
          field: "values",
          numbers: { value: NaN, more: 0 },
          spoilt: { advantages: 1, returns: 1 },
        },
      ],
    },
  ],
  ["reduceMetric", ["critic/score/max", Float64Array.of(1, 3, 2)], 3],
  ["reduceMetric", ["actor/pg_loss", Float64Array.of(1, 3), true], 4],
  ["fixedKl", [0.5, 3, 64], 0.5],
  ["adaptiveKl", [{ beta: 0.5, target: 0.25, horizon: 100 }, 9, 100], 0.6],
  ["momentsMerge", [moments, { count: 2, mean: 4, m2: 2 }], { count: 4, mean: 3, m2: 8 }],
  ["momentsMean", [moments], 2],
  ["momentsVariance", [moments, { spread: "sample", divisor: "count" }], 2],
  ["coMomentsMerge", [coMoments, coMoments], { count: 4, meanX: 2, meanY: -2, m2X: 4, m2Y: 16, coMoment: -8 }],
  ["coMomentsCovariance", [coMoments, { spread: "population" }], -2],
  ["coMomentsCorrelation", [coMoments], -1],
  [
    "analysisMerge",
    [sums, sums],
    {
      moments: { count: 4, meanX: 2, meanY: -2, m2X: 4, m2Y: 16, coMoment: -8 },
      entropySum: 2,
      whSum: 1,
      rewardSum: 6,
      sequences: 4,
    },
  ],
  [
    "analysisEntries",
    [sums],
    {
      "analysis/entropy_per_token_mean": 0.5,
      "analysis/covariance_mean": -2,
      "analysis/wH_sum": 0.5,
      "analysis/wH_per_token": 0.25,
      "analysis/reward_sum_mean": 1.5,
    },
  ],
];
