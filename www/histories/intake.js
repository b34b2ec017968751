// How entropy histories come in.

import { pathOf } from "../parts/folder.js";
import { Intake } from "../parts/intake.js";
import { load } from "./load.js";
import { isHistory, labelOf, MOST_RUNS } from "./state.js";

/**
 * @typedef {{ file: string, label: string, points: import("./read.js").Points, parent?: string }} Loaded `parent` where
 *   a folder was given
 */

export class HistoryIntake extends Intake {
  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} page hidden while another page is in front
   * @param {{ add: (loaded: Loaded[]) => void, room: (files: number) => number, samples: () => void }} owner
   */
  constructor(container, page, owner) {
    super(container, page, {
      id: "histories",
      first: "choose",
      accept: ".json,.jsonl,.ndjson,application/json",
      wanted: isHistory,
      placeholder: '[{"step": 1, "entropy": 4.532}, …]',
      sample: owner.samples,
    });
    this.owner = owner;
  }

  /**
   * @override
   * @param {File[]} files
   * @param {string[]} folders
   */
  async readAll(files, folders) {
    const room = this.owner.room(files.length);
    this.problems = files.slice(room).map(({ name }) => ({ file: name, problem: "many", values: { most: MOST_RUNS } }));
    if (files.length === 0) this.problems = folders.map((name) => ({ file: name, problem: "folder", values: {} }));
    const taken = files.slice(0, room);
    /** @type {Loaded[]} */
    const loaded = [];
    for (const [done, file] of taken.entries()) {
      this.progress(done, taken.length);
      const result = await load(file);
      if ("problem" in result) this.problems.push({ file: file.name, ...result });
      else loaded.push({ file: file.name, label: labelOf(file.name), points: result, parent: parentOf(file) });
    }
    distinguish(loaded);
    const good = this.finish(loaded.length);
    if (loaded.length > 0) this.owner.add(loaded);
    return good;
  }
}

/** @param {File} file */
const parentOf = (file) => (pathOf.get(file) ?? file.webkitRelativePath).split("/").slice(1, -1).join("/");

/**
 * The same experiment in two folders: says where.
 * @param {Loaded[]} loaded
 */
function distinguish(loaded) {
  const labels = loaded.map(({ label }) => label);
  for (const [index, each] of loaded.entries()) {
    if (each.parent && labels.filter((label) => label === labels[index]).length > 1)
      each.label = `${each.label} (${each.parent})`;
  }
}
