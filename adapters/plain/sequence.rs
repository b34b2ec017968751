//! Losses whose tokens share a ratio.

use serde_json::json;

use super::{
    cases::{List, WEIGHTS},
    token::imitation,
    Given,
    Mode::{SequenceMeanTokenMean, SequenceMeanTokenSum, TokenMean},
    Tensor, GROUPS, LEN, SEQUENCES, SLOTS,
};

/// The calls, each with the settings that change its gradient.
pub(super) fn cases<T: Tensor>(list: &mut List<T>) {
    for form in ["sequence", "token"] {
        let config = json!({ "clip_low": 0.03, "clip_high": 0.1, "form": form });
        list.add("gspo", gspo, SequenceMeanTokenMean, &[], config);
    }
    list.fixed("luspo", gspo, SequenceMeanTokenSum, WEIGHTS, json!({ "clip_low": 0.03, "clip_high": 0.1 }));
    list.fixed("gmpo", gmpo, TokenMean, &[], json!({ "clip_low": 0.2, "clip_high": 0.3 }));
    list.fixed("gmpo", gmpo, TokenMean, WEIGHTS, json!({ "clip_low": 0.2, "clip_high": 0.3 }));
    let vespo_config = json!({ "k_positive": 1.0, "lambda_positive": 1.5, "k_negative": 1.5, "lambda_negative": 1.0 });
    list.add("vespo", vespo, TokenMean, &[], vespo_config.clone());
    list.add("vespo", vespo, TokenMean, WEIGHTS, vespo_config);
    list.fixed("gvpo", gvpo, TokenMean, &[], json!({ "beta": 0.25 }));
    list.add("iw_opd", iw_opd, TokenMean, &[], json!({ "gamma": 0.5, "epsilon": 1e-6 }));
}

/// The clipped loss with s = exp(mean d).
fn gspo<T: Tensor>(given: &Given<'_, T>) -> T {
    let (mean, log_probs) = (given.sequence_means(&given.log_ratio()), given.column("log_probs"));
    let log_ratio = match given.case.config["form"].as_str() {
        // the value of the sequence, the gradient of the token
        Some("token") => mean.detach().add(&log_probs.sub(&log_probs.detach())),
        _ => mean,
    };
    let (ratio, advantages) = (log_ratio.exp(), given.column("advantages"));
    let inside = ratio.clamp(1.0 - given.number("clip_low"), 1.0 + given.number("clip_high"));
    given.total(&ratio.mul(&advantages).neg().max(&inside.mul(&advantages).neg()))
}

/// −Ā exp(mean d*), where d* is clipped in log space, averaged over sequences.
fn gmpo<T: Tensor>(given: &Given<'_, T>) -> T {
    let (d, advantages) = (given.log_ratio(), given.column("advantages"));
    let sign = advantages.indicator(|a| a > 0.0).scale(2.0).plus(-1.0);
    let inside = d.clamp(-given.number("clip_low"), given.number("clip_high"));
    let held = d.mul(&sign).min(&inside.mul(&sign)).mul(&sign);
    // the core, as verl does, guards the logarithm
    let guard = if given.case.with.contains(&"weights") { 1e-10 } else { 0.0 };
    let omega = given.sequence_means(&given.omega().plus(guard).ln()).exp();
    let per_sequence = given.sequence_means(&held).exp().mul(&given.sequence_means(&advantages)).mul(&omega);
    // every slot of a sequence holds its number
    per_sequence.sum().scale(-1.0 / (SEQUENCES * LEN) as f64)
}

/// −sg(φ(w)) A log π with w the ratio of the whole sequence.
fn vespo<T: Tensor>(given: &Given<'_, T>) -> T {
    let ratios = given.log_ratio().add(&given.omega().ln()).mul(&given.mask());
    let log_ratio = ratios.sums(LEN).repeat(LEN).clamp(1e-8_f64.ln(), 20.0);
    let good = given.column("advantages").indicator(|a| a >= 0.0);
    let pick = |name: &str| {
        let [up, down] = ["positive", "negative"].map(|side| given.number(&format!("{name}_{side}")));
        good.scale(up - down).plus(down)
    };
    let (k, lambda) = (pick("k"), pick("lambda"));
    let phi = lambda.add(&k.mul(&log_ratio)).sub(&lambda.mul(&log_ratio.exp())).exp();
    // the rollout weights are in φ, not beside it
    imitation(given, &phi).mul(&given.constant(&given.case.mode.shares())).sum()
}

/// ½ ((u − sg ū) − Ā)² / (K − 1), u = β Σ d of a sequence, ū its mean over the prompt.
fn gvpo<T: Tensor>(given: &Given<'_, T>) -> T {
    let u = given.log_ratio().mul(&given.mask()).sums(LEN).scale(given.number("beta"));
    let advantages = given.sequence_means(&given.column("advantages")).sums(LEN).scale(1.0 / LEN as f64);
    let of_group = SEQUENCES / 2;
    assert_eq!(GROUPS, [0, 0, 1, 1]);
    let center = u.detach().sums(of_group).scale(1.0 / of_group as f64).repeat(of_group);
    u.sub(&center).sub(&advantages).square().sum().scale(0.5 / (of_group - 1) as f64)
}

/// Early tokens of a sequence have more weight.
fn iw_opd<T: Tensor>(given: &Given<'_, T>) -> T {
    let advantages = given.column("teacher_log_probs").sub(&given.column("old_log_probs"));
    let gains: Vec<f64> = advantages.abs().mul(&given.mask()).numbers();
    let weight = |slot: usize| {
        let start = slot / LEN * LEN;
        let sum = |slots: std::ops::Range<usize>| gains[slots].iter().fold(0.0, |a, b| a + b);
        1.0 + given.number("gamma") * (1.0 - sum(start..slot) / sum(start..start + LEN).max(given.number("epsilon")))
    };
    let weights: Vec<f64> = (0..SLOTS).map(weight).collect();
    given.total(&given.column("log_probs").mul(&advantages).mul(&given.constant(&weights)).neg())
}
