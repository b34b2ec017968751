// A = constant + decay·A, both the slot's own, from the start of its sequence. Writes A and that of the successor.

@group(0) @binding(4) var<storage, read> constants: array<u32>;
@group(0) @binding(5) var<storage, read> decays: array<u32>;
@group(0) @binding(6) var<storage, read> starts: array<u32>;
@group(0) @binding(7) var<storage, read_write> sums: array<u32>;
@group(0) @binding(8) var<storage, read_write> ahead: array<u32>;

fn scan_step(slot: u32) -> Step {
    let numbers = scan_number(constants[slot], decays[slot]);
    return Step(numbers.constant, 0.0, numbers.bad, numbers.value);
}

fn scan_start(sequence: u32) -> Step {
    return scan_number(starts[sequence], 0u);
}

fn scan_write(slot: u32, sum: f32, value: f32, bad: bool, next: Step) {
    sums[slot] = select(bitcast<u32>(sum), NAN_BITS, bad);
    ahead[slot] = select(bitcast<u32>(next.constant), NAN_BITS, bad);
}

fn scan_zero(slot: u32) {
    sums[slot] = 0u;
    ahead[slot] = 0u;
}
