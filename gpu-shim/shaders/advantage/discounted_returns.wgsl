// Discounted returns: A = r + γ·A, from the bootstrap behind the last kept token.

@group(0) @binding(4) var<storage, read> rewards: array<u32>;
@group(0) @binding(5) var<storage, read> bootstrap: array<u32>;
@group(0) @binding(6) var<storage, read_write> returns: array<u32>;

fn scan_step(slot: u32) -> Step {
    return scan_number(rewards[slot], 0u);
}

fn scan_start(sequence: u32) -> Step {
    return scan_number(bootstrap[sequence], 0u);
}

fn scan_write(slot: u32, sum: f32, value: f32, bad: bool, next: Step) {
    returns[slot] = select(bitcast<u32>(sum), NAN_BITS, bad);
}

fn scan_zero(slot: u32) {
    returns[slot] = 0u;
}
