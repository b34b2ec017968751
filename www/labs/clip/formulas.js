// The losses in MathML, with signs or with the numbers of the moment: one template for both.

import { mathml } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { brackets, group, math, name, number, op, over, sub, sup, upright } from "../../parts/math.js";
import { lossOf } from "./losses.js";
import { valuesOf } from "./compute.js";

/** @typedef {import("../../parts/dom.js").Child} Child */
/** @typedef {import("./state.js").State} State */
/** @typedef {(what: string) => Element} Writer writes a sign or its number */

/** A sign such as "ε^−" or "w_+". @param {string} text */
export function signOf(text) {
  const [base, mark, index] = /^(.+?)([\^_])(.+)$/.exec(text)?.slice(1) ?? [text, "", ""];
  if (mark === "^") return sup(name(base), op(index));
  return mark === "_" ? sub(name(base), /[a-z]/.test(index) ? upright(index) : op(index)) : name(base);
}

const SIGNS = /** @type {Record<string, () => Element>} */ ({
  rho: () => name("ρ"), A: () => name("A"), s: () => name("s"), d: () => name("d"), n: () => name("n"), o: () => sub(name("d"), upright("other")),
  logp: () => group(upright("log"), name("π")), p: () => name("π"), q: () => sub(name("π"), upright("old")), w: () => name("w"), R: () => name("R"),
});

const one = () => number("1");
const call = (/** @type {string} */ what, /** @type {Child[]} */ ...parts) => group(upright(what), brackets(...parts));
const comma = () => op(",");
const times = () => op("·");
const minus = () => op("−");

/** clip(x, 1 − ε, 1 + ε) @param {Element} x @param {Element} low @param {Element} high */
const clip = (x, low, high) => call("clip", x, comma(), one(), minus(), low, comma(), one(), op("+"), high);

/** −min(x·A, clip(x)·A) @param {Writer} w @param {string} x @param {string} low @param {string} high */
const clipped = (w, x, low, high) => [minus(), call("min", w(x), times(), w("A"), comma(), clip(w(x), w(low), w(high)), times(), w("A"))];

/** A constant for the gradient. @param {Element} weight */
const held = (weight) => call("sg", weight);

/** min(ρ, c) @param {Writer} w */
const weight = (w) => call("min", w("rho"), comma(), w("cap"));

/** [condition] @param {Child[]} parts */
const when = (...parts) => group(op("["), ...parts, op("]"));

/** @param {Writer} w @param {boolean} bad @param {string} x @param {string} low @param {string} high */
const inside = (w, bad, x, low, high) => (bad ? when(w(x), op("≥"), one(), minus(), w(low)) : when(w(x), op("≤"), one(), op("+"), w(high)));

