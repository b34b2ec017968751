// What one update computes, stage by stage, as the chosen method has it.

import { mathml } from "../../parts/dom.js";
import { brackets, group, math, name, number, op, over, sub, sup, upright } from "../../parts/math.js";
import { DUAL } from "./methods.js";

/** @typedef {import("./state.js").Settings} Settings */
/** @typedef {import("../../parts/dom.js").Child} Child */

const one = () => number("1");
const comma = () => op(",");
const times = () => op("·");
const minus = () => op("−");
const equals = () => op("=");
const log = (/** @type {Child[]} */ ...parts) => group(upright("log"), ...parts);
const call = (/** @type {string} */ what, /** @type {Child[]} */ ...parts) => group(upright(what), brackets(...parts));
/** Σ with what it runs over. @param {Child[]} below */
const sum = (...below) => mathml("munder", {}, op("∑"), group(...below));
const at = (/** @type {string} */ base, /** @type {string} */ index) => sub(name(base), name(index));
const policy = () => name("π");
const old = () => sub(name("π"), upright("old"));
const start = () => sub(name("π"), "0");
const rho = () => at("ρ", "t");
const advantage = () => at("A", "t");
const low = () => sup(name("ε"), op("−"));
const high = () => sup(name("ε"), op("+"));
const mean = (/** @type {Element} */ what) => mathml("mover", { accent: "true" }, what, op("¯"));
/** clip(x, 1 − ε⁻, 1 + ε⁺) @param {() => Element} x */
const clip = (x) => call("clip", x(), comma(), one(), minus(), low(), comma(), one(), op("+"), high());
/** min(x·A, clip(x)·A) @param {() => Element} x */
const clipped = (x) => call("min", x(), times(), advantage(), comma(), clip(x), times(), advantage());
const kl = () => at("KL", "t");

/** @type {Record<string, () => Child[]>} */
const ADVANTAGES = {
  "grpo": () => [
    at("A", "i"),
    equals(),
    over(
      group(at("R", "i"), minus(), mean(name("R"))),
      group(name("σ"), op("+"), sup(number("10"), group(minus(), number("6")))),
    ),
  ],
  "dr-grpo": () => [at("A", "i"), equals(), at("R", "i"), minus(), mean(name("R"))],
  "rloo": () => [
    at("A", "i"),
    equals(),
    at("R", "i"),
    minus(),
    over(one(), group(name("G"), minus(), one())),
    sum(name("j"), op("≠"), name("i")),
    at("R", "j"),
  ],
  "max-rl": () => [
    at("A", "i"),
    equals(),
    over(
      group(at("R", "i"), minus(), mean(name("R"))),
      group(mean(name("R")), op("+"), sup(number("10"), group(minus(), number("6")))),
    ),
  ],
  "rf": () => [
    advantage(),
    equals(),
    over(group(at("G", "t"), minus(), mean(name("G"))), name("σ")),
    comma(),
    at("G", "t"),
    equals(),
    at("r", "t"),
    op("+"),
    name("γ"),
    sub(name("G"), group(name("t"), op("+"), one())),
  ],
  "rf-baseline": () => [
    advantage(),
    equals(),
    over(group(at("B", "i"), minus(), mean(name("B"))), name("σ")),
    comma(),
    at("B", "i"),
    equals(),
    at("R", "i"),
    minus(),
    mean(name("R")),
  ],
  "gae": () => [
    advantage(),
    equals(),
    at("δ", "t"),
    op("+"),
    name("γ"),
    name("λ"),
    sub(name("A"), group(name("t"), op("+"), one())),
    comma(),
    at("δ", "t"),
    equals(),
    at("r", "t"),
    op("+"),
    name("γ"),
    sub(name("V"), group(name("t"), op("+"), one())),
    minus(),
    at("V", "t"),
  ],
  "returns": () => [
    advantage(),
    equals(),
    at("r", "t"),
    op("+"),
    name("γ"),
    sub(name("A"), group(name("t"), op("+"), one())),
  ],
};

