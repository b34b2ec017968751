// The engines that can compute: the two builds of the library, and WebGPU. Each is loaded when it is first used. In the
// page as in a worker.

import { bestBuild, loadBuild } from "../engine.js";
import { replayed } from "./replay.js";

/** @typedef {import("../engine.js").Library} Library */
/** @typedef {"core" | "simd128" | "webgpu"} EngineName */

/** @typedef {{ code: string, reason: string }} Why why the core answered: for programs, and in English */

/**
 * @typedef {object} Device what ran on a GPU
 * @property {string} adapter
 * @property {number} asked calls of formulas
 * @property {number} calls those that it answered
 * @property {number} dispatches
 * @property {number} bytesUp
 * @property {number} bytesDown
 * @property {Record<string, Why>} core formulas that the core answered, and why
 * @property {boolean} first whether these were its first calls, for which it compiles
 */

/**
 * @typedef {object} Cost what a piece of work took
 * @property {number} milliseconds
 * @property {Device | null} device
 */

export const ENGINES = /** @type {const} */ (["core", "simd128", "webgpu"]);

/** The engine that the page has loaded anyway. @returns {EngineName} */
export const ownEngine = () => (bestBuild() === "simd" ? "simd128" : "core");

/**
 * Whether the browser has what an engine needs; an adapter is only known when it is asked for.
 * @param {EngineName} name
 */
export const isThere = (name) =>
  name === "core" || (name === "simd128" ? bestBuild() === "simd" : Boolean(/** @type {any} */ (navigator).gpu));

/** An engine that could not be had. */
export class NoEngine extends Error {
  name = "NoEngine";

  /** @param {EngineName} engine @param {unknown} cause */
  constructor(engine, cause) {
    super(cause instanceof Error ? cause.message : String(cause));
    this.engine = engine;
    /** of an error of the library; what the browser says about a module that it cannot load has none */
    this.code = String(/** @type {any} */ (cause)?.code ?? "");
  }
}

/** @typedef {import("../pkg/gpu/tokenwise.js").Gpu} Gpu */
/** @type {Promise<{ library: Library, gpu: Gpu }> | undefined} */
let onGpu;
let compiled = false;

async function loadGpu() {
  try {
    const library = await import("../pkg/gpu/tokenwise.js");
    await library.default();
    return { library: /** @type {Library} */ (/** @type {unknown} */ (library)), gpu: await library.Gpu.create() };
  } catch (error) {
    // the network, or the adapter, may be there at the next attempt
    onGpu = undefined;
    throw error;
  }
}

/**
 * The same value with its arrays of numbers in another precision. Objects of the module stay as they are.
 * @param {any} value
 * @param {Float32ArrayConstructor | Float64ArrayConstructor} from
 * @param {Float32ArrayConstructor | Float64ArrayConstructor} to
 * @returns {any}
 */
function converted(value, from, to) {
  if (value instanceof from) return new to(value);
  if (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, converted(entry, from, to)]));
}

/**
 * @template T
 * @param {(library: Library) => T} work
 * @returns {Promise<{ value: T, cost: Cost }>}
 */
async function runOnGpu(work) {
  const { library, gpu } = await (onGpu ??= loadGpu());
  const first = !compiled;
  compiled = true;
  /** @type {Device} */
  const device = { adapter: gpu.adapter, asked: 0, calls: 0, dispatches: 0, bytesUp: 0, bytesDown: 0, core: {}, first };
  let milliseconds = 0;
  const ask = async (/** @type {string} */ name, /** @type {any[]} */ given) => {
    const start = performance.now();
    const narrow = given.map((each) => converted(each, Float64Array, Float32Array));
    const { result, report } = await gpu.call(name, ...narrow);
    const wide = converted(result, Float32Array, Float64Array);
    milliseconds += performance.now() - start;
    device.asked += 1;
    if (report.ran === "gpu") device.calls += 1;
    else device.core[name] = { code: report.code ?? "", reason: report.reason ?? "" };
    device.dispatches += report.dispatches;
    device.bytesUp += report.bytesUp;
    device.bytesDown += report.bytesDown;
    return wide;
  };
  const value = await replayed(ask, (call) =>
    work(
      new Proxy(library, {
        get: (all, name) => {
          const formula = String(name).endsWith("F64") ? String(name).slice(0, -3) : "";
          const isFormula = formula !== "" && typeof (/** @type {any} */ (gpu)[formula]) === "function";
          if (!isFormula) return /** @type {any} */ (all)[name];
          return (/** @type {any[]} */ ...given) => call(formula, given);
        },
      }),
    ),
  );
  return { value, cost: { milliseconds, device } };
}

/**
 * Runs a piece of work on an engine. In f64 on the two builds; WebGPU has f32, so its arrays are rounded on the way.
 * @template T
 * @param {EngineName} name
 * @param {(library: Library) => T} work may be run several times, see `replayed`
 * @param {number} [enough] repeat work that is too short to be measured until this many milliseconds have passed
 * @returns {Promise<{ value: T, cost: Cost }>} rejects with `NoEngine` if the engine cannot be had
 */
export async function runBy(name, work, enough = 0) {
  const load = name === "webgpu" ? (onGpu ??= loadGpu()) : loadBuild(name === "core" ? "plain" : "simd");
  const loaded = await load.catch((error) => {
    throw new NoEngine(name, error);
  });
  if (name === "webgpu") return runOnGpu(work);
  const library = /** @type {Library} */ (loaded);
  const start = performance.now();
  let rounds = 0;
  let [value, passed] = [work(library), 0];
  for (;;) {
    rounds += 1;
    passed = performance.now() - start;
    if (passed >= enough || rounds >= 100) return { value, cost: { milliseconds: passed / rounds, device: null } };
    value = work(library);
  }
}

/**
 * Adds up what the parts of a piece of work took.
 * @param {Cost | null} all
 * @param {Cost} more
 * @returns {Cost}
 */
export function added(all, more) {
  if (!all) return more;
  const [a, b] = [all.device, more.device];
  const device = a &&
    b && {
      ...a,
      asked: a.asked + b.asked,
      calls: a.calls + b.calls,
      dispatches: a.dispatches + b.dispatches,
      bytesUp: a.bytesUp + b.bytesUp,
      bytesDown: a.bytesDown + b.bytesDown,
      core: { ...a.core, ...b.core },
    };
  return { milliseconds: all.milliseconds + more.milliseconds, device };
}

/** @typedef {{ value: number, of: string }} Difference */

/**
 * The largest difference between two sets of numbers: numbers and arrays by their names.
 * @param {Record<string, any>} found
 * @param {Record<string, any>} wanted
 * @returns {Difference} infinite where only one of the two is a number
 */
export function largestDifference(found, wanted) {
  let largest = { value: 0, of: "" };
  for (const [of, numbers] of Object.entries(wanted)) {
    const [a, b] = [found[of], numbers].map((entry) => (typeof entry === "number" ? [entry] : (entry ?? [])));
    for (let i = 0; i < b.length; i += 1) {
      const value = Object.is(a[i], b[i]) || a[i] === b[i] ? 0 : Math.abs(a[i] - b[i]);
      if (Number.isNaN(value)) return { value: Infinity, of };
      if (value > largest.value) largest = { value, of };
    }
  }
  return largest;
}
