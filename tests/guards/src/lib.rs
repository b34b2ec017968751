//! How many instructions per token the kernels may take. `cargo bench --package tokenwise-guards` counts them under
//! callgrind and fails above the limit: an inner loop that is no longer vectorised takes several times as many. Counts,
//! unlike times, are the same on a busy machine.

/// Sequences of a batch, and slots of each: 9/16 of them kept, as in a padded batch of answers.
pub const SHAPE: (usize, usize) = (32, 512);
/// Rows of logits, and entries of each.
pub const LOGITS: (usize, usize) = (8, 4096);
/// Slots of a batch.
pub const TOKENS: usize = SHAPE.0 * SHAPE.1;
/// All logits.
pub const ENTRIES: usize = LOGITS.0 * LOGITS.1;

/// One kernel.
pub struct Kernel {
    /// Name of the benchmark.
    pub name: &'static str,
    /// Instructions per slot (per logit) with AVX2; about a fifth above the count when it was set.
    pub limit: f64,
    /// Slots (logits) of one call.
    pub slots: usize,
}

const fn tokens(name: &'static str, limit: f64) -> Kernel {
    Kernel { name, limit, slots: TOKENS }
}

const fn logits(name: &'static str, limit: f64) -> Kernel {
    Kernel { name, limit, slots: ENTRIES }
}

/// Every kernel that is counted.
pub const KERNELS: [Kernel; 20] = [
    tokens("gae_f32", 7.0),
    tokens("gae_f64", 19.0),
    tokens("discounted_returns_f32", 4.6),
    tokens("whiten_f32", 10.5),
    tokens("whiten_f64", 12.7),
    tokens("group_advantages_f32", 5.6),
    tokens("ppo_clip_f32", 18.0),
    tokens("ppo_clip_f64", 32.0),
    tokens("value_loss_f32", 10.6),
    tokens("analysis_f32", 22.0),
    tokens("analysis_f64", 37.0),
    tokens("kl_estimate_k1_f32", 3.3),
    tokens("kl_estimate_k3_f32", 12.0),
    tokens("kl_gradient_k3_f32", 13.0),
    logits("logits_f32", 8.6),
    logits("logits_f64", 22.7),
    logits("logits_bf16", 8.9),
    logits("logits_f16", 10.7),
    logits("logits_gradient_f32", 16.0),
    logits("logits_gradient_f64", 41.5),
];
