
// reading arguments: checked here, so that the module can take them as they are
/** Lists are read once. */
const lists = new Map();
function parse(text) {
  let list = lists.get(text);
  if (list) return list;
  const part = /([\w-]*)([?*+]*)(?::(\w+))?/y;
  let at = 0;
  const all = () => {
    const found = [];
    do {
      part.lastIndex = at;
      const [whole, name, mark, kind] = part.exec(text);
      at += whole.length;
      let inner;
      if (text[at] === "{") {
        at++;
        inner = all();
        at++;
      }
      if (name || mark || kind) found.push({ name, mark, kind, inner });
    } while (text[at] === "," && ++at);
    return found;
  };
  lists.set(text, (list = all()));
  return list;
}

const wrong = (name, expected, got) => new TokenwiseError("type", name, -1, expected, got);
const isObject = (value) => typeof value === "object" && value !== null;
const push = (value) => frame.queue.push(value);

/** An object whose fields are all named; others are not looked at, so that one with all arrays of a step goes to every function. */
function open(name, value) {
  if (!isObject(value)) throw wrong(name, "an object", value);
}

/** An object with none but these keys, or `undefined`. */
function closed(name, value, keys) {
  if (value === undefined) return;
  open(name, value);
  for (const key of Object.keys(value)) if (!keys.includes(key)) throw new TokenwiseError("key", key, -1, keys.join(", "), name);
}

function config(name, fields, value) {
  closed(name, value, fields.map((field) => field.name));
  for (const field of fields) read(field, value?.[field.name]);
}

/** The index of a name. */
function chosen(name, value, names) {
  if (typeof value !== "string") throw wrong(name, names.join(" | "), value);
  if (!names.includes(value)) throw new TokenwiseError("choice", name, -1, names.join(", "), value);
  return names.indexOf(value);
}
const choice = (name, value, kind) => push(value === undefined ? value : chosen(name, value, choices[kind].split("|")));

/** `kind` says which of the variants, the other keys are its numbers. */
function tag(name, value, variants) {
  open(name, value);
  const names = variants.map((variant) => variant.name);
  if (value.kind === undefined) throw wrong("kind", names.join(" | "), undefined);
  const index = chosen("kind", value.kind, names);
  const fields = variants[index].inner;
  closed(name, value, ["kind", ...fields.map((field) => field.name)]);
  push(index);
  for (const field of fields) read(field, value[field.name]);
}

function whole(name, value, bits) {
  if (typeof value !== "number" || !(value >= 0 && value < 2 ** bits && Number.isInteger(value))) {
    throw wrong(name, `a whole number from 0 to 2^${bits} - 1`, value);
  }
  push(value);
}

/** The kinds of arrays, by the number the module has for them. */
const [REALS, SINGLES, DOUBLES, WORDS, COUNTS, FLAGS] = [0, 1, 2, 3, 4, 5];
function array(name, value, Type, list) {
  if (!(value instanceof Type)) throw wrong(name, `a ${Type.name}`, value);
  push(value.length);
  frame.arrays[list].push(value);
}
function real(name, value, list) {
  array(name, value, frame.single ? Float32Array : Float64Array, list);
  frame.sizes.F ??= value.length;
}

