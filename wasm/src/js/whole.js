
// the kinds and shapes that only the whole package has
Object.assign(kinds, {
  text(name, value) {
    if (typeof value !== "string") throw wrong(name, "a string", value);
    kinds.words(name, Uint32Array.from(value, (character) => character.codePointAt(0)));
  },
  boolean(name, value) {
    if (typeof value !== "boolean") throw wrong(name, "a boolean", value);
    push(+value);
  },
  truthy: (name, value) => push(value ? 1 : 0),
  policyLambda(name, value) {
    const adaptive = isObject(value);
    if (adaptive) closed(name, value, ["alpha"]);
    push(+adaptive);
    kinds.number(adaptive ? "alpha" : name, adaptive ? value.alpha : value);
  },
  follow(name, value) {
    push(value === null ? 0 : 1);
    if (value !== null) config(name, parse(configs.Follow), value);
  },
  range(name, value) {
    push(value === null ? 0 : 1);
    if (value !== null) config(name, parse("low:number,high:number"), value);
  },
  klControl(name, value) {
    if (typeof value === "number") return void frame.queue.push(0, value);
    open(name, value);
    // a horizon is what only one of the two has
    const adaptive = value.horizon !== undefined;
    push(adaptive ? 2 : 1);
    config("config", parse(adaptive ? configs.AdaptiveKlConfig : configs.LinearKlConfig), value);
  },
  tokenWeight(name, value, of) {
    choice(name, value, "TokenWeight");
    if (value === "structural") kinds.reals("structural", of.structural);
  },
  bypass(name, value) {
    closed(name, value, ["weights", "rejection", "form", "policy", "divisor"]);
    const form = value?.form === "reinforce" ? "ReinforceConfig" : "PpoConfig";
    const fields = `weights??:RolloutConfig,rejection?:RejectionConfig,form?:BypassForm,policy?:${form},divisor?:Divisor`;
    for (const field of parse(fields)) read(field, value?.[field.name]);
  },
  trlLoss(name, value) {
    open(name, value);
    const names = ["clipped", "cispo", "sapo", "vespo"];
    if (value.kind === undefined) throw wrong("kind", names.join(" | "), undefined);
    const kind = chosen("kind", value.kind, names);
    push(kind);
    for (const key of kind === 3 ? ["loss", "phiMean"] : ["loss", "clipFraction", "clipFractionLower", "kl"]) kinds.number(key, value[key]);
  },
  trlRewards(name, value) {
    open(name, value);
    const { names, sourceWeights: weights } = value;
    if (!Array.isArray(names)) throw wrong("names", "an array", names);
    for (const text of names) if (typeof text !== "string") throw wrong("names", "an array of strings", text);
    if (weights instanceof Float64Array && weights.length !== names.length) {
      throw new TokenwiseError("length", "names", -1, weights.length, names.length);
    }
    kinds.groups("groups", value.groups);
    kinds.reals("sources", value.sources);
    kinds.doubles("sourceWeights", weights);
    frame.names = names;
  },
  profiles(name, value) {
    if (!Array.isArray(value) || value.length !== 2) throw wrong(name, "an array of two names", value);
    frame.profiles = value.map((profile) => conventionsOf(name, profile));
    for (const profile of value) push(profileNames.indexOf(profile));
  },
});

Object.assign(shapes, {
  flag: () => take() === 1,
  pair: () => [take(), take()],
  RejectionOption: (kind) => choices[kind].split("|")[take()],
  WeightBound(kind) {
    const { name, inner } = parse(tagged[kind])[take()];
    return { kind: name, ...written({ mark: "", inner: inner.map((field) => ({ ...field, kind: undefined })) }) };
  },
  cause() {
    const index = take();
    return { convention: conventionNames[index], values: frame.profiles.map((values) => values[index]) };
  },
  /** The metrics, and those of the sources of the rewards under their names. */
  named() {
    const all = written({ mark: "*" });
    for (const name of frame.names ?? []) Object.assign(all, { [`rewards/${name}/mean`]: take(), [`rewards/${name}/std`]: take() });
    return all;
  },
});

/** The values of a profile's conventions, in the order of their names. */
function conventionsOf(name, profile) {
  chosen(name, profile, profileNames);
  return profileConventions[profile];
}

export function conventions(profile) {
  const values = conventionsOf("profile", profile);
  return Object.fromEntries(conventionNames.map((name, index) => [name, values[index]]));
}
