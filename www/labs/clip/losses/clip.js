// Losses that clip the token's own ratio.

import { op } from "../../../parts/math.js";
import { EPS, epsMarks, high, low, lowHighMarks, parameter, SUM } from "./description.js";
import { call, clip, clipped, comma, inside, minus, one, plain, times, when } from "./notation.js";

/** @typedef {import("./description.js").Description} Description */
/** @typedef {import("./description.js").Writer} Writer */

const bound = { range: /** @type {[number, number]} */ ([1.001, 100]), step: 0.1 };

/** −ρ·A·[1 − ε ≤ ρ ≤ c] @param {Writer} w */
const betweenBounds = (w) => [
  ...plain(w, "rho"),
  times(),
  when(one(), minus(), w("eps"), op("≤"), w("rho"), op("≤"), w("c")),
];

/** @type {Description["formula"]} */
const ppo = (w, bad) => ({
  loss: clipped(w, "rho", "eps", "eps"),
  slope: [...plain(w, "rho"), times(), inside(w, bad, "rho", "eps", "eps")],
});

/** @type {Description[]} */
export const clipLosses = [
  {
    id: "surrogate",
    examples: ["overview", "dual"],
    look: [7, 2],
    parameters: [],
    run: ({ library, batch, input }) => library.surrogateF64(batch, input, { aggregate: SUM }),
    formula: (w) => ({ loss: plain(w, "rho"), slope: plain(w, "rho") }),
  },
  {
    id: "ppo",
    examples: ["overview", "dual", "higher", "keeps", "soft", "outlier", "rare", "bad"],
    explainedIn: ["overview"],
    look: [0, 0],
    parameters: [EPS],
    run: ({ library, batch, input }, v) =>
      library.ppoClipF64(batch, input, { clipLow: v("eps"), clipHigh: v("eps"), aggregate: SUM }),
    formula: ppo,
    marks: epsMarks,
  },
  {
    id: "higher",
    examples: ["higher"],
    explainedIn: ["higher"],
    look: [1, 1],
    parameters: [low(0.2), high(0.28)],
    run: ({ library, batch, input }, v) =>
      library.ppoClipF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), aggregate: SUM }),
    formula: (w, bad) => ({
      loss: clipped(w, "rho", "low", "high"),
      slope: [...plain(w, "rho"), times(), inside(w, bad, "rho", "low", "high")],
    }),
    marks: lowHighMarks,
  },
  {
    id: "dual",
    examples: ["dual"],
    explainedIn: ["dual"],
    look: [6, 3],
    parameters: [EPS, parameter("c", "c", 3, bound)],
    run: ({ library, batch, input }, v) =>
      library.ppoClipF64(batch, input, {
        clipLow: v("eps"),
        clipHigh: v("eps"),
        dualClip: { negativeOnly: v("c") },
        aggregate: SUM,
      }),
    formula: (w, bad) =>
      bad
        ? {
            loss: [minus(), call("max", ...clipped(w, "rho", "eps", "eps").slice(1), comma(), w("c"), times(), w("A"))],
            slope: betweenBounds(w),
          }
        : ppo(w, bad),
    marks: (v, bad) => [...epsMarks(v), ...(bad ? [{ x: v("c"), text: "c" }] : [])],
    fromProfile: (numbers) => ({ c: numbers("dual_clip.bound")[0] }),
  },
  {
    id: "delta",
    look: [3, 5],
    parameters: [EPS, parameter("c", "δ", 4, bound)],
    run: ({ library, batch, input }, v) =>
      library.ppoClipF64(batch, input, {
        clipLow: v("eps"),
        clipHigh: v("eps"),
        dualClip: { bothSigns: v("c") },
        aggregate: SUM,
      }),
    formula: (w, bad) => {
      const capped = [call("min", w("rho"), comma(), w("c")), times(), w("A")];
      const clippedTerm = [clip(w("rho"), w("eps"), w("eps")), times(), w("A")];
      return {
        loss: [minus(), call("min", ...capped, comma(), ...clippedTerm)],
        slope: bad ? betweenBounds(w) : ppo(w, bad).slope,
      };
    },
    marks: (v) => [...epsMarks(v), { x: v("c"), text: "δ" }],
  },
];
