// The page for the user's own data: reads files in a worker, shows their tokens as a table, a text, a histogram,
// and what the lint found.

import { EngineSwitch } from "../engines/switch.js";
import { t } from "../i18n/index.js";
import { html } from "../parts/dom.js";
import { short } from "../parts/format.js";
import { PlotView } from "../parts/plot.js";
import { drawAbout, drawLint } from "./about.js";
import { numberCell } from "./cells.js";
import { Refused } from "./client.js";
import { Controls } from "./controls.js";
import { drawDetail } from "./detail.js";
import { toCsv, toJsonLines } from "./export.js";
import { drawFlow } from "./flow.js";
import { Intake } from "./intake.js";
import { Loader } from "./loader.js";
import { Rows } from "./rows.js";
import { initial, readState, sourceOf } from "./state.js";
import { tokenTable, sequenceTable } from "./tables.js";
import { chainState } from "./to-chain.js";
import { faultText, quantityMeaning, quantityName } from "./words.js";

/** @typedef {import("./state.js").State} State */

/** @typedef {import("./types.js").Loaded} Loaded */
/** @typedef {import("./types.js").Histogram} Histogram */

const PREFERRED = ["advantages", "gaeAdvantage", "groupAdvantage", "kl", "ratio"];

class DataPage {
  /**
   * @param {HTMLElement} container
   * @param {import("../pages.js").Context} context
   */
  constructor(container, context) {
    this.context = context;
    this.loader = new Loader((progress) => this.intake.progress(progress));
    /** @type {Loaded | null} what is shown */
    this.data = null;
    /** @type {{ query: string, order: Uint32Array } | null} */
    this.ordered = null;
    /** @type {{ query: string, result: Histogram | null } | null} */
    this.counted = null;
    /** counts drawings, so that a late answer does not cover a newer one */
    this.turn = 0;
    this.allFindings = false;

    this.intake = new Intake(container, {
      take: (name, data, others) => this.take(name, data, others),
      sample: () => this.take("sample.jsonl", "", 0),
      stop: () => this.stop(),
    });
    this.controls = new Controls({
      get: () => context.state(),
      set: (next, continued) => context.change(next, continued),
    });
    this.engines = new EngineSwitch("data", {
      choose: (name) => this.compute(name, true),
      nameOf: quantityName,
    });
    this.intro = html("div", { class: "intro" });
    this.about = html("section", { class: "data-about", "aria-live": "polite" });
    this.lint = html("section", { class: "data-lint" });
    this.tableArea = html("div", { class: "data-table" });
    this.flow = html("section", { class: "data-flow" });
    this.figure = html("section", { class: "data-figure" });
    this.figureHead = html("h2", { id: "data-figure-head" });
    this.figureNote = html("p", { class: "quiet", id: "data-figure-note" });
    this.figure.append(this.figureHead, this.figureNote);
    this.plot = new PlotView(this.figure);
    this.detail = html("section", { class: "data-detail", "aria-live": "polite", id: "data-detail" });
    this.results = html(
      "div",
      { class: "data-results", id: "data-results", hidden: true },
      html("div", { class: "data-top" }, this.about, this.lint),
      this.controls.numbers,
      this.engines.element,
      this.controls.shown,
      html(
        "div",
        { class: "data-main" },
        html("div", { class: "data-left" }, this.tableArea, this.flow),
        this.detail,
        this.figure,
      ),
    );
    container.append(this.intro, this.intake.element, this.results);
    this.rows = new Rows(this.tableArea, { sort: (key) => this.sort(key), choose: (row) => this.chooseRow(row) });
  }

  /** @returns {State} */
  get state() {
    return this.context.state();
  }

  /**
   * Reads what was dropped, chosen or pasted. Only if it can be read does the state change.
   * @param {string} name
   * @param {Blob | string} data
   * @param {number} others
   */
  async take(name, data, others) {
    const sample = name === "sample.jsonl" && data === "";
    if (!sample && typeof data === "string" && data.trim() === "") {
      this.intake.say([{ text: () => t("data.nothing"), bad: true }]);
      return;
    }
    const state = this.state;
    try {
      const { loaded, content } = await this.loader.load(name, data, "", state.settings);
      const now = this.state;
      const source = sample ? /** @type {const} */ ({ kind: "sample" }) : sourceOf(name, data, content ?? undefined);
      const next = {
        ...initial(),
        settings: now.settings,
        source,
        view: loaded.tokens === 0 ? /** @type {const} */ ("sequences") : now.view,
      };
      this.loader.remember(next, loaded);
      this.allFindings = false;
      this.intake.say([
        ...(others > 0 ? [{ text: () => t("data.onlyFirst", { name }), bad: false }] : []),
        ...(source.kind === "memory"
          ? [{ text: () => t("data.notInLink", { name: name || t("data.pasted") }), bad: false }]
          : []),
      ]);
      this.context.change(next);
    } catch (error) {
      if (error instanceof Refused && error.fault.code === "engine") {
        this.without(error.fault.values);
        await this.take(name, data, others);
      } else this.failed(name, error);
    }
  }

