// The laboratory that learns: a small policy is sampled, judged and updated by the library, live, and every bit of it
// can be had again.

import { stateFromSequences } from "../../chain/state.js";
import { refusalText } from "../../parts/refusals.js";
import { t } from "../../i18n/index.js";
import { html, setText } from "../../parts/dom.js";
import { full } from "../../parts/format.js";
import { Bars } from "./bars.js";
import { Controls } from "./controls.js";
import { formulasOf } from "./formulas.js";
import { LearnPlayer } from "./player.js";
import { Plots } from "./plots.js";
import { metricsLines, recorded, rolloutLines } from "./record.js";
import { Run } from "./run.js";
import { SamplesView } from "./samples.js";
import { initial, MOST_UPDATES, read, settingsOf, topics } from "./state.js";
import { tried, triedIn, tries } from "./tries.js";

/** @typedef {import("./state.js").State} State */

/** @type {import("../../pages.js").Page} */
export const page = {
  texts: ["learn"],
  styles: ["labs", "sim", "learn"],
  initial,
  read,
  mount: (container, context) => new LearnView(container, context),
};

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
/** Milliseconds of a frame for updates on the way to one that was asked for. */
const HURRY = 12;
/** A run of fewer updates is no comparison. */
const COMPARABLE = 5;
/** The most answers that the chain shows. */
const IN_CHAIN = 16;

/** The chain's names of the estimators. @type {Record<string, any>} */
const IN_CHAIN_AS = {
  "rf": "reinforce-plus-plus",
  "rf-baseline": "reinforce-baseline",
  "returns": "monte-carlo",
};

/** What a run depends on. @param {State} state */
const keyOf = ({ world, phases }) => JSON.stringify([world, phases]);

class LearnView {
  /**
   * @param {HTMLElement} container
   * @param {import("../../pages.js").Context} context
   */
  constructor(container, context) {
    this.context = context;
    this.container = container;
    const part = (/** @type {string} */ id, more = {}) =>
      html("section", { class: `learn-${id}`, id: `learn-${id}`, ...more });
    this.lead = html("section", { class: "lab-lead" });
    this.triesPart = part("tries");
    this.note = html("p", { class: "learn-note", id: "learn-note", role: "status" });
    this.playerPart = part("player", { class: "sim-player learn-player" });
    this.problem = html("p", { class: "refusal", role: "alert", id: "learn-problem" });
    this.plotsPart = part("plots", { class: "sim-plots" });
    this.barsHead = html("h2", {});
    this.barsNote = html("p", { class: "lab-note" });
    this.barsPart = html("div", { class: "learn-bars lab-scroll", id: "learn-bars", role: "region", tabindex: 0 });
    this.samplesHead = html("h2", {});
    this.samplesPart = html("div", { class: "lab-scroll", id: "learn-samples", role: "region", tabindex: 0 });
    this.samplesTools = html("p", { class: "learn-tools" });
    this.why = html("section", { class: "lab-why", id: "learn-why" });
    this.settingsPart = part("settings", { class: "sim-settings learn-settings" });
    container.append(
      html(
        "div",
        { class: "lab" },
        this.lead,
        this.triesPart,
        html(
          "div",
          { class: "sim-columns" },
          html(
            "div",
            { class: "sim-body" },
            this.playerPart,
            this.problem,
            html("section", { class: "lab-part" }, this.barsHead, this.barsNote, this.barsPart),
            this.plotsPart,
            html("section", { class: "lab-part" }, this.samplesHead, this.samplesPart, this.samplesTools),
            this.why,
          ),
          this.settingsPart,
        ),
      ),
    );
    const owner = {
      state: () => this.state,
      change: (/** @type {State} */ next, /** @type {boolean} */ continued = false) => this.change(next, continued),
    };
    this.controls = new Controls(this.settingsPart, owner);
    this.plots = new Plots(this.plotsPart, (topic) => this.explain(topic));
    this.bars = new Bars(this.barsPart, (prompt) => this.change({ ...this.state, prompt }));
    this.samples = new SamplesView(this.samplesPart);
    this.player = new LearnPlayer(this.playerPart, container, {
      state: () => this.context.state(),
      go: (at, continued) => this.change({ ...this.context.state(), at }, continued),
      advance: (count, time) => this.advance(count, time),
      setSpeed: (speed) => this.change({ ...this.state, speed }),
      reached: () => this.run?.at ?? 0,
      stopped: () => this.run && this.paint(this.context.state(), false),
    });
    /** @type {Run | null} */
    this.run = null;
    this.key = "";
    /** @type {import("./update.js").Metrics[]} the run before, for comparison */
    this.ghost = [];
    /** whether the change being drawn is this page's own */
    this.own = false;
    /** whether it is a part of the change before */
    this.continued = false;
    this.catching = 0;
    /** @type {string | undefined} the try whose words are shown */
    this.noted = undefined;
  }

