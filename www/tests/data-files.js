// Hostile files: broken, cut, mutated, with markup and with names that JavaScript objects have.

/** A generator whose numbers are always the same. @param {number} seed */
export function randomOf(seed) {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return { next, below: (n) => Math.floor(next() * n), pick: (list) => list[Math.floor(next() * list.length)] };
}

export const MARKUP = [
  '<img src=x onerror="window.hacked=1">',
  "<script>window.hacked=1</script>",
  "javascript:window.hacked=1",
  "</textarea><svg onload=window.hacked=1>",
  "{{constructor.constructor('window.hacked=1')()}}",
];

const list = (n, text) => `[${new Array(n).fill(text).join(",")}]`;

/** `[name, text or bytes]`; each is read or refused with a message. */
export const hostile = [
  [
    "markup.jsonl",
    MARKUP.map((text) =>
      JSON.stringify({ prompt: text, response_tokens: [text, "b"], log_probs: [-1, -2], group: text, [text]: 1 }),
    ).join("\n"),
  ],
  ["<img src=x onerror=window.hacked=1>.json", "{"],
  [
    "proto.json",
    '{"__proto__": {"log_probs": [1]}, "constructor": {"prototype": {"x": 1}}, "log_probs": [-1], ' +
      '"toString": 3, "hasOwnProperty": 4}',
  ],
  [
    "proto-group.jsonl",
    '{"group": "__proto__", "score": 1, "log_probs": [-1]}\n{"group": "constructor", "score": 1, "log_probs": [-1]}',
  ],
  ["proto.csv", '__proto__,log_probs\nx,"[-1]"\n'],
  ["deep-list.json", "[".repeat(200_000)],
  ["deep-object.json", '{"a":'.repeat(100_000)],
  ["deep-skipped.json", `{"log_probs": [-1], "x": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
  ["deep-records.json", '{"data": ['.repeat(5000)],
  ["huge-number.jsonl", `{"log_probs": [1e400]}`],
  ["long-number.jsonl", `{"log_probs": [-0.${"1".repeat(100_000)}]}`],
  ["tiny-number.jsonl", '{"log_probs": [-1e-400, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, -0]}'],
  ["cut.jsonl", '{"log_probs": [-1, -2'],
  ["cut-text.json", '{"prompt": "abc'],
  ["cut-escape.json", '{"prompt": "abc\\'],
  ["cut-unicode.json", '{"prompt": "\\u12'],
  ["lone-surrogate.json", '{"prompt": "\\ud800", "log_probs": [-1], "response_tokens": ["\\udfff"]}'],
  ["wrong-types.jsonl", '{"log_probs": {"a": 1}}'],
  ["wrong-mask.jsonl", '{"mask": "yes", "log_probs": [1]}'],
  ["text-numbers.jsonl", '{"log_probs": ["1", "2"]}'],
  ["bool-numbers.jsonl", '{"log_probs": [true]}'],
  ["score-object.jsonl", '{"score": {"a": [1]}}'],
  ["group-list.jsonl", '{"group": [[1]], "log_probs": [-1]}'],
  ["nul.jsonl", '{"log_probs": [-1]}\u0000\n'],
  ["nul-text.json", '{"prompt": "a\u0000b", "log_probs": [-1]}'],
  ["bom.jsonl", '\ufeff{"log_probs": [-1]}\n'],
  ["bom.csv", "\ufeffscore,step\n1,2\n"],
  ["empty.json", ""],
  ["blank.csv", "\n\n \n"],
  ["space.jsonl", " \t\r\n"],
  ["null.json", "null"],
  ["number.json", "42"],
  ["list.json", "[]"],
  ["object.json", "{}"],
  ["nan.json", "NaN"],
  ["many-empty.json", list(5000, "{}")],
  ["many-scores.json", `{"score": ${list(50_000, "1")}}`],
  [
    "negative-step.jsonl",
    '{"step": -5, "log_probs": [-1]}\n{"step": 1e300, "log_probs": [-1]}\n{"step": NaN, "log_probs": [-1]}',
  ],
  ["windows.csv", "score,step\r\n1,2\r\n\r\n3,4\r\n"],
  ["quotes.csv", 'score,group\n1,"a ""b"", c"\n2,"line\nbreak"\n3,plain"quote\n4,"open'],
  ["ragged.csv", "score,step\n1\n"],
  ["only-heading.csv", "score,step\n"],
  ["twice.csv", "log_probs,logprobs\n[1],[2]\n"],
  ["formula.csv", 'sequence,token,log_probs\n1,"=HYPERLINK(""http://x"")",-1\n'],
  ["sequence.csv", "sequence,log_probs\na,-1\nb,-1\na,-1\n"],
  ["binary.json", new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0])],
  ["latin.jsonl", new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ["x.parquet", "PAR1 and then nothing"],
  ["no-ending", new TextEncoder().encode("PAR1\u0000\u0000")],
  ["x.safetensors", "hello hello"],
  ["x.exe", "MZ\u0000\u0001"],
  ["prose.txt", "Dear all, here are the rollouts."],
  ["x.json.gz", new Uint8Array([0x1f, 0x8b, 8, 0])],
  ["duplicate.jsonl", '{"log_probs": [-1], "log_probs": [-2]}'],
  ["uneven.json", '{"log_probs": [[-1], [-1, -2]], "values": [[1, 2], [1]]}'],
  ["mixed.json", '{"log_probs": [-1, [2]]}'],
  ["comma.json", '[{"log_probs": [-1]},]'],
  ["colon.json", '{"log_probs" [-1]}'],
  ["single.json", "{'log_probs': [-1]}"],
  ["comment.json", '{"log_probs": [-1] /* x */}'],
  ["plus.json", '{"log_probs": [+1]}'],
  ["hex.json", '{"log_probs": [0x10]}'],
  ["leading.json", '{"log_probs": [01]}'],
];

const PIECES = [
  "\u0000",
  "\ufeff",
  "[[",
  "]]",
  "{",
  "}",
  '"',
  "\\",
  "\\u00",
  ",",
  ":",
  "\n",
  "\r\n",
  "NaN",
  "-Infinity",
  "null",
  "true",
  "1e999",
  "-",
  "1e-400",
  '"__proto__":',
  '"constructor":',
  '"log_probs":',
  '"mask":[2],',
  "<script>",
  "\ud83d",
  "，",
  "'",
  "0x1f",
  '"step":-1,',
];

/**
 * A file made of others, damaged in a few places.
 * @param {ReturnType<typeof randomOf>} random
 * @param {[string, string][]} good
 * @returns {[string, string]}
 */
export function spoilt(random, good) {
  const [name, text] = random.pick(good);
  let out = text;
  for (let times = 1 + random.below(4); times > 0; times -= 1) {
    const at = random.below(out.length + 1);
    const length = random.below(12);
    const kind = random.below(6);
    if (kind === 0) out = out.slice(0, at);
    else if (kind === 1) out = out.slice(0, at) + out.slice(at + length);
    else if (kind === 2) out = out.slice(0, at) + random.pick(PIECES) + out.slice(at);
    else if (kind === 3) out = out.slice(0, at) + String.fromCharCode(random.below(128)) + out.slice(at + 1);
    else if (kind === 4) out = out.slice(0, at) + out.slice(at, at + length * 10) + out.slice(at);
    else {
      const other = random.pick(good)[1];
      const from = random.below(other.length);
      out = out.slice(0, at) + other.slice(from, from + length * 8) + out.slice(at);
    }
  }
  // sometimes under the name of another kind
  return [random.next() < 0.15 ? random.pick(["x.json", "x.jsonl", "x.csv", "x.txt", ""]) : name, out];
}
