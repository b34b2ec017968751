// Gradient down to the logits, from the gradients of log-probability (g) and entropy (h); one workgroup per slot.
//
//   ∂/∂logit_v = (g ([v = a] − p_v) − h p_v ((z_v − m) − W/S)) / τ
//
// Needs prelude/vocab.wgsl and the rows that log_probs.wgsl wrote: each logit is read once and each gradient written
// once.

@group(0) @binding(5) var<storage, read> rows: array<Row>;
@group(0) @binding(6) var<storage, read> grad_log_probs: array<u32>;
@group(0) @binding(7) var<storage, read_write> grad_logits: array<u32>;
//GRAD_ENTROPY

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
    if ((slots[slot] & 3u) < SLOT_KEPT) {
        for (var entry = thread; entry < params.entries; entry += ROW_THREADS) {
            grad_logits[start + entry] = 0u;
        }
        return;
    }
    let row = rows[slot];
    let g_bits = grad_log_probs[slot];
    let h_bits = load_grad_entropy(slot);
    let special = is_special_bits(g_bits) || is_special_bits(h_bits);
    if (special && thread == 0u) {
        atomicOr(&record[0], FLAG_SPECIAL);
    }
    let nan = row.valid == 0u || is_nan_bits(g_bits) || is_nan_bits(h_bits);
    let g = finite(g_bits) * params.scale;
    let h = finite(h_bits) * params.scale;
    for (var entry = thread; entry < params.entries; entry += ROW_THREADS) {
        let bits = load_logit(start + entry);
        var gradient = 0.0;
        if (entry_kind(bits) == ENTRY_NUMBER) {
            let distance = fall(bitcast<f32>(bits) * params.scale, row.top);
            let p = own_exp(distance) * row.inverse_sum;
            gradient = -p * (g + h * (distance - row.mean_distance));
        }
        if (params.first_entry + entry == tokens[slot]) {
            gradient += g;
        }
        let out = bitcast<u32>(gradient);
        if (is_special_bits(out)) {
            atomicOr(&record[0], FLAG_RANGE);
        }
        grad_logits[start + entry] = select(out, NAN_BITS, nan);
    }
}
