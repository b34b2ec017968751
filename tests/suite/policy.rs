//! Stage 1: logits.

use tokenwise::policy::PolicyConfig;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{errors::domains::*, naive::policy as naive};

use crate::case::{by_name, tokens, Case, Outcome};

pub(crate) fn temperature(random: &mut Random) -> f64 {
    random.pick(&[1.0, 0.5, 2.0, 0.75])
}

pub(crate) struct LogProbsAndEntropy;
impl Case for LogProbsAndEntropy {
    const NAME: &'static str = "log_probs_and_entropy";
    const UNITS: [f64; 2] = [8.0, 6.0];
    const DOMAINS: &'static [Row] = &[any().numbers(TEMPERATURE)];
    const SEQUENCES_ALONE: bool = true;
    type Config = PolicyConfig;
    fn config(random: &mut Random) -> PolicyConfig {
        PolicyConfig { temperature: temperature(random) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, PolicyConfig { temperature }: PolicyConfig) -> Outcome<f64> {
        let logits = flat.column(Column::Logits);
        let log_probs = naive::token_log_probs(tokens(flat), logits, flat.vocab, &flat.ids, temperature);
        Outcome::tokens([log_probs, naive::entropy(tokens(flat), logits, flat.vocab, temperature)])
    }
}

pub(crate) struct TokenLogProbs;
impl Case for TokenLogProbs {
    const NAME: &'static str = "token_log_probs";
    const UNITS: [f64; 2] = [8.0, 6.0];
    const DOMAINS: &'static [Row] = &[any().numbers(TEMPERATURE)];
    const SEQUENCES_ALONE: bool = true;
    type Config = PolicyConfig;
    fn config(random: &mut Random) -> PolicyConfig {
        PolicyConfig { temperature: temperature(random) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, PolicyConfig { temperature }: PolicyConfig) -> Outcome<f64> {
        let logits = flat.column(Column::Logits);
        Outcome::tokens([naive::token_log_probs(tokens(flat), logits, flat.vocab, &flat.ids, temperature)])
    }
}

pub(crate) struct Entropy;
impl Case for Entropy {
    const NAME: &'static str = "entropy";
    const UNITS: [f64; 2] = [6.0, 4.0];
    const DOMAINS: &'static [Row] = &[any().numbers(TEMPERATURE)];
    const SEQUENCES_ALONE: bool = true;
    type Config = PolicyConfig;
    fn config(random: &mut Random) -> PolicyConfig {
        PolicyConfig { temperature: temperature(random) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, PolicyConfig { temperature }: PolicyConfig) -> Outcome<f64> {
        Outcome::tokens([naive::entropy(tokens(flat), flat.column(Column::Logits), flat.vocab, temperature)])
    }
}

pub(crate) struct SumSquaredProbs;
impl Case for SumSquaredProbs {
    const NAME: &'static str = "sum_squared_probs";
    const UNITS: [f64; 2] = [10.0, 4.0];
    const DOMAINS: &'static [Row] = &[any().numbers(TEMPERATURE)];
    const SEQUENCES_ALONE: bool = true;
    type Config = PolicyConfig;
    fn config(random: &mut Random) -> PolicyConfig {
        PolicyConfig { temperature: temperature(random) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, PolicyConfig { temperature }: PolicyConfig) -> Outcome<f64> {
        Outcome::tokens([naive::sum_squared_probs(tokens(flat), flat.column(Column::Logits), flat.vocab, temperature)])
    }
}

pub(crate) struct LogitsGradient;
impl Case for LogitsGradient {
    const NAME: &'static str = "logits_gradient";
    const UNITS: [f64; 2] = [10.0, 8.0];
    const DOMAINS: &'static [Row] = &[any().numbers(TEMPERATURE)];
    const SEQUENCES_ALONE: bool = true;
    type Config = PolicyConfig;
    fn config(random: &mut Random) -> PolicyConfig {
        PolicyConfig { temperature: temperature(random) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, PolicyConfig { temperature }: PolicyConfig) -> Outcome<f64> {
        let up = naive::Upstream {
            ids: &flat.ids,
            grad_log_probs: flat.column(Column::Advantages),
            grad_entropy: flat.column(Column::Kl),
        };
        let logits = flat.column(Column::Logits);
        Outcome::tokens([naive::logits_gradient(tokens(flat), logits, flat.vocab, up, temperature)])
    }
}

crate::case::tests! {
    log_probs_and_entropy: LogProbsAndEntropy {
        nan_stays_in_its_token(&[Column::Logits]);
    },
    token_log_probs: TokenLogProbs {
        nan_stays_in_its_token(&[Column::Logits]);
    },
    entropy: Entropy {
        nan_stays_in_its_token(&[Column::Logits]);
    },
    sum_squared_probs: SumSquaredProbs {
        nan_stays_in_its_token(&[Column::Logits]);
    },
    logits_gradient: LogitsGradient {
        nan_stays_in_its_token(&[Column::Logits, Column::Advantages, Column::Kl]);
    },
}
