use super::BudgetReport;
use crate::{entries::known, loss::DualGameLoss, math::sqrt, metric::Analysis, statistics::Spread};

/// Quantiles over the kept tokens.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenQuantiles {
    /// The median.
    pub p50: f64,
    /// The 0.9 quantile.
    pub p90: f64,
}

/// The report of one step of a [`DualGame`](super::DualGame).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DualGameReport {
    /// The number of the step, from 0.
    pub step: u64,
    /// The sums behind the five `analysis/…` keys.
    pub analysis: Analysis,
    /// The price of KL for the next update.
    pub beta: f64,
    /// The report of the budget; its `lambda` is the price of entropy for the next update.
    pub budget: BudgetReport,
    /// Mean over the kept tokens of the k3 estimate between sampler and reference; `None` without a reference.
    pub kl_per_token: Option<f64>,
    /// Standard deviation of the kept rewards.
    pub reward_std: f64,
    /// Quantiles of the self-information H, if the distribution was requested.
    pub entropy: Option<TokenQuantiles>,
    /// Quantiles of the covariance terms, if the distribution was requested.
    pub covariance: Option<TokenQuantiles>,
    /// What the last update of the policy returned, if it was given.
    pub last_update: Option<DualGameLoss>,
}

impl DualGameReport {
    /// The price of entropy for the next update.
    pub const fn lambda(&self) -> f64 {
        self.budget.lambda
    }

    /// `cov / (std(A) · std(log p) + 1e-8)`, deviations divided by n.
    pub fn correlation(&self) -> f64 {
        let moments = &self.analysis.moments;
        let n = moments.count as f64;
        let covariance = moments.covariance(Spread::Population).unwrap_or(f64::NAN);
        covariance / (sqrt(moments.m2_x / n) * sqrt(moments.m2_y / n) + 1e-8)
    }

    /// Every key as a trainer logs it; keys without a value in this step are left out.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let budget = &self.budget;
        let (entropy, covariance, update) = (self.entropy, self.covariance, self.last_update);
        self.analysis.entries().into_iter().chain(known([
            ("analysis/H_p50", entropy.map(|found| found.p50)),
            ("analysis/H_p90", entropy.map(|found| found.p90)),
            ("analysis/cov_p50", covariance.map(|found| found.p50)),
            ("analysis/cov_p90", covariance.map(|found| found.p90)),
            ("analysis/corr", Some(self.correlation())),
            ("dual_game/lambda", Some(budget.lambda)),
            ("dual_game/beta", Some(self.beta)),
            ("dual_game/B_token", budget.budget_per_token),
            ("dual_game/KL_per_token", self.kl_per_token),
            ("dual_game/usage_ratio", budget.usage_ratio),
            ("dual_game/per_token_budget_Bt", budget.budget_per_token),
            ("dual_game/wH_per_token", Some(budget.wh_per_token)),
            ("dual_game/token_entropy_mean", Some(self.analysis.entropy_per_token_mean())),
            ("dual_game/reward_std", Some(self.reward_std)),
            ("dual_game/token_count", Some(self.analysis.moments.count as f64)),
            ("dual_game/clipfrac_upper", update.map(|found| found.clip_fraction_upper)),
            ("dual_game/clipfrac_lower", update.map(|found| found.clip_fraction_lower)),
        ]))
    }
}
