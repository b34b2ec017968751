// Graphs for onnxruntime, written as the protocol buffers its format is:
// a library for that would be larger than what is measured.

const bytes = (...parts) => parts.flat(Infinity);
const varint = (value) => {
  const made = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...made, rest];
    made.push((rest % 128) + 128);
  }
};
const number = (field, value) => bytes(varint(field * 8), varint(value));
const message = (field, content) => bytes(varint(field * 8 + 2), varint(content.length), content);
const text = (field, value) => message(field, [...new TextEncoder().encode(value)]);

const FLOAT = 1;
const INT64 = 7;

const attribute = ([name, value]) =>
  message(
    5,
    Array.isArray(value)
      ? bytes(
          text(1, name),
          value.map((each) => number(8, each)),
          number(20, 7),
        )
      : bytes(text(1, name), number(3, value), number(20, 2)),
  );

const node = ([operator, inputs, output, attributes = {}]) =>
  message(
    1,
    bytes(
      inputs.map((name) => text(1, name)),
      text(2, output),
      text(4, operator),
      Object.entries(attributes).map(attribute),
    ),
  );

const tensor = (field, [name, kind, shape]) => {
  const dimensions = shape.map((size) => message(1, number(1, size)));
  return message(
    field,
    bytes(text(1, name), message(2, message(1, bytes(number(1, kind), message(2, bytes(dimensions)))))),
  );
};

const model = (nodes, inputs, outputs) => {
  const graph = bytes(
    nodes.map(node),
    text(2, "g"),
    inputs.map((each) => tensor(11, each)),
    outputs.map((each) => tensor(12, each)),
  );
  // opset 12: sums still take their axes as an attribute
  return Uint8Array.from(bytes(number(1, 7), message(7, graph), message(8, bytes(text(1, ""), number(2, 12)))));
};

/** Log-probability of the chosen token, and entropy. */
export const logitsModel = (rows, vocab) =>
  model(
    [
      ["LogSoftmax", ["logits"], "all", { axis: 1 }],
      ["GatherElements", ["all", "tokens"], "log_probs", { axis: 1 }],
      ["Exp", ["all"], "p"],
      ["Mul", ["p", "all"], "terms"],
      ["ReduceSum", ["terms"], "sum", { axes: [1], keepdims: 0 }],
      ["Neg", ["sum"], "entropy"],
    ],
    [
      ["logits", FLOAT, [rows, vocab]],
      ["tokens", INT64, [rows, 1]],
    ],
    [
      ["log_probs", FLOAT, [rows, 1]],
      ["entropy", FLOAT, [rows]],
    ],
  );

/** The five analysis metrics; the mask as numbers. */
export const analysisModel = (sequences, len) => {
  const total = (of, to) => ["ReduceSum", [of], to, { axes: [0, 1], keepdims: 1 }];
  const shape = [sequences, len];
  return model(
    [
      total("mask", "count"),
      ["Exp", ["old"], "p"],
      ["Mul", ["p", "old"], "terms"],
      ["Neg", ["terms"], "entropy"],
      ["Mul", ["entropy", "mask"], "kept_entropy"],
      total("kept_entropy", "entropy_sum"),
      ["Div", ["entropy_sum", "count"], "entropy_mean"],
      ["Mul", ["p", "p"], "pp"],
      ["Sub", ["p", "pp"], "spread"],
      ["Abs", ["advantages"], "size"],
      ["Mul", ["spread", "size"], "weight"],
      ["Mul", ["weight", "kept_entropy"], "weighted"],
      total("weighted", "wh_sum"),
      ["Div", ["wh_sum", "count"], "wh_mean"],
      ["Mul", ["advantages", "mask"], "kept_advantages"],
      total("kept_advantages", "advantage_sum"),
      ["Div", ["advantage_sum", "count"], "advantage_mean"],
      ["Mul", ["old", "mask"], "kept_old"],
      total("kept_old", "old_sum"),
      ["Div", ["old_sum", "count"], "old_mean"],
      ["Sub", ["advantages", "advantage_mean"], "a"],
      ["Sub", ["old", "old_mean"], "l"],
      ["Mul", ["a", "l"], "product"],
      ["Mul", ["product", "mask"], "kept_product"],
      total("kept_product", "product_sum"),
      ["Div", ["product_sum", "count"], "covariance"],
      ["Mul", ["rewards", "mask"], "kept_rewards"],
      ["ReduceSum", ["kept_rewards"], "reward_sums", { axes: [1], keepdims: 1 }],
      ["ReduceMean", ["reward_sums"], "reward_mean", { axes: [0, 1], keepdims: 1 }],
    ],
    ["old", "advantages", "rewards", "mask"].map((name) => [name, FLOAT, shape]),
    ["entropy_mean", "covariance", "wh_sum", "wh_mean", "reward_mean"].map((name) => [name, FLOAT, [1, 1]]),
  );
};

/** PPO's clipped loss with dual clip, without its gradient; the mask as numbers, the bounds as inputs. */
export const ppoModel = (sequences, len) => {
  const total = (of, to) => ["ReduceSum", [of], to, { axes: [0, 1], keepdims: 1 }];
  const shape = [sequences, len];
  return model(
    [
      ["Sub", ["new", "old"], "log_ratio"],
      ["Exp", ["log_ratio"], "ratio"],
      ["Max", ["ratio", "low"], "above"],
      ["Min", ["above", "high"], "clipped"],
      ["Neg", ["advantages"], "cost"],
      ["Mul", ["cost", "ratio"], "raw_loss"],
      ["Mul", ["cost", "clipped"], "clipped_loss"],
      ["Max", ["raw_loss", "clipped_loss"], "larger"],
      ["Mul", ["cost", "bound"], "cap"],
      ["Min", ["larger", "cap"], "capped"],
      ["Greater", ["cost", "zero"], "negative"],
      ["Where", ["negative", "capped", "larger"], "token_loss"],
      ["Mul", ["token_loss", "mask"], "kept_loss"],
      total("kept_loss", "sum"),
      total("mask", "count"),
      ["Div", ["sum", "count"], "loss"],
    ],
    [
      ...["new", "old", "advantages", "mask"].map((name) => [name, FLOAT, shape]),
      ...["low", "high", "bound", "zero"].map((name) => [name, FLOAT, [1, 1]]),
    ],
    [["loss", FLOAT, [1, 1]]],
  );
};
