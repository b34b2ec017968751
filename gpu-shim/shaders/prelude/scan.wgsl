// Recursions from the last token of a sequence to the first, as a segmented scan.
//
// Going backwards, every slot maps the state (A, V) of its successor to its own:
//
//   kept      A' = decay·A + γ·V + constant    V' = value      decay may be the slot's own
//   last kept the same, from the state `scan_start` of its sequence: forgets what follows
//   zero step A' = decay·A + γ·V               V' = 0      a dropped slot between kept ones, if such slots cost a step
//   nothing   A' = A                           V' = V      any other dropped slot
//
// Such maps compose to maps of the same form, so they can be scanned: `fold` composes the slots of each thread and of
// each block to one map, `carry` composes the maps of the blocks, `apply` walks the slots of every thread again from the
// state that reaches it.
//
// A thread owns ITEMS neighbouring slots, which it walks alone, and threads meet at two barriers in `fold` only. A
// thread uses the whole of every cache line that it touches; loads that neighbouring threads share would need a detour
// through workgroup memory.
//
// Blocks are counted from the end. A batch beyond the size of a binding comes in pieces of whole blocks: `fold` and
// `apply` run once per piece, `carry` over the blocks of all pieces. There is room for the maps of the threads of one
// piece, so if there are several, `fold` runs `again` before `apply`.
//
// A formula defines `scan_step(slot)`, `scan_start(sequence)`, `scan_write(slot, A, value, bad, next)`, where `next` is
// the state that reaches the slot, and `scan_zero(slot)` for dropped slots.

struct Params {
    // slots and blocks of this piece
    tokens: u32,
    blocks: u32,
    // blocks after this piece, and of all pieces
    first_block: u32,
    all_blocks: u32,
    gamma: f32,
    decay: f32,
    // whether a dropped slot between kept ones costs a step
    zero_step: u32,
    // whether `carry` has run, so that only the maps of the threads are missing
    again: u32,
}

// What a kept slot adds.
struct Step {
    constant: f32,
    value: f32,
    // an input is not finite, or so large that sums could overflow
    bad: bool,
    // factor of the successor's A
    decay: f32,
}

struct Map {
    decay: f32,
    gamma: f32,
    constant: f32,
    value: f32,
    kind: u32,
}

// The identity; a map that reads the state; a map that ignores it. Kinds rather than factors of 0: 0 · NaN is NaN, and
// sequences must not see each other's values. MAP_BAD beside them: the result is NaN.
const MAP_NOTHING: u32 = 0u;
const MAP_STEP: u32 = 1u;
const MAP_STOP: u32 = 2u;
const MAP_KIND: u32 = 3u;
const MAP_BAD: u32 = 4u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> slots: array<u32>;
@group(0) @binding(2) var<storage, read_write> record: array<atomic<u32>>;
// One per block of all pieces, then one per thread of this piece.
@group(0) @binding(3) var<storage, read_write> carries: array<Map>;

// 2⁹⁰: magnitudes up to this can be summed in any order, 2³² of them, without overflow.
const LARGE_BITS: u32 = 0x6c800000u;

fn is_large_bits(bits: u32) -> bool {
    return (bits & ~SIGN_BIT) > LARGE_BITS;
}

// A step from the bits of its two numbers.
fn scan_number(constant: u32, value: u32) -> Step {
    if (is_large_bits(constant) || is_large_bits(value)) {
        return Step(0.0, 0.0, true, params.decay);
    }
    return Step(bitcast<f32>(constant), bitcast<f32>(value), false, params.decay);
}

fn nothing() -> Map {
    return Map(1.0, 0.0, 0.0, 0.0, MAP_NOTHING);
}

// `right` first, then `left`.
fn compose(left: Map, right: Map) -> Map {
    if (left.kind == MAP_NOTHING) {
        return right;
    }
    if ((left.kind & MAP_KIND) == MAP_STOP || right.kind == MAP_NOTHING) {
        return left;
    }
    let constant = left.constant + (left.gamma * right.value + left.decay * right.constant);
    let kind = right.kind | (left.kind & MAP_BAD);
    return Map(left.decay * right.decay, left.decay * right.gamma, constant, left.value, kind);
}

// What a slot adds, and what it is; dropped slots are never read. `start` counts for the last kept slot only.
struct Slot {
    step: Step,
    start: Step,
    counts: bool,
    kept: bool,
    last: bool,
}

fn slot_of(slot: u32) -> Slot {
    let word = slots[slot];
    let kind = word & 3u;
    let kept = kind >= SLOT_KEPT;
    let last = kind == SLOT_LAST_KEPT;
    var step = Step(0.0, 0.0, false, params.decay);
    var start = Step(0.0, 0.0, false, 0.0);
    if (kept) {
        step = scan_step(slot);
    }
    if (last) {
        start = scan_start(word >> 2u);
    }
    return Slot(step, start, kept || (kind == SLOT_GAP && params.zero_step != 0u), kept, last);
}

fn bad_bit(bad: bool) -> u32 {
    return select(0u, MAP_BAD, bad);
}

