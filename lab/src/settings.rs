//! What distinguishes one run from another.

use std::fmt::Write;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tokenwise::{
    control::{
        BudgetSchedule, BudgetSource, CollapseGuard, DualGameRules, EntropyBudgetConfig, Follow, KlControlConfig,
        LinearKlConfig,
    },
    loss::DualGameConfig,
};

use crate::{
    model::Shape,
    task::{Task, VOCABULARY},
};

/// A group of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum Group {
    /// Plain PPO or GRPO. Prices are 0; budget and usage are measured and have no effect.
    #[value(name = "C0")]
    C0,
    /// C0 with the KL controller of the others: λ = 0, γ = 1.
    #[value(name = "C0k")]
    C0k,
    /// BNTO with the plain weight and the budget by deviation and usage.
    #[value(name = "C1")]
    C1,
    /// C1 with the budget that shrinks at plateaus.
    #[value(name = "C2")]
    C2,
    /// C1 with the KL-gated weight.
    #[value(name = "C3")]
    C3,
}

impl Group {
    /// Its name in paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::C0 => "C0",
            Self::C0k => "C0k",
            Self::C1 => "C1",
            Self::C2 => "C2",
            Self::C3 => "C3",
        }
    }
}

/// Where advantages come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// A critic and GAE, whitened.
    #[default]
    Ppo,
    /// The scores of a prompt's samples against each other.
    Grpo,
}

/// What the KL controller aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The target KL throughout.
    Fixed,
    /// 1.1 times the mean of the last 10 measurements, once there are that many.
    Adaptive,
}

/// How the entropy budget changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// By the deviation of the rewards and the usage.
    RewardStdUsage,
    /// Smaller after each plateau of the reward.
    Plateau,
    /// Exponentially smaller.
    Exponential,
    /// Not at all.
    Constant,
}

/// How much each token's entropy counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// p (1 − p) |A|.
    Plain,
    /// The same times |log π − log π_ref|.
    KlGated,
}

impl Weight {
    /// Its name in the catalogue of the losses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::KlGated => "kl-gated",
        }
    }
}

/// Settings that differ from those of the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct Switches {
    /// γ, the factor of negative advantages.
    #[arg(long)]
    pub gamma: Option<f64>,
    /// ρ, the share of the entropy used in the warm-up that becomes the budget.
    #[arg(long)]
    pub rho: Option<f64>,
    /// η_λ, the learning rate of the price of entropy.
    #[arg(long)]
    pub eta_lambda: Option<f64>,
    /// η_β, the learning rate of the price of KL.
    #[arg(long)]
    pub eta_beta: Option<f64>,
    /// D, the target of the KL controller.
    #[arg(long)]
    pub target_kl: Option<f64>,
    /// Whether the target stays or follows the measurements.
    #[arg(long)]
    pub target: Option<Target>,
    /// How the budget changes.
    #[arg(long)]
    pub budget: Option<Budget>,
    /// How much each token's entropy counts.
    #[arg(long)]
    pub weight: Option<Weight>,
}

impl Switches {
    /// Such as `+gamma=0.8+rho=0.6`; empty if nothing differs.
    fn suffix(&self) -> String {
        let mut text = String::new();
        let numbers = [
            ("gamma", self.gamma),
            ("rho", self.rho),
            ("eta-lambda", self.eta_lambda),
            ("eta-beta", self.eta_beta),
            ("target-kl", self.target_kl),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                let _ = write!(text, "+{name}={number}");
            }
        }
        fn word<T: ValueEnum>(choice: Option<T>) -> Option<String> {
            choice.and_then(|choice| Some(choice.to_possible_value()?.get_name().to_owned()))
        }
        let words = [("target", word(self.target)), ("budget", word(self.budget)), ("weight", word(self.weight))];
        for (name, word) in words {
            if let Some(word) = word {
                let _ = write!(text, "+{name}={word}");
            }
        }
        text
    }
}

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// Layers of the policy.
    pub layers: usize,
    /// Width of policy and critic.
    pub width: usize,
    /// Heads of policy and critic.
    pub heads: usize,
    /// Layers of the critic.
    pub critic_layers: usize,
    /// Prompts per step.
    pub prompts: usize,
    /// Samples per prompt.
    pub samples: usize,
}

impl Size {
    /// About 100,000 parameters, 256 responses per step.
    pub const SMALL: Self = Self { layers: 2, width: 64, heads: 4, critic_layers: 1, prompts: 32, samples: 8 };
    /// A size for tests, at which a step takes milliseconds.
    pub const TINY: Self = Self { layers: 1, width: 8, heads: 2, critic_layers: 1, prompts: 4, samples: 2 };
}

/// The settings of a run, complete.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The task.
    pub task: Task,
    /// The group.
    pub group: Group,
    /// What differs from the group.
    pub switches: Switches,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The seed.
    pub seed: u64,
    /// Training steps.
    pub steps: u64,
    /// Sizes.
    pub size: Size,
    /// Passes over a step's responses.
    pub epochs: usize,
    /// Updates per pass.
    pub minibatches: usize,
    /// Learning rate of the policy.
    pub actor_lr: f64,
    /// Learning rate of the critic.
    pub critic_lr: f64,
    /// Both clip widths of the loss.
    pub clip: f64,
    /// Discount of rewards.
    pub discount: f64,
    /// Decay of the advantages' trace.
    pub trace: f64,
    /// Limit of the gradients' norms.
    pub norm_limit: f64,
    /// Learning rate of the supervised warm-up.
    pub warm_up_lr: f64,
    /// The warm-up ends when this share of samples is right.
    pub warm_up_accuracy: f64,
    /// The warm-up ends after this many steps at the latest.
    pub warm_up_limit: u64,
}

