//! The metrics of TRL for scores and lengths: one number per sequence, no tokens.

use super::{
    summary::tally, CompletionLengths, RewardSource, TrlConfig, TrlInput, TrlMetrics, TrlRewardMetrics, TrlRewards,
    TrlScale,
};
use crate::{
    math::sqrt,
    real::Real,
    reduce::count,
    statistics::{Divisor, Moments, Spread},
};

pub(super) fn of_lengths<'o, R>(input: &TrlInput<'_, R>, config: &TrlConfig) -> TrlMetrics<'o> {
    let Some(lengths) = input.completion_lengths else { return TrlMetrics::default() };
    let tokens = |lengths: &[u32]| lengths.iter().fold(0_u64, |total, &length| total + u64::from(length));
    TrlMetrics {
        num_tokens: input
            .prompt_lengths
            .map(|prompts| config.tokens_seen.saturating_add(tokens(prompts) + tokens(lengths)) as f64),
        completions: Some(CompletionLengths {
            all: tally(lengths.iter().map(|&length| f64::from(length))).summary(),
            clipped_ratio: input.truncated.map(|flags| tally(flags.iter().map(|&flag| count(flag))).mean()),
            terminated: input.truncated.map(|flags| {
                let whole = lengths.iter().zip(flags).filter(|(_, &flag)| !flag);
                tally(whole.map(|(&length, _)| f64::from(length))).or_zero()
            }),
        }),
        ..Default::default()
    }
}

fn moments(numbers: impl Iterator<Item = f64>) -> Moments {
    let mut all = Moments::default();
    numbers.filter(|x| !x.is_nan()).for_each(|x| all.merge(&Moments { count: 1, mean: x, m2: 0.0 }));
    all
}

/// NaN for fewer than two.
pub(crate) fn deviation(moments: &Moments) -> f64 {
    moments.variance(Spread::Sample, Divisor::Count).map_or(f64::NAN, sqrt)
}

/// NaN if there are none.
fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    tally(numbers.filter(|x| !x.is_nan())).mean()
}

/// The weighted sum of the scores of a completion. A function that gave no score is left out; a completion that none
/// scored has no reward: NaN.
pub(crate) fn reward_of<R: Real>(input: &TrlRewards<'_, R>, sequence: usize) -> f64 {
    let sequences = input.groups.sequences();
    let (mut sum, mut scored) = (0.0, false);
    for (k, weight) in input.source_weights.iter().enumerate() {
        let score = input.sources[k * sequences + sequence].widen();
        if !score.is_nan() {
            sum += weight * score;
            scored = true;
        }
    }
    if scored {
        sum
    } else {
        f64::NAN
    }
}

/// The moments of the rewards of each group.
pub(crate) fn group_moments<R: Real>(input: &TrlRewards<'_, R>, scratch: &mut [Moments]) {
    scratch.fill(Moments::default());
    for (sequence, group) in input.groups.ids().enumerate() {
        scratch[group].merge(&moments(core::iter::once(reward_of(input, sequence))));
    }
}

pub(super) fn of_rewards<R: Real>(
    input: &TrlRewards<'_, R>,
    scale: TrlScale,
    per_source: &mut [RewardSource],
    scratch: &mut [Moments],
) -> TrlRewardMetrics {
    let sequences = input.groups.sequences();
    let source = |k: usize| input.sources[k * sequences..(k + 1) * sequences].iter().map(|score| score.widen());
    for (k, out) in per_source.iter_mut().enumerate() {
        *out = RewardSource { mean: mean(source(k)), std: deviation(&moments(source(k))) };
    }
    let reward = |sequence: usize| reward_of(input, sequence);
    let all = moments((0..sequences).map(reward));
    group_moments(input, scratch);
    // if no prompt has a second completion, there is no deviation to compare
    let alone = match scale {
        TrlScale::Group => input.groups.count() == sequences,
        TrlScale::Batch => sequences == 1,
    };
    let flat = |group: usize| {
        let of = if scale == TrlScale::Group { &scratch[group] } else { &all };
        count(alone || is_flat(of))
    };
    TrlRewardMetrics {
        reward: mean((0..sequences).map(reward)),
        reward_std: deviation(&all),
        frac_reward_zero_std: tally(input.groups.ids().map(flat)).mean(),
    }
}

/// Deviations up to this count as zero: the absolute tolerance of `torch.isclose`.
const ZERO_DEVIATION: f64 = 1e-8;

/// Whether rewards have no spread; fewer than two have none that could be compared.
pub(crate) fn is_flat(moments: &Moments) -> bool {
    deviation(moments) <= ZERO_DEVIATION
}
