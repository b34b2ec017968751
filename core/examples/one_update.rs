//! One training step on the owner's example, stage by stage: "请问1+1=2？" → 是 的 ， 等于 2 ！
//!
//! Run with `cargo run --example one_update`.

use tokenwise::{
    advantage::{gae, whiten, GaeConfig, GaeInput, GaeOutput, WhitenConfig},
    divergence::{kl_estimate, KlConfig, KlInput},
    loss::{ppo_clip, PolicyLossInput, PpoConfig},
    metric::{analysis, AnalysisInput},
    reward::{place_scores, shape_rewards, ShapeInput},
    Batch, Layout, Mask, Result,
};

const TOKENS: [&str; 6] = ["是", "的", "，", "等于", "2", "！"];

fn row(name: &str, alignment: &str, values: &[f64]) {
    let cells: Vec<String> = values.iter().map(|x| format!("{x:>9.6}")).collect();
    println!("{name:<12} {alignment:<7} {}", cells.join(" "));
}

/// Right-aligned in nine columns; a Chinese sign takes two of them.
fn heading(token: &str) -> String {
    let width = token.chars().fold(0, |width, sign| width + if sign.is_ascii() { 1 } else { 2 });
    format!("{}{token}", " ".repeat(9_usize.saturating_sub(width)))
}

fn main() -> Result<()> {
    let batch = Batch::new(Layout::padded(1, 6)?, Mask::new(&[true; 6]))?;

    // stages 1 and 2: what the sampling policy and the reference said of each token, and how far apart they are
    let old_log_probs = [-0.1, -0.2, -0.3, -0.1, -0.2, -0.05];
    let ref_log_probs = [-0.2, -0.25, -0.25, -0.2, -0.4, -0.1];
    let mut kl = [0.0; 6];
    kl_estimate(
        &batch,
        KlInput { log_probs: &old_log_probs, ref_log_probs: &ref_log_probs },
        &KlConfig::default(),
        &mut kl,
    )?;

    // stage 3: the answer was right, so the last token scores 1; straying from the reference costs 0.1 per nat
    let (mut scores, mut rewards) = ([0.0; 6], [0.0; 6]);
    place_scores(&batch, &[1.0], &mut scores)?;
    shape_rewards(&batch, ShapeInput { scores: &scores, kl: &kl }, 0.1, &mut rewards)?;

    // stage 4: against what the critic expected before each token
    let values = [0.20, 0.25, 0.30, 0.35, 0.45, 0.60];
    let (mut advantages, mut returns, mut whitened) = ([0.0; 6], [0.0; 6], [0.0; 6]);
    gae(
        &batch,
        GaeInput { rewards: &rewards, values: &values, bootstrap: &[0.0] },
        &GaeConfig { lambda: 0.95, ..Default::default() },
        GaeOutput { advantages: &mut advantages, returns: &mut returns },
    )?;
    whiten(&batch, &advantages, &WhitenConfig::default(), &mut whitened)?;

    // stage 5: a policy that has moved a little since it sampled
    let log_probs = [-0.08, -0.21, -0.25, -0.1, -0.15, -0.3];
    let mut grad = [0.0; 6];
    let input =
        PolicyLossInput { log_probs: &log_probs, old_log_probs: &old_log_probs, advantages: &whitened, weights: None };
    let loss = ppo_clip(&batch, input, &PpoConfig::default(), &mut grad)?;

    println!("{:<12} {:<7} {}", "", "of the", TOKENS.map(heading).join(" "));
    row("kl", "token", &kl);
    row("reward", "token", &rewards);
    row("value", "state", &values);
    row("advantage", "token", &advantages);
    row("return", "state", &returns);
    row("whitened", "token", &whitened);
    row("∂loss/∂logp", "token", &grad);
    println!("\nloss {:.6}, clip fraction {:.3}, kl {:.6}", loss.loss, loss.clip_fraction, loss.kl);

    // stage 6: what a trainer logs
    let input = AnalysisInput { old_log_probs: &old_log_probs, advantages: &advantages, rewards: &rewards };
    for (key, value) in analysis(&batch, input)?.entries() {
        println!("{key:<34} {value:.6}");
    }
    Ok(())
}
