//! Stage 5.

use tokenwise::{
    loss::{
        self, Aggregate, AggregateMode, Counts, DualClip, EmptyRows, EntropyBonusConfig, GlobalCounts, PolicyLoss,
        PolicyLossInput, PpoConfig, ReportedKl, SurrogateConfig, ValueConfig, ValueFactor, ValueLoss, ValueLossInput,
    },
    Divisor,
};

use crate::{
    cases::{Case, Out},
    hash::{Hash, Hashed, Value},
};

impl Hashed for PolicyLoss {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&[self.loss, self.clip_fraction, self.clip_fraction_lower, self.kl]);
    }
}

impl Hashed for ValueLoss {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&[self.loss, self.clip_fraction]);
    }
}

impl<R> Case<'_, R> {
    pub(crate) const fn policy_loss(&self) -> PolicyLossInput<'_, R> {
        PolicyLossInput {
            log_probs: self.log_probs,
            old_log_probs: self.old_log_probs,
            advantages: self.advantages,
            weights: None,
        }
    }

    /// Without weights and with them.
    pub(crate) fn policy_losses(&self) -> [PolicyLossInput<'_, R>; 2] {
        [self.policy_loss(), PolicyLossInput { weights: Some(self.weights), ..self.policy_loss() }]
    }
}

pub(crate) const PER_SEQUENCE: Aggregate<'static> = Aggregate {
    mode: AggregateMode::SequenceMeanTokenMean,
    counts: Counts::Local,
    empty_rows: EmptyRows::Counted,
    divisor: Divisor::CountPlusEpsilon,
};

pub(crate) fn group_tokens<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let tokens = &mut [0; 9][..case.groups.count()];
    out.record(loss::group_tokens(&case.batch, &case.groups, tokens));
    out.record(&*tokens);
}

pub(crate) fn aggregate<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let tokens = &mut [0; 9][..case.groups.count()];
    out.record(loss::group_tokens(&case.batch, &case.groups, tokens));
    let global = Counts::Global(GlobalCounts { tokens: 1000, sequences: 30, prompts: 7, ranks: 4 });
    for mode in [
        AggregateMode::TokenMean,
        AggregateMode::TokenSum,
        AggregateMode::SequenceMeanTokenSum,
        AggregateMode::SequenceMeanTokenSumNorm { scale: 48.0 },
        AggregateMode::SequenceMeanTokenMean,
        AggregateMode::PromptMean { groups: case.groups, tokens },
    ] {
        for config in [
            Aggregate { mode, ..Aggregate::default() },
            Aggregate { mode, ..PER_SEQUENCE },
            Aggregate { mode, counts: global, ..Aggregate::default() },
        ] {
            let result = loss::aggregate(&case.batch, case.rewards, &config, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn entropy_bonus<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for aggregate in [Aggregate::default(), PER_SEQUENCE] {
        let config = EntropyBonusConfig { coefficient: 0.01, aggregate };
        let result = loss::entropy_bonus(&case.batch, case.weights, &config, out.a);
        out.record(result);
    }
}

pub(crate) fn surrogate<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    surrogates(case, case.policy_loss(), out);
}

pub(crate) fn surrogate_weighted<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    surrogates(case, case.policy_losses()[1], out);
}

fn surrogates<R: Value>(case: &Case<'_, R>, input: PolicyLossInput<'_, R>, out: &mut Out<'_, R>) {
    for (log_ratio_bound, aggregate) in [(None, Aggregate::default()), (Some(20.0), PER_SEQUENCE)] {
        let config = SurrogateConfig { log_ratio_bound, aggregate };
        let result = loss::surrogate(&case.batch, input, &config, out.a);
        out.record(result);
    }
}

pub(crate) fn ppo_clip<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    clipped(case, case.policy_loss(), out);
}

pub(crate) fn ppo_clip_weighted<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    clipped(case, case.policy_losses()[1], out);
}

fn clipped<R: Value>(case: &Case<'_, R>, input: PolicyLossInput<'_, R>, out: &mut Out<'_, R>) {
    // narrow enough that the policies, which differ by up to a quarter, meet every branch
    let usual = PpoConfig { clip_low: 0.1, clip_high: 0.15, ..PpoConfig::default() };
    for config in [
        usual,
        PpoConfig { dual_clip: DualClip::NegativeOnly(1.1), aggregate: PER_SEQUENCE, ..usual },
        PpoConfig { dual_clip: DualClip::BothSigns(3.0), divisor: Divisor::CountPlusEpsilon, ..usual },
        PpoConfig { log_ratio_bound: None, reported_kl: ReportedKl::Unbounded, ..usual },
    ] {
        let result = loss::ppo_clip(&case.batch, input, &config, out.a);
        out.record(result);
    }
}

pub(crate) fn value_loss<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (clip, factor, aggregate) in
        [(Some(0.5), ValueFactor::Half, Aggregate::default()), (None, ValueFactor::Whole, PER_SEQUENCE)]
    {
        let input = ValueLossInput { predictions: case.advantages, values: case.values, returns: case.rewards };
        let config = ValueConfig { clip, factor, aggregate, ..ValueConfig::default() };
        let result = loss::value_loss(&case.batch, input, &config, out.a);
        out.record(result);
    }
}
