//! Stage 5: the dual game, its token weights and their parts.

use tokenwise::{loss::*, weight::*, Result};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    case::{by_name, call, tokens, Case, Outcome},
    errors::domains::*,
    loss::{call_loss, weighed_input, Weighing, POLICY},
    naive::dual_game as textbook,
    reward::DIVISORS,
};

/// Which weight, and whether there is a reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    pub(crate) kind: usize,
    pub(crate) reference: bool,
}

impl Weight {
    fn new(random: &mut Random) -> Self {
        Self { kind: random.below(3), reference: random.below(4) != 0 }
    }

    pub(crate) fn of<'a, R: Number>(&self, flat: &'a Flat<R>) -> TokenWeight<'a, R> {
        [TokenWeight::Plain, TokenWeight::KlGated, TokenWeight::Structural(flat.column(Column::Weights))][self.kind]
    }

    pub(crate) fn reference<'a, R: Number>(&self, flat: &'a Flat<R>) -> Option<&'a [R]> {
        self.reference.then(|| flat.column(Column::RefLogProbs))
    }

    /// The columns that a call by name has for it.
    fn column<R: Number>(&self, flat: &Flat<R>, name: &str) -> Option<Array<R>> {
        match name {
            "weight" => Some(Array::Text(["plain", "kl-gated", "structural"][self.kind].into())),
            "structural" => (self.kind == 2).then(|| Array::Real(flat.column(Column::Weights).to_vec())),
            "ref_log_probs" => self.reference(flat).map(|column| Array::Real(column.to_vec())),
            _ => None,
        }
    }

    fn input<'a, R: Number>(&self, flat: &'a Flat<R>) -> TokenWeightInput<'a, R> {
        TokenWeightInput {
            log_probs: flat.column(Column::LogProbs),
            ref_log_probs: self.reference(flat),
            advantages: flat.column(Column::Advantages),
            weight: self.of(flat),
        }
    }
}

pub(crate) struct TokenWeights;
impl Case for TokenWeights {
    const NAME: &'static str = "token_weights";
    const UNITS: [f64; 2] = [2.0, 2.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = Weight;
    fn config(random: &mut Random) -> Weight {
        Weight::new(random)
    }
    fn run<R: Number>(flat: &Flat<R>, weight: Weight) -> Result<Outcome<R>> {
        call(Self::NAME, flat, (), |column| weight.column(flat, column))
    }
    fn naive(flat: &Flat<f64>, weight: Weight) -> Outcome<f64> {
        Outcome::tokens([textbook::token_weights(tokens(flat), weight.input(flat))])
    }
}

pub(crate) struct AdvantageJump;
impl Case for AdvantageJump {
    const NAME: &'static str = "advantage_jump";
    const UNITS: [f64; 2] = [0.0, 0.8];
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, (): ()) -> Outcome<f64> {
        Outcome::tokens([textbook::advantage_jump(tokens(flat), flat.column(Column::Advantages))])
    }
}

fn structural_input<R: Number>(flat: &Flat<R>) -> StructuralInput<'_, R> {
    StructuralInput {
        log_probs: flat.column(Column::LogProbs),
        advantages: flat.column(Column::Advantages),
        complexity: flat.column(Column::Weights),
    }
}

