//! What a formula has to say about itself so that the properties of all formulas can be tested by one driver.

use std::fmt::Debug;

use tokenwise::Result;
use tokenwise_tests::{
    formulas::Formula,
    generate::{Flat, Number, Random},
    naive::Tokens,
};

/// A formula, run on a batch with a random config.
pub(crate) trait Case {
    const FORMULA: Formula;
    /// Whether two sequences in one batch give what each gives alone. Returned numbers are of the batch in any case.
    const SEQUENCES_ALONE: bool;
    /// Whether dropped slots get 0 (everything but a plain copy).
    const DROPPED_GET_ZERO: bool = true;
    type Config: Copy + Debug;

    fn config(random: &mut Random) -> Self::Config;
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>>;
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64>;
}

/// Everything a call wrote and returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome<R> {
    /// Slices with one or more entries per token slot.
    pub(crate) tokens: Vec<Vec<R>>,
    /// Slices with one entry per sequence.
    pub(crate) sequences: Vec<Vec<R>>,
    /// What was returned.
    pub(crate) numbers: Vec<f64>,
}

impl<R: Number> Outcome<R> {
    pub(crate) fn tokens(slices: impl Into<Vec<Vec<R>>>) -> Self {
        Self { tokens: slices.into(), sequences: Vec::new(), numbers: Vec::new() }
    }

    pub(crate) fn sequences(slices: impl Into<Vec<Vec<R>>>) -> Self {
        Self { tokens: Vec::new(), sequences: slices.into(), numbers: Vec::new() }
    }

    pub(crate) fn numbers(numbers: impl Into<Vec<f64>>) -> Self {
        Self { tokens: Vec::new(), sequences: Vec::new(), numbers: numbers.into() }
    }

    pub(crate) fn and(self, numbers: impl Into<Vec<f64>>) -> Self {
        Self { numbers: numbers.into(), ..self }
    }

    /// All numbers as `f64`, in an order that depends on the shapes only.
    pub(crate) fn widen(&self) -> Vec<f64> {
        let slices = self.tokens.iter().chain(&self.sequences).flatten();
        slices.map(|x| x.widen()).chain(self.numbers.iter().copied()).collect()
    }

    /// What belongs to the slots of each sequence, padding left out; without dropped slots on request.
    pub(crate) fn of_slots(&self, flat: &Flat<R>, dropped_too: bool) -> Vec<R> {
        let mut all = Vec::new();
        for slice in &self.tokens {
            let width = if flat.tokens() == 0 { 0 } else { slice.len() / flat.tokens() };
            for slot in flat.rows.iter().cloned().flatten().filter(|&slot| dropped_too || flat.keep[slot]) {
                all.extend(&slice[slot * width..(slot + 1) * width]);
            }
        }
        all
    }

    /// What belongs to dropped slots, padding too.
    pub(crate) fn of_dropped(&self, flat: &Flat<R>) -> Vec<R> {
        let mut all = Vec::new();
        for slice in &self.tokens {
            let width = if flat.tokens() == 0 { 0 } else { slice.len() / flat.tokens() };
            for slot in (0..flat.tokens()).filter(|&slot| !flat.keep[slot]) {
                all.extend(&slice[slot * width..(slot + 1) * width]);
            }
        }
        all
    }
}

/// An output not yet written: whatever is left of it would show.
pub(crate) fn unwritten<R: Number>(len: usize) -> Vec<R> {
    vec![R::nan(); len]
}

pub(crate) fn tokens(flat: &Flat<f64>) -> Tokens<'_> {
    Tokens { rows: &flat.rows, keep: &flat.keep }
}

/// Calls a macro with every case of every stage.
macro_rules! every_case {
    ($call:ident) => {
        $call! {
            log_probs_and_entropy: crate::policy::LogProbsAndEntropy,
            token_log_probs: crate::policy::TokenLogProbs,
            entropy: crate::policy::Entropy,
            sum_squared_probs: crate::policy::SumSquaredProbs,
            logits_gradient: crate::policy::LogitsGradient,
            kl_estimate: crate::divergence::KlEstimate,
            kl_gradient: crate::divergence::KlGradient,
            kl_exact: crate::divergence::KlExact,
            kl_exact_gradient: crate::divergence::KlExactGradient,
            place_scores: crate::reward::PlaceScores,
            shape_rewards: crate::reward::ShapeRewards,
            kl_in_reward: crate::reward::KlInReward,
            overlong_penalty: crate::reward::OverlongPenalty,
            discounted_returns: crate::advantage::DiscountedReturns,
            gae: crate::advantage::Gae,
            monte_carlo_advantage: crate::advantage::MonteCarloAdvantage,
            uniform_credit: crate::advantage::UniformCredit,
            last_k_credit: crate::advantage::LastKCredit,
            attention_credit: crate::advantage::AttentionCredit,
            group_relative: crate::advantage::GroupRelative,
            leave_one_out: crate::advantage::LeaveOneOut,
            broadcast: crate::advantage::Broadcast,
            sequence_sums: crate::advantage::SequenceSums,
            whiten: crate::advantage::Whiten,
            aggregate: crate::loss::AggregateLoss,
            group_tokens: crate::loss::GroupTokens,
            surrogate: crate::loss::Surrogate,
            ppo_clip: crate::loss::PpoClip,
            value_loss: crate::loss::ValueLoss,
            entropy_bonus: crate::loss::EntropyBonus,
            mean: crate::metric::Mean,
            variance: crate::metric::Variance,
            correlation: crate::metric::Correlation,
            explained_variance: crate::metric::ExplainedVariance,
            kl_means: crate::metric::KlMeans,
            clip_fractions: crate::metric::ClipFractions,
            analysis: crate::metric::Analysis,
            shift: crate::layout::Shift,
        }
    };
}
pub(crate) use every_case;
