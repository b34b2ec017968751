// Rows of logits: shared by the kernels that read them. Needs a file that declares the logits, binding 3, as words
// (policy/one_word.wgsl) or as groups of four entries, which rows must then begin and end with (policy/four_words.wgsl,
// policy/four_halves.wgsl), and defines `load_word`, `load_logit`, an entry as the bits of an f32, and `load_four`. Bits,
// not numbers: loading a NaN as a float may already change it.

struct Params {
    // rows of this piece
    rows: u32,
    vocab: u32,
    // 1/τ
    scale: f32,
    // the largest logit whose product with `scale` is finite
    largest: f32,
    // slot of the first row of this piece
    first: u32,
    // entries of the binding before the first row: bindings start at aligned offsets
    shift: u32,
    // a row beyond the size of a binding comes in pieces of entries: the first of this piece, how many it has, which
    // piece of all rows it is, and how many a row has
    first_entry: u32,
    entries: u32,
    piece: u32,
    pieces: u32,
}

// What the gradient needs of a row: m, 1/S, W/S, and whether they are numbers.
struct Row {
    top: f32,
    inverse_sum: f32,
    mean_distance: f32,
    valid: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> slots: array<u32>;
@group(0) @binding(2) var<storage, read_write> record: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read> tokens: array<u32>;

// Threads of a workgroup, which reads one row.
const ROW_THREADS: u32 = 256u;

// e^−88 is less than the least normal f32: entries this far below the maximum contribute nothing.
const REACH: f32 = 88.0;

// Entries of probability 0: −inf, or z would be.
fn is_nothing(bits: vec4<u32>) -> vec4<bool> {
    return bits > vec4<u32>(SIGN_BIT | bitcast<u32>(params.largest));
}

// z − m of numbers, and −REACH where it is less: the difference of two large numbers could overflow.
fn fall(bits: vec4<u32>, top: f32) -> vec4<f32> {
    let z = bitcast<vec4<f32>>(bits) * params.scale;
    return select(z - top, vec4<f32>(-REACH), (z < vec4<f32>(top - REACH)) | is_nothing(bits));
}

// e^x for −REACH ≤ x ≤ 0 to about 1 ulp; exactly 1 at 0 and exactly 0 at −REACH. As `own_exp`, with 2ⁿ as one factor:
// n is at least −127, which gives the bits of 0. An addition moves n to the lowest bits of a float; a conversion would
// check its range.
fn exp_of_fall(x: vec4<f32>) -> vec4<f32> {
    let n = round(x * LOG2_E);
    let head = x - n * LN2_HI;
    let tail = n * LN2_LO;
    let r = head - tail;
    let r2 = r * r;
    let q = (0.49999994 + 0.16666521 * r) + r2 * ((0.041668266 + 0.008368681 * r) + r2 * 0.0013820777);
    let mantissa = 1.0 + (head + (r2 * q - tail));
    let exponent = bitcast<vec4<u32>>(n + 12582912.0) + 127u;
    return mantissa * bitcast<vec4<f32>>(exponent << vec4<u32>(23u));
}
