// Log-probability of the token and entropy of its row; one workgroup per row, in one reading of the logits.
//
//   m = max z    S = Σ e^{z−m}    W = Σ e^{z−m} (z − m)    log_prob = z_a − m − ln S    entropy = ln S − W / S
//
// Each thread keeps (m, S, W) of the entries it has seen and rescales S and W where m grows.

struct Params {
    rows: u32,
    vocab: u32,
    // 1/τ
    scale: f32,
    // the largest logit whose product with `scale` is finite
    largest: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
// Bits, not numbers: loading a NaN as a number may already change it.
@group(0) @binding(1) var<storage, read> logits: array<u32>;
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
@group(0) @binding(3) var<storage, read_write> log_probs: array<f32>;
@group(0) @binding(4) var<storage, read_write> entropy: array<f32>;
@group(0) @binding(5) var<storage, read_write> status: array<u32>;

// What the host puts in place of a number that a shader cannot be trusted to make.
const STATUS_NUMBER: u32 = 0u;
const STATUS_NAN: u32 = 1u;
const STATUS_IMPOSSIBLE_TOKEN: u32 = 2u;

const THREADS: u32 = 256u;
// Entries a thread takes before it touches its running sums: fewer rescalings, and shorter chains of additions.
const ITEMS: u32 = 8u;
// e^−104 rounds to 0 in f32: entries this far below the maximum count nothing.
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
    // infinite, or so large that z is
    return select(ENTRY_BAD, ENTRY_NEGATIVE_INFINITY, (bits & SIGN_BIT) != 0u);
}

const FLAG_SEEN: u32 = 1u;
const FLAG_BAD: u32 = 2u;

var<workgroup> shared_flags: array<u32, THREADS>;
var<workgroup> shared_max: array<f32, THREADS>;
var<workgroup> shared_sum: array<f32, THREADS>;
var<workgroup> shared_weighted: array<f32, THREADS>;

@compute @workgroup_size(256)
fn log_probs_and_entropy(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (flat_group(group, groups) >= params.rows) { return; }
    let row = flat_group(group, groups);
    let start = row * params.vocab;

    var flags = 0u;
    var row_max = 0.0;
    var sum = 0.0;
    var weighted = 0.0;
    for (var base = 0u; base < params.vocab; base += THREADS * ITEMS) {
        var z: array<f32, ITEMS>;
        var present = 0u;
        var largest = 0.0;
        for (var item = 0u; item < ITEMS; item++) {
            let entry = base + item * THREADS + thread;
            if (entry < params.vocab) {
                let bits = logits[start + entry];
                let kind = entry_kind(bits);
                if (kind == ENTRY_BAD) {
                    flags |= FLAG_BAD;
                }
                if (kind == ENTRY_NUMBER) {
                    z[item] = bitcast<f32>(bits) * params.scale;
                    largest = select(max(largest, z[item]), z[item], present == 0u);
                    present |= 1u << item;
                }
            }
        }
        if (present != 0u) {
            if ((flags & FLAG_SEEN) == 0u) {
                row_max = largest;
                flags |= FLAG_SEEN;
            } else if (largest > row_max) {
                let factor = rescale(row_max, largest);
                weighted = factor * (weighted + fall(row_max, largest) * sum);
                sum = factor * sum;
                row_max = largest;
            }
            var block_sum = 0.0;
            var block_weighted = 0.0;
            for (var item = 0u; item < ITEMS; item++) {
                if ((present & (1u << item)) != 0u) {
                    let term = rescale(z[item], row_max);
                    block_sum += term;
                    block_weighted += term * fall(z[item], row_max);
                }
            }
            sum += block_sum;
            weighted += block_weighted;
        }
    }

    shared_flags[thread] = flags;
    shared_max[thread] = row_max;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        if (thread < half) {
            let other = thread + half;
            let both = shared_flags[thread] & shared_flags[other] & FLAG_SEEN;
            let first = (shared_flags[thread] & FLAG_SEEN) != 0u;
            let larger = max(shared_max[thread], shared_max[other]);
            shared_max[thread] = select(select(shared_max[other], shared_max[thread], first), larger, both != 0u);
            shared_flags[thread] |= shared_flags[other];
        }
        workgroupBarrier();
    }

    let top = shared_max[0];
    var factor = 0.0;
    if ((flags & FLAG_SEEN) != 0u) {
        factor = rescale(row_max, top);
    }
    shared_sum[thread] = factor * sum;
    shared_weighted[thread] = factor * (weighted + fall(row_max, top) * sum);
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        if (thread < half) {
            shared_sum[thread] += shared_sum[thread + half];
            shared_weighted[thread] += shared_weighted[thread + half];
        }
        workgroupBarrier();
    }
    if (thread == 0u) {
        finish(row, start, top, shared_flags[0]);
    }
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

fn finish(row: u32, start: u32, top: f32, flags: u32) {
    let bits = logits[start + tokens[row]];
    status[row] = STATUS_NUMBER;
    log_probs[row] = 0.0;
    entropy[row] = 0.0;
    if (flags != FLAG_SEEN) {
        status[row] = STATUS_NAN;
        return;
    }
    let log_sum = own_ln(shared_sum[0]);
    entropy[row] = log_sum - shared_weighted[0] / shared_sum[0];
    let z = bitcast<f32>(bits) * params.scale;
    // the second half: z − m would overflow
    if (entry_kind(bits) != ENTRY_NUMBER || 0.5 * z - 0.5 * top < -1.7014117e38) {
        status[row] = STATUS_IMPOSSIBLE_TOKEN;
        return;
    }
    log_probs[row] = (z - top) - log_sum;
}
