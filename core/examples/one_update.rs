//! One training step on two short responses, from raw logits to the coefficients of the next step.
//!
//! Run with `cargo run -p tokenwise --example one_update`. The numbers it asserts hold on every target.

use tokenwise::{
    advantage::{gae, whiten, GaeConfig, GaeInput, GaeOutput, WhitenConfig},
    control::{BudgetObservation, BudgetSource, EntropyBudget, EntropyBudgetConfig, LinearKl, LinearKlConfig},
    divergence::{kl_estimate, KlConfig, KlInput},
    loss::{ppo_clip, value_loss, PolicyLoss, PolicyLossInput, PpoConfig, ValueConfig, ValueLossInput},
    math,
    metric::{analysis, mean, AnalysisInput},
    policy::{log_probs_and_entropy, logits_gradient, LogProbInput, LogProbOutput, LogitsGradientInput, PolicyConfig},
    reward::{place_scores, shape_rewards, ShapeConfig, ShapeInput},
    rollout::{rollout_weights, RolloutConfig, RolloutInput},
    shift, Batch, Layout, Mask, MeanConfig, Result,
};

const VOCABULARY: [&str; 4] = ["yes", "it", "is", "2"];
const VOCAB: usize = VOCABULARY.len();

/// Slots of the batch: two responses of at most four tokens.
const SLOTS: usize = 8;
/// "yes it is 2" and "it is yes"; the last slot of the second response is padding.
const TOKENS: [u32; SLOTS] = [0, 1, 2, 3, 1, 2, 0, 0];
const KEEP: [bool; SLOTS] = [true, true, true, true, true, true, true, false];

const NAN: f64 = f64::NAN;
/// What the policy returned for two sequences of two prompt tokens and four response tokens: `[2, 6, 4]`.
/// A row predicts the token after it, so the first row (it predicts the prompt) and the last one (it predicts a token
/// that nobody generated) are not used; neither are rows of padding. NaN shows that they are never read.
#[rustfmt::skip]
const RAW_LOGITS: [f64; 2 * 6 * VOCAB] = [
    NAN, NAN, NAN, NAN,     0.0, 0.0, 0.0, 0.0,    0.0, 1.0, 0.0, -1.0,
    0.0, 0.0, 1.0, 0.0,     0.0, 0.0, 0.0, 2.0,    NAN, NAN, NAN, NAN,

    NAN, NAN, NAN, NAN,     1.0, 0.0, 0.0, 0.0,    0.0, 0.0, 2.0, 0.0,
    0.0, 0.0, 0.0, 0.0,     NAN, NAN, NAN, NAN,    NAN, NAN, NAN, NAN,
];
/// The critic's output for the same sequences: `[2, 6]`.
const RAW_VALUES: [f64; 2 * 6] = [NAN, 0.5, 0.5, 0.625, 0.75, NAN, NAN, 0.5, 0.25, 0.125, NAN, NAN];
/// Log-probabilities as the inference engine reported them; the trainer's differ in the third digit.
const ROLLOUT_LOG_PROBS: [f64; SLOTS] = [-1.386, -0.626, -0.743, -0.341, -1.744, -0.341, -1.386, NAN];

