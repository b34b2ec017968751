// Log-probability of the token, entropy and Σ p² of its row; one workgroup per slot, one pass over the logits. A row
// beyond the size of a binding is read by `piece`, piece by piece, and put together by `merge`.
//
//   m = max z    S = Σ e^{z−m}    W = Σ e^{z−m} (z − m)    Q = Σ e^{2(z−m)}
//   log_prob = z_a − m − ln S     entropy = ln S − W / S   Σ p² = Q / S²
//
// Each thread keeps (m, S, W, Q) of the entries it has seen and rescales them where m grows. Needs prelude/vocab.wgsl.

@group(0) @binding(5) var<storage, read_write> log_probs: array<u32>;
@group(0) @binding(6) var<storage, read_write> entropy: array<u32>;
@group(0) @binding(7) var<storage, read_write> sum_squares: array<u32>;
@group(0) @binding(8) var<storage, read_write> rows: array<Row>;

// Entries a thread processes before updating its running sums: fewer rescalings, and shorter chains of additions.
const FLAG_SEEN: u32 = 1u;
const FLAG_BAD: u32 = 2u;

var<workgroup> shared_flags: array<u32, ROW_THREADS>;
var<workgroup> shared_max: array<f32, ROW_THREADS>;
var<workgroup> shared_sum: array<f32, ROW_THREADS>;
var<workgroup> shared_weighted: array<f32, ROW_THREADS>;
var<workgroup> shared_squares: array<f32, ROW_THREADS>;

// m, S, W, Q of a row or of a piece of it, and the flags of its entries.
struct Statistics {
    top: f32,
    sum: f32,
    weighted: f32,
    squares: f32,
    flags: u32,
}

// Whole rows.
@compute @workgroup_size(ROW_THREADS)
fn log_probs_and_entropy(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (flat_group(group, groups) >= params.rows) { return; }
    let row = flat_group(group, groups);
    let slot = params.first + row;
    // the same for the whole workgroup
    let kept = (slots[slot] & 3u) >= SLOT_KEPT;
    let start = params.shift + row * params.vocab;
    let found = statistics(thread, start, select(0u, params.vocab, kept));
    if (thread == 0u) {
        var token_bits = 0u;
        if (kept && tokens[slot] < params.vocab) {
            token_bits = load_logit(start + tokens[slot]);
        }
        write_row(slot, kept, found, token_bits);
    }
}

// A piece of one row; one workgroup. Its statistics go to `rows`, two entries per piece.
@compute @workgroup_size(ROW_THREADS)
fn piece(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x > 0u) { return; }
    let slot = params.first;
    let kept = (slots[slot] & 3u) >= SLOT_KEPT;
    let found = statistics(thread, params.shift, select(0u, params.entries, kept));
    if (thread == 0u) {
        var token_bits = 0u;
        // wraps for a token of an earlier piece
        let token = tokens[slot] - params.first_entry;
        if (kept && token < params.entries) {
            token_bits = load_logit(params.shift + token);
        }
        rows[2u * params.piece] = Row(found.top, found.sum, found.weighted, found.flags);
        rows[2u * params.piece + 1u] = Row(found.squares, 0.0, 0.0, token_bits);
    }
}

fn piece_of(index: u32) -> Statistics {
    let at = 8u * index;
    return Statistics(
        bitcast<f32>(logits[at]),
        bitcast<f32>(logits[at + 1u]),
        bitcast<f32>(logits[at + 2u]),
        bitcast<f32>(logits[at + 4u]),
        logits[at + 3u],
    );
}

