// Rows of logits: shared by the kernels that read them. `load_logit` gives an entry as the bits of an f32, from f32.wgsl,
// f16.wgsl or bf16.wgsl.

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
// Bits, not numbers: loading a NaN as a float may already change it.
@group(0) @binding(3) var<storage, read> logits: array<u32>;
@group(0) @binding(4) var<storage, read> tokens: array<u32>;

// Threads of a workgroup, which reads one row.
const ROW_THREADS: u32 = 256u;
const ROW_ITEMS: u32 = 8u;

// e^−104 rounds to 0 in f32: entries this far below the maximum contribute nothing.
const REACH: f32 = 104.0;

const ENTRY_NUMBER: u32 = 0u;
const ENTRY_NEGATIVE_INFINITY: u32 = 1u;
const ENTRY_BAD: u32 = 2u;

fn entry_kind(bits: u32) -> u32 {
    if (is_nan_bits(bits)) {
        return ENTRY_BAD;
    }
    if ((bits & ~SIGN_BIT) <= bitcast<u32>(params.largest)) {
        return ENTRY_NUMBER;
    }
    // infinite, or z would overflow
    return select(ENTRY_BAD, ENTRY_NEGATIVE_INFINITY, (bits & SIGN_BIT) != 0u);
}

// z − m, at least −REACH: the difference of two large numbers could overflow, and below it the term is 0 anyway.
fn fall(z: f32, largest: f32) -> f32 {
    if (z < largest - REACH) {
        return -REACH;
    }
    return z - largest;
}

fn rescale(z: f32, largest: f32) -> f32 {
    return own_exp(fall(z, largest));
}
