use super::{
    group::{check_sequences, group_moments},
    returns::write_returns,
    whiten::{check_whiten, whiten_in_place},
    Across, ReturnsConfig, ReturnsInput, Singleton, WhitenConfig,
};
use crate::{
    error::{check_len, check_unit, Result},
    groups::{group_scratch_len, Groups},
    layout::Batch,
    real::Real,
    statistics::Moments,
};

/// The conventions of [`reinforce_plus_plus`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ReinforcePlusPlusConfig {
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// How a dropped token between two kept ones is treated; default [`Across::StepOver`].
    pub across: Across,
    /// How the returns are whitened; default as in [`whiten`](super::whiten).
    pub whiten: WhitenConfig,
}

impl Default for ReinforcePlusPlusConfig {
    fn default() -> Self {
        Self { gamma: 1.0, across: Across::StepOver, whiten: WhitenConfig::default() }
    }
}

/// What [`reinforce_plus_plus`] writes.
#[derive(Debug)]
pub struct ReinforcePlusPlusOutput<'a, R> {
    /// Whitened returns, action-aligned.
    pub advantages: &'a mut [R],
    /// Returns, state-aligned.
    pub returns: &'a mut [R],
}

/// The return of each token relative to the returns of all tokens of the batch (REINFORCE++).
///
/// ```text
/// G_t = r_t + γ G_{t+1}        A_t = (G_t − μ) / √(σ² + ε)        μ, σ² over all kept tokens of the batch
/// ```
///
/// No critic and no groups; the KL penalty of the paper belongs to the rewards.
///
/// **Alignment.** `rewards` and `advantages` are action-aligned, `returns` state-aligned; `bootstrap` has one entry per
/// sequence.
///
/// **Mask.** Dropped slots are never read and get 0; `t + 1` as in [`discounted_returns`](super::discounted_returns).
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ is outside `[0, 1]`; the errors of [`whiten`](super::whiten).
///
/// **Reference.** Hu 2025, arXiv:2501.03262. verl 0.9.1: `StepOver`,
/// [`Divisor::CountPlusEpsilon`](crate::Divisor::CountPlusEpsilon), bootstrap 0. OpenRLHF 0.11 `reinforce`: `ZeroStep`,
/// `Population`, `FloorVariance`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask, Spread};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let whiten = WhitenConfig { spread: Spread::Population, epsilon: 0.0, ..Default::default() };
/// let (mut advantages, mut returns) = ([9.0; 3], [9.0; 3]);
/// reinforce_plus_plus(
///     &batch,
///     ReturnsInput { rewards: &[1.0, f64::NAN, 4.0], bootstrap: &[0.0] },
///     &ReinforcePlusPlusConfig { gamma: 0.5, whiten, ..Default::default() },
///     ReinforcePlusPlusOutput { advantages: &mut advantages, returns: &mut returns },
/// )?;
/// assert_eq!(returns, [3.0, 0.0, 4.0]);
/// assert_eq!(advantages, [-1.0, 0.0, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn reinforce_plus_plus<R: Real>(
    batch: &Batch<'_>,
    input: ReturnsInput<'_, R>,
    config: &ReinforcePlusPlusConfig,
    output: ReinforcePlusPlusOutput<'_, R>,
) -> Result<()> {
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("bootstrap", input.bootstrap, batch.sequences())?;
    check_len("advantages", output.advantages, batch.tokens())?;
    check_len("returns", output.returns, batch.tokens())?;
    check_unit("gamma", config.gamma)?;
    check_whiten(batch, &config.whiten)?;
    let discount = ReturnsConfig { gamma: config.gamma, across: config.across };
    write_returns(batch, input.rewards, |sequence| input.bootstrap[sequence], &discount, output.returns);
    output.advantages.copy_from_slice(output.returns);
    whiten_in_place(batch, output.advantages, &config.whiten)
}

/// The conventions of [`reinforce_plus_plus_baseline`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ReinforcePlusPlusBaselineConfig {
    /// What a group of one gets instead of its difference from the mean; default 0.
    pub singleton: Singleton,
    /// How the tokens are whitened; default as in [`whiten`](super::whiten).
    pub whiten: WhitenConfig,
}

