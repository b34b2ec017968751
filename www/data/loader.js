// From what a state says of its data to the data itself: known already, or read by the worker. Ends the worker where
// that is the only way to stop it, and then reads again.

import { ownEngine } from "../engines/run.js";
import { Client } from "./client.js";
import { contentOf } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./types.js").Loaded} Loaded */

/** @param {State} state */
const dataKey = (state) => JSON.stringify([state.source, state.scoreName]);

export class Loader {
  /** @param {(progress: { stage: string, share: number } | null) => void} progress */
  constructor(progress) {
    this.progress = progress;
    this.client = new Client();
    /** who computes, and whether that is compared with the core */
    this.engine = { name: ownEngine(), compare: false };
    /** @type {Map<string, Loaded>} by what a state says of its data; the newest last, as many as the worker keeps */
    this.cache = new Map();
    /** the number of the load under way, "" for none */
    this.loading = "";
    this.loads = 0;
    /** whether what is under way is the data of the state, not another file */
    this.restoring = false;
  }

  /** What numbers depend on beside the data. @param {State["settings"]} settings */
  asked(settings) {
    return JSON.stringify([settings, this.engine]);
  }

  /**
   * @param {string} name
   * @param {Blob | string} data
   * @param {string} scoreName
   * @param {State["settings"]} settings
   * @returns {Promise<{ loaded: Loaded, content: string | null }>} `content` of a small file
   */
  async load(name, data, scoreName, settings) {
    this.loads += 1;
    const key = String(this.loads);
    // a new file takes precedence over the previous one
    if (this.loading !== "") this.stop();
    this.loading = key;
    const [asked, { engine }] = [this.asked(settings), this];
    try {
      const { content, ...told } = await this.client.ask(
        "load",
        { key, name, data, scoreName, settings, engine },
        this.progress,
      );
      return { loaded: { ...told, key, name, asked }, content };
    } finally {
      if (this.loading === key) {
        this.loading = "";
        this.progress(null);
      }
    }
  }

  /**
   * @param {string} type
   * @param {Record<string, unknown>} request
   */
  async ask(type, request) {
    try {
      return await this.client.ask(type, request, this.progress);
    } finally {
      if (this.loading === "") this.progress(null);
    }
  }

  /** Ends the worker, and with it its data. */
  stop() {
    this.loading = "";
    this.progress(null);
    this.cache.clear();
    this.client.stop();
  }

  /** @param {State} state @param {Loaded} loaded */
  remember(state, loaded) {
    const key = dataKey(state);
    this.cache.delete(key);
    this.cache.set(key, loaded);
    for (const old of [...this.cache.keys()].slice(0, -2)) this.cache.delete(old);
  }

  /**
   * The data of a state.
   * @param {State} state
   * @returns {Promise<Loaded | "lost" | null>} null where it has none
   */
  async wanted(state) {
    if (!state.source) return null;
    // a worker that failed has lost its data
    if (this.client.worker === null) this.cache.clear();
    const known = this.cache.get(dataKey(state));
    if (known) return known;
    const content = contentOf(state.source);
    if (!content) return "lost";
    this.restoring = true;
    try {
      const { loaded } = await this.load(content.name, content.data, state.scoreName, state.settings);
      this.remember(state, loaded);
      return loaded;
    } finally {
      this.restoring = false;
    }
  }
}