impl Settings {
    /// Settings of a group as in the experiment.
    pub fn new(task: Task, group: Group, seed: u64, steps: u64) -> Self {
        Self {
            task,
            group,
            switches: Switches::default(),
            algorithm: Algorithm::Ppo,
            seed,
            steps,
            size: Size::SMALL,
            epochs: 2,
            minibatches: 2,
            actor_lr: 3e-4,
            critic_lr: 1e-3,
            clip: 0.2,
            discount: 1.0,
            trace: 1.0,
            norm_limit: 1.0,
            warm_up_lr: 1e-3,
            warm_up_accuracy: 0.1,
            warm_up_limit: 2000,
        }
    }

    /// The group and its switches: the name of the run's folder.
    pub fn variant(&self) -> String {
        let algorithm = if self.algorithm == Algorithm::Grpo { "+algorithm=grpo" } else { "" };
        format!("{}{}{algorithm}", self.group.name(), self.switches.suffix())
    }

    /// Sizes of the policy.
    pub fn policy_shape(&self) -> Shape {
        let Size { layers, width, heads, .. } = self.size;
        let positions = self.task.prompt_len() + self.task.response_limit();
        Shape { vocabulary: VOCABULARY, positions, layers, width, heads, outputs: VOCABULARY }
    }

    /// Sizes of the critic.
    pub fn critic_shape(&self) -> Shape {
        Shape { layers: self.size.critic_layers, outputs: 1, ..self.policy_shape() }
    }

    /// γ.
    pub fn gamma(&self) -> f64 {
        let of_group = match self.group {
            Group::C0 | Group::C0k => 1.0,
            Group::C1 | Group::C2 | Group::C3 => 1.2,
        };
        self.switches.gamma.unwrap_or(of_group)
    }

    /// The weight of each token's entropy.
    pub fn weight(&self) -> Weight {
        let of_group = if self.group == Group::C3 { Weight::KlGated } else { Weight::Plain };
        self.switches.weight.unwrap_or(of_group)
    }

    /// The controllers of both prices.
    ///
    /// In C0 and C0k λ is held at 0 by its upper bound, so that budget and usage are measured in all groups alike.
    pub fn rules(&self) -> DualGameRules {
        let switches = &self.switches;
        let of_group = if self.group == Group::C2 { Budget::Plateau } else { Budget::RewardStdUsage };
        let schedule = match switches.budget.unwrap_or(of_group) {
            Budget::RewardStdUsage => BudgetSchedule::reward_std_usage(self.steps),
            Budget::Plateau => BudgetSchedule::plateau(0.01, 50),
            Budget::Exponential => BudgetSchedule::Exponential { alpha: 3.0, total_steps: self.steps },
            Budget::Constant => BudgetSchedule::Constant,
        };
        let plays = !matches!(self.group, Group::C0 | Group::C0k);
        let budget = EntropyBudgetConfig {
            learning_rate: switches.eta_lambda.unwrap_or(0.05),
            lambda_max: Some(if plays { 10.0 } else { 0.0 }),
            source: BudgetSource::WarmUp { steps: 10, rho: switches.rho.unwrap_or(0.45) },
            schedule,
            guard: CollapseGuard::On,
            ..Default::default()
        };
        let linear = LinearKlConfig {
            target: switches.target_kl.unwrap_or(0.02),
            learning_rate: switches.eta_beta.unwrap_or(0.01),
            follow: match switches.target.unwrap_or(Target::Adaptive) {
                Target::Adaptive => Some(Follow::default()),
                Target::Fixed => None,
            },
            ..Default::default()
        };
        let kl = if self.group == Group::C0 { KlControlConfig::Fixed(0.0) } else { KlControlConfig::Linear(linear) };
        DualGameRules { kl, budget }
    }

    /// The loss at these prices.
    pub fn loss(&self, lambda: f64, beta: f64) -> DualGameConfig<'static> {
        let (clip_low, clip_high) = (self.clip, self.clip);
        DualGameConfig { gamma: self.gamma(), lambda, beta, clip_low, clip_high, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_names_its_switches() {
        let mut settings = Settings::new(Task::TwoDigit, Group::C1, 0, 1000);
        assert_eq!(settings.variant(), "C1");
        settings.switches = Switches { gamma: Some(0.8), rho: Some(0.6), ..Default::default() };
        assert_eq!(settings.variant(), "C1+gamma=0.8+rho=0.6");
        settings.switches = Switches { target: Some(Target::Fixed), ..Default::default() };
        assert_eq!(settings.variant(), "C1+target=fixed");
    }

    #[test]
    fn only_the_groups_of_bnto_pay_for_entropy_and_only_c0_pays_nothing() {
        for group in Group::value_variants() {
            let settings = Settings::new(Task::OneDigit, *group, 0, 1000);
            let rules = settings.rules();
            let plays = matches!(group, Group::C1 | Group::C2 | Group::C3);
            assert_eq!(rules.budget.lambda_max, Some(if plays { 10.0 } else { 0.0 }));
            assert_eq!(settings.gamma(), if plays { 1.2 } else { 1.0 });
            assert_eq!(rules.kl == KlControlConfig::Fixed(0.0), *group == Group::C0);
        }
    }

    #[test]
    fn the_policy_has_about_100_000_parameters() {
        let settings = Settings::new(Task::TwoDigit, Group::C0, 0, 1);
        assert!((95_000..110_000).contains(&settings.policy_shape().parameter_count()));
    }
}
