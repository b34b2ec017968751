// The value of the next kept token, the bootstrap behind the last one.

@group(0) @binding(4) var<storage, read> values: array<u32>;
@group(0) @binding(5) var<storage, read> bootstrap: array<u32>;
@group(0) @binding(6) var<storage, read_write> next_values: array<u32>;

fn scan_step(slot: u32) -> Step {
    return scan_number(0u, values[slot]);
}

fn scan_start(sequence: u32) -> Step {
    return scan_number(0u, bootstrap[sequence]);
}

fn scan_write(slot: u32, sum: f32, value: f32, bad: bool, next: Step) {
    next_values[slot] = select(bitcast<u32>(next.value), NAN_BITS, bad);
}

fn scan_zero(slot: u32) {
    next_values[slot] = 0u;
}
