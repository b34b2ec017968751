// Cases of policy, divergence, reward and advantage.
import { tokenwise } from "../load.mjs";
import { ln } from "./data.mjs";

const { Batch, RoleBaselines } = tokenwise;

export const advantage = ({ x, a, u, two, three, four, pair, groups, none, logProbs, plain, sources, corners }) => [
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
    [two, { logProbs: a(ln(2), x), refLogProbs: a(ln(2) - 0.5, x), oldLogProbs: a(0, x) }, { kl: { estimator: "k2" } }],
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
    [{ sizes: u(2) }, { scores: a(1, 1), outputs: u(10, 20), inputs: u(0, 0), turns: u(1, 1) }, { outputWeight: 0.5 }],
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
];
