// How the present step moved the budget and both prices: each update as a formula, and once more with its numbers.

import { t } from "../../i18n/index.js";
import { html } from "../../parts/dom.js";
import { short } from "../../parts/format.js";
import { brackets, group, math, name, number, op, over, sub, sup, upright } from "../../parts/math.js";

/** @typedef {import("./run.js").Step} Step */
/** @typedef {Record<string, any>} Settings */
/** @typedef {Element} Part */

/** @param {number} value */
const n = (value) => number(short(value));
/** @param {Part} base @param {string} index */
const at = (base, index) => sub(base, upright(index));
/** @param {string} what @param {Part[]} of */
const call = (what, ...of) =>
  group(upright(what), brackets(...of.flatMap((part, index) => (index > 0 ? [op(","), part] : [part]))));
const B0 = () => sub(name("B"), "0");
const WH = () => group(op("Σ"), name("w"), name("H"));

/**
 * @param {string} id
 * @param {Part[]} symbols
 * @param {Part[]} numbers
 * @param {number} result
 * @param {string} [note]
 */
function update(id, symbols, numbers, result, note) {
  return html(
    "div",
    { class: "update", "data-update": id },
    html(
      "div",
      { class: "formula", tabindex: 0, role: "region", "aria-label": t(`budget.update.${id}`) },
      html("div", {}, math("inline", ...symbols)),
      html("div", {}, math("inline", op("="), ...numbers, op("="), n(result))),
    ),
    html("p", { class: "quiet" }, note ?? t(`budget.update.${id}`)),
  );
}

/** @param {string} id @param {string} words */
const said = (id, words) => html("div", { class: "update", "data-update": id }, html("p", {}, words));

/**
 * @param {Settings} s
 * @param {Step} step
 * @param {Step[]} steps up to this one
 */
function budgetUpdate(s, step, steps) {
  if (step.b0 === null || step.budget === null) return null;
  const left = [name("B"), op("=")];
  if (s.schedule === "constant") return update("constant", [...left, B0()], [n(step.b0)], step.budget);
  if (s.schedule === "exponential") {
    const symbols = [
      ...left,
      B0(),
      op("·"),
      sup(name("e"), group(op("−"), name("α"), op("·"), name("t"), op("/"), name("T"))),
    ];
    const numbers = [
      n(step.b0),
      op("·"),
      sup(name("e"), group(op("−"), n(s.alpha), op("·"), n(step.step), op("/"), n(s.steps))),
    ];
    return update("exponential", symbols, numbers, step.budget);
  }
  if (s.schedule === "plateau") {
    const plateaus = steps.filter(({ report }) => report.plateau).length;
    const symbols = [...left, call("max", at(name("B"), "min"), group(B0(), op("·"), sup(name("κ"), name("m"))))];
    return update(
      "plateau",
      symbols,
      [call("max", n(s.budgetMin), group(n(step.b0), op("·"), sup(n(s.kappa), n(plateaus))))],
      step.budget,
    );
  }
  // what the library remembers for this schedule, computed again for display: the largest deviation of the first steps,
  // the usage of the step before
  const first = steps.slice(0, Math.min(100, Math.floor(s.steps / 10)));
  const largest = first.reduce((most, { input }) => Math.max(most, input.rewardStd), 0);
  const before = steps[step.step - 2]?.report.usageRatio ?? null;
  const usage = before === null || before < 0 || before > 1 ? 1 : before;
  const sigma = largest > 0 ? call("min", number("1"), over(n(step.input.rewardStd), n(largest))) : number("0");
  const symbols = [
    ...left,
    B0(),
    op("·"),
    call(
      "max",
      number("0.1"),
      group(name("a"), op("·"), name("σ̂"), op("+"), brackets(number("1"), op("−"), name("a")), op("·"), name("u")),
    ),
  ];
  const numbers = [
    n(step.b0),
    op("·"),
    call(
      "max",
      number("0.1"),
      group(n(s.share), op("·"), sigma, op("+"), brackets(number("1"), op("−"), n(s.share)), op("·"), n(usage)),
    ),
  ];
  return update("reward-std-usage", symbols, numbers, step.budget);
}