/** @type {Record<string, (w: Writer, bad: boolean) => { loss: Child[], slope: Child[], with?: Child[][] }>} */
const templates = {
  surrogate: (w) => ({ loss: [minus(), w("rho"), times(), w("A")], slope: [minus(), w("rho"), times(), w("A")] }),
  ppo: (w, bad) => ({ loss: clipped(w, "rho", "eps", "eps"), slope: [minus(), w("rho"), times(), w("A"), times(), inside(w, bad, "rho", "eps", "eps")] }),
  higher: (w, bad) => ({ loss: clipped(w, "rho", "low", "high"), slope: [minus(), w("rho"), times(), w("A"), times(), inside(w, bad, "rho", "low", "high")] }),
  dual: (w, bad) => bad
    ? {
      loss: [minus(), call("max", ...clipped(w, "rho", "eps", "eps").slice(1), comma(), w("c"), times(), w("A"))],
      slope: [minus(), w("rho"), times(), w("A"), times(), when(one(), minus(), w("eps"), op("≤"), w("rho"), op("≤"), w("c"))],
    }
    : templates.ppo(w, bad),
  delta: (w, bad) => ({
    loss: [minus(), call("min", call("min", w("rho"), comma(), w("c")), times(), w("A"), comma(), clip(w("rho"), w("eps"), w("eps")), times(), w("A"))],
    slope: [minus(), w("rho"), times(), w("A"), times(), bad ? when(one(), minus(), w("eps"), op("≤"), w("rho"), op("≤"), w("c")) : inside(w, bad, "rho", "eps", "eps")],
  }),
  gspo: (w, bad) => ({
    loss: clipped(w, "s", "low", "high"), slope: [minus(), w("s"), times(), w("A"), times(), inside(w, bad, "s", "low", "high")],
    with: [[name("s"), op("="), call("exp", over(group(w("d"), op("+"), brackets(w("n"), minus(), one()), times(), w("o")), w("n")))]],
  }),
  luspo: (w, bad) => templates.gspo(w, bad),
  gmpo: (w, bad) => ({
    loss: [minus(), w("R"), times(), w("A")],
    slope: [minus(), w("R"), times(), w("A"), times(), bad ? when(w("d"), op("≥"), minus(), w("low")) : when(w("d"), op("≤"), w("high"))],
    with: [[name("R"), op("="), call("exp", over(group(bounded(w, bad, "d"), op("+"), brackets(w("n"), minus(), one()), times(), bounded(w, bad, "o")), w("n")))]],
  }),
  vespo: (w) => ({
    loss: [minus(), held(name("φ")), times(), w("A"), times(), w("logp")], slope: [minus(), name("φ"), times(), w("A")],
    with: [
      [name("φ"), op("="), sup(w("w"), w("k")), times(), sup(name("e"), group(w("lambda"), brackets(one(), minus(), w("w"))))],
      [name("w"), op("="), call("exp", w("d"), op("+"), brackets(w("n"), minus(), one()), times(), w("o"))],
    ],
  }),
  cispo: (w) => ({ loss: [minus(), held(clip(w("rho"), w("low"), w("high"))), times(), w("A"), times(), w("logp")], slope: [minus(), clip(w("rho"), w("low"), w("high")), times(), w("A")] }),
  cispoCap: (w) => ({ loss: [minus(), held(call("min", w("rho"), comma(), w("cap"))), times(), w("A"), times(), w("logp")], slope: [minus(), call("min", w("rho"), comma(), w("cap")), times(), w("A")] }),
  tis: (w) => ({ loss: [minus(), held(call("min", w("rho"), comma(), one())), times(), w("A"), times(), w("logp")], slope: [minus(), call("min", w("rho"), comma(), one()), times(), w("A")] }),
  topr: (w, bad) => bad
    ? { loss: [minus(), w("negative"), times(), held(call("min", w("rho"), comma(), one())), times(), w("A"), times(), w("logp")], slope: [minus(), w("negative"), times(), call("min", w("rho"), comma(), one()), times(), w("A")] }
    : { loss: [minus(), w("positive"), times(), w("A"), times(), w("logp")], slope: [minus(), w("positive"), times(), w("A")] },
  dppoTv: (w, bad) => {
    const kept = () => (bad ? when(w("p"), minus(), w("q"), op("≥"), minus(), w("low")) : when(w("p"), minus(), w("q"), op("≤"), w("high")));
    return { loss: [minus(), held(weight(w)), times(), w("A"), times(), w("logp"), times(), kept()], slope: [minus(), weight(w), times(), w("A"), times(), kept()] };
  },
  dppoKl: (w, bad) => {
    const kept = () => when(name("b"), op("≤"), w(bad ? "low" : "high"), upright(" or "), w("p"), op(bad ? "≥" : "≤"), w("q"));
    const b = [name("b"), op("="), w("q"), upright("log"), over(w("q"), w("p")), op("+"), brackets(one(), minus(), w("q")), upright("log"), over(group(one(), minus(), w("q")), group(one(), minus(), w("p")))];
    return { loss: [minus(), held(weight(w)), times(), w("A"), times(), w("logp"), times(), kept()], slope: [minus(), weight(w), times(), w("A"), times(), kept()], with: [b] };
  },
  reinforce: (w) => ({ loss: [minus(), w("A"), times(), w("logp")], slope: [minus(), w("A")] }),
  sapo: (w) => {
    const gate = () => group(name("σ"), brackets(w("tau"), brackets(w("rho"), minus(), one())));
    return { loss: [minus(), over(number("4"), w("tau")), times(), gate(), times(), w("A")], slope: [minus(), number("4"), times(), gate(), brackets(one(), minus(), gate()), times(), w("rho"), times(), w("A")] };
  },
  dro: (w) => ({
    loss: [minus(), w("A"), times(), w("logp"), op("+"), over(one(), number("2")), times(), w("beta"), times(), sup(w("d"), number("2"))],
    slope: [minus(), w("A"), op("+"), w("beta"), times(), w("d")],
  }),
  klCov: (w) => ({
    loss: [minus(), w("rho"), times(), w("A"), op("+"), w("kappa"), times(), op("|"), w("d"), op("|")],
    slope: [minus(), w("rho"), times(), w("A"), op("+"), w("kappa"), times(), upright("sign"), brackets(w("d"))],
  }),
};

/** A log-ratio held on the side the advantage pushes to. @param {Writer} w @param {boolean} bad @param {string} what */
const bounded = (w, bad, what) => (bad ? call("max", w(what), comma(), minus(), w("low")) : call("min", w(what), comma(), w("high")));

/** Parameters that have one name for each sign of the advantage. @param {string} what @param {boolean} bad */
const keyOf = (what, bad) => ({ tau: bad ? "tauNegative" : "tauPositive", k: bad ? "kNegative" : "kPositive", lambda: bad ? "lambdaNegative" : "lambdaPositive" })[what] ?? what;

/**
 * @param {State} state
 * @param {string} id
 * @param {{ loss: number, gradient: number }} result
 * @param {Record<string, number>} numbers what the signs stand for
 * @returns {{ symbols: Element[], numbers: Element[] }}
 */
export function formulasOf(state, id, result, numbers) {
  const bad = state.advantage < 0;
  const { parameters } = lossOf(id);
  const value = valuesOf(state, id);
  const sign = (/** @type {string} */ what) => {
    const parameter = parameters.find(({ key }) => key === keyOf(what, bad));
    return parameter ? signOf(parameter.sign) : (SIGNS[what] ?? (() => name(what)))();
  };
  const shown = (/** @type {string} */ what) => {
    const parameter = parameters.find(({ key }) => key === keyOf(what, bad));
    const number_ = parameter ? value(parameter.key) : numbers[what];
    return number_ === undefined ? sign(what) : number(short(number_));
  };
  const left = () => group(op("∂"), name("L"), op("/"), op("∂"), upright("log"), name("π"));
  const [symbols, filled] = [templates[id](sign, bad), templates[id](shown, bad)];
  const total = (/** @type {number} */ one) => [op("="), mathml("mn", { class: "clip-total" }, short(one))];
  return {
    symbols: [math("block", name("L"), op("="), ...symbols.loss), ...(symbols.with ?? []).map((line) => math("block", ...line)), math("block", left(), op("="), ...symbols.slope)],
    numbers: [math("block", name("L"), op("="), ...filled.loss, ...total(result.loss)), ...(filled.with ?? []).map((line) => math("block", ...line)), math("block", left(), op("="), ...filled.slope, ...total(result.gradient))],
  };
}
