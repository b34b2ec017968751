// Recursions from the last token of a sequence to the first, as a segmented scan.
//
// Going backwards, every slot maps the state (A, V) of its successor to its own:
//
//   kept      A' = decay·A + γ·V + constant    V' = value      decay may be the slot's own
//   last kept the same, from the state `scan_start` of its sequence: forgets what follows
//   zero step A' = decay·A + γ·V               V' = 0      a dropped slot between kept ones, if such slots cost a step
//   nothing   A' = A                           V' = V      any other dropped slot
//
// Such maps compose to maps of the same form, so they can be scanned: `fold` composes each block of slots to one map,
// `carry` composes the maps of the blocks, `apply` walks every block again from the state that reaches it.
//
// Blocks are counted from the end. A batch beyond the size of a binding comes in pieces of whole blocks: `fold` and
// `apply` run once per piece, `carry` over the blocks of all pieces.
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

// Dropped slots are never read.
fn slot_map(slot: u32) -> Map {
    let kind = slots[slot] & 3u;
    if (kind == SLOT_DROPPED || (kind == SLOT_GAP && params.zero_step == 0u)) {
        return nothing();
    }
    if (kind == SLOT_GAP) {
        return Map(params.decay, params.gamma, 0.0, 0.0, MAP_STEP);
    }
    let step = scan_step(slot);
    if (kind == SLOT_KEPT) {
        return Map(step.decay, params.gamma, step.constant, step.value, MAP_STEP | select(0u, MAP_BAD, step.bad));
    }
    let start = scan_start(slots[slot] >> 2u);
    let constant = step.constant + (params.gamma * start.value + step.decay * start.constant);
    return Map(0.0, 0.0, constant, step.value, MAP_STOP | select(0u, MAP_BAD, step.bad || start.bad));
}

// The slot at a position, which counts from the end of the last block. The last block may lack slots: check the result.
fn slot_at(position: u32) -> u32 {
    return params.blocks * THREADS * ITEMS - 1u - position;
}

// The slots at positions `position, position + 1, …` of one thread as one map.
fn thread_map(position: u32) -> Map {
    var map = nothing();
    for (var item = 0u; item < ITEMS; item++) {
        let slot = slot_at(position + item);
        if (slot < params.tokens) {
            map = compose(slot_map(slot), map);
        }
    }
    return map;
}

var<workgroup> shared_maps: array<Map, THREADS>;

// Composition of all threads before this one, of which the first `used` count; if that is all of them, the last entry
// holds the composition of the whole workgroup.
fn exclusive_scan(thread: u32, own: Map, used: u32) -> Map {
    shared_maps[thread] = own;
    workgroupBarrier();
    for (var reach = 1u; reach < used; reach *= 2u) {
        var map = shared_maps[thread];
        if (thread >= reach) {
            map = compose(map, shared_maps[thread - reach]);
        }
        workgroupBarrier();
        shared_maps[thread] = map;
        workgroupBarrier();
    }
    if (thread == 0u) {
        return nothing();
    }
    return shared_maps[thread - 1u];
}

@compute @workgroup_size(256)
fn fold(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (flat_group(group, groups) >= params.blocks) { return; }
    let block = flat_group(group, groups);
    exclusive_scan(thread, thread_map((block * THREADS + thread) * ITEMS), THREADS);
    if (thread == 0u) {
        carries[params.first_block + block] = shared_maps[THREADS - 1u];
    }
}

// One workgroup: replaces the map of each block by the map of everything after it.
@compute @workgroup_size(256)
fn carry(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x > 0u) { return; }
    let share = (params.all_blocks + THREADS - 1u) / THREADS;
    let first = min(thread * share, params.all_blocks);
    let end = min(first + share, params.all_blocks);
    var map = nothing();
    for (var block = first; block < end; block++) {
        map = compose(carries[block], map);
    }
    map = exclusive_scan(thread, map, min(params.all_blocks, THREADS));
    for (var block = first; block < end; block++) {
        let own = carries[block];
        carries[block] = map;
        map = compose(own, map);
    }
}

@compute @workgroup_size(256)
fn apply(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (flat_group(group, groups) >= params.blocks) { return; }
    let block = flat_group(group, groups);
    let position = (block * THREADS + thread) * ITEMS;
    let after = compose(exclusive_scan(thread, thread_map(position), THREADS), carries[params.first_block + block]);
    // the following slots start with a last kept slot, so `after` is constant: the state that reaches this thread
    var state = Step(after.constant, after.value, (after.kind & MAP_BAD) != 0u, 0.0);
    var any_bad = false;
    for (var item = 0u; item < ITEMS; item++) {
        let slot = slot_at(position + item);
        if (slot < params.tokens) {
            let kind = slots[slot] & 3u;
            if (kind >= SLOT_KEPT) {
                if (kind == SLOT_LAST_KEPT) {
                    state = scan_start(slots[slot] >> 2u);
                }
                let step = scan_step(slot);
                let sum = step.constant + (params.gamma * state.value + step.decay * state.constant);
                // decays above 1 may leave the range
                let bad = state.bad || step.bad || is_special_bits(bitcast<u32>(sum));
                any_bad = any_bad || bad;
                scan_write(slot, sum, step.value, bad, state);
                state = Step(sum, step.value, bad, 0.0);
            } else {
                if (kind == SLOT_GAP && params.zero_step != 0u) {
                    let sum = params.gamma * state.value + params.decay * state.constant;
                    state = Step(sum, 0.0, state.bad, 0.0);
                }
                scan_zero(slot);
            }
        }
    }
    if (any_bad) { atomicOr(&record[0], FLAG_SPECIAL); }
}
