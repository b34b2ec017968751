// Losses without an edge: a gate that closes slowly, or a price on leaving the old policy.

import { brackets, group, name, number, op, over, sup, upright } from "../../../parts/math.js";
import { parameter, positive, SUM } from "./description.js";
import { minus, one, plain, times } from "./notation.js";

/** @type {import("./description.js").Description[]} */
export const softLosses = [
  {
    id: "sapo",
    examples: ["overview", "soft", "bad"],
    explainedIn: ["soft"],
    look: [3, 1],
    parameters: [
      parameter("tauPositive", "τ", 1, { ...positive, step: 0.05, when: 1 }),
      parameter("tauNegative", "τ", 1.05, { ...positive, step: 0.05, when: -1 }),
    ],
    run: ({ library, batch, input }, v) =>
      library.sapoF64(batch, input, { tauPositive: v("tauPositive"), tauNegative: v("tauNegative"), aggregate: SUM }),
    formula: (w) => {
      const gate = () => group(name("σ"), brackets(w("tau"), brackets(w("rho"), minus(), one())));
      const closed = brackets(one(), minus(), gate());
      return {
        loss: [minus(), over(number("4"), w("tau")), times(), gate(), times(), w("A")],
        slope: [minus(), number("4"), times(), gate(), closed, times(), w("rho"), times(), w("A")],
      };
    },
  },
  {
    id: "dro",
    examples: ["soft"],
    look: [6, 2],
    parameters: [parameter("beta", "β", 1, positive)],
    run: ({ library, batch, input }, v) => library.droF64(batch, input, { beta: v("beta"), aggregate: SUM }),
    formula: (w) => {
      const spring = [over(one(), number("2")), times(), w("beta"), times(), sup(w("d"), number("2"))];
      return {
        loss: [minus(), w("A"), times(), w("logp"), op("+"), ...spring],
        slope: [minus(), w("A"), op("+"), w("beta"), times(), w("d")],
      };
    },
    zeroMarks: true,
  },
  {
    id: "klCov",
    look: [0, 3],
    parameters: [parameter("kappa", "κ", 0.1, { step: 0.05 })],
    // the token shown is one of those chosen
    run: ({ library, batch, input }, v) =>
      library.klCovF64(batch, input, { ratio: 1, klCoef: v("kappa"), aggregate: SUM }),
    formula: (w) => ({
      loss: [...plain(w, "rho"), op("+"), w("kappa"), times(), op("|"), w("d"), op("|")],
      slope: [...plain(w, "rho"), op("+"), w("kappa"), times(), upright("sign"), brackets(w("d"))],
    }),
    zeroMarks: true,
  },
];
