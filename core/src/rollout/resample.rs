use crate::{
    error::{check_len, check_not_negative, Error, Result},
    math::{exp, ln},
    real::Real,
    reduce::Sum,
    statistics::Extremes,
};

/// How [`pf_ppo_weights`] turns a score into a weight.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PfPpoRule {
    /// `|s|^power`; verl's default, power 2.
    Power {
        /// Not negative.
        power: f64,
    },
    /// 1 for the largest and the smallest score of the batch, 0 for the others.
    MaxMin,
    /// 0.4 for the largest, 0.1 for the others.
    MaxRandom,
}

#[cfg(feature = "serde")]
crate::spelling::tagged! {
    PfPpoRule { power: f64 }
    "power" Power(power) = { Self::Power { power } }
    "max-min" MaxMin() = { Self::MaxMin }
    "max-random" MaxRandom() = { Self::MaxRandom }
}

impl Default for PfPpoRule {
    fn default() -> Self {
        Self::Power { power: 2.0 }
    }
}

/// Resampling weight of each sequence, from its score.
///
/// ```text
/// w_i = max(f(s_i) + 1e-8, 1e-8)      f: |s|^p, 1[s is max or min], or 0.4 at the max and 0.1 elsewhere
/// ```
///
/// The weights do not add up to 1. Powers other than 1 and 2 are computed with logarithms, with a relative error of
/// about `p · 2⁻⁵¹`.
///
/// **Alignment.** One entry per sequence, in and out.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`] if `weights` does not have one entry per score; [`Error::Config`] if the power is
/// negative or not finite.
///
/// **Reference.** Shen et al. 2024 (PF-PPO), arXiv:2409.06957; verl 0.9.1 `compute_pf_ppo_reweight_data`.
///
/// # Example
///
/// ```
/// use tokenwise::rollout::*;
///
/// let mut weights = [0.0; 3];
/// pf_ppo_weights(&[-2.0, 0.5, 1.0], &PfPpoRule::MaxMin, &mut weights)?;
/// assert_eq!(weights, [1.0 + 1e-8, 1e-8, 1.0 + 1e-8]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn pf_ppo_weights<R: Real>(scores: &[R], config: &PfPpoRule, weights: &mut [f64]) -> Result<()> {
    check_len("weights", weights, scores.len())?;
    if let PfPpoRule::Power { power } = *config {
        check_not_negative::<R>("power", power)?;
    }
    let mut extremes = Extremes::NONE;
    for score in scores {
        extremes.add(score.widen());
    }
    for (weight, score) in weights.iter_mut().zip(scores) {
        let score = score.widen();
        let magnitude = if score < 0.0 { -score } else { score };
        let raw = match *config {
            PfPpoRule::Power { power: 2.0 } => score * score,
            PfPpoRule::Power { power: 1.0 } => magnitude,
            PfPpoRule::Power { power: 0.0 } => 1.0,
            PfPpoRule::Power { power } => exp(power * ln(magnitude)),
            PfPpoRule::MaxMin if score == extremes.max || score == extremes.min => 1.0,
            PfPpoRule::MaxMin => 0.0,
            PfPpoRule::MaxRandom if score == extremes.max => 0.4,
            PfPpoRule::MaxRandom => 0.1,
        };
        *weight = raw + 1e-8;
    }
    Ok(())
}

/// How [`pf_ppo_indices`] draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ResampleConfig {
    /// Seed of the random generator; default 0.
    pub seed: u64,
}

/// Entries of the scratch of [`pf_ppo_indices`]: one per weight.
pub const fn pf_ppo_scratch_len(weights: &[f64]) -> usize {
    weights.len()
}

/// Draws sequences with replacement, each in proportion to its weight; the same seed gives the same draws.
///
/// ```text
/// C_i = Σ_{j ≤ i} w_j      u from SplitMix64(seed) in [0, C_n)      index = the first i with C_i > u
/// ```
///
/// **Alignment.** `weights` and `scratch` ([`pf_ppo_scratch_len`]) have one entry per sequence; `indices` has one per
/// draw.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`] if `scratch` does not fit, or if `indices` is not empty but `weights` is;
/// [`Error::Entry`] at a weight that is negative or not finite; [`Error::Config`] if all are 0.
///
/// **Reference.** verl 0.9.1 draws by `torch.multinomial`: the same distribution, different draws. SplitMix64: Steele
/// et al. 2014.
///
/// # Example
///
/// ```
/// use tokenwise::rollout::*;
///
/// let (mut scratch, mut indices) = ([0.0; 3], [9; 4]);
/// pf_ppo_indices(&[0.0, 2.5, 0.0], &ResampleConfig { seed: 7 }, &mut scratch, &mut indices)?;
/// assert_eq!(indices, [1; 4]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn pf_ppo_indices(
    weights: &[f64],
    config: &ResampleConfig,
    scratch: &mut [f64],
    indices: &mut [u32],
) -> Result<()> {
    check_len("scratch", scratch, pf_ppo_scratch_len(weights))?;
    if weights.is_empty() && !indices.is_empty() {
        return Err(Error::Length { what: "weights", expected: 1, got: 0 });
    }
    let mut total = Sum::default();
    for (index, &got) in weights.iter().enumerate() {
        if !(got.is_finite() && got >= 0.0) {
            return Err(Error::Entry { what: "weights", index, must_be: "finite and not negative", got });
        }
        total.add(got);
    }
    let total = total.value();
    let drawable = total > 0.0 && total.is_finite();
    if !drawable && !indices.is_empty() {
        return Err(Error::Config { what: "weights", must_be: "positive and finite in sum", got: total });
    }
    let mut sum = Sum::default();
    for (slot, &weight) in scratch.iter_mut().zip(weights) {
        sum.add(weight);
        *slot = sum.value();
    }
    let last = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
    let mut state = config.seed;
    for index in indices {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // 53 bits give a number in [0, 1); its product can round up to the total, which is assigned to the last weight
        let place = (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64) * total;
        let first = scratch.partition_point(|&sum| sum <= place);
        *index = first.min(last) as u32;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_weights_and_the_seed() {
        let weights = [1.0, 0.0, 3.0];
        let (mut scratch, mut first, mut second) = ([0.0; 3], [0; 4000], [0; 4000]);
        pf_ppo_indices(&weights, &ResampleConfig { seed: 11 }, &mut scratch, &mut first).unwrap();
        pf_ppo_indices(&weights, &ResampleConfig { seed: 11 }, &mut scratch, &mut second).unwrap();
        assert_eq!(first, second);
        let of = |wanted| first.iter().filter(|&&index| index == wanted).count();
        assert_eq!((of(1), of(0) + of(2)), (0, 4000));
        assert!((900..1100).contains(&of(0)), "{}", of(0));
        let mut weights = [9.0; 3];
        pf_ppo_weights(&[2.0, -3.0, 0.0], &PfPpoRule::default(), &mut weights).unwrap();
        assert_eq!(weights, [4.0 + 1e-8, 9.0 + 1e-8, 1e-8]);
        assert!(pf_ppo_indices(&[f64::NAN], &ResampleConfig::default(), &mut [0.0], &mut [0]).is_err());
        assert!(pf_ppo_indices(&[0.0], &ResampleConfig::default(), &mut [0.0], &mut [0]).is_err());
    }
}
