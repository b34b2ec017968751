// The number of kept tokens from the slot to the end of its sequence.

@group(0) @binding(4) var<storage, read_write> left: array<u32>;

fn scan_step(slot: u32) -> Step {
    return Step(1.0, 0.0, false, 1.0);
}

fn scan_start(sequence: u32) -> Step {
    return Step(0.0, 0.0, false, 1.0);
}

fn scan_write(slot: u32, sum: f32, value: f32, bad: bool, next: Step) {
    left[slot] = bitcast<u32>(sum);
}

fn scan_zero(slot: u32) {
    left[slot] = 0u;
}
