// The rollouts that a run kept of some steps: read by the reader in the worker of the own-data page, shown token by
// token, and opened in the chain.

import { Client, Refused } from "../data/client.js";
import { textOf } from "../data/flow.js";
import { initial as dataInitial } from "../data/state.js";
import { chainState, fitsChain, samplesOf } from "../data/to-chain.js";
import { faultText } from "../data/words.js";
import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { short, signed, visible } from "../parts/format.js";
import { dataOf } from "./state.js";

/** @typedef {import("../data/types.js").Loaded} Loaded */
/** @typedef {import("./state.js").Run} Run */

/** Sequences and tokens shown of a step. */
const SHOWN = 24;
const LONGEST = 120;
const TINTED = ["advantages", "gaeAdvantage", "groupAdvantage", "rewards", "logProbs", "oldLogProbs"];

export class Rollouts {
  /** @param {(state: any, place: any) => void} openChain */
  constructor(openChain) {
    this.openChain = openChain;
    this.client = new Client();
    this.element = html("section", { class: "runs-rollouts", id: "runs-rollouts", "aria-live": "polite" });
    /** @type {Map<string, Promise<Loaded>>} by the place of the run in the store */
    this.loaded = new Map();
    this.turn = 0;
  }

  /**
   * @param {Run} run
   * @returns {Promise<Loaded> | null}
   */
  load(run) {
    const rollouts = dataOf(run)?.rollouts;
    if (!rollouts) return null;
    const found = this.loaded.get(run.data);
    if (found) return found;
    const { settings } = dataInitial();
    const asked = this.client.ask("load", {
      key: run.data,
      name: rollouts.name,
      data: rollouts.data,
      scoreName: "",
      settings,
      engine: { name: "core", compare: false },
    });
    this.loaded.set(run.data, asked);
    asked.catch(() => this.loaded.delete(run.data));
    return asked;
  }

  /**
   * @param {Run | null} run
   * @param {number | null} step
   */
  async draw(run, step) {
    this.turn += 1;
    const mine = this.turn;
    if (!run || step === null) return this.element.replaceChildren();
    const coming = this.load(run);
    if (!coming) return this.say(t("runs.rollouts.no", { run: run.label }));
    try {
      const data = await coming;
      if (mine === this.turn) this.show(run, data, step);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (mine === this.turn && error.fault.code !== "stopped")
        this.say(faultText(dataOf(run)?.rollouts?.name ?? "", error.fault));
    }
    return undefined;
  }

  /** @param {string} words */
  say(words) {
    this.element.replaceChildren(html("p", { class: "quiet" }, words));
  }

  /**
   * @param {Run} run
   * @param {Loaded} data
   * @param {number} step
   */
  show(run, data, step) {
    // rollouts are kept of some steps only
    const near = data.steps.reduce(
      (best, one) => (Math.abs(one - step) < Math.abs(best - step) ? one : best),
      data.steps[0] ?? NaN,
    );
    const all = Array.from({ length: data.sequences }, (_, i) => i).filter(
      (i) => data.steps.length === 0 || data.step[i] === near,
    );
    const tint = TINTED.find((key) => data.columns[key]);
    const values = tint ? data.columns[tint] : null;
    let most = 0;
    for (const sequence of all)
      for (let slot = data.offsets[sequence]; slot < data.offsets[sequence + 1]; slot += 1)
        if (values && Number.isFinite(values[slot])) most = Math.max(most, Math.abs(values[slot]));
    /** @type {Set<number>} */
    const opened = new Set();
    const groups = all.slice(0, SHOWN).flatMap((sequence) => {
      if (opened.has(sequence)) return [];
      const samples = samplesOf(data, sequence).filter((other) => all.includes(other));
      for (const other of samples) opened.add(other);
      return [samples];
    });
    this.element.replaceChildren(
      html("h2", {}, t("runs.rollouts", { run: run.label, step: near })),
      html(
        "p",
        { class: "quiet" },
        near === step || Number.isNaN(near)
          ? t("runs.rollouts.count", { count: all.length })
          : t("runs.rollouts.near", { count: all.length, step, near }),
      ),
      ...groups.map((samples, index) => this.group(data, samples, index, values, most)),
    );
  }

  /**
   * @param {Loaded} data
   * @param {number[]} samples
   * @param {number} index
   * @param {Float64Array | null} values
   * @param {number} most
   */
  group(data, samples, index, values, most) {
    const prompt = data.prompts[data.prompt[samples[0]]] ?? "";
    const open = () => {
      const fitting = fitsChain(data, samples) ? samples : samples.slice(0, 1);
      const next = chainState(data, fitting, 0, dataInitial().settings);
      if (next) this.openChain(next.state, next.place);
    };
    return html(
      "section",
      { class: "runs-prompt" },
      html(
        "h3",
        {},
        html("span", {}, prompt === "" ? t("runs.rollouts.prompt", { number: index + 1 }) : prompt.slice(0, 200)),
        html(
          "button",
          { type: "button", class: "small", id: `runs-chain-${index}`, onclick: open },
          t("runs.rollouts.chain", { count: samples.length }),
        ),
      ),
      ...samples.slice(0, SHOWN).map((sequence) => line(data, sequence, values, most)),
    );
  }
}

/**
 * @param {Loaded} data
 * @param {number} sequence
 * @param {Float64Array | null} values
 * @param {number} most
 */
function line(data, sequence, values, most) {
  const [from, to] = [data.offsets[sequence], data.offsets[sequence + 1]];
  const tokens = Array.from({ length: Math.min(LONGEST, to - from) }, (_, i) => {
    const slot = from + i;
    const value = values ? values[slot] : NaN;
    const tone = data.keep[slot] === 0 || !(value !== 0) || Number.isNaN(value) ? "" : value > 0 ? "plus" : "minus";
    const token = html(
      "span",
      { class: `runs-token ${tone}`, title: Number.isNaN(value) ? "" : signed(value) },
      visible(textOf(data, slot)) || String(i + 1),
    );
    if (tone !== "" && most > 0) token.style.setProperty("--strength", (Math.abs(value) / most).toFixed(3));
    return token;
  });
  const first = values && to > from ? values[from] : NaN;
  return html(
    "p",
    { class: "runs-line" },
    html(
      "span",
      { class: "runs-score" },
      data.scored[sequence] === 1
        ? t("runs.rollouts.score", { score: short(Number(data.score[sequence].toPrecision(4))) })
        : "",
      Number.isNaN(first) ? "" : ` A ${signed(Number(first.toPrecision(3)))}`,
    ),
    ...tokens,
    to - from > LONGEST ? "…" : "",
  );
}
