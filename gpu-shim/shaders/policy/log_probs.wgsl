// Log-probability of the token, entropy and Σ p² of its row; one workgroup per slot, one pass over the logits. A row
// beyond the size of a binding is read by `piece`, piece by piece, and put together by `merge`.
//
//   m = max z    S = Σ e^{z−m}    W = Σ e^{z−m} (z − m)    Q = Σ e^{2(z−m)}
//   log_prob = z_a − m − ln S     entropy = ln S − W / S   Σ p² = Q / S²
//
// Each thread keeps (m, S, W, Q) of the entries it has seen, and takes sixteen at once, so that it rescales the sums once
// for all of them. No branch depends on an entry: S is 0 until there is a number, and at least 1 from then on. Needs
// prelude/vocab.wgsl.

@group(0) @binding(5) var<storage, read_write> log_probs: array<u32>;
@group(0) @binding(6) var<storage, read_write> entropy: array<u32>;
@group(0) @binding(7) var<storage, read_write> sum_squares: array<u32>;
@group(0) @binding(8) var<storage, read_write> rows: array<Row>;

// m, S, W, Q of some entries, and whether one of them makes the row NaN.
struct Statistics {
    top: f32,
    sum: f32,
    weighted: f32,
    squares: f32,
    bad: u32,
}

// Of as many threads one thread puts the statistics together, then one of the workgroup: two barriers, where a tree has
// one on each level.
const ROW_SPAN: u32 = 16u;

var<workgroup> shared_statistics: array<Statistics, ROW_THREADS>;

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
        rows[2u * params.piece] = Row(found.top, found.sum, found.weighted, found.bad);
        rows[2u * params.piece + 1u] = Row(found.squares, 0.0, 0.0, token_bits);
    }
}

