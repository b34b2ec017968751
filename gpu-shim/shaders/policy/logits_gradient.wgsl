// Gradient down to the logits, from the gradients of log-probability (g) and entropy (h); one workgroup per slot.
//
//   ∂/∂logit_v = (g ([v = a] − p_v) − h p_v ((z_v − m) − W/S)) / τ
//
// Each logit is read once and each gradient written once, but for that of the token. Needs prelude/vocab.wgsl, the rows
// that log_probs.wgsl wrote, with_entropy.wgsl or without_entropy.wgsl, and store_one.wgsl or store_four.wgsl.

@group(0) @binding(5) var<storage, read> rows: array<Row>;
@group(0) @binding(6) var<storage, read> grad_log_probs: array<u32>;

fn exponents(gradient: vec4<f32>) -> vec4<u32> {
    return bitcast<vec4<u32>>(gradient) & vec4<u32>(INFINITY_BITS);
}

@compute @workgroup_size(ROW_THREADS)
fn logits_gradient(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (flat_group(group, groups) >= params.rows) { return; }
    let at = flat_group(group, groups);
    let slot = params.first + at;
    let start = params.shift + at * params.vocab;
    // groups of four, those of a team, and those of this thread
    let fours = params.entries / 4u;
    let share = (fours + ROW_THREADS - 1u) / ROW_THREADS * TEAM;
    let first = min(fours, thread / TEAM * share) + thread % TEAM;
    let stop = min(fours, (thread / TEAM + 1u) * share);
    let kept = (slots[slot] & 3u) >= SLOT_KEPT;
    let row = rows[slot];
    let g_bits = grad_log_probs[slot];
    let h_bits = load_grad_entropy(slot);
    if (kept && thread == 0u && (is_special_bits(g_bits) || is_special_bits(h_bits))) {
        atomicOr(&record[0], FLAG_SPECIAL);
    }
    let nan = row.valid == 0u || is_nan_bits(g_bits) || is_nan_bits(h_bits);
    if (!kept || nan) {
        let all = select(0u, NAN_BITS, kept);
        for (var four = first; four < stop; four += TEAM) {
            store_four(start + 4u * four, vec4<u32>(all));
        }
        for (var entry = 4u * fours + thread; entry < params.entries; entry += ROW_THREADS) {
            store_one(start + entry, all);
        }
        return;
    }
    let g = finite(g_bits) * params.scale;
    let h = finite(h_bits) * params.scale;
    // exponents of the results: those of infinities and NaN left the range
    var largest = vec4<u32>(0u);
    for (var four = first; four < stop; four += TEAM) {
        let gradient = gradients(load_four(start + 4u * four), row, g, h);
        largest = max(largest, exponents(gradient));
        store_four(start + 4u * four, bitcast<vec4<u32>>(gradient));
    }
    for (var entry = 4u * fours + thread; entry < params.entries; entry += ROW_THREADS) {
        let gradient = gradients(vec4<u32>(load_logit(start + entry)), row, g, h);
        largest = max(largest, exponents(gradient));
        store_one(start + entry, bitcast<u32>(gradient.x));
    }
    // wraps for a token of an earlier piece
    let token = tokens[slot] - params.first_entry;
    let of_four = token / 4u / max(share, 1u) * TEAM + token / 4u % TEAM;
    let writer = select(token - 4u * fours, of_four, token < 4u * fours);
    if (token < params.entries && thread == writer) {
        let gradient = gradients(vec4<u32>(load_logit(start + token)), row, g, h) + g;
        largest = max(largest, exponents(gradient));
        store_one(start + token, bitcast<u32>(gradient.x));
    }
    if (any(largest == vec4<u32>(INFINITY_BITS))) {
        atomicOr(&record[0], FLAG_RANGE);
    }
}
