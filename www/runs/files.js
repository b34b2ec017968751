// Which files make a run: a folder with its metrics, or a single file of metrics. No imports.

/**
 * @typedef {object} Found
 * @property {string} label
 * @property {string} file what it is called, to be found again
 * @property {File[]} metrics
 * @property {File | null} rollouts
 * @property {File | null} about `run.json`
 * @property {File[]} histories
 */

/** @param {string} name @returns {"metrics" | "rollouts" | "about" | "history" | "other"} */
export function roleOf(name) {
  if (/^rollouts?[^/]*\.(jsonl|ndjson|parquet)$/i.test(name)) return "rollouts";
  if (name === "run.json") return "about";
  if (/^entropy_history_.*\.json$/i.test(name)) return "history";
  if (/^distributions.*\.jsonl$/i.test(name)) return "other";
  if (/\.(jsonl|ndjson)$/i.test(name) || name === "trainer_state.json" || name === "wandb-summary.json")
    return "metrics";
  return "other";
}

/** Whether a file in a folder is one to be looked for. @param {string} name */
export const isWanted = (name) => roleOf(name) !== "other";

/** @param {string} path */
const folderOf = (path) => path.split("/").slice(0, -1).join("/");

/**
 * @param {{ file: File, path: string }[]} files path: "" or without a folder for a single file
 * @returns {{ runs: Found[], others: string[] }}
 */
export function runsOf(files) {
  /** @type {Map<string, Found>} */
  const folders = new Map();
  /** @type {Found[]} */
  const single = [];
  /** @type {string[]} */
  const others = [];
  // metrics and rollouts given together without a folder belong together
  const loose = files.filter(({ path }) => folderOf(path) === "");
  const pair = loose.filter(({ file }) => roleOf(file.name) === "metrics").length === 1;
  for (const { file, path } of files) {
    const folder = folderOf(path);
    const role = roleOf(file.name);
    if (role === "other" || (folder === "" && !pair && role !== "metrics")) {
      others.push(path || file.name);
      continue;
    }
    if (folder === "" && !pair) {
      single.push({ ...empty(file.name.replace(/\.[^.]*$/, ""), file.name), metrics: [file] });
      continue;
    }
    const label = folder === "" ? "" : folder;
    const found = folders.get(folder) ?? empty(label, folder);
    folders.set(folder, found);
    if (role === "metrics") found.metrics.push(file);
    if (role === "rollouts") found.rollouts = file;
    if (role === "about") found.about = file;
    if (role === "history") found.histories.push(file);
  }
  // a chooser of folders hands files over in any order
  const inOrder = new Intl.Collator("en", { numeric: true }).compare;
  const named = [...folders.values()]
    .filter(({ metrics }) => metrics.length > 0)
    .sort((a, b) => inOrder(a.file, b.file));
  for (const found of named) {
    if (found.label !== "") continue;
    found.label = found.metrics[0].name.replace(/\.[^.]*$/, "");
    found.file = found.metrics[0].name;
  }
  shorten(named);
  return { runs: [...named, ...single], others };
}

/** @param {string} label @param {string} file @returns {Found} */
const empty = (label, file) => ({ label, file, metrics: [], rollouts: null, about: null, histories: [] });

/** Takes away the folders that all have in common. @param {Found[]} runs */
function shorten(runs) {
  if (runs.length === 0) return;
  const parts = runs.map(({ label }) => label.split("/"));
  let common = 0;
  const shortest = Math.min(...parts.map(({ length }) => length));
  while (common < shortest - 1 && parts.every((one) => one[common] === parts[0][common])) common += 1;
  for (const [i, run] of runs.entries()) run.label = parts[i].slice(common).join("/");
}

/**
 * What runs that differ only in their seed have in common.
 * @param {string} label
 */
export const withoutSeed = (label) => {
  const short = label
    .replace(/(?:(?:^|[\s,，_./-]+)s(?=\d)|[\s,，_./-]*(?:seed|种子))[\s_=-]*\d+/giu, "")
    .replace(/^[\s,，_./-]+|[\s,，_./-]+$/gu, "");
  return short === "" ? label : short;
};
