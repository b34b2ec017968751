//! **Stage 4 of 7 — advantage.** Reads rewards and values, writes advantages and returns.

mod baseline;
mod best_of_group;
mod credit;
mod distill;
#[cfg(test)]
mod fixture16;
mod gae;
mod gae_decoupled;
mod gdpo;
mod group;
mod leave_one_out_scaled;
mod max_rl;
mod normalize;
mod optimal_baseline;
#[cfg(test)]
mod optimal_baseline_tests;
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

pub use baseline::{
    gpg_advantage, length_weighted_baseline, FactorPrecision, GpgConfig, LengthWeightedConfig, WeightedSum,
};
pub use best_of_group::{best_of_group, BestOfGroupConfig, BestOfGroupScratch, TopTwo};
pub use credit::{
    attention_credit, last_k_credit, monte_carlo_advantage, uniform_credit, AttentionInput, MonteCarloInput,
    MonteCarloOutput,
};
pub use distill::{
    minillm_advantage, opd_advantage, DiscountFrom, LengthNormalization, MinillmConfig, MinillmInput, OpdConfig,
    OpdInput,
};
#[doc(hidden)]
pub use gae::check_gae;
pub use gae::{gae, GaeConfig, GaeInput, GaeOutput};
pub use gae_decoupled::{gae_decoupled, GaeDecoupledConfig, PolicyLambda};
pub use gdpo::{decoupled_scores, gdpo, GdpoConfig, GdpoInput, GdpoScratch};
pub use group::{group_relative, leave_one_out, GroupConfig, GroupScale, LeaveOneOutConfig, Singleton};
pub use leave_one_out_scaled::{leave_one_out_scaled, LeaveOneOutScaledConfig};
pub use max_rl::{max_rl, MaxRlConfig, MeanDivisor};
pub use normalize::{normalize_scores, Level, NormalizeConfig, Own};
pub use optimal_baseline::{
    optimal_baseline_columns, optimal_token_baseline, tir_optimal_token_baseline, OptimalBaselineConfig,
    OptimalBaselineInput, OptimalBaselineOutput, OptimalBaselineScratch, ZeroTail,
};
pub use puffer::{puffer_advantage, PufferConfig, PufferInput, PufferVariant};
pub use reinforce_plus_plus::{
    reinforce_plus_plus, reinforce_plus_plus_baseline, ReinforcePlusPlusBaselineConfig, ReinforcePlusPlusConfig,
    ReinforcePlusPlusOutput,
};
pub use remax::{remax, RemaxInput, RemaxOutput};
pub use retrace::{retrace, RetraceConfig, RetraceInput, TraceCoefficient};
pub use returns::{discounted_returns, Across, ReturnsConfig, ReturnsInput};
pub use role_baseline::{role_baseline, RoleBaseline};
pub use sequence::{broadcast, sequence_sums};
pub use td_lambda::{n_step_returns, td_lambda, NStepConfig, TdInput, TdLambdaConfig};
pub use upgo::upgo;
pub use vtrace::{vtrace, VtraceConfig, VtraceInput, VtraceOutput};
pub use whiten::{whiten, whiten_in_place, Center, EpsilonPlace, Scale, WhitenConfig};