/// Scores minus their prompt's mean, copied to the tokens and whitened over all of them (REINFORCE++-baseline).
///
/// ```text
/// c[i, t] = s_i − mean_j s_j        A = (c − μ) / √(σ² + ε)        μ, σ² over all kept tokens: long answers weigh more
/// ```
///
/// **Alignment.** `scores` has one entry per sequence, `out` is action-aligned.
///
/// **Mask.** Dropped slots enter neither μ nor σ² and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`, or `scratch` does not have
/// [`group_scratch_len`](crate::group_scratch_len) entries; the
/// errors of [`whiten`](super::whiten).
///
/// **Reference.** Hu 2025, arXiv:2501.03262. verl 0.9.1: [`Singleton::Raw`],
/// [`Divisor::CountPlusEpsilon`](crate::Divisor::CountPlusEpsilon); its scores are sums over *all* slots. OpenRLHF 0.11
/// `reinforce_baseline` whitens returns-to-go of the centred scores with `Population`, `FloorVariance`; without KL in
/// the rewards the result is the same as here with `Singleton::Zero`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Groups, Layout, Mask, Moments, Spread};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, false, false, true]))?;
/// let groups = Groups::contiguous(&[2])?;
/// let whiten = WhitenConfig { spread: Spread::Population, epsilon: 0.0, ..Default::default() };
/// let config = ReinforcePlusPlusBaselineConfig { whiten, ..Default::default() };
/// let (mut scratch, mut out) = ([Moments::default(); 1], [9.0; 4]);
/// reinforce_plus_plus_baseline(&batch, &groups, &[0.0, 4.0], &config, &mut scratch, &mut out)?;
/// assert_eq!(out, [-1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn reinforce_plus_plus_baseline<R: Real>(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    scores: &[R],
    config: &ReinforcePlusPlusBaselineConfig,
    scratch: &mut [Moments],
    out: &mut [R],
) -> Result<()> {
    check_sequences(batch, groups)?;
    check_len("scores", scores, batch.sequences())?;
    check_len("scratch", scratch, group_scratch_len(groups))?;
    check_len("out", out, batch.tokens())?;
    check_whiten(batch, &config.whiten)?;
    group_moments(groups, scores, scratch);
    for ((row, group), &score) in batch.rows().zip(groups.ids()).zip(scores) {
        let (moments, score) = (&scratch[group], score.widen());
        let centred = if moments.count < 2 { config.singleton.alone(score) } else { score - moments.mean };
        row.of_mut(out).fill(R::narrow(centred));
    }
    whiten_in_place(batch, out, &config.whiten)
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};
    use crate::{Divisor, Layout, Mask};

    const VERL: WhitenConfig = WhitenConfig {
        spread: crate::Spread::Sample,
        epsilon: 1e-8,
        place: crate::advantage::EpsilonPlace::InsideRoot,
        center: crate::advantage::Center::Shift,
        scale: crate::advantage::Scale::StandardDeviation,
        divisor: Divisor::CountPlusEpsilon,
    };

    #[test]
    fn reinforce_plus_plus_of_verl_0_9_1() {
        let (mut advantages, mut returns) = ([9.0; 20], [9.0; 20]);
        let input = ReturnsInput { rewards: &REWARDS, bootstrap: &[0.0; 4] };
        let config = ReinforcePlusPlusConfig { gamma: 0.9, whiten: VERL, ..Default::default() };
        let output = ReinforcePlusPlusOutput { advantages: &mut advantages, returns: &mut returns };
        reinforce_plus_plus(&batch(), input, &config, output).unwrap();
        #[rustfmt::skip]
        assert_close(&advantages, &[
            -0.04616470502313305, 0.046707415711261864, 0.14989866097170068, 0.26455560014996604, 0.0,
            -0.15709529367810493, -0.07654879390537346, 0.0, -0.6240356784815907, -0.5953714436870243,
            -1.9139262442370761, -2.028583183415342, 0.0, 0.0, 0.0,
            0.6225145642645108, 0.7896843815864217, 0.9754286230552115, 1.1818111135760891, 1.4111249919326199,
        ]);
        #[rustfmt::skip]
        assert_close(&returns, &[
            0.729, 0.81, 0.9, 1.0, 0.0,
            0.63225, 0.7025, 0.0, 0.225, 0.25,
            -0.9, -1.0, 0.0, 0.0, 0.0,
            1.3122, 1.458, 1.62, 1.8, 2.0,
        ]);
    }

    #[test]
    fn reinforce_plus_plus_baseline_of_verl_0_9_1() {
        let config = ReinforcePlusPlusBaselineConfig { singleton: Singleton::Raw, whiten: VERL };
        for (ids, expected) in [
            (PAIRS, [-0.17180824181876117, -0.41724858755463756, -1.7671704891019577, 1.1781136597285589]),
            ([0, 0, 1, 2], [-0.3615416930121668, -0.5828937501511333, -1.357625950137516, 1.2985987355300823]),
            ([0, 1, 0, 0], [-0.18294463459129465, 0.24583185355387374, -2.241071777688103, 0.8461189369571097]),
        ] {
            let groups = Groups::from_ids(&ids).unwrap();
            let (mut scratch, mut out) = ([Moments::default(); 4], [9.0; 20]);
            let scratch = &mut scratch[..groups.count()];
            reinforce_plus_plus_baseline(&batch(), &groups, &SCORES, &config, scratch, &mut out).unwrap();
            assert_close(&out, &on_tokens(expected));
        }
    }

    #[test]
    fn too_few_tokens_are_refused_before_anything_is_written() {
        let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, false])).unwrap();
        let (mut advantages, mut returns) = ([9.0; 2], [9.0; 2]);
        let input = ReturnsInput { rewards: &[1.0, f64::NAN], bootstrap: &[0.0] };
        let output = ReinforcePlusPlusOutput { advantages: &mut advantages, returns: &mut returns };
        let error = reinforce_plus_plus(&batch, input, &Default::default(), output).unwrap_err();
        assert_eq!(error.code(), "too_few");
        let groups = Groups::contiguous(&[1]).unwrap();
        let config = ReinforcePlusPlusBaselineConfig::default();
        let mut scratch = [Moments::default(); 1];
        let error = reinforce_plus_plus_baseline(&batch, &groups, &[1.0], &config, &mut scratch, &mut returns);
        assert_eq!(error.unwrap_err().code(), "too_few");
        assert_eq!((advantages, returns), ([9.0; 2], [9.0; 2]));
    }
}
