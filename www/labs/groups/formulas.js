// An estimator as a formula, and the same with the numbers of one sample.

import { mathml } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { brackets, group, math, name, number, op, over, root, sub, upright } from "../../parts/math.js";

/**
 * @typedef {object} Case one sample in its group
 * @property {number} score
 * @property {import("./compute.js").Group} group
 * @property {import("./compute.js").Group | undefined} rest the same of the group without the sample
 * @property {{ mean: number, sample: number }} batch
 * @property {number} epsilon
 * @property {number} alpha of GPG
 * @property {number} second the second best score of the group
 * @property {boolean} best whether the sample is the best of its group
 * @property {number} greedy
 * @property {{ weight: number, score: number, group: import("./compute.js").Group }[]} sources
 * @property {{ mean: number, variance: number, value: number } | undefined} whitening
 * @property {number} baseline what the sample was compared with, for the token baseline
 */

const s = () => sub(name("s"), name("i"));
const mu = (/** @type {Element} */ index = name("g")) => sub(name("μ"), index);
const sigma = (/** @type {Element} */ index = name("g")) => sub(name("σ"), index);
const eps = () => name("ε");
const num = (/** @type {number} */ value) => number(short(value));
const minus = (/** @type {Element} */ a, /** @type {Element} */ b) => group(a, op("−"), b);
const plus = (/** @type {Element} */ a, /** @type {Element} */ b) => group(a, op("+"), b);
const rest = () => group(op("−"), name("i"));

/** @typedef {[symbols: () => Element, numbers: (sample: Case) => Element]} Pair */

/** @type {Pair} */
const scaled = [
  () => over(minus(s(), mu()), plus(sigma(), eps())),
  ({ score, group: { mean, sample }, epsilon }) => over(minus(num(score), num(mean)), plus(num(sample), num(epsilon))),
];
/** @type {Pair} */
const centred = [() => minus(s(), mu()), ({ score, group: { mean } }) => minus(num(score), num(mean))];
/** @param {() => Element} value @returns {Pair} */
const whitened = (value) => [
  () => over(minus(value(), name("m")), root(plus(name("v"), eps()))),
  ({ whitening }) =>
    over(
      minus(num(whitening?.value ?? NaN), num(whitening?.mean ?? NaN)),
      root(plus(num(whitening?.variance ?? NaN), num(1e-8))),
    ),
];
const sourcesSum = () => group(mathml("munder", {}, op("∑"), name("k")), sub(name("w"), name("k")));

/** @type {Record<string, Pair>} */
const forms = {
  "grpo-verl": scaled,
  "grpo-trl": scaled,
  "grpo-openrlhf": scaled,
  "areal": scaled,
  "grpo-population": [
    () => over(minus(s(), mu()), sub(name("σ"), group(name("g"), op(","), name("n")))),
    ({ score, group: { mean, population } }) => over(minus(num(score), num(mean)), num(population)),
  ],
  "grpo-batch": [
    () => over(minus(s(), mu()), plus(sigma(upright("batch")), eps())),
    ({ score, group: { mean }, batch, epsilon }) =>
      over(minus(num(score), num(mean)), plus(num(batch.sample), num(epsilon))),
  ],
  "nemo": [
    () => over(minus(s(), mu(rest())), plus(sigma(rest()), eps())),
    ({ score, rest: others, epsilon }) => {
      const above = minus(num(score), num(others?.mean ?? NaN));
      // without a spread of the others there is nothing to divide by
      return others && others.sample > 0 ? over(above, plus(num(others.sample), num(epsilon))) : above;
    },
  ],
  "dr-grpo": centred,
  "rloo": [() => minus(s(), mu(rest())), ({ score, rest: others }) => minus(num(score), num(others?.mean ?? NaN))],
  "max-rl": [
    () => over(minus(s(), mu()), plus(mu(), eps())),
    ({ score, group: { mean }, epsilon }) => over(minus(num(score), num(mean)), plus(num(mean), num(epsilon))),
  ],
  "gpg": [
    () => group(name("α"), op("·"), brackets(minus(s(), mu()))),
    ({ alpha, score, group: { mean } }) => group(num(alpha), op("·"), brackets(minus(num(score), num(mean)))),
  ],
  "opo": [
    () =>
      minus(
        s(),
        over(
          group(mathml("munder", {}, op("∑"), name("j")), sub(name("n"), name("j")), sub(name("s"), name("j"))),
          group(mathml("munder", {}, op("∑"), name("j")), sub(name("n"), name("j"))),
        ),
      ),
    ({ score, group: { perToken } }) => minus(num(score), num(perToken)),
  ],
  "pass-k": [
    () => over(minus(sub(name("s"), upright("best")), sub(name("s"), upright("second"))), plus(sigma(), eps())),
    ({ best, score, second, group: { sample }, epsilon }) =>
      best ? over(minus(num(score), num(second)), plus(num(sample), num(epsilon))) : num(0),
  ],
  "remax": [() => minus(s(), sub(name("b"), upright("greedy"))), ({ score, greedy }) => minus(num(score), num(greedy))],
  "flash": [() => minus(s(), mu(upright("batch"))), ({ score, batch }) => minus(num(score), num(batch.mean))],
  "rf-baseline": whitened(() => group(op("("), s(), op("−"), mu(), op(")"))),
  "rf": whitened(s),
  "decoupled": [
    () =>
      group(
        sourcesSum(),
        over(
          minus(sub(name("s"), group(name("k"), op(","), name("i"))), mu(group(name("k"), op(","), name("g")))),
          plus(sigma(group(name("k"), op(","), name("g"))), eps()),
        ),
      ),
    ({ sources, epsilon }) =>
      group(
        ...sources.flatMap(({ weight, score, group: own }, k) => [
          k > 0 && op("+"),
          num(weight),
          op("·"),
          over(minus(num(score), num(own.mean)), plus(num(own.sample), num(epsilon))),
        ]),
      ),
  ],
  "gdpo": whitened(() => sub(name("a"), name("i"))),
  "token-baseline": [
    () =>
      group(
        over(number("1"), sub(name("n"), name("i"))),
        mathml("munder", {}, op("∑"), name("t")),
        brackets(minus(sub(name("G"), group(name("i"), op(","), name("t"))), sub(name("b"), name("t")))),
      ),
    ({ score, baseline }) => minus(num(score), num(baseline)),
  ],
};

/** @param {string} id */
export const formula = (id) => math("block", sub(name("A"), name("i")), op("="), forms[id][0]());

/**
 * @param {string} id
 * @param {Case} sample
 * @param {string} value as shown
 */
export const withNumbers = (id, sample, value) =>
  math("block", op("="), forms[id][1](sample), op("="), mathml("mn", {}, value));

/** What a group of one gets in place of the formula. @param {string} value */
export const alone = (value) => math("block", sub(name("A"), name("i")), op("="), mathml("mn", {}, value));