  /** @param {import("../engines/run.js").EngineName} name @param {boolean} compare with the core */
  compute(name, compare) {
    this.loader.engine = { name, compare };
    this.draw(this.context.state(), false);
  }

  /** An engine could not be had. @param {Record<string, string | number>} values */
  without({ engine, code, reason }) {
    this.engines.failed(/** @type {import("../engines/run.js").EngineName} */ (engine), {
      code: String(code),
      reason: String(reason),
    });
    this.compute(this.engines.engine, false);
  }

  /** @param {string} name @param {unknown} error */
  failed(name, error) {
    if (!(error instanceof Refused)) throw error;
    const { code } = error.fault;
    // by the user, who was told, or because of another file
    if (code === "stopped") return;
    this.intake.say([{ text: () => faultText(name, error.fault), bad: true }]);
  }

  stop() {
    const { restoring } = this.loader;
    this.loader.stop();
    this.intake.say([{ text: () => t("data.fault.stopped"), bad: false }]);
    // what was shown is read again, unless that is what was stopped
    if (!restoring) this.draw(this.context.state(), false);
  }

  /** @param {State} state @param {boolean} anew */
  draw(state, anew) {
    if (anew) this.build();
    this.turn += 1;
    this.show(state, this.turn).catch((error) => {
      const code = error instanceof Refused ? error.fault.code : "";
      if (code === "stopped") return;
      if (error instanceof Refused && code === "engine") this.without(error.fault.values);
      // the worker has let go of it: read again
      else if (code === "gone") this.reload();
      else this.failed(this.data?.name ?? "", error);
    });
  }

  reload() {
    this.loader.cache.clear();
    this.draw(this.context.state(), false);
  }

  build() {
    this.intro.replaceChildren(html("p", {}, t("data.intro")), html("p", { class: "quiet" }, t("data.kinds")));
    this.intake.build();
    this.controls.build();
    this.engines.build();
  }

  /**
   * Everything a state needs, asked of the worker; then drawn at once.
   * @param {State} state
   * @param {number} turn
   */
  async show(state, turn) {
    const data = await this.loader.wanted(state);
    if (data === "lost")
      this.intake.say([
        { text: () => t("data.lost", { name: state.source?.kind === "memory" ? state.source.name : "" }), bad: true },
      ]);
    if (turn !== this.turn) return;
    this.data = data === "lost" ? null : data;
    this.results.hidden = this.data === null;
    if (data === null || data === "lost") return;
    const asked = this.loader.asked(state.settings);
    if (data.asked !== asked) {
      const { engine } = this.loader;
      const told = await this.loader.ask("compute", { key: data.key, settings: state.settings, engine });
      Object.assign(data, told, { asked });
      if (turn !== this.turn) return;
    }
    if (data.ran?.cost) this.engines.show(data.ran);
    const colour = this.colourOf(state, data);
    const view = state.view === "sequences" ? "sequences" : "tokens";
    const query = JSON.stringify([data.key, asked, view, state.filter, state.sort]);
    if (this.ordered?.query !== query) {
      const { order } = await this.loader.ask("order", { key: data.key, view, filter: state.filter, sort: state.sort });
      if (turn !== this.turn) return;
      this.ordered = { query, order };
    }
    const count = JSON.stringify([data.key, asked, state.filter, colour]);
    if (this.counted?.query !== count) {
      const result =
        colour === ""
          ? null
          : await this.loader.ask("histogram", { key: data.key, quantity: colour, filter: state.filter });
      if (turn !== this.turn) return;
      this.counted = { query: count, result };
    }
    this.paint(state, data, colour);
  }

  /** @param {State} state @param {Loaded} data */
  colourOf(state, data) {
    return [state.colour, ...PREFERRED, data.keys[0] ?? ""].find((key) => data.keys.includes(key)) ?? "";
  }

  /** @param {State} state @param {Loaded} data @param {string} colour */
  paint(state, data, colour) {
    const histogram = this.counted?.result ?? null;
    const order = this.ordered?.order ?? new Uint32Array();
    const at = this.present(state, data);
    drawAbout(this.about, data, data.name);
    drawLint(this.lint, data, this.allFindings, {
      go: (sequence, token) => this.go(sequence, token),
      more: () => {
        this.allFindings = true;
        this.draw(this.context.state(), false);
      },
    });
    this.controls.draw(state, data, colour);
    const text = state.view === "text";
    this.tableArea.hidden = text;
    this.flow.hidden = !text;
    const scale = histogram?.scale ?? 1;
    if (text) {
      const { sequence, token } = at ?? {
        sequence: Math.min(state.filter.sequence ?? 0, data.sequences - 1),
        token: 0,
      };
      drawFlow(
        this.flow,
        data,
        { sequence, token, colour, scale, chosen: at !== null },
        {
          choose: (chosen) => this.change({ at: { sequence, token: chosen } }),
          turn: (other) => this.change({ at: { sequence: other, token: 0 } }),
        },
      );
    } else {
      const table = state.view === "sequences" ? sequenceTable : tokenTable;
      this.rows.draw(
        table(data, state, order, at, colour, (key, value) => numberCell(key, value, key === colour ? scale : null)),
      );
      if (this.following) this.follow();
    }
    this.drawFigure(colour, histogram);
    if (!at) this.detail.replaceChildren(html("p", { class: "quiet" }, t("data.detail.none")));
    else
      drawDetail(this.detail, data, at, {
        open: (sequences) => this.openChain(sequences, at.token),
        text: text ? null : () => this.change({ view: "text" }),
      });
  }

