// How runs come in: the metrics of a run and its rollouts may lie in several files.

import { t } from "../i18n/index.js";
import { pathOf } from "../parts/folder.js";
import { Intake } from "../parts/intake.js";
import { isWanted, runsOf } from "./files.js";
import { load, readPasted } from "./load.js";
import { MOST_RUNS } from "./state.js";

/** @typedef {{ label: string, file: string, stored: import("./state.js").Stored }} Loaded */

export class RunIntake extends Intake {
  /**
   * @param {HTMLElement} container
   * @param {HTMLElement} page hidden while another page is in front
   * @param {{ add: (loaded: Loaded[]) => void, room: () => number, example: () => void }} owner
   */
  constructor(container, page, owner) {
    super(container, page, {
      id: "runs",
      first: "folder",
      accept: ".jsonl,.ndjson,.json",
      wanted: isWanted,
      placeholder: '{"step": 1, "actor/entropy": 1.38}',
      sample: owner.example,
    });
    this.owner = owner;
  }

  /**
   * Text has no name that would tell what it is: it is read as metrics.
   * @override
   * @param {string} text
   */
  async pasted(text) {
    const result = readPasted(text);
    const name = t("runs.pasted");
    this.problems = "problem" in result ? [{ file: name, ...result }] : [];
    if (!("problem" in result)) {
      this.owner.add([{ label: name, file: "", stored: { metrics: result, rollouts: null } }]);
      if (this.area) this.area.value = "";
    }
    this.finish("problem" in result ? 0 : 1);
  }

  /**
   * @override
   * @param {File[]} files
   * @param {string[]} folders
   */
  async readAll(files, folders) {
    const { runs, others } = runsOf(files.map((file) => ({ file, path: pathOf.get(file) ?? file.webkitRelativePath })));
    this.problems = others.map((file) => ({ file, problem: "kind", values: {} }));
    if (runs.length === 0 && others.length === 0)
      this.problems = (folders.length > 0 ? folders : files.map(({ name }) => name)).map((file) => ({
        file,
        problem: "folder",
        values: {},
      }));
    const room = this.owner.room();
    for (const { label } of runs.slice(room))
      this.problems.push({ file: label, problem: "many", values: { most: MOST_RUNS } });
    /** @type {Loaded[]} */
    const loaded = [];
    const taken = runs.slice(0, room);
    for (const [done, run] of taken.entries()) {
      const tell = (/** @type {number} */ share) => this.progress(done, taken.length, share);
      tell(0);
      const result = await load(run, tell);
      if ("problem" in result)
        this.problems.push({
          file: run.label === result.name ? run.label : `${run.label}: ${result.name}`,
          problem: result.problem,
          values: result.values,
        });
      else loaded.push(result);
    }
    const good = this.finish(loaded.length);
    if (loaded.length > 0) this.owner.add(loaded);
    return good;
  }
}