fn main() -> Result<()> {
    let batch = Batch::new(Layout::padded(2, 4)?, Mask::new(&KEEP))?;
    let raw = Layout::padded(2, 6)?;
    println!("{:<18}{:<8}{}", "", "of the", cells(&batch, |slot| VOCABULARY[TOKENS[slot] as usize].into()));

    stage("policy: raw logits → log-probabilities and entropy");
    let mut logits = [0.0; SLOTS * VOCAB];
    shift(&batch.layout(), &raw, &RAW_LOGITS, VOCAB, &mut logits)?;
    let (old_log_probs, entropy) = read_logits(&batch, &logits)?;
    row(&batch, "log π_old", "token", &old_log_probs);
    row(&batch, "entropy", "token", &entropy);
    assert_eq!((old_log_probs[0], entropy[0]), (-math::ln(4.0), math::ln(4.0))); // four equal logits
    assert_eq!((old_log_probs[7], entropy[7]), (0.0, 0.0)); // padding

    stage("divergence: KL to a reference that finds all tokens equally likely");
    let ref_log_probs = [-math::ln(4.0); SLOTS];
    let mut kl = [0.0; SLOTS];
    let input = KlInput { log_probs: &old_log_probs, ref_log_probs: &ref_log_probs };
    kl_estimate(&batch, input, &KlConfig::default(), &mut kl)?;
    row(&batch, "kl", "token", &kl);
    assert_eq!(kl[0], 0.0);

    stage("reward: score 1 for the first response, 0 for the second, minus β · KL");
    let beta = 0.125;
    let (mut scores, mut rewards) = ([0.0; SLOTS], [0.0; SLOTS]);
    place_scores(&batch, &[1.0, 0.0], &mut scores)?;
    shape_rewards(&batch, ShapeInput { scores: &scores, kl: &kl }, &ShapeConfig { beta }, &mut rewards)?;
    row(&batch, "score", "token", &scores);
    row(&batch, "reward", "token", &rewards);
    assert_eq!(scores, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(rewards[3], 1.0 - beta * kl[3]);

    stage("advantage: compared with what the critic expected, then whitened");
    let mut values = [0.0; SLOTS];
    shift(&batch.layout(), &raw, &RAW_VALUES, 1, &mut values)?;
    let (mut advantages, mut returns, mut whitened) = ([0.0; SLOTS], [0.0; SLOTS], [0.0; SLOTS]);
    gae(
        &batch,
        GaeInput { rewards: &rewards, values: &values, bootstrap: &[0.0, 0.0] },
        &GaeConfig { lambda: 0.5, ..Default::default() },
        GaeOutput { advantages: &mut advantages, returns: &mut returns },
    )?;
    whiten(&batch, &advantages, &WhitenConfig::default(), &mut whitened)?;
    row(&batch, "value", "state", &values);
    row(&batch, "advantage", "token", &advantages);
    row(&batch, "return", "state", &returns);
    row(&batch, "whitened", "token", &whitened);
    assert_eq!(advantages[6], -0.125); // uniform row, no KL: reward 0 minus value 0.125
    assert_eq!(advantages[3], rewards[3] - 0.75);
    assert_eq!(returns[3], advantages[3] + 0.75); // from the advantage before whitening

    stage("rollout: weights for the tokens on which sampler and trainer disagree");
    let mut weights = [0.0; SLOTS];
    let input = RolloutInput { old_log_probs: &old_log_probs, rollout_log_probs: &ROLLOUT_LOG_PROBS };
    rollout_weights(&batch, input, &RolloutConfig::default(), &mut weights)?;
    row(&batch, "weight", "token", &weights);

    stage("loss, first pass: the policy is still the one that sampled");
    let policy_loss = |log_probs: &[f64], grad: &mut [f64]| {
        let input = PolicyLossInput::new(log_probs, &old_log_probs, &whitened);
        let input = PolicyLossInput { weights: Some(&weights), ..input };
        ppo_clip(&batch, input, &PpoConfig::default(), grad)
    };
    let (mut grad, mut grad_values, mut grad_logits) = ([0.0; SLOTS], [0.0; SLOTS], [0.0; SLOTS * VOCAB]);
    let first = policy_loss(&old_log_probs, &mut grad)?;
    let critic = ValueLossInput { predictions: &values, values: &values, returns: &returns };
    let first_critic = value_loss(&batch, critic, &ValueConfig::default(), &mut grad_values)?;
    row(&batch, "∂loss/∂log π", "token", &grad);
    row(&batch, "∂loss/∂value", "state", &grad_values);
    print_loss(&first, first_critic.loss);
    assert_eq!((first.kl, first.clip_fraction), (0.0, 0.0)); // every ratio is 1

    stage("policy: the gradient down to the logits, a row per token");
    logits_gradient(
        &batch,
        LogitsGradientInput {
            logits: &logits,
            vocab: VOCAB,
            tokens: &TOKENS,
            grad_log_probs: &grad,
            grad_entropy: &[0.0; SLOTS],
        },
        &PolicyConfig::default(),
        &mut grad_logits,
    )?;
    for (entry, word) in VOCABULARY.iter().enumerate() {
        let column: Vec<f64> = grad_logits.chunks(VOCAB).map(|row| row[entry]).collect();
        row(&batch, &format!("∂loss/∂z({word})"), "token", &column);
    }
    assert_eq!(grad_logits[28..], [0.0; VOCAB]); // the row of the padding
    assert_eq!(grad_logits[0], grad[0] * 0.75); // g (1 − p) for the token itself, −g p for the others
    assert_eq!(grad_logits[1], -grad[0] * 0.25);

    stage("loss, second pass: after one step of gradient descent");
    let moved = descend(&logits, &grad_logits, 2.0);
    let predictions = descend(&values, &grad_values, 2.0);
    let (log_probs, _) = read_logits(&batch, &moved)?;
    let second = policy_loss(&log_probs, &mut grad)?;
    let critic = ValueLossInput { predictions: &predictions, values: &values, returns: &returns };
    let second_critic = value_loss(&batch, critic, &ValueConfig::default(), &mut grad_values)?;
    row(&batch, "log π", "token", &log_probs);
    row(&batch, "∂loss/∂log π", "token", &grad);
    print_loss(&second, second_critic.loss);
    assert_eq!((second.clip_fraction, grad[4]), (1.0 / 7.0, 0.0)); // "it" fell below 1 − ε: clipped, no gradient
    assert!(second.loss < first.loss && second_critic.loss < first_critic.loss);
    assert!(log_probs[3] > old_log_probs[3] && log_probs[6] < old_log_probs[6]); // praise and blame arrived

    stage("metric: what a trainer logs");
    let found =
        analysis(&batch, AnalysisInput { old_log_probs: &old_log_probs, advantages: &advantages, rewards: &rewards })?;
    let mean_entropy = mean(&batch, &entropy, &MeanConfig::default())?;
    println!("  {:<32}{mean_entropy:>10.6}", "policy/entropy");
    for (key, value) in found.entries() {
        println!("  {key:<32}{value:>10.6}");
    }

    stage("control: the coefficients of the next step");
    let mean_kl = mean(&batch, &kl, &MeanConfig::default())?;
    let mut kl_price = LinearKl::new(&LinearKlConfig { beta, target: 0.25, ..Default::default() })?;
    let source = BudgetSource::Given(0.25);
    let mut budget = EntropyBudget::new(&EntropyBudgetConfig { source, lambda: 0.5, ..Default::default() })?;
    let next_beta = kl_price.update(mean_kl)?;
    let spent = budget.update(&BudgetObservation {
        step: 0,
        wh_sum: found.wh_sum,
        token_count: batch.kept() as u64,
        reward_sum_mean: found.reward_sum_mean(),
        ..Default::default()
    })?;
    println!("  mean KL {mean_kl:.6}, target 0.25: β {beta} → {next_beta:.6}");
    println!("  Σ w H {:.6}, budget 0.25: λ 0.5 → {:.6}", found.wh_sum, spent.lambda);
    assert_eq!(next_beta, beta + 0.01 * (mean_kl - 0.25));
    assert_eq!(spent.lambda, 0.5 + 0.02 * (found.wh_sum / 7.0 - 0.25 / 7.0));
    Ok(())
}

/// Log-probabilities of the emitted tokens and entropies of the distributions they were drawn from.
fn read_logits(batch: &Batch<'_>, logits: &[f64]) -> Result<([f64; SLOTS], [f64; SLOTS])> {
    let (mut log_probs, mut entropy) = ([0.0; SLOTS], [0.0; SLOTS]);
    log_probs_and_entropy(
        batch,
        LogProbInput { logits, vocab: VOCAB, tokens: &TOKENS },
        &PolicyConfig::default(),
        LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy },
    )?;
    Ok((log_probs, entropy))
}

