// Generalized advantage estimates: A = (r − v) + γ·V + γλ·A, from (0, bootstrap) behind the last kept token.

@group(0) @binding(4) var<storage, read> rewards: array<u32>;
@group(0) @binding(5) var<storage, read> values: array<u32>;
@group(0) @binding(6) var<storage, read> bootstrap: array<u32>;
@group(0) @binding(7) var<storage, read_write> advantages: array<u32>;
@group(0) @binding(8) var<storage, read_write> returns: array<u32>;

fn scan_step(slot: u32) -> Step {
    let numbers = scan_number(rewards[slot], values[slot]);
    return Step(numbers.constant - numbers.value, numbers.value, numbers.bad, numbers.decay);
}

fn scan_start(sequence: u32) -> Step {
    return scan_number(0u, bootstrap[sequence]);
}

fn scan_write(slot: u32, sum: f32, value: f32, bad: bool, next: Step) {
    advantages[slot] = select(bitcast<u32>(sum), NAN_BITS, bad);
    returns[slot] = select(bitcast<u32>(sum + value), NAN_BITS, bad);
}

fn scan_zero(slot: u32) {
    advantages[slot] = 0u;
    returns[slot] = 0u;
}
