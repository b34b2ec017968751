
/*
 * How a call goes: the arguments are checked and written into a queue, the last one first unless a `!` stands before them, and
 * into lists of arrays; the module takes them from there and puts numbers, names and arrays in return, which get their names here.
 *
 * Both sides of a call are written as lists of `name`, then `?` for what need not be there, `??` for what is told whether it is
 * there, `*` for a list; then `:kind`, or `{…}` for an object of such. No kind is an array of the function's precision. In a
 * result `*` is an object of named numbers, `+` a list; the kinds T, S, F and M are outputs: as many numbers as tokens,
 * sequences, entries of the first array, or as many flags as tokens.
 */
let frame;

// what the module calls
const next = (usual) => frame.queue[frame.at++] ?? usual;
const total = (list) => frame.arrays[list].reduce((sum, { length }) => sum + length, 0);
const put = (...parts) => frame.found.push(...parts);
const putNull = () => put(null);
const putCopy = (values) => put(values.slice());
const putReals = (values) => put(frame.single ? new Float32Array(values) : values.slice());

function load(list, to) {
  let at = 0;
  for (const from of frame.arrays[list]) {
    if (!("copy" in from)) to.set(from, at);
    at += from.length;
  }
}

function store(list, from) {
  let at = 0;
  for (const output of frame.arrays[list]) {
    const part = from.subarray(at, (at += output.length));
    if ("copy" in output) output.copy = list === REALS && frame.single ? new Float32Array(part) : part.slice();
  }
}

function refuse(code, parameter, index, words, expected, got, more) {
  frame.refused ??= new TokenwiseError(code, parameter, index, code === "overflow" ? undefined : words || expected, code === "overflow" ? [got, more] : got);
}

/** The outputs of a result, in the order in which the module takes them. */
function outputs(fields) {
  for (const field of fields) {
    if (!/^[TSFM]$/.test(field.kind)) continue;
    const output = { length: frame.sizes[field.kind] ?? 0, copy: undefined };
    push(output.length);
    frame.arrays[field.kind === "M" ? FLAGS : frame.arrays[SINGLES].length > 0 ? SINGLES : REALS].push(output);
    frame.outputs.push(output);
  }
}

const take = () => frame.found[frame.taken++];

function written({ mark, kind, inner }) {
  if (/^[TSFM]$/.test(kind)) return frame.outputs.shift().copy;
  if (mark.startsWith("??") && take() !== 1) return null;
  if (mark.endsWith("*")) {
    const all = {};
    for (let name; typeof (name = take()) === "string"; ) all[name] = take();
    return all;
  }
  if (mark === "+") {
    const all = [];
    while (take() === 1) all.push(written({ mark: "", kind, inner }));
    return all;
  }
  if (inner) return Object.fromEntries(inner.map((field) => [field.name, written(field)]));
  return kind ? shapes[kind](kind) : take();
}

/** What a result may be besides a number or a name. */
const shapes = {};

/** Reads the arguments, runs the module, names the results. */
function perform(single, row, given, run) {
  const before = frame;
  const [list, results] = row.split(">");
  const parameters = parse(list.replace("!", ""));
  const indexes = parameters.map((_, index) => index);
  if (list[0] !== "!") indexes.reverse();
  frame = { single, head: [0, 0, 0, 0], queue: [], at: 0, arrays: [[], [], [], [], [], []], sizes: {}, outputs: [], found: [], taken: 0 };
  try {
    for (const index of indexes) read(parameters[index], given[index], parameters[index].name);
    const fields = parse(results);
    outputs(fields);
    // the module asks for the batch first, be it one of nothing
    frame.queue.unshift(...frame.head);
    const made = run();
    if (frame.refused) throw frame.refused;
    if (made !== undefined) return made;
    const [first] = fields;
    return written(first?.name === "" ? first : { mark: "", inner: first && fields });
  } finally {
    // the getters of an input may have called another function
    frame = before;
  }
}

/** The functions of the module, in the order it has them: the next one by its row; without a row, the last one in f64. */
const rows = [];
function entry(row) {
  if (row !== undefined) rows.push(row);
  const id = rows.length * 2 - (row === undefined ? 1 : 2);
  return (...given) => perform(row !== undefined, rows[id >> 1], given, () => invoke(id));
}