fn piece_of(index: u32) -> Statistics {
    let at = 8u * index;
    return Statistics(
        bitcast<f32>(load_word(at)),
        bitcast<f32>(load_word(at + 1u)),
        bitcast<f32>(load_word(at + 2u)),
        bitcast<f32>(load_word(at + 4u)),
        load_word(at + 3u),
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
    var all = nothing_yet();
    var token_bits = 0u;
    for (var index = slot * params.pieces; index < (slot + 1u) * params.pieces; index++) {
        all = together(all, piece_of(index));
        // 0 for every piece but that of the token
        token_bits |= load_word(8u * index + 7u);
    }
    write_row(slot, (slots[slot] & 3u) >= SLOT_KEPT, all, token_bits);
}

fn nothing_yet() -> Statistics {
    return Statistics(-LARGEST, 0.0, 0.0, 0.0, 0u);
}

// The same sums from a larger top.
fn raised(found: Statistics, top: f32) -> Statistics {
    let far = found.top < top - REACH;
    let distance = select(found.top - top, -REACH, far);
    let factor = exp_of_fall(vec4<f32>(distance)).x;
    let weighted = factor * (found.weighted + distance * found.sum);
    return Statistics(top, factor * found.sum, weighted, factor * factor * found.squares, found.bad);
}

fn together(one: Statistics, other: Statistics) -> Statistics {
    let top = max(one.top, other.top);
    let a = raised(one, top);
    let b = raised(other, top);
    return Statistics(top, a.sum + b.sum, a.weighted + b.weighted, a.squares + b.squares, a.bad | b.bad);
}

fn total(v: vec4<f32>) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

fn scaled(bits: vec4<u32>) -> vec4<f32> {
    return select(bitcast<vec4<f32>>(bits) * params.scale, vec4<f32>(-LARGEST), is_nothing(bits));
}

fn as_signed(bits: vec4<u32>) -> vec4<i32> {
    return bitcast<vec4<i32>>(bits);
}

fn with_sixteen(found: Statistics, a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32>) -> Statistics {
    let larger = max(max(scaled(a), scaled(b)), max(scaled(c), scaled(d)));
    let sums = raised(found, max(found.top, max(max(larger.x, larger.y), max(larger.z, larger.w))));
    let a_fall = fall(a, sums.top);
    let b_fall = fall(b, sums.top);
    let c_fall = fall(c, sums.top);
    let d_fall = fall(d, sums.top);
    let a_term = exp_of_fall(a_fall);
    let b_term = exp_of_fall(b_fall);
    let c_term = exp_of_fall(c_fall);
    let d_term = exp_of_fall(d_fall);
    let terms = (a_term + b_term) + (c_term + d_term);
    let weighted = (a_term * a_fall + b_term * b_fall) + (c_term * c_fall + d_term * d_fall);
    let squares = (a_term * a_term + b_term * b_term) + (c_term * c_term + d_term * d_term);
    // NaN with a sign is above all bits; NaN without, +inf, and a number whose z would be, above those of finite z
    let unsigned = max(max(a, b), max(c, d));
    let signed = max(max(as_signed(a), as_signed(b)), max(as_signed(c), as_signed(d)));
    let negative_nan = max(max(unsigned.x, unsigned.y), max(unsigned.z, unsigned.w)) > NEGATIVE_INFINITY_BITS;
    let too_large = max(max(signed.x, signed.y), max(signed.z, signed.w)) > bitcast<i32>(params.largest);
    return Statistics(
        sums.top,
        sums.sum + total(terms),
        sums.weighted + total(weighted),
        sums.squares + total(squares),
        sums.bad | u32(negative_nan || too_large),
    );
}

// The entries before `end`, and −inf for the others.
fn load_some(first: u32, end: u32) -> vec4<u32> {
    var four = vec4<u32>(NEGATIVE_INFINITY_BITS);
    if (first + 4u <= end) {
        four = load_four(first);
    } else {
        for (var index = first; index < end; index++) {
            four[index - first] = load_logit(index);
        }
    }
    return four;
}

// Of the entries `start` to `start + end`, in thread 0.
fn statistics(thread: u32, start: u32, end: u32) -> Statistics {
    var own = nothing_yet();
    // entries of a team: four for each thread, several times
    let share = (end + 4u * ROW_THREADS - 1u) / (4u * ROW_THREADS) * (4u * TEAM);
    let stop = start + min(end, (thread / TEAM + 1u) * share);
    var first = start + min(end, thread / TEAM * share) + 4u * (thread % TEAM);
    for (; first + 12u * TEAM + 4u <= stop; first += 16u * TEAM) {
        let a = load_four(first);
        let b = load_four(first + 4u * TEAM);
        let c = load_four(first + 8u * TEAM);
        let d = load_four(first + 12u * TEAM);
        own = with_sixteen(own, a, b, c, d);
    }
    if (first < stop) {
        let a = load_some(first, stop);
        let b = load_some(first + 4u * TEAM, stop);
        let c = load_some(first + 8u * TEAM, stop);
        let d = load_some(first + 12u * TEAM, stop);
        own = with_sixteen(own, a, b, c, d);
    }

    shared_statistics[thread] = own;
    workgroupBarrier();
    if (thread < ROW_THREADS / ROW_SPAN) {
        for (var other = thread + ROW_THREADS / ROW_SPAN; other < ROW_THREADS; other += ROW_THREADS / ROW_SPAN) {
            own = together(own, shared_statistics[other]);
        }
        shared_statistics[thread] = own;
    }
    workgroupBarrier();
    if (thread == 0u) {
        for (var other = 1u; other < ROW_THREADS / ROW_SPAN; other++) {
            own = together(own, shared_statistics[other]);
        }
    }
    return own;
}

fn write_row(slot: u32, kept: bool, found: Statistics, token_bits: u32) {
    log_probs[slot] = 0u;
    entropy[slot] = 0u;
    sum_squares[slot] = 0u;
    if (!kept) {
        return;
    }
    if (found.bad != 0u || found.sum == 0.0) {
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
    if (is_nothing(vec4<u32>(token_bits)).x || 0.5 * z - 0.5 * found.top < -1.7014117e38) {
        // the token itself has probability 0
        log_probs[slot] = NEGATIVE_INFINITY_BITS;
        return;
    }
    log_probs[slot] = bitcast<u32>((z - found.top) - log_sum);
}
