use super::BudgetReport;
use crate::{
    loss::DualGameLoss,
    math::sqrt,
    metric::{entries::Entries, Analysis, Spread},
};

/// Quantiles over the kept tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenQuantiles {
    /// The median.
    pub p50: f64,
    /// Nine tenths are below.
    pub p90: f64,
}

/// Everything one step of a [`DualGame`](super::DualGame) found out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualGameReport {
    /// The number of the step, from 0.
    pub step: u64,
    /// The sums behind the five `analysis/…` keys.
    pub analysis: Analysis,
    /// The price of KL for the update to come.
    pub beta: f64,
    /// What the budget says; its `lambda` is the price of entropy for the update to come.
    pub budget: BudgetReport,
    /// Mean over the kept tokens of the k3 estimate between sampler and reference; none without a reference.
    pub kl_per_token: Option<f64>,
    /// Standard deviation of the kept rewards.
    pub reward_std: f64,
    /// Of the self-information H, where the distribution was asked for.
    pub entropy: Option<TokenQuantiles>,
    /// Of the covariance terms, where the distribution was asked for.
    pub covariance: Option<TokenQuantiles>,
    /// What the last update of the policy said, if it was handed in.
    pub last_update: Option<DualGameLoss>,
}

impl DualGameReport {
    /// The price of entropy for the update to come.
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

    /// Every key as a trainer logs it; what is not known in this step is left out.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let budget = &self.budget;
        let quantiles = |found: TokenQuantiles| [found.p50, found.p90];
        let mut list = Entries::new();
        list.pairs(&self.analysis.entries());
        list.group(&["analysis/H_p50", "analysis/H_p90"], self.entropy.map(quantiles));
        list.group(&["analysis/cov_p50", "analysis/cov_p90"], self.covariance.map(quantiles));
        list.all(
            &["analysis/corr", "dual_game/lambda", "dual_game/beta"],
            &[self.correlation(), budget.lambda, self.beta],
        );
        list.add("dual_game/B_token", &budget.budget_per_token);
        list.add("dual_game/KL_per_token", &self.kl_per_token);
        list.add("dual_game/usage_ratio", &budget.usage_ratio);
        list.add("dual_game/per_token_budget_Bt", &budget.budget_per_token);
        list.all(
            &[
                "dual_game/wH_per_token",
                "dual_game/token_entropy_mean",
                "dual_game/reward_std",
                "dual_game/token_count",
            ],
            &[
                budget.wh_per_token,
                self.analysis.entropy_per_token_mean(),
                self.reward_std,
                self.analysis.moments.count as f64,
            ],
        );
        list.group(
            &["dual_game/clipfrac_upper", "dual_game/clipfrac_lower"],
            self.last_update.map(|update| [update.clip_fraction_upper, update.clip_fraction_lower]),
        );
        list
    }
}
