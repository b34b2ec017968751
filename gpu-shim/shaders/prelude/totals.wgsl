// Sums of a formula's terms over the workgroup, then over all blocks. A record has the totals of all blocks behind its
// flags, then those of each block.

// A thread adds this many of the threads' sums, then one thread per term those of the threads: two barriers for all terms
// together, where a tree has one on each level.
const SPAN: u32 = 8u;

var<workgroup> shared_pairs: array<Pair, TERMS * THREADS>;

// Adds up `shared_pairs` and stores the totals as those of a block; block 0 is the total of all.
fn store_totals(thread: u32, block: u32) {
    workgroupBarrier();
    for (var part = thread; part < TERMS * THREADS / SPAN; part += THREADS) {
        // neighbouring threads read neighbouring sums
        let term = part / (THREADS / SPAN);
        let first = term * THREADS + part % (THREADS / SPAN);
        var sum = shared_pairs[first];
        for (var other = 1u; other < SPAN; other++) {
            sum = pair_add(sum, shared_pairs[first + other * (THREADS / SPAN)]);
        }
        shared_pairs[first] = sum;
    }
    workgroupBarrier();
    if (thread < TERMS) {
        var sum = shared_pairs[thread * THREADS];
        for (var other = 1u; other < THREADS / SPAN; other++) {
            sum = pair_add(sum, shared_pairs[thread * THREADS + other]);
        }
        let place = RECORD_FLAGS + 2u * (TERMS * block + thread);
        atomicStore(&record[place], bitcast<u32>(sum.hi));
        atomicStore(&record[place + 1u], bitcast<u32>(sum.lo));
        if (block == 0u && is_special_bits(bitcast<u32>(sum.hi))) { atomicOr(&record[0], FLAG_RANGE); }
    }
}

// One workgroup: adds up the sums of all blocks.
@compute @workgroup_size(THREADS)
fn finish(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x > 0u) { return; }
    for (var term = 0u; term < TERMS; term++) {
        var sum = Pair(0.0, 0.0);
        for (var block = thread + 1u; block <= params.all_blocks; block += THREADS) {
            let place = RECORD_FLAGS + 2u * (TERMS * block + term);
            let hi = bitcast<f32>(atomicLoad(&record[place]));
            let lo = bitcast<f32>(atomicLoad(&record[place + 1u]));
            sum = pair_add(sum, Pair(hi, lo));
        }
        shared_pairs[term * THREADS + thread] = sum;
    }
    store_totals(thread, 0u);
}
