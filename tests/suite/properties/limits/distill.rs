//! Where the distillation losses coincide with each other and with other formulas.

use tokenwise::{advantage::*, divergence::*, loss::*, policy::PolicyConfig};
use tokenwise_tests::generate::{Column, Flat, Spec, World};

use crate::properties::check;

const SUM: Aggregate<'static> = Aggregate {
    mode: AggregateMode::TokenSum,
    counts: Counts::Local,
    empty_rows: EmptyRows::Excluded,
    divisor: tokenwise::Divisor::Count,
};

fn flat(spec: Spec) -> Flat<f64> {
    World::new(spec).packed()
}

fn near(what: &str, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        let close = approx::relative_eq!(got, want, epsilon = 1e-11, max_relative = 1e-11);
        assert!(close, "{what}: {got} instead of {want}");
    }
}

#[test]
fn opd_by_policy_gradient_is_ppo_with_the_advantage_of_now() {
    check(|spec| {
        let flat = flat(spec);
        let [log_probs, old_log_probs, teacher_log_probs] =
            [Column::LogProbs, Column::OldLogProbs, Column::RefLogProbs].map(|column| flat.column(column));
        let (mut got, mut want) = (vec![9.0; flat.tokens()], vec![9.0; flat.tokens()]);
        let input = OpdLossInput { log_probs, old_log_probs, teacher_log_probs, weights: None };
        let config = OpdLossConfig { max_loss: None, aggregate: SUM, ..Default::default() };
        let loss = opd_loss(&flat.batch(), input, &config, &mut got).unwrap().loss;
        let mut advantages = vec![9.0; flat.tokens()];
        let input = OpdInput { teacher_log_probs, old_log_probs: log_probs, advantages: None };
        opd_advantage(&flat.batch(), input, &OpdConfig::default(), &mut advantages).unwrap();
        let input = PolicyLossInput { log_probs, old_log_probs, advantages: &advantages, weights: None };
        let ppo = ppo_clip(&flat.batch(), input, &PpoConfig { aggregate: SUM, ..Default::default() }, &mut want);
        near("loss", &[loss], &[ppo.unwrap().loss]);
        near("gradient", &got, &want);
    });
}

#[test]
fn the_divergence_at_one_is_the_exact_kl_and_over_all_entries_the_same() {
    check(|spec| {
        let flat = flat(spec);
        let (logits, teacher_logits, vocab) = (flat.column(Column::Logits), flat.column(Column::RefLogits), flat.vocab);
        let (mut got, mut want) = (vec![9.0; logits.len()], vec![9.0; logits.len()]);
        for beta in [0.0, 0.3, 1.0] {
            let input = JsdInput { logits, teacher_logits, vocab, weights: None };
            let config = JsdConfig { beta, aggregate: SUM, ..Default::default() };
            let loss = generalized_jsd(&flat.batch(), input, &config, &mut got).unwrap();
            // soft-max normalises its entries, so logits may replace log-probabilities
            let input = TopKInput { log_probs: logits, teacher_log_probs: teacher_logits, k: vocab, weights: None };
            let config = TopKJsdConfig { beta, rest: TopKRest::Renormalize, aggregate: SUM };
            near("loss", &[topk_jsd(&flat.batch(), input, &config, &mut want).unwrap()], &[loss]);
            near("gradient", &want, &got);
        }
        let (mut kl, ones) = (vec![9.0; flat.tokens()], vec![1.0; flat.tokens()]);
        let input = KlExactInput { logits, ref_logits: teacher_logits, vocab };
        kl_exact(&flat.batch(), input, &PolicyConfig::default(), &mut kl).unwrap();
        let input = KlExactGradientInput { logits, ref_logits: teacher_logits, vocab, grad_kl: &ones };
        kl_exact_gradient(&flat.batch(), input, &PolicyConfig::default(), &mut want).unwrap();
        near("exact gradient", &got, &want);
    });
}

#[test]
fn iw_opd_without_amplification_is_reinforce() {
    check(|spec| {
        let flat = flat(spec);
        let [log_probs, old_log_probs, teacher_log_probs] =
            [Column::LogProbs, Column::OldLogProbs, Column::RefLogProbs].map(|column| flat.column(column));
        let (mut got, mut want) = (vec![9.0; flat.tokens()], vec![9.0; flat.tokens()]);
        let input = IwOpdInput { log_probs, old_log_probs, teacher_log_probs };
        let config = IwOpdConfig { gamma: 0.0, aggregate: SUM, ..Default::default() };
        let loss = iw_opd(&flat.batch(), input, &config, &mut got).unwrap().loss;
        let mut advantages = vec![9.0; flat.tokens()];
        let input = OpdInput { teacher_log_probs, old_log_probs, advantages: None };
        opd_advantage(&flat.batch(), input, &OpdConfig::default(), &mut advantages).unwrap();
        let input = PolicyLossInput { log_probs, old_log_probs, advantages: &advantages, weights: None };
        let config = ReinforceConfig { aggregate: SUM, ..Default::default() };
        near("loss", &[loss], &[reinforce(&flat.batch(), input, &config, &mut want).unwrap().loss]);
        near("gradient", &got, &want);
    });
}
