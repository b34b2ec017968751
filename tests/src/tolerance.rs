//! How far a result may be from the textbook's: one table, nothing elsewhere.
//!
//! Errors are counted in units of `ε · max(1, |want|)`, ε the spacing of the type at 1: the random inputs are of order 1, and
//! where a sum cancels, its error is that of its terms, not of what is left. 0 means equal.

use crate::{formulas::Formula, generate::Number};

/// What is compared with the textbook in `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The formula in `f64`.
    F64,
    /// The formula in `f32`, on inputs that are exact in both.
    F32,
}

impl Basis {
    /// The basis of a number type.
    pub fn of<R: Number>() -> Self {
        if R::NAME == "f32" {
            Self::F32
        } else {
            Self::F64
        }
    }

    fn epsilon(self) -> f64 {
        match self {
            Self::F64 => f64::EPSILON,
            Self::F32 => f64::from(f32::EPSILON),
        }
    }
}

/// No entry may be this many times what was ever seen on the fixed seeds.
pub const SLACK: f64 = 16.0;

/// Units allowed, `[F64, F32]`. Where an `f32` entry is far below 1, the result is a number in `f64`.
const fn table(formula: Formula) -> [f64; 2] {
    match formula {
        Formula::LogProbsAndEntropy => [8.0, 6.0],
        Formula::TokenLogProbs => [8.0, 6.0],
        Formula::Entropy => [6.0, 4.0],
        Formula::SumSquaredProbs => [10.0, 4.0],
        Formula::TopkLogProbs => [8.0, 6.0],
        Formula::TopkLogitsGradient => [300.0, 120.0],
        Formula::LogitsGradient => [10.0, 8.0],
        Formula::KlEstimate => [2.0, 3.0],
        Formula::KlGradient => [2.0, 2.0],
        Formula::KlExact => [10.0, 8.0],
        Formula::KlExactGradient => [200.0, 80.0],
        Formula::PlaceScores => [0.0, 0.0],
        Formula::ShapeRewards => [0.0, 0.8],
        Formula::KlInReward => [0.8, 0.8],
        Formula::OverlongPenalty => [0.0, 0.8],
        Formula::DiscountedReturns => [100.0, 60.0],
        Formula::Gae => [30.0, 10.0],
        Formula::MonteCarloAdvantage => [200.0, 60.0],
        Formula::UniformCredit => [0.0, 0.3],
        Formula::LastKCredit => [0.0, 0.3],
        Formula::AttentionCredit => [2.0, 0.6],
        Formula::GroupRelative => [3.0, 0.8],
        Formula::LeaveOneOut => [3.0, 0.8],
        Formula::Broadcast => [0.0, 0.0],
        Formula::SequenceSums => [60.0, 0.8],
        Formula::Whiten => [4.0, 0.8],
        Formula::TdLambda => [40.0, 10.0],
        Formula::NStepReturns => [10.0, 8.0],
        Formula::Upgo => [3.0, 3.0],
        Formula::Vtrace => [30.0, 15.0],
        Formula::PufferAdvantage => [15.0, 10.0],
        Formula::Retrace => [50.0, 20.0],
        Formula::GaeDecoupled => [60.0, 80.0],
        Formula::BestOfGroup => [4.0, 0.8],
        Formula::LengthWeightedBaseline => [0.0, 0.8],
        Formula::GpgAdvantage => [2.0, 0.8],
        Formula::LeaveOneOutScaled => [2000.0, 0.8],
        Formula::MaxRl => [4.0, 0.8],
        Formula::NormalizeScores => [3.0, 0.8],
        Formula::DecoupledScores => [6.0, 3.0],
        Formula::RoleBaseline => [2.0, 0.8],
        Formula::ReinforcePlusPlus => [20.0, 10.0],
        Formula::ReinforcePlusPlusBaseline => [300.0, 1.5],
        Formula::Remax => [150.0, 60.0],
        Formula::Gdpo => [3000.0, 8.0],
        Formula::OptimalTokenBaseline => [80.0, 60.0],
        Formula::TirOptimalTokenBaseline => [80.0, 60.0],
        Formula::OpdAdvantage => [0.0, 1.5],
        Formula::MinillmAdvantage => [30.0, 2.0],
        Formula::Aggregate => [6.0, 0.2],
        Formula::GroupTokens => [0.0, 0.0],
        Formula::Surrogate => [10.0, 8.0],
        Formula::PpoClip => [20.0, 4.0],
        Formula::Reinforce => [60.0, 6.0],
        Formula::Cispo => [20.0, 10.0],
        Formula::TisLoss => [50.0, 20.0],
        Formula::Sapo => [10.0, 20.0],
        Formula::Dro => [40.0, 10.0],
        Formula::DppoTv => [20.0, 8.0],
        Formula::DppoKl => [20.0, 8.0],
        Formula::Gspo => [10.0, 8.0],
        Formula::Luspo => [20.0, 6.0],
        Formula::Gmpo => [2.0, 0.6],
        Formula::Vespo => [20.0, 4.0],
        Formula::ClipCov => [60.0, 40.0],
        Formula::ClipCovSelection => [0.0, 0.0],
        Formula::KlCov => [40.0, 8.0],
        Formula::Topr => [60.0, 6.0],
        Formula::Gvpo => [20.0, 1.0],
        Formula::PositiveNll => [4.0, 0.2],
        Formula::TokenWeights => [2.0, 2.0],
        Formula::AdvantageJump => [0.0, 0.8],
        Formula::StructuralWeights => [100.0, 1.0],
        Formula::TrieComplexity => [50.0, 1.0],
        Formula::DualGame => [50.0, 20.0],
        Formula::ValueLoss => [3.0, 2.0],
        Formula::KlLoss => [8.0, 4.0],
        Formula::BypassLoss => [30.0, 6.0],
        Formula::OpdLoss => [30.0, 4.0],
        Formula::ForwardKlTopk => [200.0, 1.5],
        Formula::GeneralizedJsd => [80.0, 40.0],
        Formula::TopkJsd => [16.0, 1.5],
        Formula::IwOpd => [16.0, 2.0],
        Formula::RefKl => [24.0, 6.0],
        Formula::MixedKlTopk => [30.0, 1.5],
        Formula::EntropyBonus => [6.0, 0.1],
        Formula::Mean => [0.8, 0.0],
        Formula::Variance => [2.0, 3e-9],
        Formula::Correlation => [8.0, 2e-8],
        Formula::ExplainedVariance => [20.0, 6e-8],
        Formula::KlMeans => [3.0, 2.0],
        Formula::ClipFractions => [0.0, 0.0],
        Formula::Analysis => [20.0, 0.6],
        Formula::KlImportanceWeighted => [4.0, 5.0],
        Formula::KlImportanceWeightedGradient => [6.0, 6.0],
        Formula::KlInScores => [8.0, 0.8],
        Formula::ClippedRewards => [0.0, 0.8],
        Formula::StopProperlyPenalty => [0.0, 0.5],
        Formula::MissingEosPenalty => [0.0, 0.8],
        Formula::RewardScaleClip => [0.8, 0.6],
        Formula::RepetitionPenalty => [0.0, 0.4],
        Formula::LengthPenaltyGroup => [2.0, 0.8],
        Formula::RolloutWeights => [20.0, 2.0],
        Formula::RolloutWeightMetrics => [60.0, 2.0],
        Formula::RolloutRejection => [0.0, 0.0],
        Formula::RolloutRejectionMetrics => [200.0, 2.0],
        Formula::RolloutMismatch => [30.0, 3.0],
        Formula::ParseRejection => [0.0, 0.0],
        Formula::ParseWeightBound => [0.0, 0.0],
        Formula::RolloutGate => [2.0, 2.0],
        Formula::OffPolicySequenceMask => [0.0, 0.0],
        Formula::KlMask => [0.0, 0.0],
        Formula::M2poMask => [0.0, 0.0],
        Formula::SequenceVeto => [0.0, 0.0],
        Formula::HighEntropyMask => [0.0, 0.0],
        Formula::ProbabilityDifference => [10.0, 2.0],
        Formula::ResponseMaskFromEos => [0.0, 0.0],
        Formula::DynamicSamplingFilter => [0.0, 0.0],
        Formula::PfPpoWeights => [2.0, 3e-9],
        Formula::PfPpoIndices => [0.0, 0.0],
        Formula::RowSums => [8.0, 0.8],
        Formula::RowMeans => [0.8, 0.4],
        Formula::RowNormalize => [5.0, 0.8],
        Formula::Quantile => [0.8, 2e-9],
        Formula::EffectiveSampleSize => [20.0, 4e-8],
        Formula::VarianceProxy => [12.0, 0.6],
        Formula::VerlMetrics => [60.0, 4.0],
        Formula::TrlMetrics => [20.0, 4.0],
        Formula::OpenRlhfMetrics => [20.0, 4.0],
        Formula::Shift => [0.0, 0.0],
    }
}

