// The choice of an engine, and what came of it: the time, and the largest difference from the core.
// It is no part of a page's state: what a machine can run is not for a link to say.

import { currentLanguage, hasText, t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { short } from "../parts/format.js";
import { refusalText } from "../parts/refusals.js";
import { ENGINES, isThere, ownEngine } from "./run.js";

/** @typedef {import("./run.js").EngineName} EngineName */

/**
 * @typedef {object} Outcome
 * @property {EngineName} engine
 * @property {import("./run.js").Cost} cost
 * @property {import("./run.js").Difference | null} difference null if there is nothing to compare with
 */

/** Sentences one after the other; in Chinese there is no space between them. @param {string[]} words */
const joined = (words) => words.join(currentLanguage() === "zh" ? "" : " ");
const rounded = (/** @type {number} */ x) => Number(x.toPrecision(3));
/** @param {number} bytes */
const size = (bytes) =>
  bytes < 1e4 ? `${bytes} B` : bytes < 1e7 ? `${short(rounded(bytes / 1e3))} kB` : `${short(rounded(bytes / 1e6))} MB`;

/**
 * Why the core answered. What was wrong with a call is told as for any other call.
 * @param {import("./run.js").Why} why
 */
const why = ({ code, reason }) =>
  hasText(`engines.why.${code}`) ? t(`engines.why.${code}`) : refusalText({ code, message: reason });

export class EngineSwitch {
  /**
   * @param {string} id
   * @param {{ choose: (engine: EngineName) => void, nameOf: (quantity: string) => string }} handlers
   */
  constructor(id, { choose, nameOf }) {
    this.id = id;
    this.choose = choose;
    this.nameOf = nameOf;
    /** @type {EngineName} */
    this.engine = ownEngine();
    /** whether it was chosen: then it is compared with the core */
    this.chosen = false;
    /** whether the engine chosen could not be had: that stays on the page until another is chosen */
    this.missed = false;
    /** @type {(() => import("../parts/dom.js").Child[])} the sentences, in whichever language */
    this.words = () => [];
    this.choices = html("fieldset", { class: "engine-choices", id: `engine-${id}` });
    this.report = html("p", { class: "engine-report", role: "status", id: `engine-report-${id}` });
    this.element = html("section", { class: "engines" }, this.choices, this.report);
  }

  /** Draws again in the current language. */
  build() {
    const choice = (/** @type {EngineName} */ name) => {
      const there = isThere(name);
      const input = html("input", {
        type: "radio",
        name: `engine-${this.id}`,
        id: `engine-${this.id}-${name}`,
        value: name,
        disabled: !there,
      });
      input.checked = name === this.engine;
      input.addEventListener("change", () => input.checked && this.take(name));
      const why = there ? "" : ` (${t(`engines.missing.${name}`)})`;
      return html("label", { class: there ? "engine" : "engine quiet" }, input, " ", t(`engines.${name}`) + why);
    };
    this.choices.replaceChildren(html("legend", {}, t("engines.legend")), ...ENGINES.map(choice));
    this.say(this.words);
  }

  /** @param {EngineName} name */
  take(name) {
    this.engine = name;
    this.chosen = true;
    this.missed = false;
    this.say(() => [t("engines.busy", { engine: t(`engines.${name}`) })]);
    this.choose(name);
  }

  /** @param {() => import("../parts/dom.js").Child[]} words */
  say(words) {
    this.words = words;
    this.report.replaceChildren(...words().filter((child) => child !== null && child !== undefined && child !== false));
  }

  /** @param {Outcome} outcome */
  show({ engine, cost, difference }) {
    if (this.missed) return;
    this.say(() => {
      const { device } = cost;
      const words = [t("engines.time", { engine: t(`engines.${engine}`), time: short(rounded(cost.milliseconds)) })];
      if (difference)
        words.push(
          difference.value === 0
            ? t(engine === "core" ? "engines.reference" : "engines.same")
            : t("engines.difference", {
                value: short(rounded(difference.value)),
                quantity: this.nameOf(difference.of),
              }),
        );
      if (!device) return [joined(words)];
      const { adapter, asked, calls, dispatches, bytesUp, bytesDown, core, first } = device;
      const missed = Object.entries(core);
      words.push(
        t("engines.device", {
          calls,
          all: asked,
          adapter,
          dispatches,
          up: size(bytesUp),
          down: size(bytesDown),
        }),
      );
      if (first) words.push(t("engines.first"));
      if (missed.length === 0) return [joined(words)];
      const reasons = [...new Set(missed.map(([, { code }]) => code))].map((code) => {
        const same = missed.filter(([, other]) => other.code === code);
        return [`${same.map(([formula]) => formula).join(", ")}: `, why(same[0][1])];
      });
      const parts = reasons.flatMap((reason, index) => (index === 0 ? reason : ["; ", ...reason]));
      return [joined([...words, t("engines.onCore")]), " ", ...parts];
    });
  }

  /**
   * The engine could not be had: the page goes on with its own.
   * @param {EngineName} engine
   * @param {import("./run.js").Why} problem
   */
  failed(engine, { code, reason }) {
    this.engine = ownEngine();
    this.chosen = false;
    this.missed = true;
    const key = `engines.why.${code}`;
    // what the browser says has no translation
    this.say(() => [t(`engines.failed.${engine}`), " ", hasText(key) ? t(key) : html("span", { lang: "en" }, reason)]);
    const input = this.choices.querySelector(`[value=${this.engine}]`);
    if (input instanceof HTMLInputElement) input.checked = true;
  }
}
