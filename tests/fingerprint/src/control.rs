//! Controllers, fed with the scores of a case as the KL of one step after the other.

use tokenwise::control::{AdaptiveKl, AdaptiveKlConfig, FixedKl};

use crate::{
    cases::{Case, Out},
    hash::Value,
};

pub(crate) fn fixed_kl<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for beta in [0.0, 0.3, -1.0] {
        match FixedKl::new(beta) {
            Ok(mut controller) => {
                for (&score, samples) in case.scores.iter().zip(1..) {
                    out.record((controller.update(score.widen(), samples), controller.beta()));
                }
            }
            refused => out.record(refused.map(|_| ())),
        }
    }
}

pub(crate) fn adaptive_kl<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (beta, horizon) in [(0.001, 10_000.0), (0.3, 7.0), (0.3, 0.0)] {
        match AdaptiveKl::new(&AdaptiveKlConfig { beta, target: 0.7, horizon }) {
            Ok(mut controller) => {
                for (&score, samples) in case.scores.iter().zip([1, 64, 3, 1024, 7, 9, 512, 2, 100]) {
                    out.record((controller.update(score.widen(), samples), controller.beta()));
                }
            }
            refused => out.record(refused.map(|_| ())),
        }
    }
}