/** @type {Record<string, () => Child[]>} */
const LOSSES = {
  ppo: () => [minus(), clipped(rho)],
  dual: () => [
    minus(),
    call("max", clipped(rho), comma(), number(String(DUAL)), times(), advantage()),
    upright(" "),
    group(advantage(), op("<"), number("0")),
  ],
  gspo: () => [
    minus(),
    clipped(() => name("s")),
    comma(),
    name("s"),
    equals(),
    sup(
      brackets(over(call("π", name("y")), group(old(), brackets(name("y"))))),
      over(one(), group(op("|"), name("y"), op("|"))),
    ),
  ],
  cispo: () => [minus(), call("sg", clip(rho)), times(), advantage(), times(), log(policy())],
  sapo: () => [
    minus(),
    over(number("4"), name("τ")),
    times(),
    call("σ", name("τ"), brackets(rho(), minus(), one())),
    times(),
    advantage(),
  ],
  surrogate: () => [minus(), rho(), times(), advantage()],
  reinforce: () => [minus(), advantage(), times(), log(policy())],
};

/** @type {Record<string, () => Child[]>} */
const KLS = {
  k1: () => [log(policy()), minus(), log(start())],
  k2: () => [over(one(), number("2")), sup(brackets(log(policy()), minus(), log(start())), number("2"))],
  k3: () => [over(start(), policy()), minus(), log(over(start(), policy())), minus(), one()],
  abs: () => [op("|"), log(policy()), minus(), log(start()), op("|")],
};

/**
 * The formulas of a topic.
 * @param {string} topic
 * @param {Settings} settings
 * @returns {Element[]}
 */
export function formulasOf(topic, settings) {
  const block = (/** @type {Child[]} */ ...parts) => math("block", ...parts);
  const p = () => at("p", "v");
  switch (topic) {
    case "sample":
      return [
        block(
          at("a", "t"),
          op("∼"),
          name("π"),
          comma(),
          p(),
          equals(),
          over(sup(name("e"), at("z", "v")), group(sum(name("u")), sup(name("e"), at("z", "u")))),
        ),
      ];
    case "reward":
      return [
        settings.klPlace === "reward"
          ? block(at("r", "t"), equals(), sub(upright("score"), name("t")), minus(), name("β"), kl())
          : block(at("r", "t"), equals(), sub(upright("score"), name("t"))),
        block(at("R", "i"), equals(), sum(name("t")), at("r", "t")),
      ];
    case "kl":
      return [
        block(
          upright("KL"),
          brackets(policy(), op("‖"), start()),
          equals(),
          sum(name("v")),
          p(),
          brackets(log(p()), minus(), log(sub(name("p"), group(number("0"), comma(), name("v"))))),
        ),
        ...(settings.klPlace === "none" ? [] : [block(kl(), equals(), ...KLS[settings.klKind]())]),
      ];
    case "advantage":
      return [block(...ADVANTAGES[settings.estimator]())];
    case "loss":
      return [
        block(at("ℓ", "t"), equals(), ...LOSSES[settings.loss]()),
        ...(["reinforce", "gspo"].includes(settings.loss) ? [] : [block(rho(), equals(), over(policy(), old()))]),
        block(
          name("L"),
          equals(),
          sum(name("t")),
          at("w", "t"),
          at("ℓ", "t"),
          ...(settings.klPlace === "loss" ? [op("+"), name("β"), sum(name("t")), at("w", "t"), kl()] : []),
          ...(settings.entropy === 0
            ? []
            : [minus(), sub(name("c"), upright("H")), sum(name("t")), at("w", "t"), at("H", "t")]),
        ),
      ];
    case "gradient":
      return [
        block(
          over(group(op("∂"), name("L")), group(op("∂"), at("z", "v"))),
          equals(),
          sum(name("t")),
          over(group(op("∂"), name("L")), group(op("∂"), log(at("π", "t")))),
          brackets(op("["), name("v"), equals(), at("a", "t"), op("]"), minus(), p()),
          ...(settings.entropy === 0
            ? []
            : [
                op("+"),
                sub(name("c"), upright("H")),
                sum(name("t")),
                at("w", "t"),
                p(),
                brackets(log(p()), op("+"), at("H", "t")),
              ]),
        ),
        block(
          at("z", "v"),
          op("←"),
          at("z", "v"),
          minus(),
          name("η"),
          over(group(op("∂"), name("L")), group(op("∂"), at("z", "v"))),
        ),
      ];
    case "entropy":
      return [block(at("H", "t"), equals(), minus(), sum(name("v")), p(), log(p()))];
    default:
      return [
        block(
          over(one(), name("N")),
          sum(name("t")),
          op("["),
          clip(rho),
          times(),
          advantage(),
          op("<"),
          rho(),
          times(),
          advantage(),
          op("]"),
        ),
      ];
  }
}
