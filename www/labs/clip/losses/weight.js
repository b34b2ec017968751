// Losses that weigh log π: the ratio is at most a constant factor.

import { brackets, group, name, op, over, upright } from "../../../parts/math.js";
import { high, low, lowHighMarks, parameter, positive, SUM } from "./description.js";
import { call, clip, comma, minus, one, times, weighted, when } from "./notation.js";

/** @typedef {import("./description.js").Description} Description */
/** @typedef {import("./description.js").Values} Values */
/** @typedef {import("./description.js").Writer} Writer */

/** min(ρ, cap) @param {Writer} w */
const capped = (w) => call("min", w("rho"), comma(), w("cap"));

/** min(ρ, 1) @param {Writer} w */
const atMostOne = (w) => call("min", w("rho"), comma(), one());

const ONE = { x: 1, text: "1" };

const dppo = {
  parameters: [low(0.2), high(0.2), parameter("cap", "c", 3, positive)],
  marks: (/** @type {Values} */ v) => [{ x: v("cap"), text: "c" }],
  zeroMarks: true,
};

/** A capped weight for the tokens that are kept. @param {Writer} w @param {() => Element} kept */
const gated = (w, kept) => {
  const { loss, slope } = weighted(w, () => capped(w));
  return { loss: [...loss, times(), kept()], slope: [...slope, times(), kept()] };
};

/** @type {Description[]} */
export const weightLosses = [
  {
    id: "cispo",
    examples: ["overview", "keeps", "bad"],
    explainedIn: ["keeps"],
    look: [1, 3],
    parameters: [low(0.2), high(0.2)],
    run: ({ library, batch, input }, v) =>
      library.cispoF64(batch, input, { bounds: { kind: "relative", low: v("low"), high: v("high") }, aggregate: SUM }),
    formula: (w) => weighted(w, () => clip(w("rho"), w("low"), w("high"))),
    marks: lowHighMarks,
    fromProfile: (numbers) => {
      const [below, above] = numbers("cispo.bounds");
      return above === undefined ? {} : { low: below, high: above };
    },
  },
  {
    id: "cispoCap",
    examples: ["keeps"],
    look: [6, 1],
    parameters: [parameter("cap", "ε_max", 5, positive)],
    run: ({ library, batch, input }, v) =>
      library.cispoF64(batch, input, { bounds: { kind: "absolute", high: v("cap") }, aggregate: SUM }),
    formula: (w) => weighted(w, () => capped(w)),
    marks: (v) => [{ x: v("cap"), text: "ε max" }],
    fromProfile: (numbers) => {
      const [cap, above] = numbers("cispo.bounds");
      return above === undefined ? { cap } : {};
    },
  },
  {
    id: "tis",
    examples: ["keeps", "bad"],
    look: [4, 2],
    parameters: [],
    run: ({ library, batch, input }) => library.tisLossF64(batch, input, { aggregate: SUM }),
    formula: (w) => weighted(w, () => atMostOne(w)),
    marks: () => [ONE],
  },
  {
    id: "topr",
    examples: ["bad"],
    explainedIn: ["bad"],
    look: [5, 5],
    parameters: [
      parameter("positive", "w_+", 1, { step: 0.1, when: 1 }),
      parameter("negative", "w_−", 1, { step: 0.1, when: -1 }),
    ],
    // a response is good or bad as a whole; here its score has the sign of the advantage
    run: ({ library, batch, input, rows, width }, v) => {
      const scores = Float64Array.from({ length: rows }, (_, i) => input.advantages[i * width]);
      const config = { positive: v("positive"), negative: v("negative"), aggregate: SUM };
      return library.toprF64(batch, { ...input, scores }, config);
    },
    formula: (w, bad) => {
      if (!bad)
        return {
          loss: [minus(), w("positive"), times(), w("A"), times(), w("logp")],
          slope: [minus(), w("positive"), times(), w("A")],
        };
      const { loss, slope } = weighted(w, () => atMostOne(w));
      const factor = () => [minus(), w("negative"), times()];
      return { loss: [...factor(), ...loss.slice(1)], slope: [...factor(), ...slope.slice(1)] };
    },
    marks: (_, bad) => (bad ? [ONE] : []),
  },
  {
    id: "dppoTv",
    examples: ["rare"],
    explainedIn: ["rare"],
    look: [2, 1],
    ...dppo,
    run: ({ library, batch, input }, v) =>
      library.dppoTvF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), ratioCap: v("cap"), aggregate: SUM }),
    formula: (w, bad) =>
      gated(w, () =>
        bad
          ? when(w("p"), minus(), w("q"), op("≥"), minus(), w("low"))
          : when(w("p"), minus(), w("q"), op("≤"), w("high")),
      ),
  },
  {
    id: "dppoKl",
    examples: ["rare"],
    look: [3, 3],
    ...dppo,
    run: ({ library, batch, input }, v) =>
      library.dppoKlF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), ratioCap: v("cap"), aggregate: SUM }),
    formula: (w, bad) => {
      const kept = () =>
        when(name("b"), op("≤"), w(bad ? "low" : "high"), upright(" or "), w("p"), op(bad ? "≥" : "≤"), w("q"));
      const b = [
        name("b"),
        op("="),
        w("q"),
        upright("log"),
        over(w("q"), w("p")),
        op("+"),
        brackets(one(), minus(), w("q")),
        upright("log"),
        over(group(one(), minus(), w("q")), group(one(), minus(), w("p"))),
      ];
      return { ...gated(w, kept), with: [b] };
    },
  },
  {
    id: "reinforce",
    look: [7, 0],
    parameters: [],
    run: ({ library, batch, input }) => library.reinforceF64(batch, input, { aggregate: SUM }),
    formula: (w) => ({ loss: [minus(), w("A"), times(), w("logp")], slope: [minus(), w("A")] }),
  },
];
