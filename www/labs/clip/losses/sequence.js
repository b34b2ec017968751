// Losses whose ratio is that of the whole sequence.

import { brackets, group, name, op, over, sup } from "../../../parts/math.js";
import { high, low, parameter, positive, SUM } from "./description.js";
import { call, clipped, comma, held, inside, minus, one, plain, summed, times, when } from "./notation.js";

/** @typedef {import("./description.js").Description} Description */
/** @typedef {import("./description.js").Writer} Writer */

/** @type {Description["formula"]} */
const gspo = (w, bad) => ({
  loss: clipped(w, "s", "low", "high"),
  slope: [...plain(w, "s"), times(), inside(w, bad, "s", "low", "high")],
  with: [[name("s"), op("="), call("exp", over(group(...summed(w, w("d"), w("o"))), w("n")))]],
});

/** A log-ratio held on the side the advantage pushes to. @param {Writer} w @param {boolean} bad @param {string} what */
const bounded = (w, bad, what) =>
  bad ? call("max", w(what), comma(), minus(), w("low")) : call("min", w(what), comma(), w("high"));

/**
 * A mean as a sum: the only product here that the library does not compute.
 * @param {{ loss: number, grad: Float64Array }} result
 * @param {number} factor
 */
const scaled = ({ loss, grad }, factor) => ({ loss: loss * factor, grad: grad.map((one) => one * factor) });

/** @type {Description[]} */
export const sequenceLosses = [
  {
    id: "gspo",
    examples: ["overview", "outlier"],
    explainedIn: ["outlier"],
    look: [2, 5],
    sequence: true,
    parameters: [low(0.2), high(0.2)],
    run: ({ library, batch, input }, v) =>
      library.gspoF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), aggregate: SUM }),
    formula: gspo,
    zeroMarks: true,
    fromProfile: (numbers) => {
      const [below, above] = numbers("gspo.clip");
      return { low: below, high: above };
    },
  },
  {
    id: "luspo",
    examples: ["outlier"],
    look: [1, 6],
    sequence: true,
    parameters: [low(0.2), high(0.2)],
    // the library's result is a mean over the sequences
    run: ({ library, batch, input, rows }, v) =>
      scaled(library.luspoF64(batch, input, { clipLow: v("low"), clipHigh: v("high") }), rows),
    formula: gspo,
    zeroMarks: true,
  },
  {
    id: "gmpo",
    examples: ["outlier"],
    look: [4, 3],
    sequence: true,
    shared: true,
    parameters: [low(0.4), high(0.4)],
    // "ranks" multiplies the result: the mean over a sequence's tokens becomes their sum
    run: ({ library, batch, input, width }, v) =>
      library.gmpoF64(batch, input, { clipLow: v("low"), clipHigh: v("high"), counts: { sequences: 1, ranks: width } }),
    formula: (w, bad) => ({
      loss: plain(w, "R"),
      slope: [
        ...plain(w, "R"),
        times(),
        bad ? when(w("d"), op("≥"), minus(), w("low")) : when(w("d"), op("≤"), w("high")),
      ],
      with: [
        [
          name("R"),
          op("="),
          call("exp", over(group(...summed(w, bounded(w, bad, "d"), bounded(w, bad, "o"))), w("n"))),
        ],
      ],
    }),
    zeroMarks: true,
    fromProfile: (numbers) => {
      const [below, above] = numbers("gmpo.clip");
      return { low: below, high: above };
    },
  },
  {
    id: "vespo",
    examples: ["soft"],
    look: [5, 1],
    sequence: true,
    parameters: [
      parameter("kPositive", "k", 2, { ...positive, when: 1 }),
      parameter("lambdaPositive", "λ", 3, { ...positive, when: 1 }),
      parameter("kNegative", "k", 3, { ...positive, when: -1 }),
      parameter("lambdaNegative", "λ", 2, { ...positive, when: -1 }),
    ],
    run: ({ library, batch, input }, v) =>
      library.vespoF64(batch, input, {
        kPositive: v("kPositive"),
        lambdaPositive: v("lambdaPositive"),
        kNegative: v("kNegative"),
        lambdaNegative: v("lambdaNegative"),
        aggregate: SUM,
      }),
    formula: (w) => ({
      loss: [minus(), held(name("φ")), times(), w("A"), times(), w("logp")],
      slope: [minus(), name("φ"), times(), w("A")],
      with: [
        [
          name("φ"),
          op("="),
          sup(w("w"), w("k")),
          times(),
          sup(name("e"), group(w("lambda"), brackets(one(), minus(), w("w")))),
        ],
        [name("w"), op("="), call("exp", ...summed(w, w("d"), w("o")))],
      ],
    }),
    zeroMarks: true,
  },
];