/** What a field may be besides a choice, a config or a tagged object. */
const kinds = {
  number(name, value) {
    if (typeof value !== "number") throw wrong(name, "a number", value);
    push(value);
  },
  nullable(name, value) {
    if (value !== null && typeof value !== "number") throw wrong(name, "a number or null", value);
    push(value === null ? 2 : 1);
    if (value !== null) push(value);
  },
  size: (name, value) => whole(name, value, 32),
  count: (name, value) => whole(name, value, 53),
  reals: (name, value) => real(name, value, REALS),
  singles: (name, value) => real(name, value, frame.single ? SINGLES : REALS),
  doubles: (name, value) => array(name, value, Float64Array, DOUBLES),
  words: (name, value) => array(name, value, Uint32Array, WORDS),
  flags(name, value) {
    array(name, value, Uint8Array, FLAGS);
    const index = value.findIndex((flag) => flag > 1);
    if (index >= 0) throw new TokenwiseError("entry", name, index, "0 or 1", value[index]);
  },
  batch(name, value) {
    const { layout, mask, sequences, tokens } = held(name, value, Batch, "a Batch");
    const { cuSeqlens: offsets, batch, len } = layout;
    frame.head = offsets ? [1, offsets.length, mask.length] : [0, batch, len, mask.length];
    if (offsets) frame.arrays[WORDS].unshift(offsets);
    frame.arrays[FLAGS].unshift(mask);
    Object.assign(frame.sizes, { T: tokens, M: tokens, S: sequences });
  },
  layout(name, value) {
    open(name, value);
    if (value.cuSeqlens === undefined) {
      closed(name, value, ["batch", "len", "cuSeqlens"]);
      push(0);
      whole("batch", value.batch, 32);
      whole("len", value.len, 32);
    } else {
      closed(name, value, ["cuSeqlens"]);
      push(1);
      kinds.words("cuSeqlens", value.cuSeqlens);
    }
  },
  groups(name, value) {
    open(name, value);
    const key = value.sizes === undefined ? "ids" : "sizes";
    closed(name, value, key === "ids" ? ["ids", "sizes"] : ["sizes"]);
    push(key === "ids" ? 0 : 1);
    kinds.words(key, value[key]);
  },
  counts(name, value) {
    push(1);
    config(name, parse(configs.GlobalCounts), value);
  },
  aggregate(name, value) {
    const modes = ["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm", "prompt-mean"];
    const shared = ["mode", "counts", "emptyRows", "divisor"];
    closed(name, value, [...shared, "scale", "groups", "tokens"]);
    const mode = value.mode === undefined ? undefined : chosen("mode", value.mode, modes);
    // what belongs to another mode would be ignored without a word
    closed(name, value, mode === 4 ? [...shared, "scale"] : mode === 5 ? [...shared, "groups", "tokens"] : shared);
    push(1);
    push(mode);
    if (mode === 4) kinds.number("scale", value.scale);
    if (mode === 5) {
      kinds.groups("groups", value.groups);
      array("tokens", value.tokens, Uint32Array, COUNTS);
    }
    for (const field of parse("counts?:counts,emptyRows?:EmptyRows,divisor?:Divisor")) read(field, value[field.name]);
  },
  dualClip(name, value) {
    if (typeof value === "string") push(chosen(name, value, ["off"]));
    else if (!isObject(value)) throw wrong(name, '"off", { negativeOnly } or { bothSigns }', value);
    else {
      closed(name, value, ["negativeOnly", "bothSigns"]);
      const both = value.bothSigns !== undefined;
      if (both) closed(name, value, ["bothSigns"]);
      push(both ? 2 : 1);
      kinds.number(both ? "bothSigns" : "negativeOnly", both ? value.bothSigns : value.negativeOnly);
    }
  },
};

/** Checks a value, a field `of` an object, and writes it into the queue; `parameter` is what messages call a config. */
function read({ name, mark, kind, inner }, value, parameter = "config", of) {
  const missing = value === undefined;
  if (mark === "*") {
    if (!missing && !Array.isArray(value)) throw wrong(name, "an array", value);
    push(missing ? 0 : value.length);
    value?.forEach((item) => config(parameter, parse(configs[kind]), item));
    return;
  }
  if (mark === "??") {
    push(missing ? 0 : 1);
    if (missing) return;
  }
  if (inner) {
    open(name, value);
    for (const field of inner) read(field, value[field.name], "config", value);
  } else if (configs[kind] !== undefined) config(parameter, parse(configs[kind]), value);
  else if (choices[kind]) choice(name, value, kind);
  else if (mark === "?" && missing) push(undefined);
  else if (tagged[kind]) tag(name, value, parse(tagged[kind]));
  else kinds[kind ?? "reals"](name, value, of);
}
