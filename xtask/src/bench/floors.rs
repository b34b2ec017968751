//! Required performance, and what was measured.

use super::{
    gpu,
    records::Records,
    tables::{packed_gain, LARGE, ROWS_NATIVE, ROWS_WASM},
};

/// One bound and the measured value; `None` if it was not measured.
pub(super) struct Floor {
    pub(super) what: String,
    pub(super) bound: f64,
    pub(super) value: Option<f64>,
    /// Whether the bound is a minimum; otherwise it is a maximum.
    pub(super) at_least: bool,
}

impl Floor {
    pub(super) fn reached(&self) -> Option<bool> {
        self.value.map(|value| if self.at_least { value >= self.bound } else { value <= self.bound })
    }
}

/// Item, shape, peer, required speed-up over the peer.
const FASTER: [(&str, &str, &str, f64); 9] = [
    ("gae", LARGE, "verl", 150.0),
    ("gae", LARGE, "JAX scan", 8.0),
    ("grpo", LARGE, "verl", 10.0),
    ("grpo", LARGE, "torch", 1.0),
    ("ppo", LARGE, "torch.compile", 3.0),
    ("analysis", LARGE, "torch.compile", 2.0),
    ("logits-f32", ROWS_NATIVE, "torch.compile", 1.5),
    ("logits-f32", ROWS_NATIVE, "verl", 15.0),
    ("logits-bf16", ROWS_NATIVE, "torch.compile", 1.6),
];
/// Item, limit, share of it.
const SHARES: [(&str, &str, f64); 3] = [("gae", "copy", 0.5), ("ppo", "copy", 0.4), ("analysis", "read", 0.7)];
const PACKED: [&str; 3] = ["gae", "ppo", "analysis"];
const TWO_THREADS: [(&str, &str); 5] =
    [("gae", LARGE), ("ppo", LARGE), ("analysis", LARGE), ("logits-f32", ROWS_NATIVE), ("logits-bf16", ROWS_NATIVE)];

pub(super) fn floors(records: &Records) -> Vec<Floor> {
    let mut floors = Vec::new();
    let mut at_least = |what: String, bound, value| floors.push(Floor { what, bound, value, at_least: true });
    for (item, shape, who, bound) in FASTER {
        at_least(format!("{item} {shape}, times faster than {who}"), bound, records.ratio("peers-1", item, shape, who));
    }
    let two = records.ms("peers-2", "grpo", LARGE, "torch").zip(records.ms("alone-2", "grpo", LARGE, "ours"));
    at_least(
        format!("grpo {LARGE}, times faster than torch, 2 threads each"),
        1.0,
        two.map(|(torch, ours)| torch / ours),
    );
    for (item, limit, bound) in SHARES {
        at_least(
            format!("{item} {LARGE}, share of the {limit} limit"),
            bound,
            records.ratio("peers-1", item, LARGE, limit),
        );
    }
    for item in PACKED {
        at_least(format!("{item} {LARGE}, packed against padded"), 1.4, packed_gain(records, item, LARGE));
    }
    for (item, shape) in TWO_THREADS {
        let both = records.ms("alone-1", item, shape, "ours").zip(records.ms("alone-2", item, shape, "ours"));
        at_least(format!("{item} {shape}, 2 threads against 1"), 1.6, both.map(|(one, two)| one / two));
    }
    let node = |who| records.ms("wasm-node", "logits-f32", ROWS_WASM, who);
    let against = node("onnxruntime-web").zip(node("ours, in place"));
    at_least(
        format!("wasm simd128 logits {ROWS_WASM} in Node, times faster than onnxruntime-web"),
        4.0,
        against.map(|(theirs, ours)| theirs / ours),
    );
    let native = node("ours, in place").zip(records.ms("wasm-native", "logits-f32", ROWS_WASM, "ours"));
    floors.push(Floor {
        what: format!("wasm simd128 logits {ROWS_WASM} in Node, time against native"),
        bound: 1.8,
        value: native.map(|(wasm, native)| wasm / native),
        at_least: false,
    });
    let errors = records.find("peers-1", "logits-bf16", ROWS_NATIVE, "ours").map(|record| &record["errors"]);
    let error = errors
        .and_then(|errors| errors.as_object())
        .map(|errors| errors.values().filter_map(serde_json::Value::as_f64).fold(0.0, f64::max));
    floors.push(Floor {
        what: format!("logits-bf16 {ROWS_NATIVE}, largest error"),
        bound: 2e-6,
        value: error,
        at_least: false,
    });
    floors.extend(on_gpu(records));
    floors
}

/// Ratios on a software adapter.
fn on_gpu(records: &Records) -> Vec<Floor> {
    let mut floors = Vec::new();
    let mut add = |what: String, bound, value, at_least| floors.push(Floor { what, bound, value, at_least });
    for shape in [LARGE, ROWS_NATIVE] {
        let (faster, bytes) = (gpu::times_faster(records, shape), gpu::share_of_bytes(records, shape));
        add(format!("chain on a GPU {shape}, times faster than burn"), 3.0, faster, true);
        add(format!("chain on a GPU {shape}, bytes moved against burn"), 0.5, bytes, false);
    }
    let (growth, long_row) = (gpu::growth(records), gpu::long_row(records));
    add("chain on a GPU, 10⁴ to 10⁷ tokens, growth of the time per token".into(), 1.3, growth, false);
    let spread = gpu::spread(records);
    add("chain on a GPU, 10⁴ to 10⁷ tokens, largest time per token over the smallest".into(), 1.3, spread, false);
    add("gae on a GPU, a row of 10⁶ tokens against 1,000 of 1,000, time".into(), 1.0, long_row, false);
    floors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_neither_reached_nor_missed() {
        assert!(floors(&Records::default()).iter().all(|floor| floor.reached().is_none()));
        let most = Floor { what: String::new(), bound: 2.0, value: Some(1.0), at_least: false };
        assert_eq!(most.reached(), Some(true));
    }
}