// Rows from the statistics of their pieces, which are bound in place of the logits; one thread per row.
@compute @workgroup_size(ROW_THREADS)
fn merge(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let slot = flat_group(group, groups) * ROW_THREADS + thread;
    if (slot >= params.rows) { return; }
    var all = Statistics(0.0, 0.0, 0.0, 0.0, 0u);
    var token_bits = 0u;
    for (var index = slot * params.pieces; index < (slot + 1u) * params.pieces; index++) {
        let found = piece_of(index);
        if ((found.flags & FLAG_SEEN) != 0u && ((all.flags & FLAG_SEEN) == 0u || found.top > all.top)) {
            all.top = found.top;
        }
        all.flags |= found.flags;
        // 0 for every piece but that of the token
        token_bits |= logits[8u * index + 7u];
    }
    for (var index = slot * params.pieces; index < (slot + 1u) * params.pieces; index++) {
        let found = piece_of(index);
        if ((found.flags & FLAG_SEEN) != 0u) {
            let factor = rescale(found.top, all.top);
            all.sum += factor * found.sum;
            all.weighted += factor * (found.weighted + fall(found.top, all.top) * found.sum);
            all.squares += factor * factor * found.squares;
        }
    }
    write_row(slot, (slots[slot] & 3u) >= SLOT_KEPT, all, token_bits);
}

// Of the entries `start` to `start + end`; the same in every thread.
fn statistics(thread: u32, start: u32, end: u32) -> Statistics {
    var flags = 0u;
    var row_max = 0.0;
    var sum = 0.0;
    var weighted = 0.0;
    var squares = 0.0;
    for (var base = 0u; base < end; base += ROW_THREADS * ROW_ITEMS) {
        var z: array<f32, ROW_ITEMS>;
        var present = 0u;
        var largest = 0.0;
        for (var item = 0u; item < ROW_ITEMS; item++) {
            let entry = base + item * ROW_THREADS + thread;
            if (entry < end) {
                let bits = load_logit(start + entry);
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
                squares = factor * factor * squares;
                row_max = largest;
            }
            var block_sum = 0.0;
            var block_weighted = 0.0;
            var block_squares = 0.0;
            for (var item = 0u; item < ROW_ITEMS; item++) {
                if ((present & (1u << item)) != 0u) {
                    let term = rescale(z[item], row_max);
                    block_sum += term;
                    block_weighted += term * fall(z[item], row_max);
                    block_squares += term * term;
                }
            }
            sum += block_sum;
            weighted += block_weighted;
            squares += block_squares;
        }
    }

    shared_flags[thread] = flags;
    shared_max[thread] = row_max;
    workgroupBarrier();
    for (var half = ROW_THREADS / 2u; half > 0u; half /= 2u) {
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
    shared_squares[thread] = factor * factor * squares;
    workgroupBarrier();
    for (var half = ROW_THREADS / 2u; half > 0u; half /= 2u) {
        if (thread < half) {
            shared_sum[thread] += shared_sum[thread + half];
            shared_weighted[thread] += shared_weighted[thread + half];
            shared_squares[thread] += shared_squares[thread + half];
        }
        workgroupBarrier();
    }
    return Statistics(top, shared_sum[0], shared_weighted[0], shared_squares[0], shared_flags[0]);
}

fn write_row(slot: u32, kept: bool, found: Statistics, token_bits: u32) {
    log_probs[slot] = 0u;
    entropy[slot] = 0u;
    sum_squares[slot] = 0u;
    if (!kept) {
        return;
    }
    if (found.flags != FLAG_SEEN) {
        log_probs[slot] = NAN_BITS;
        entropy[slot] = NAN_BITS;
        sum_squares[slot] = NAN_BITS;
        rows[slot] = Row(0.0, 0.0, 0.0, 0u);
        return;
    }
    let log_sum = own_ln(found.sum);
    let mean_distance = found.weighted / found.sum;
    entropy[slot] = bitcast<u32>(log_sum - mean_distance);
    sum_squares[slot] = bitcast<u32>(found.squares / found.sum / found.sum);
    rows[slot] = Row(found.top, 1.0 / found.sum, mean_distance, 1u);
    if (tokens[slot] >= params.vocab) {
        // ids on the device were not checked by the host
        log_probs[slot] = NAN_BITS;
        atomicOr(&record[0], FLAG_SPECIAL);
        return;
    }
    let z = bitcast<f32>(token_bits) * params.scale;
    // the second half: z − m would overflow
    if (entry_kind(token_bits) != ENTRY_NUMBER || 0.5 * z - 0.5 * found.top < -1.7014117e38) {
        // the token itself has probability 0
        log_probs[slot] = NEGATIVE_INFINITY_BITS;
        return;
    }
    log_probs[slot] = bitcast<u32>((z - found.top) - log_sum);
}
