// Generalized advantage estimates as a segmented scan from the last slot to the first.
//
// Walking backwards, every slot maps the state (A, V) = (advantage, value) of what follows it to its own:
//
//   kept      A' = decay·A + γ·V + (r − v)     V' = v
//   last kept A' = r + γ·bootstrap − v         V' = v      forgets what follows: here a sequence ends
//   zero step A' = decay·A + γ·V               V' = 0      a dropped slot between kept ones, if such slots cost a step
//   nothing   A' = A                           V' = V      any other dropped slot
//
// Such maps compose to maps of the same form, so they can be scanned: `fold` composes each block of slots to one map,
// `carry` composes the maps of the blocks, `apply` walks every block again from the state that reaches it.

struct Params {
    tokens: u32,
    blocks: u32,
    gamma: f32,
    // γ·λ
    decay: f32,
}

struct Map {
    decay: f32,
    gamma: f32,
    constant: f32,
    value: f32,
    kind: u32,
}

// The identity; a map that reads the state; one that forgets it. Kinds, not factors of 0: 0 · NaN is NaN, and a sequence must
// not see another one's numbers.
const MAP_NOTHING: u32 = 0u;
const MAP_STEP: u32 = 1u;
const MAP_STOP: u32 = 2u;

@group(0) @binding(0) var<uniform> params: Params;
// The kind of each slot in the two lowest bits, its sequence above them.
@group(0) @binding(1) var<storage, read> slots: array<u32>;
@group(0) @binding(2) var<storage, read> rewards: array<f32>;
@group(0) @binding(3) var<storage, read> values: array<f32>;
@group(0) @binding(4) var<storage, read> bootstrap: array<f32>;
@group(0) @binding(5) var<storage, read_write> advantages: array<f32>;
@group(0) @binding(6) var<storage, read_write> returns: array<f32>;
@group(0) @binding(7) var<storage, read_write> carries: array<Map>;

const SLOT_NOTHING: u32 = 0u;
const SLOT_ZERO_STEP: u32 = 1u;
const SLOT_KEPT: u32 = 2u;
const SLOT_LAST_KEPT: u32 = 3u;

const THREADS: u32 = 256u;
// Slots a thread folds by itself before threads exchange anything.
const ITEMS: u32 = 8u;

fn nothing() -> Map {
    return Map(1.0, 0.0, 0.0, 0.0, MAP_NOTHING);
}

// `right` first, then `left`.
fn compose(left: Map, right: Map) -> Map {
    if (left.kind == MAP_NOTHING) {
        return right;
    }
    if (left.kind == MAP_STOP || right.kind == MAP_NOTHING) {
        return left;
    }
    let constant = left.constant + (left.gamma * right.value + left.decay * right.constant);
    return Map(left.decay * right.decay, left.decay * right.gamma, constant, left.value, right.kind);
}

// Dropped slots are never read.
fn slot_map(slot: u32) -> Map {
    let kind = slots[slot] & 3u;
    if (kind == SLOT_NOTHING) {
        return nothing();
    }
    if (kind == SLOT_ZERO_STEP) {
        return Map(params.decay, params.gamma, 0.0, 0.0, MAP_STEP);
    }
    let value = values[slot];
    if (kind == SLOT_KEPT) {
        return Map(params.decay, params.gamma, rewards[slot] - value, value, MAP_STEP);
    }
    let delta = rewards[slot] + params.gamma * bootstrap[slots[slot] >> 2u] - value;
    return Map(0.0, 0.0, delta, value, MAP_STOP);
}

// The slots `start, start − 1, …` of one thread as one map. Positions count from the end of the batch.
fn thread_map(position: u32) -> Map {
    var map = nothing();
    for (var item = 0u; item < ITEMS; item++) {
        if (position + item < params.tokens) {
            map = compose(slot_map(params.tokens - 1u - position - item), map);
        }
    }
    return map;
}

var<workgroup> shared_maps: array<Map, THREADS>;

// What all threads before this one compose to; the whole workgroup's map stays in the last entry.
fn exclusive_scan(thread: u32, own: Map) -> Map {
    shared_maps[thread] = own;
    workgroupBarrier();
    for (var reach = 1u; reach < THREADS; reach *= 2u) {
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
    exclusive_scan(thread, thread_map((block * THREADS + thread) * ITEMS));
    if (thread == 0u) {
        carries[block] = shared_maps[THREADS - 1u];
    }
}

// One workgroup: turns the map of each block into the map of everything after it.
@compute @workgroup_size(256)
fn carry(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x > 0u) { return; }
    let share = (params.blocks + THREADS - 1u) / THREADS;
    let first = min(thread * share, params.blocks);
    let end = min(first + share, params.blocks);
    var map = nothing();
    for (var block = first; block < end; block++) {
        map = compose(carries[block], map);
    }
    map = exclusive_scan(thread, map);
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
    let after = compose(exclusive_scan(thread, thread_map(position)), carries[block]);
    // whatever follows begins with a last kept slot, so `after` is a constant: the state that reaches this thread
    var advantage = after.constant;
    var next_value = after.value;
    for (var item = 0u; item < ITEMS; item++) {
        if (position + item < params.tokens) {
            let slot = params.tokens - 1u - position - item;
            let kind = slots[slot] & 3u;
            if (kind >= SLOT_KEPT) {
                let value = values[slot];
                if (kind == SLOT_LAST_KEPT) {
                    next_value = bootstrap[slots[slot] >> 2u];
                    advantage = 0.0;
                }
                advantage = rewards[slot] + params.gamma * next_value - value + params.decay * advantage;
                next_value = value;
                advantages[slot] = advantage;
                returns[slot] = advantage + value;
            } else {
                if (kind == SLOT_ZERO_STEP) {
                    advantage = params.gamma * next_value + params.decay * advantage;
                    next_value = 0.0;
                }
                advantages[slot] = 0.0;
                returns[slot] = 0.0;
            }
        }
    }
}