  /** The token looked at, if the data has it. @param {State} state @param {Loaded} data */
  present({ at }, data) {
    if (!at || at.sequence >= data.sequences || at.token >= data.offsets[at.sequence + 1] - data.offsets[at.sequence])
      return null;
    return at;
  }

  /** @param {string} colour @param {Histogram | null} histogram */
  drawFigure(colour, histogram) {
    this.figure.hidden = !histogram || histogram.count === 0;
    if (!histogram || !histogram.statistics) return;
    const name = quantityName(colour);
    const { mean, deviation, low, median, high } = histogram.statistics;
    this.figureHead.textContent = t("data.histogram.label", { name });
    const notes = [
      quantityMeaning(colour),
      t("data.histogram.numbers", {
        count: histogram.count,
        mean: short(mean),
        deviation: short(deviation),
        low: short(low),
        median: short(median),
        high: short(high),
      }),
    ];
    if (histogram.outside > 0) notes.push(t("data.histogram.outside", { count: histogram.outside }));
    if (histogram.notFinite > 0) notes.push(t("data.histogram.notFinite", { count: histogram.notFinite }));
    this.figureNote.textContent = notes.join(" ");
    this.plot.draw({
      label: t("data.histogram.label", { name }),
      x: { label: name, domain: histogram.domain },
      y: { label: t("data.histogram.count") },
      series: [{ id: "count", name: t("data.histogram.count"), x: histogram.x, y: histogram.y, kind: "bars" }],
      marks: [{ x: mean, text: t("data.histogram.mean") }],
    });
  }

  /** @param {Partial<State>} part */
  change(part) {
    this.context.change({ ...this.context.state(), ...part });
  }

  /** @param {string} key */
  sort(key) {
    const { sort } = this.state;
    this.change({ sort: { key, descending: sort.key === key ? !sort.descending : false } });
  }

  /** @param {number} row */
  chooseRow(row) {
    const state = this.state;
    const index = this.ordered?.order[row];
    if (index === undefined || !this.data) return;
    if (state.view === "sequences") {
      // a sequence has no numbers of its own to show but its tokens
      if (this.data.offsets[index + 1] > this.data.offsets[index]) this.change({ at: { sequence: index, token: 0 } });
    } else this.change({ at: { sequence: this.data.sequence[index], token: this.data.token[index] } });
  }

  /** Shows where a finding is. @param {number} sequence @param {number | null} token */
  go(sequence, token) {
    const state = this.state;
    if (!this.data || this.data.offsets[sequence + 1] === this.data.offsets[sequence]) return;
    this.following = true;
    this.change({
      at: { sequence, token: token ?? 0 },
      view: state.view === "sequences" ? "tokens" : state.view,
      filter: { sequence: null, step: null, group: null, kept: false },
    });
  }

  /** Brings the token looked at into view. */
  follow() {
    this.following = false;
    const { at } = this.state;
    if (!at || !this.data || !this.ordered) return;
    const row = this.ordered.order.indexOf(this.data.offsets[at.sequence] + at.token);
    if (row >= 0) this.rows.show(row);
    this.rows.element.focus({ preventScroll: false });
  }

  /** @param {number[]} sequences @param {number} token */
  openChain(sequences, token) {
    const state = this.state;
    const next = this.data ? chainState(this.data, sequences, token, state.settings) : null;
    if (next) this.context.open("chain", next.state, next.place);
    else this.intake.say([{ text: () => t("data.notInChain"), bad: true }]);
  }

  /** @returns {import("../pages.js").Export[]} */
  exports() {
    const { data, ordered } = this;
    if (!data) return [];
    const { view } = this.state;
    const every = () => Uint32Array.from({ length: data.tokens }, (_, index) => index);
    return [
      {
        id: "data-csv",
        label: t("data.export.csv"),
        how: "save",
        file: "tokens.csv",
        make: () => toCsv(data, view === "tokens" && ordered ? ordered.order : every(), data.keys),
      },
      {
        id: "data-jsonl",
        label: t("data.export.jsonl"),
        how: "save",
        file: "rollouts.jsonl",
        make: () => toJsonLines(data),
      },
    ];
  }
}

/** @type {import("../pages.js").Page} */
export const page = {
  texts: ["data", "engines"],
  styles: ["data", "engines"],
  initial,
  read: readState,
  mount(container, context) {
    const view = new DataPage(container, context);
    return { draw: (state, anew) => view.draw(state, anew), exports: () => view.exports() };
  },
};
