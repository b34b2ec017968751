// Folds the entries of segments, tokens of sequences or sequences of groups, to one number per segment.
//
// The host cuts every segment into chunks of up to 64 entries and lists them in `table` as pairs (start, end). A thread
// folds one chunk; the results of a segment's chunks are again a segment, folded by the next level, until each segment
// has one. The order is fixed by the table, so results are the same on every run.

struct Params {
    // chunks of this level
    chunks: u32,
    // 0: words of kept entries; 1: the same through `order`; 2: results of the level before
    source: u32,
    // 0: sum; 1: maximum; 2: minimum
    operation: u32,
    // whether each segment has one chunk: the results are numbers
    last: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read> slots: array<u32>;
@group(0) @binding(3) var<storage, read> order: array<u32>;
@group(0) @binding(4) var<storage, read> entries: array<u32>;
@group(0) @binding(5) var<storage, read_write> results: array<u32>;
@group(0) @binding(6) var<storage, read_write> record: array<atomic<u32>>;

const OPERATION_SUM: u32 = 0u;
const OPERATION_MAX: u32 = 1u;
// Set once an entry was seen; above the flags of a term.
const SEEN: u32 = 8u;
// Words of a result that is not the last: hi, lo, flags.
const RESULT_WORDS: u32 = 3u;

struct Folded {
    pair: Pair,
    flags: u32,
}

fn joined(a: Folded, b: Folded) -> Folded {
    let flags = a.flags | b.flags;
    if ((b.flags & SEEN) == 0u) {
        return Folded(a.pair, flags);
    }
    if (params.operation == OPERATION_SUM) {
        return Folded(pair_add(a.pair, b.pair), flags);
    }
    let larger = b.pair.hi > a.pair.hi;
    let smaller = b.pair.hi < a.pair.hi;
    let better = select(smaller, larger, params.operation == OPERATION_MAX);
    if (better || (a.flags & SEEN) == 0u) {
        return Folded(b.pair, flags);
    }
    return Folded(a.pair, flags);
}

fn entry(index: u32) -> Folded {
    if (params.source == 2u) {
        let place = index * RESULT_WORDS;
        let pair = Pair(bitcast<f32>(entries[place]), bitcast<f32>(entries[place + 1u]));
        return Folded(pair, entries[place + 2u]);
    }
    var at = index;
    if (params.source == 1u) {
        at = order[index];
    }
    if ((slots[at] & 3u) < SLOT_KEPT) {
        return Folded(Pair(0.0, 0.0), 0u);
    }
    let bits = entries[at];
    let flags = term_flags(bits);
    if (params.operation == OPERATION_SUM && flags != 0u) {
        return Folded(Pair(0.0, 0.0), flags | SEEN);
    }
    // an infinity is the largest and smallest of all: its own bits come back at the end
    return Folded(Pair(finite(bits), 0.0), flags | SEEN);
}

// The bits of a finished number.
fn finished(folded: Folded) -> u32 {
    if (params.operation == OPERATION_SUM) {
        let flags = folded.flags & 7u;
        if (flags == 0u) {
            return bitcast<u32>(folded.pair.hi + folded.pair.lo);
        }
        if (flags == FLAG_POSITIVE_INFINITY) {
            return INFINITY_BITS;
        }
        return select(NAN_BITS, NEGATIVE_INFINITY_BITS, flags == FLAG_NEGATIVE_INFINITY);
    }
    if ((folded.flags & FLAG_NAN) != 0u) {
        return NAN_BITS;
    }
    let bits = bitcast<u32>(folded.pair.hi);
    if (folded.pair.hi == LARGEST && (folded.flags & FLAG_POSITIVE_INFINITY) != 0u) {
        return INFINITY_BITS;
    }
    if (folded.pair.hi == -LARGEST && (folded.flags & FLAG_NEGATIVE_INFINITY) != 0u) {
        return NEGATIVE_INFINITY_BITS;
    }
    return bits;
}

@compute @workgroup_size(THREADS)
fn fold(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let chunk = flat_group(group, groups) * THREADS + thread;
    if (chunk >= params.chunks) { return; }
    var folded = Folded(Pair(0.0, 0.0), 0u);
    let end = table[2u * chunk + 1u];
    for (var index = table[2u * chunk]; index < end; index++) {
        folded = joined(folded, entry(index));
    }
    if (params.last == 0u) {
        results[RESULT_WORDS * chunk] = bitcast<u32>(folded.pair.hi);
        results[RESULT_WORDS * chunk + 1u] = bitcast<u32>(folded.pair.lo);
        results[RESULT_WORDS * chunk + 2u] = folded.flags;
        return;
    }
    let bits = finished(folded);
    results[chunk] = bits;
    if ((folded.flags & 7u) != 0u) { atomicOr(&record[0], FLAG_SPECIAL); }
    if (is_special_bits(bits)) { atomicOr(&record[0], FLAG_RANGE); }
}