/// Units allowed.
pub fn allowed(formula: Formula, basis: Basis) -> f64 {
    table(formula)[basis as usize]
}

/// The error in units; NaN agrees with NaN only, an infinity with itself.
pub fn units(basis: Basis, got: f64, want: f64) -> f64 {
    if got == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    let error = (got - want).abs() / (basis.epsilon() * want.abs().max(1.0));
    if error.is_nan() {
        f64::INFINITY
    } else {
        error
    }
}

fn ulps(basis: Basis, got: f64, want: f64) -> i64 {
    // bit patterns of one sign are in the order of the numbers
    fn place(bits: i64, sign: i64) -> i64 {
        if bits < 0 {
            sign.wrapping_sub(bits)
        } else {
            bits
        }
    }
    match basis {
        Basis::F64 => place(got.to_bits() as i64, i64::MIN).wrapping_sub(place(want.to_bits() as i64, i64::MIN)),
        Basis::F32 => {
            let bits = |x: f64| place(i64::from((x as f32).to_bits() as i32), i64::from(i32::MIN));
            bits(got) - bits(want)
        }
    }
}

/// Panics unless every number is as close as the table asks.
#[track_caller]
#[allow(clippy::panic, reason = "an assertion")]
pub fn assert_close(formula: Formula, basis: Basis, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{formula:?}: number of results");
    let allowed = allowed(formula, basis);
    for (index, (&got, &want)) in got.iter().zip(want).enumerate() {
        let error = units(basis, got, want);
        if error > allowed {
            let ulps = ulps(basis, got, want);
            panic!("{formula:?} {basis:?} [{index}]: got {got:e}, want {want:e}: {error:.2} units ({ulps} ulps), {allowed} allowed");
        }
    }
}

/// Panics unless both have the same bits; NaN is NaN.
#[track_caller]
#[allow(clippy::panic, reason = "an assertion")]
pub fn assert_bits<R: Number>(what: &str, got: &[R], want: &[R]) {
    assert_eq!(got.len(), want.len(), "{what}: number of results");
    for (index, (&got, &want)) in got.iter().zip(want).enumerate() {
        if got.bits() != want.bits() {
            let ulps = ulps(Basis::of::<R>(), got.widen(), want.widen());
            panic!("{what} {} [{index}]: got {got:?}, want {want:?}: {ulps} ulps apart", R::NAME);
        }
    }
}