  /** The state, with the update that playing has reached. @returns {State} */
  get state() {
    const state = /** @type {State} */ (this.context.state());
    return this.player.playing && this.run ? { ...state, at: this.run.at } : state;
  }

  /**
   * @param {State} next
   * @param {boolean} [continued]
   */
  change(next, continued = false) {
    this.own = true;
    this.continued = continued;
    try {
      this.context.change(next, continued);
    } finally {
      this.own = false;
      this.continued = false;
    }
  }

  /** @param {string} topic */
  explain(topic) {
    this.change({ ...this.state, topic });
    this.why.scrollIntoView({ block: "nearest", behavior: reducedMotion.matches ? "auto" : "smooth" });
  }

  /**
   * The run of a state; the one at hand if it is of the same world and settings.
   * @param {State} state
   */
  runOf(state) {
    const key = keyOf(state);
    if (this.run && key === this.key) return this.run;
    const next = new Run(this.context.library, state.world, state.phases, this.run);
    // while a number is being turned, the comparison stays with the run before the first turn
    if (this.run && !this.continued) this.ghost = this.run.at >= COMPARABLE ? this.run.shown : [];
    this.run?.free();
    this.run = next;
    this.key = key;
    return next;
  }

  /**
   * @param {number} count
   * @param {number} time
   */
  advance(count, time) {
    const { run } = this;
    if (!run) return false;
    const deadline = performance.now() + time;
    run.goTo(Math.min(MOST_UPDATES, run.at + count), () => performance.now() > deadline);
    this.paint(this.state, false);
    return run.at + 1 < run.end;
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  draw(state, anew) {
    // an undo or a link while it plays: stop there
    if (this.player.playing && !this.own && !anew) this.player.halt();
    if (anew) this.build();
    cancelAnimationFrame(this.catching);
    const run = this.runOf(state);
    if (!this.player.playing || this.own) this.hurry(state, run, anew);
    else this.paint(state, anew);
  }

  /**
   * Goes to the update of the state, frame by frame if it is far.
   * @param {State} state
   * @param {Run} run
   * @param {boolean} anew
   */
  hurry(state, run, anew) {
    const deadline = performance.now() + HURRY;
    const arrived = run.goTo(state.at, () => performance.now() > deadline);
    this.container.setAttribute("aria-busy", String(!arrived));
    this.paint(state, anew);
    if (!arrived) this.catching = requestAnimationFrame(() => this.hurry(state, run, false));
  }

  /**
   * @param {State} state
   * @param {boolean} anew
   */
  paint(state, anew) {
    const { run } = this;
    if (!run) return;
    const { playing } = this.player;
    const settings = settingsOf(state.phases, run.at + 1);
    this.player.draw(state, run, playing ? run.at : state.at);
    const ended = run.at + 1 >= run.end;
    setText(
      this.problem,
      !ended
        ? ""
        : run.diverged
          ? t("learn.diverged", { update: run.end })
          : run.refusal
            ? refusalText(run.refusal)
            : "",
    );
    if (!playing || anew || this.own) this.controls.draw({ ...state, at: run.at });
    this.drawNote(state);
    // growing curves are motion (prefers-reduced-motion), changing numbers are not
    if (anew || !playing || !reducedMotion.matches) {
      this.plots.draw(run.shown, {
        ghost: this.ghost,
        marks: state.phases.slice(1).map((phase, i) => ({ x: phase.from, text: changed(state.phases[i], phase) })),
        highest: Number(this.context.library.lnF64(run.world.letters.length).toFixed(2)),
      });
      this.bars.draw(run.world, run.bench.probabilities(run.table.logits), state.prompt, { anew, playing });
    }
    this.samples.draw(run, state.prompt);
    if (!playing || anew || this.own) this.drawWhy(state, settings);
  }

  /** @param {State} state */
  drawNote(state) {
    const id = triedIn(state);
    if (id === this.noted) return;
    this.noted = id;
    this.note.textContent = t(id === "" ? "learn.try.own" : `learn.try.note.${id}`);
    for (const one of tries)
      document.getElementById(`learn-try-${one.id}`)?.setAttribute("aria-pressed", String(one.id === id));
  }

  build() {
    this.lead.replaceChildren(html("p", {}, t("learn.lead")), html("p", { class: "quiet" }, t("learn.keyboard")));
    this.triesPart.setAttribute("aria-label", t("learn.tries"));
    this.triesPart.replaceChildren(
      html("h2", {}, t("learn.tries")),
      html(
        "div",
        { class: "learn-chips" },
        ...tries.map(({ id }) =>
          html(
            "button",
            { type: "button", id: `learn-try-${id}`, onclick: () => this.attempt(id) },
            t(`learn.try.${id}`),
          ),
        ),
      ),
      this.note,
    );
    this.noted = undefined;
    this.playerPart.setAttribute("aria-label", t("learn.player"));
    this.plotsPart.setAttribute("aria-label", t("learn.plots"));
    this.settingsPart.setAttribute("aria-label", t("learn.settings"));
    this.barsHead.textContent = t("learn.bars");
    this.barsNote.textContent = t("learn.bars.note");
    this.barsPart.setAttribute("aria-label", t("learn.bars"));
    this.samplesHead.textContent = t("learn.samples");
    this.samplesPart.setAttribute("aria-label", t("learn.samples"));
    this.samplesTools.replaceChildren(
      html("button", { type: "button", id: "learn-chain", onclick: () => this.openChain() }, t("learn.samples.chain")),
      html("button", { type: "button", id: "learn-runs", onclick: () => this.openRuns() }, t("learn.samples.runs")),
    );
    this.controls.build();
    this.plots.build();
    this.player.build();
    this.samples.build();
  }

  /** Sets it up and lets it run. @param {string} id */
  attempt(id) {
    this.player.pause();
    this.change(tried(this.state, id));
    this.player.start();
  }

  /**
   * @param {State} state
   * @param {import("./state.js").Settings} settings of the next update
   */
  drawWhy(state, settings) {
    const { run } = this;
    const { topic } = state;
    const held = this.why.contains(document.activeElement) ? document.activeElement?.id : "";
    const last = run?.metrics[run.at - 1];
    const detail = {
      reward: settings.rule,
      advantage: settings.estimator,
      loss: settings.loss,
      kl: settings.klPlace === "none" ? "none" : `${settings.klPlace}.${settings.klKind}`,
    }[topic];
    /** @type {Record<string, string[]>} */
    const numbers = {
      reward: ["reward", "solved"],
      kl: ["kl", ...(settings.klPlace === "none" ? [] : ["klEstimate"])],
      loss: ["loss"],
      gradient: ["gradient"],
      entropy: ["entropy"],
      clip: ["clipped", "tied"],
      advantage: ["tied"],
      sample: ["length"],
    };
    this.why.setAttribute("aria-label", t("learn.why"));
    this.why.replaceChildren(
      html("h2", {}, t("learn.why")),
      html(
        "div",
        { class: "learn-topics", role: "group", "aria-label": t("learn.why") },
        ...topics.map((one) =>
          html(
            "button",
            {
              type: "button",
              id: `learn-topic-${one}`,
              class: "small",
              "aria-pressed": String(one === topic),
              onclick: () => this.change({ ...this.state, topic: one }),
            },
            t(`learn.topic.${one}`),
          ),
        ),
      ),
      html("p", {}, t(`learn.means.${topic}`)),
      html(
        "div",
        { class: "lab-formula", tabindex: 0, role: "group", "aria-label": t("learn.why.formula") },
        ...formulasOf(topic, settings).map((one) => html("div", {}, one)),
      ),
      ...(detail ? [html("p", { class: "lab-note" }, t(`learn.means.${topic}.${detail}`))] : []),
      html(
        "dl",
        { class: "lab-numbers" },
        ...(last
          ? numbers[topic].map((key) =>
              html(
                "div",
                {},
                html("dt", {}, t(`learn.curve.${key}`)),
                html("dd", { "data-metric": key }, full(last[/** @type {keyof typeof last} */ (key)])),
              ),
            )
          : []),
      ),
    );
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
  }

  /** The answers shown, in the chain: there every number of them can be changed. */
  openChain() {
    const { run } = this;
    const state = this.state;
    if (!run?.samples) return;
    this.player.pause();
    const { samples, world, at } = run;
    const settings = settingsOf(state.phases, at);
    const { positions, letters } = world;
    const word = world.words[state.prompt].map((v) => letters[v]).join("");
    const parts = Array.from({ length: Math.min(IN_CHAIN, samples.group) }, (_, i) => {
      const from = (state.prompt * samples.group + i) * positions;
      const slots = Array.from({ length: positions }, (__, j) => from + j).filter((slot) => samples.mask[slot] === 1);
      const of = (/** @type {ArrayLike<number>} */ values) => slots.map((slot) => values[slot]);
      return {
        group: 0,
        prompt: t("learn.chain.prompt", { word }),
        tokens: slots.map((slot) => letters[samples.tokens[slot]]),
        inputs: {
          score: of(samples.taskRewards),
          oldLogProb: of(samples.logProbs),
          logProb: of(samples.newLogProbs),
          refLogProb: of(samples.refLogProbs),
          value: settings.estimator === "gae" ? of(samples.values) : slots.map(() => 0),
        },
      };
    });
    const next = stateFromSequences(parts, {
      parameters: {
        gamma: settings.gamma,
        lambda: settings.lambda,
        beta: settings.beta,
        clipLow: settings.clipLow,
        clipHigh: settings.clipHigh,
        scale: positions,
      },
      choices: {
        kl: settings.klKind,
        placement: settings.klPlace === "none" ? "off" : settings.klPlace,
        advantage: IN_CHAIN_AS[settings.estimator] ?? settings.estimator,
        weight: settings.estimator.startsWith("rf") ? "whitened" : "raw",
        loss: settings.loss === "dual" ? "ppo" : settings.loss === "sapo" ? "surrogate" : settings.loss,
        dual: settings.loss === "dual" ? "negative" : "off",
        aggregate: settings.aggregate,
      },
      profile: "verl-0.9.1",
    });
    if (next) this.context.open("chain", next);
  }

  /** The run beside others, with its answers at some updates. */
  async openRuns() {
    const { run } = this;
    if (!run || run.at === 0) return;
    this.player.pause();
    const state = /** @type {State} */ (this.context.state());
    const made = recorded(this.context.library, state, run.at);
    const { withRecorded } = await import("../../runs/state.js");
    const label = t("learn.recorded", {
      what: t(`learn.try.${triedIn(state) || "mine"}`),
      seed: state.world.seed,
    });
    await this.context.open("runs", withRecorded(label, made));
  }

  /** @param {State} state @returns {import("../../pages.js").Export[]} */
  exports(state) {
    const run = () => {
      const own = this.runOf(state);
      own.goTo(state.at);
      return own;
    };
    return [
      {
        id: "learn-metrics",
        label: t("learn.export.metrics"),
        how: "save",
        make: () => metricsLines(run()),
        file: "metrics.jsonl",
      },
      {
        id: "learn-rollouts",
        label: t("learn.export.rollouts"),
        how: "save",
        make: () => rolloutLines(run()),
        file: "rollouts.jsonl",
      },
    ];
  }
}

/**
 * What a phase changed, briefly.
 * @param {State["phases"][number]} before
 * @param {State["phases"][number]} now
 */
function changed(before, now) {
  const keys = Object.keys(now.settings).filter((key) => now.settings[key] !== before.settings[key]);
  const [key] = keys;
  if (key === undefined) return "";
  const value = now.settings[key];
  const words = typeof value === "number" ? full(value) : t(`learn.${key}.${value}`);
  return `${t(`learn.setting.${key}`)} ${words}${keys.length > 1 ? " …" : ""}`;
}
