//! **Stage 4 of 7 — advantage.** Reads rewards and values, writes advantages and returns.

mod baseline;
mod best_of_group;
mod credit;
mod distill;
#[cfg(test)]
mod fixture;
mod gae;
mod gae_decoupled;
mod gdpo;
mod group;
mod leave_one_out_scaled;
mod max_rl;
mod normalize;
mod optimal_baseline;
mod puffer;
mod reinforce_plus_plus;
mod remax;
mod retrace;
mod returns;
mod role_baseline;
mod sequence;
mod td_lambda;
mod upgo;
mod vtrace;
mod whiten;

pub use crate::recursion::Across;
pub use baseline::{
    gpg_advantage, length_weighted_baseline, length_weighted_scratch_len, FactorPrecision, GpgConfig,
    LengthWeightedConfig, WeightedSum,
};
pub use best_of_group::{best_of_group, best_of_group_scratch_len, BestOfGroupConfig, BestOfGroupScratch, TopTwo};
pub use credit::{attention_credit, last_k_credit, monte_carlo_advantage, uniform_credit, AttentionInput, LastKConfig};
pub use distill::{
    minillm_advantage, opd_advantage, DiscountFrom, LengthNormalization, MinillmConfig, MinillmInput, OpdConfig,
    OpdInput,
};
#[doc(hidden)]
pub use gae::{check_gae, check_gae_config};
pub use gae::{gae, GaeConfig, GaeInput, GaeOutput};
pub use gae_decoupled::{gae_decoupled, GaeDecoupledConfig, PolicyLambda};
pub use gdpo::{decoupled_scores, gdpo, gdpo_scratch_len, GdpoConfig, GdpoInput, GdpoScratch};
pub use group::{group_relative, leave_one_out, GroupConfig, GroupScale, LeaveOneOutConfig, Singleton};
pub use leave_one_out_scaled::{leave_one_out_scaled, LeaveOneOutScaledConfig};
pub use max_rl::{max_rl, MaxRlConfig, MeanDivisor};
pub use normalize::{normalize_scores, Level, NormalizeConfig, Own};
pub use optimal_baseline::{
    optimal_baseline_scratch_len, optimal_token_baseline, tir_optimal_token_baseline, OptimalBaselineConfig,
    OptimalBaselineInput, OptimalBaselineOutput, OptimalBaselineScratch, ZeroTail,
};
pub use puffer::{puffer_advantage, PufferConfig, PufferInput, PufferVariant};
pub use reinforce_plus_plus::{
    reinforce_plus_plus, reinforce_plus_plus_baseline, ReinforcePlusPlusBaselineConfig, ReinforcePlusPlusConfig,
    ReinforcePlusPlusOutput,
};
pub use remax::{remax, RemaxInput, RemaxOutput};
pub use retrace::{retrace, RetraceConfig, RetraceInput, TraceCoefficient};
#[doc(hidden)]
pub use returns::check_returns_config;
pub use returns::{discounted_returns, ReturnsConfig, ReturnsInput};
pub use role_baseline::{role_baseline, RoleBaseline, RoleInput};
pub use sequence::{broadcast, sequence_sums};
#[doc(hidden)]
pub use td_lambda::check_td_config;
pub use td_lambda::{n_step_returns, td_lambda, NStepConfig, TdInput, TdLambdaConfig};
pub use upgo::upgo;
pub use vtrace::{vtrace, VtraceConfig, VtraceInput, VtraceOutput};
#[doc(hidden)]
pub use whiten::check_whiten;
pub(crate) use whiten::whiten_by;
pub use whiten::{whiten, whiten_in_place, Center, EpsilonPlace, Scale, WhitenConfig};