pub(crate) struct StructuralWeights;
impl Case for StructuralWeights {
    const NAME: &'static str = "structural_weights";
    const UNITS: [f64; 2] = [100.0, 1.0];
    const DOMAINS: &'static [Row] =
        &[any().numbers(&[key("complexity", FINITE), key("surprisal", FINITE), key("drift", FINITE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = StructuralConfig;
    fn config(random: &mut Random) -> StructuralConfig {
        StructuralConfig {
            complexity: random.pick(&[0.0, 1.0, -0.5]),
            surprisal: random.pick(&[0.3, 1.0]),
            drift: random.pick(&[0.2, -1.0]),
            scope: random.pick(&[ScoreScope::Batch, ScoreScope::Sequence]),
        }
    }
    by_name!("complexity": |flat: &Flat<R>| Array::Real(flat.column(Column::Weights).to_vec()));
    fn naive(flat: &Flat<f64>, config: StructuralConfig) -> Outcome<f64> {
        Outcome::tokens([textbook::structural_weights(tokens(flat), structural_input(flat), &config)])
    }
}

pub(crate) struct TrieComplexity;
impl Case for TrieComplexity {
    const NAME: &'static str = "trie_complexity";
    const UNITS: [f64; 2] = [50.0, 1.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("min_branch_size", AT_LEAST_1)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = TrieConfig;
    fn config(random: &mut Random) -> TrieConfig {
        TrieConfig {
            prefix: random.pick(&[TriePrefix::Any, TriePrefix::Same]),
            value: random.pick(&[BranchValue::Mean, BranchValue::Median]),
            spread: random.pick(&[BranchSpread::Variance, BranchSpread::InterQuartileRange, BranchSpread::Range]),
            min_branch_size: random.pick(&[1, 1, 2]),
        }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: TrieConfig) -> Outcome<f64> {
        let input = TrieInput { tokens: &flat.ids, rewards: flat.column(Column::Rewards) };
        Outcome::tokens([textbook::trie_complexity(tokens(flat), &flat.group_ids, input, &config)])
    }
}

/// Everything a call of the loss needs besides the batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Played {
    pub(crate) config: DualGameConfig<'static>,
    pub(crate) weighing: Weighing,
    pub(crate) weighed: bool,
    pub(crate) weight: Weight,
}

impl Played {
    pub(crate) fn input<'a, R: Number>(&self, flat: &'a Flat<R>) -> DualGameInput<'a, R> {
        DualGameInput {
            policy: weighed_input(flat, self.weighed),
            ref_log_probs: self.weight.reference(flat),
            weight: self.weight.of(flat),
        }
    }
}

pub(crate) struct DualGame;
impl Case for DualGame {
    const NAME: &'static str = "dual_game";
    const UNITS: [f64; 2] = [50.0, 20.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[
        key("gamma", NOT_NEGATIVE),
        key("lambda", NOT_NEGATIVE),
        key("beta", NOT_NEGATIVE),
        key("clip_low", NOT_NEGATIVE),
        key("clip_high", NOT_NEGATIVE),
        LOG_RATIO_BOUND,
    ])];
    const SEQUENCES_ALONE: bool = false;
    type Config = Played;
    fn config(random: &mut Random) -> Played {
        let config = DualGameConfig {
            gamma: random.pick(&[0.8, 1.2, 1.5]),
            lambda: random.pick(&[0.0, 0.5, 2.0]),
            beta: random.pick(&[0.0, 0.125, 1.0]),
            clip_low: random.pick(&[0.1, 0.2]),
            clip_high: random.pick(&[0.1, 0.28]),
            gradient: random.pick(&[DualGradient::Detached, DualGradient::Through]),
            log_ratio_bound: random.pick(&[None, Some(0.5), Some(20.0)]),
            aggregate: Aggregate::default(),
            divisor: random.pick(&DIVISORS),
        };
        Played { config, weighing: Weighing::new(random), weighed: random.below(2) == 0, weight: Weight::new(random) }
    }
    fn run<R: Number>(flat: &Flat<R>, played: Played) -> Result<Outcome<R>> {
        played.weighing.with(flat, |aggregate| {
            call_loss(Self::NAME, flat, played.config, aggregate, |column| match column {
                "weights" => played.weighed.then(|| Array::Real(flat.column(Column::Weights).to_vec())),
                _ => played.weight.column(flat, column),
            })
        })
    }
    fn naive(flat: &Flat<f64>, played: Played) -> Outcome<f64> {
        let (result, grad) = played.weighing.with(flat, |aggregate| {
            textbook::dual_game(tokens(flat), played.input(flat), &DualGameConfig { aggregate, ..played.config })
        });
        Outcome::tokens([grad]).and(numbers(result))
    }
}

fn numbers(result: DualGameLoss) -> [f64; 5] {
    [result.loss, result.clip_fraction, result.clip_fraction_upper, result.clip_fraction_lower, result.kl]
}

crate::case::tests! {
    token_weights: TokenWeights,
    advantage_jump: AdvantageJump,
    structural_weights: StructuralWeights {
        nan_stays_in_its_token(&[Column::LogProbs, Column::Advantages, Column::Weights]);
    },
    trie_complexity: TrieComplexity,
    dual_game: DualGame {
        nan_stays(&POLICY);
    },
}