/** @param {Settings} s @param {Step} step */
function lambdaUpdate(s, step) {
  const { report, input, before, budget } = step;
  if (budget === null)
    return said(
      "waiting",
      t(report.warmUpFinished ? "budget.update.warm" : "budget.update.warming", { step: step.step, steps: s.warmUp }),
    );
  const held = (/** @type {Part} */ inner, /** @type {Part} */ low, /** @type {Part} */ high) =>
    s.whRange === "on" ? call("clip", inner, low, high) : inner;
  const capped = (/** @type {Part} */ inner, /** @type {Part} */ most) =>
    s.lambdaCap === "on" ? call("min", most, inner) : inner;
  const guarded = (/** @type {Part} */ inner) => (report.collapse ? [number("0.1"), op("·"), inner] : [inner]);
  const whole = (
    /** @type {Part} */ lambda,
    /** @type {Part} */ rate,
    /** @type {Part} */ used,
    /** @type {Part} */ allowed,
    /** @type {Part} */ most,
  ) => guarded(capped(call("max", number("0"), group(lambda, op("+"), rate, brackets(used, op("−"), allowed))), most));
  const symbols = whole(
    name("λ"),
    sub(name("η"), name("λ")),
    held(over(WH(), name("N")), upright("low"), upright("high")),
    over(name("B"), name("N")),
    at(name("λ"), "max"),
  );
  const share = (/** @type {number} */ value) => over(n(value), n(input.tokenCount));
  const numbers = whole(
    n(before.lambda),
    n(s.lambdaRate),
    held(share(input.whSum), n(s.whLow), n(s.whHigh)),
    share(budget),
    n(s.lambdaMax),
  );
  return update("lambda", [name("λ"), op("←"), ...symbols], numbers, report.lambda);
}

/** @param {Settings} s @param {Step} step */
function betaUpdate(s, step) {
  const { before, input, target, beta } = step;
  if (s.controller === "fixed" || target === null)
    return update("fixed", [name("β"), op("←"), name("β")], [n(before.beta)], beta);
  if (s.controller === "adaptive") {
    const of = (/** @type {Part[]} */ [b, kl, d, count, horizon]) => [
      b,
      op("·"),
      brackets(
        number("1"),
        op("+"),
        call("clip", group(over(kl, d), op("−"), number("1")), group(op("−"), number("0.2")), number("0.2")),
        op("·"),
        over(count, horizon),
      ),
    ];
    return update(
      "adaptive",
      [name("β"), op("←"), ...of([name("β"), upright("KL"), name("D"), name("n"), upright("horizon")])],
      of([before.beta, input.kl, target, s.samples, s.horizon].map(n)),
      beta,
    );
  }
  const of = (/** @type {Part[]} */ [least, b, rate, kl, d]) => [
    call("max", least, group(b, op("+"), rate, brackets(kl, op("−"), d))),
  ];
  const symbols = of([at(name("β"), "min"), name("β"), sub(name("η"), name("β")), upright("KL"), name("D")]);
  return update(
    "linear",
    [name("β"), op("←"), ...symbols],
    of([s.betaMin, before.beta, s.betaRate, input.kl, target].map(n)),
    beta,
  );
}

/**
 * @param {HTMLElement} container
 * @param {Settings} settings
 * @param {Step[]} steps
 */
export function drawUpdates(container, settings, steps) {
  const step = steps[steps.length - 1];
  if (!step) {
    container.replaceChildren(html("p", { class: "quiet" }, t("budget.nothing")));
    return;
  }
  const { report, budget, input } = step;
  const usage =
    budget !== null &&
    report.usageRatio !== null &&
    update(
      "usage",
      [name("u"), op("="), over(WH(), call("max", name("B"), number("1e−8")))],
      [over(n(input.whSum), call("max", n(budget), number("1e−8")))],
      report.usageRatio,
    );
  const events = [
    report.warmUpFinished &&
      budget !== null &&
      said("warm", t("budget.update.warm", { step: step.step, steps: settings.warmUp })),
    report.plateau && said("reached", t("budget.event.plateau")),
    report.collapse &&
      said(
        "collapse",
        t("budget.event.collapse", {
          used: short(report.whPerToken),
          budget: report.budget === null ? "—" : short(report.budget),
        }),
      ),
  ];
  const parts = [
    ...events,
    budgetUpdate(settings, step, steps),
    usage,
    lambdaUpdate(settings, step),
    betaUpdate(settings, step),
  ];
  container.replaceChildren(...parts.filter((part) => part !== null && part !== false));
}
