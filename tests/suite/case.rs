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
            topk_log_probs: crate::distill::TopkLogProbs,
            topk_logits_gradient: crate::distill::TopkLogitsGradient,
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
            td_lambda: crate::returns::TdLambda,
            n_step_returns: crate::returns::NStepReturns,
            upgo: crate::returns::Upgo,
            vtrace: crate::returns::Vtrace,
            puffer_advantage: crate::returns::PufferAdvantage,
            retrace: crate::returns::Retrace,
            gae_decoupled: crate::returns::GaeDecoupled,
            group_relative_over_batch: crate::groups::GroupRelativeOverBatch,
            best_of_group: crate::groups::BestOfGroup,
            best_of_group_over_batch: crate::groups::BestOfGroupOverBatch,
            length_weighted_baseline: crate::groups::LengthWeightedBaseline,
            gpg_advantage: crate::groups::GpgAdvantage,
            leave_one_out_scaled: crate::groups::LeaveOneOutScaled,
            max_rl: crate::groups::MaxRl,
            normalize_scores: crate::groups::NormalizeScores,
            decoupled_scores: crate::groups::DecoupledScores,
            role_baseline: crate::groups::RoleBaselineCase,
            reinforce_plus_plus: crate::baselines::ReinforcePlusPlus,
            reinforce_plus_plus_baseline: crate::baselines::ReinforcePlusPlusBaseline,
            remax: crate::baselines::Remax,
            gdpo: crate::baselines::Gdpo,
            optimal_token_baseline: crate::baselines::OptimalTokenBaseline,
            tir_optimal_token_baseline: crate::baselines::TirOptimalTokenBaseline,
            opd_advantage: crate::baselines::OpdAdvantage,
            minillm_advantage: crate::baselines::MinillmAdvantage,
            aggregate: crate::loss::AggregateLoss,
            group_tokens: crate::loss::GroupTokens,
            surrogate: crate::loss::Surrogate,
            ppo_clip: crate::loss::PpoClip,
            reinforce: crate::policy_loss::Reinforce,
            cispo: crate::policy_loss::Cispo,
            tis_loss: crate::policy_loss::TisLoss,
            sapo: crate::policy_loss::Sapo,
            dro: crate::policy_loss::Dro,
            dppo_tv: crate::policy_loss::DppoTv,
            dppo_kl: crate::policy_loss::DppoKl,
            gspo: crate::policy_loss::Gspo,
            luspo: crate::policy_loss::Luspo,
            gmpo: crate::policy_loss::Gmpo,
            vespo: crate::policy_loss::Vespo,
            clip_cov: crate::policy_loss::ClipCov,
            clip_cov_selection: crate::policy_loss::ClipCovSelection,
            kl_cov: crate::policy_loss::KlCov,
            topr: crate::policy_loss::Topr,
            gvpo: crate::policy_loss::Gvpo,
            positive_nll: crate::policy_loss::PositiveNll,
            kl_loss: crate::distill::KlLoss,
            bypass_loss: crate::distill::BypassLoss,
            opd_loss: crate::distill::OpdLoss,
            forward_kl_topk: crate::distill::ForwardKlTopk,
            generalized_jsd: crate::distill::GeneralizedJsd,
            topk_jsd: crate::distill::TopkJsd,
            iw_opd: crate::distill::IwOpd,
            ref_kl: crate::distill::RefKl,
            mixed_kl_topk: crate::distill::MixedKlTopk,
            token_weights: crate::dual_game::TokenWeights,
            advantage_jump: crate::dual_game::AdvantageJump,
            structural_weights: crate::dual_game::StructuralWeights,
            trie_complexity: crate::dual_game::TrieComplexity,
            dual_game: crate::dual_game::DualGame,
            value_loss: crate::loss::ValueLoss,
            entropy_bonus: crate::loss::EntropyBonus,
            mean: crate::metric::Mean,
            variance: crate::metric::Variance,
            correlation: crate::metric::Correlation,
            explained_variance: crate::metric::ExplainedVariance,
            kl_means: crate::metric::KlMeans,
            clip_fractions: crate::metric::ClipFractions,
            analysis: crate::metric::Analysis,
            kl_importance_weighted: crate::rows::KlImportanceWeighted,
            kl_importance_weighted_gradient: crate::rows::KlImportanceWeightedGradient,
            kl_in_scores: crate::shaping::KlInScores,
            clipped_rewards: crate::shaping::ClippedRewards,
            stop_properly_penalty: crate::shaping::StopProperlyPenalty,
            missing_eos_penalty: crate::shaping::MissingEosPenalty,
            reward_scale_clip: crate::shaping::RewardScaleClip,
            repetition_penalty: crate::shaping::RepetitionPenalty,
            length_penalty_group: crate::shaping::LengthPenaltyGroup,
            rollout_weights: crate::rollout::RolloutWeights,
            rollout_weights_alone: crate::rollout::RolloutWeightsAlone,
            rollout_weight_metrics: crate::rollout::RolloutWeightMetrics,
            rollout_rejection: crate::rollout::RolloutRejection,
            rollout_rejection_metrics: crate::rollout::RolloutRejectionMetrics,
            rollout_mismatch: crate::rollout::RolloutMismatch,
            parse_rejection: crate::rollout::ParseRejection,
            parse_weight_bound: crate::rollout::ParseWeightBound,
            rollout_gate: crate::rollout::RolloutGate,
            off_policy_sequence_mask: crate::rollout::OffPolicySequenceMask,
            kl_mask: crate::rollout::KlMask,
            m2po_mask: crate::rollout::M2poMask,
            sequence_veto: crate::rollout::SequenceVeto,
            high_entropy_mask: crate::rollout::HighEntropyMask,
            probability_difference: crate::rollout::ProbabilityDifference,
            response_mask_from_eos: crate::rollout::ResponseMaskFromEos,
            dynamic_sampling_filter: crate::rollout::DynamicSamplingFilter,
            pf_ppo_weights: crate::rollout::PfPpoWeights,
            pf_ppo_indices: crate::rollout::PfPpoIndices,
            row_sums: crate::rows::RowSums,
            row_means: crate::rows::RowMeans,
            row_normalize: crate::rows::RowNormalize,
            quantile: crate::rows::Quantile,
            effective_sample_size: crate::rows::EffectiveSampleSize,
            variance_proxy: crate::rows::VarianceProxy,
            verl_metrics: crate::sets::VerlSet,
            trl_metrics: crate::sets::TrlSet,
            openrlhf_metrics: crate::sets::OpenRlhfSet,
            shift: crate::layout::Shift,
        }
    };
}
pub(crate) use every_case;
