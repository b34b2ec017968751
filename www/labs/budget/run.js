// A run of the library's controllers through the toy world. The controllers after every step are kept, so that going
// back means continuing from a copy; a fingerprint over all bits tells whether the second run was like the first.

import { refusalOf } from "../../parts/refusals.js";
import { budgetConfig, linearConfig } from "./state.js";
import { measure } from "./world.js";

/**
 * @typedef {object} Step
 * @property {number} step from 1
 * @property {Record<string, number>} input
 * @property {{ lambda: number, beta: number }} before
 * @property {any} report of the entropy budget
 * @property {number | null} b0
 * @property {number | null} budget the one λ was moved by, which a guard may have replaced since
 * @property {number} beta
 * @property {number | null} target the KL wanted, where there is such a thing
 * @property {string} print
 */

/**
 * @typedef {object} Machines
 * @property {any} budget
 * @property {any} schedule the same without a guard: tells B before a guard replaces it
 * @property {any} source the same without schedule and guard: tells B0
 * @property {any} linear null for the other controllers of β
 * @property {number} beta
 */

const START = "0000000000000000";
const bits = new DataView(new ArrayBuffer(8));

/**
 * Two FNV-1a hashes side by side over the bits of the numbers, going on from the fingerprint of the step before.
 * @param {string} previous
 * @param {number[]} numbers
 */
function fingerprint(previous, numbers) {
  let [a, b] = [parseInt(previous.slice(0, 8), 16) ^ 0x811c9dc5, parseInt(previous.slice(8), 16) ^ 0x2f0b4c47];
  for (const number of numbers) {
    bits.setFloat64(0, number);
    for (let i = 0; i < 8; i += 1) {
      a = Math.imul(a ^ bits.getUint8(i), 0x01000193);
      b = Math.imul(b ^ bits.getUint8(7 - i), 0x01000193);
    }
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}

export class Run {
  /**
   * @param {import("../../engine.js").Library} library
   * @param {Record<string, any>} settings
   * @param {import("./state.js").State["edits"]} edits
   */
  constructor(library, settings, edits) {
    this.library = library;
    this.settings = settings;
    this.edits = edits;
    /** @type {Step[]} */
    this.steps = [];
    /** @type {Machines[]} before the first step, after the first, … */
    this.machines = [];
    /** @type {string[]} fingerprints as they were the first time */
    this.first = [];
    /** how many steps were taken a second time, and how many of those came out otherwise */
    this.repeated = 0;
    this.differing = 0;
    /** @type {import("../../parts/refusals.js").Refusal | null} */
    this.refusal = null;
    this.try(() => {
      const linear = settings.controller === "linear" ? new library.LinearKl(linearConfig(settings)) : null;
      if (settings.controller === "adaptive") library.adaptiveKl(this.adaptive(settings.beta), 0, settings.samples);
      if (settings.controller === "fixed") library.fixedKl(settings.beta, 0, settings.samples);
      this.machines.push({
        budget: new library.EntropyBudget(budgetConfig(settings)),
        schedule: new library.EntropyBudget(budgetConfig(settings, { guard: "off" })),
        source: new library.EntropyBudget(budgetConfig(settings, { schedule: "constant", guard: "off" })),
        linear,
        beta: linear ? linear.beta : settings.beta,
      });
    });
  }

  /** @param {() => void} action */
  try(action) {
    try {
      action();
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.refusal = refusalOf(error);
    }
  }

  /** @param {number} beta */
  adaptive(beta) {
    return { beta, target: this.settings.target, horizon: this.settings.horizon };
  }

  /** The prices now. */
  get prices() {
    const last = this.machines[this.machines.length - 1];
    return { lambda: last ? last.budget.lambda : this.settings.lambda, beta: last ? last.beta : this.settings.beta };
  }

  get print() {
    return this.steps[this.steps.length - 1]?.print ?? START;
  }

  /**
   * Goes to a step: back by throwing away, forward by calling the library.
   * @param {number} at
   */
  goTo(at) {
    if (at < this.steps.length) this.refusal = null;
    for (const machines of this.machines.splice(at + 1)) release(machines);
    this.steps.length = Math.min(this.steps.length, at);
    while (this.steps.length < at && !this.refusal) this.try(() => this.step());
    return this;
  }

  step() {
    const { library, settings } = this;
    const step = this.steps.length + 1;
    const now = this.machines[step - 1];
    const before = { lambda: now.budget.lambda, beta: now.beta };
    const input = { ...measure(/** @type {any} */ (settings), step, before), ...this.edits[step] };
    const { whSum, tokenCount, rewardStd, rewardSumMean, kl } = input;
    const observation = { step, whSum, tokenCount, rewardStd, rewardSumMean };
    /** @type {Machines} */
    const next = {
      budget: now.budget.clone(),
      schedule: now.schedule.clone(),
      source: now.source.clone(),
      linear: now.linear?.clone() ?? null,
      beta: now.beta,
    };
    try {
      const report = next.budget.update(observation);
      const budget = next.schedule.update(observation).budget;
      const b0 = next.source.update(observation).budget;
      if (next.linear) next.beta = next.linear.update(kl);
      else if (settings.controller === "adaptive")
        next.beta = library.adaptiveKl(this.adaptive(now.beta), kl, settings.samples);
      else next.beta = library.fixedKl(now.beta, kl, settings.samples);
      const target = next.linear ? next.linear.target : settings.controller === "adaptive" ? settings.target : null;
      const known = [
        report.lambda,
        report.budget,
        report.usageRatio,
        b0,
        budget,
        next.beta,
        target,
        Number(report.plateau),
        Number(report.collapse),
      ];
      const print = fingerprint(this.print, [...Object.values(input), ...known.map((value) => value ?? NaN)]);
      this.machines.push(next);
      this.steps.push({ step, input, before, report, b0, budget, beta: next.beta, target, print });
      this.remember(step, print);
    } catch (error) {
      release(next);
      throw error;
    }
  }

  /**
   * @param {number} step
   * @param {string} print
   */
  remember(step, print) {
    const first = this.first[step - 1];
    if (first === undefined) this.first[step - 1] = print;
    else {
      this.repeated += 1;
      if (first !== print) this.differing += 1;
    }
  }

  free() {
    for (const machines of this.machines.splice(0)) release(machines);
  }
}

/** @param {Machines} machines */
function release({ budget, schedule, source, linear }) {
  for (const machine of [budget, schedule, source, linear]) machine?.free();
}