// The map of a slot after that of its successors.
fn stepped(slot: Slot, map: Map) -> Map {
    let step = slot.step;
    if (slot.last) {
        let constant = step.constant + (params.gamma * slot.start.value + step.decay * slot.start.constant);
        return Map(0.0, 0.0, constant, step.value, MAP_STOP | bad_bit(step.bad || slot.start.bad));
    }
    let first = map.kind == MAP_NOTHING;
    let constant = step.constant + (params.gamma * map.value + step.decay * map.constant);
    let gamma = select(step.decay * map.gamma, params.gamma, first);
    let kind = select(map.kind, MAP_STEP, first) | bad_bit(step.bad);
    return Map(step.decay * map.decay, gamma, constant, step.value, kind);
}

// The slot at a position, which counts from the end of the last block. The last block may lack slots: check the result.
fn slot_at(position: u32) -> u32 {
    return params.blocks * THREADS * ITEMS - 1u - position;
}

// Threads of `carry`.
const CARRY_THREADS: u32 = 256u;
// Neighbouring threads whose maps one thread composes: about the root of the number of threads.
const FOLD_SPAN: u32 = 8u;
const CARRY_SPAN: u32 = 16u;

var<workgroup> shared_maps: array<Map, CARRY_THREADS>;

// Composition of all of `threads` threads before this one. One thread composes the maps of `span` neighbours, then every
// thread those of the spans before its own: two barriers, where a tree has two on each level.
fn exclusive_scan(thread: u32, own: Map, threads: u32, span: u32) -> Map {
    shared_maps[thread] = own;
    workgroupBarrier();
    if (thread * span < threads) {
        var map = own;
        if (thread > 0u) {
            map = shared_maps[thread * span];
        }
        for (var next = thread * span + 1u; next < (thread + 1u) * span; next++) {
            map = compose(shared_maps[next], map);
            shared_maps[next] = map;
        }
    }
    workgroupBarrier();
    var map = nothing();
    for (var end = span; end <= thread; end += span) {
        map = compose(shared_maps[end - 1u], map);
    }
    if (thread % span > 0u) {
        map = compose(shared_maps[thread - 1u], map);
    }
    return map;
}

@compute @workgroup_size(THREADS)
fn fold(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (flat_group(group, groups) >= params.blocks) { return; }
    let block = flat_group(group, groups);
    let position = (block * THREADS + thread) * ITEMS;
    var map = nothing();
    for (var item = 0u; item < ITEMS; item++) {
        let at = slot_at(position + item);
        if (at < params.tokens) {
            let slot = slot_of(at);
            if (slot.counts) {
                map = stepped(slot, map);
            }
        }
    }
    let after = exclusive_scan(thread, map, THREADS, FOLD_SPAN);
    carries[params.all_blocks + block * THREADS + thread] = after;
    if (thread == THREADS - 1u && params.again == 0u) {
        carries[params.first_block + block] = compose(map, after);
    }
}

// One workgroup: replaces the map of each block by the map of everything after it.
@compute @workgroup_size(CARRY_THREADS)
fn carry(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x > 0u) { return; }
    let share = (params.all_blocks + CARRY_THREADS - 1u) / CARRY_THREADS;
    let first = min(thread * share, params.all_blocks);
    let end = min(first + share, params.all_blocks);
    var map = nothing();
    for (var block = first; block < end; block++) {
        map = compose(carries[block], map);
    }
    map = exclusive_scan(thread, map, CARRY_THREADS, CARRY_SPAN);
    for (var block = first; block < end; block++) {
        let own = carries[block];
        carries[block] = map;
        map = compose(own, map);
    }
}

@compute @workgroup_size(THREADS)
fn apply(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (flat_group(group, groups) >= params.blocks) { return; }
    let block = flat_group(group, groups);
    let position = (block * THREADS + thread) * ITEMS;
    let within = carries[params.all_blocks + block * THREADS + thread];
    let after = compose(within, carries[params.first_block + block]);
    // the following slots start with a last kept slot, so `after` is constant: the state that reaches this thread
    var state = Step(after.constant, after.value, (after.kind & MAP_BAD) != 0u, 0.0);
    var any_bad = false;
    for (var item = 0u; item < ITEMS; item++) {
        let at = slot_at(position + item);
        if (at < params.tokens) {
            let slot = slot_of(at);
            let step = slot.step;
            if (slot.last) {
                state = slot.start;
            }
            let sum = step.constant + (params.gamma * state.value + step.decay * state.constant);
            if (slot.kept) {
                // decays above 1 may leave the range
                let bad = state.bad || step.bad || is_special_bits(bitcast<u32>(sum));
                any_bad = any_bad || bad;
                scan_write(at, sum, step.value, bad, state);
                state.bad = bad;
            } else {
                scan_zero(at);
            }
            if (slot.counts) {
                state.constant = sum;
                state.value = step.value;
            }
        }
    }
    if (any_bad) { atomicOr(&record[0], FLAG_SPECIAL); }
}