/// One step of plain gradient descent.
fn descend<const N: usize>(parameters: &[f64; N], grad: &[f64; N], rate: f64) -> [f64; N] {
    core::array::from_fn(|i| parameters[i] - rate * grad[i])
}

fn stage(title: &str) {
    println!("\n{title}");
}

/// One line of a table: a cell per slot, the two responses apart, a dot where there is no token.
fn row(batch: &Batch<'_>, name: &str, alignment: &str, values: &[f64]) {
    println!("  {name:<16}{alignment:<8}{}", cells(batch, |slot| format!("{:.4}", values[slot])));
}

fn cells(batch: &Batch<'_>, cell: impl Fn(usize) -> String) -> String {
    let text = |slot: usize| if batch.mask().as_slice()[slot] { cell(slot) } else { "·".into() };
    let response = |slots: core::ops::Range<usize>| slots.map(|slot| format!("{:>9}", text(slot))).collect::<String>();
    (0..batch.sequences()).filter_map(|i| batch.layout().slots(i)).map(response).collect::<Vec<_>>().join("  |")
}

fn print_loss(policy: &PolicyLoss, critic: f64) {
    println!(
        "  policy {:.6}, value {critic:.6}, clipped {:.3}, KL {:.6}",
        policy.loss, policy.clip_fraction, policy.kl
    );
}

#[test]
fn every_number_is_as_asserted() {
    assert_eq!(main(), Ok(()));
}
