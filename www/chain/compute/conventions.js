// The conventions of a framework, as the library reports them, and the settings that follow from them and from the
// choices of a state.

/** @typedef {import("../state.js").State} State */
/** @typedef {Record<string, string>} Conventions by name, as the library prints them */

/**
 * @typedef {object} Settings everything the formulas need to know beside the numbers
 * @property {"count" | "count-plus-epsilon"} divisor
 * @property {"step-over" | "zero-step"} across
 * @property {{ spread: "sample" | "population", place: "inside-root" | "outside" | "floor-variance", epsilon: number,
 *   divisor: "count" | "count-plus-epsilon" }} whiten
 * @property {{ epsilon: number, singleton: "zero" | "raw" | "undefined", spread: "sample" | "population" }} group
 * @property {"zero" | "raw" | "undefined"} baselineSingleton
 * @property {"kept" | "all"} scoreSlots
 * @property {"unbounded" | "k3-only" | "every"} klBounds
 * @property {number} rewardClip
 * @property {number | null} logRatioBound
 * @property {"off" | "negative" | "both"} dual
 * @property {number} dualClip
 * @property {{ form: "sequence" | "token", logRatioCap: number | null }} gspo
 * @property {{ kind: "relative", low: number, high: number } | { kind: "absolute", high: number }} cispo
 * @property {import("../../engine.js").Aggregate} aggregate
 */

/** The whitening ε is the same everywhere. */
const WHITEN_EPSILON = 1e-8;

/** @type {Map<string, Conventions>} */
const known = new Map();

/**
 * @param {import("../../engine.js").Library} library
 * @param {import("../state.js").ProfileName} profile
 * @returns {Conventions}
 */
export function conventionsOf(library, profile) {
  const found = known.get(profile) ?? library.conventions(profile);
  known.set(profile, found);
  return found;
}

/** @param {string} name as Rust writes it: `CountPlusEpsilon` */
const kebab = (name) => name.replace(/(?!^)([A-Z])/g, "-$1").toLowerCase();

/** @param {string} text `Some(20.0)`, `None`, `inf`, `1e-6` */
function numberIn(text) {
  const inner = text.replace(/^Some\((.*)\)$/, "$1");
  return inner === "None" ? null : inner === "inf" ? Infinity : Number(inner);
}

/**
 * @param {State} state
 * @param {Conventions} conventions
 * @param {Uint32Array} groups
 * @param {() => Uint32Array} promptTokens kept tokens of each prompt
 * @returns {Settings}
 */
export function settingsOf(state, conventions, groups, promptTokens) {
  const { choices, parameters } = state;
  const word = (/** @type {string} */ name) => /** @type {any} */ (kebab(conventions[name]));
  const bound = numberIn(conventions["dual_clip.bound"]);
  const signs = conventions["dual_clip.signs"] === "Both" ? "both" : "negative";
  const spread = choices.spread === "profile" ? null : choices.spread;
  const cap = /^Absolute \{ high: (.*) \}$/.exec(conventions["cispo.bounds"]);
  return {
    divisor: word("divisor"),
    across: choices.across === "profile" ? word("across") : choices.across,
    whiten: {
      spread: spread ?? word("whiten.spread"),
      place: word("whiten.place"),
      epsilon: WHITEN_EPSILON,
      divisor: word("divisor"),
    },
    group: { epsilon: Number(conventions["group.epsilon"]), singleton: word("singleton"), spread: spread ?? "sample" },
    baselineSingleton: word("baseline.singleton"),
    scoreSlots: word("score_slots"),
    klBounds: word("kl.bounds"),
    rewardClip: numberIn(conventions["reward.clip"]) ?? Infinity,
    logRatioBound: numberIn(conventions.log_ratio_bound),
    dual: choices.dual === "profile" ? (bound === null ? "off" : signs) : choices.dual,
    dualClip: choices.dual === "profile" ? (bound ?? parameters.dualClip) : parameters.dualClip,
    gspo: { form: word("gspo.form"), logRatioCap: numberIn(conventions["gspo.log_ratio_cap"]) },
    cispo: cap
      ? { kind: "absolute", high: Number(cap[1]) }
      : { kind: "relative", low: parameters.clipLow, high: parameters.clipHigh },
    aggregate: aggregateOf(state, conventions, groups, promptTokens),
  };
}

/**
 * @param {State} state
 * @param {Conventions} conventions
 * @param {Uint32Array} groups
 * @param {() => Uint32Array} promptTokens
 * @returns {import("../../engine.js").Aggregate}
 */
function aggregateOf({ choices, parameters }, conventions, groups, promptTokens) {
  const base = /** @type {import("../../engine.js").AggregateBase} */ ({
    emptyRows: kebab(conventions["aggregate.empty_rows"]),
    divisor: kebab(conventions["aggregate.divisor"]),
  });
  const { aggregate: mode } = choices;
  if (mode === "seq-mean-token-sum-norm") return { ...base, mode, scale: parameters.scale };
  // the sum over L alone: as if there were one sequence in the step
  if (mode === "token-sum-norm")
    return { ...base, mode: "seq-mean-token-sum-norm", scale: parameters.scale, counts: { sequences: 1 } };
  if (mode === "prompt-mean") return { ...base, mode, groups: { ids: groups }, tokens: promptTokens() };
  return { ...base, mode };
}

/**
 * The conventions that two profiles do not share.
 * @param {Conventions} one
 * @param {Conventions} other
 */
export const disputed = (one, other) => Object.keys(one).filter((name) => one[name] !== other[name]);
