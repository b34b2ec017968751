//! Stage 4: estimators without a critic that end on the tokens.

use tokenwise::{advantage::*, Divisor, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::baselines as naive,
};

use crate::{
    advantage::{discount, GroupRelative, Whiten, ACROSS},
    case::{tokens, unwritten, Case, Outcome},
    groups::{moments, sources, WEIGHTS},
};

/// Tokens of a sequence share their number, so that batches may well be constant: ε must not let that be divided by nothing,
/// and a divisor of verl's, which is another one in single precision, would be all that is left.
fn whiten_config(random: &mut Random) -> WhitenConfig {
    WhitenConfig { epsilon: 1e-2, divisor: Divisor::Count, ..Whiten::config(random) }
}

pub(crate) struct ReinforcePlusPlus;
impl Case for ReinforcePlusPlus {
    const FORMULA: Formula = Formula::ReinforcePlusPlus;
    const SEQUENCES_ALONE: bool = false;
    type Config = ReinforcePlusPlusConfig;
    fn config(random: &mut Random) -> Self::Config {
        let whiten = whiten_config(random);
        ReinforcePlusPlusConfig { gamma: discount(random), across: random.pick(&ACROSS), whiten }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let (mut advantages, mut returns) = (unwritten(flat.tokens()), unwritten(flat.tokens()));
        let input = ReturnsInput { rewards: flat.column(Column::Rewards), bootstrap: &flat.bootstrap };
        let output = ReinforcePlusPlusOutput { advantages: &mut advantages, returns: &mut returns };
        reinforce_plus_plus(&flat.batch(), input, &config, output)?;
        Ok(Outcome::tokens([advantages, returns]))
    }
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let rewards = flat.column(Column::Rewards);
        let (advantages, returns) = naive::reinforce_plus_plus(tokens(flat), rewards, &flat.bootstrap, &config);
        Outcome::tokens([advantages, returns])
    }
}

pub(crate) struct ReinforcePlusPlusBaseline;
impl Case for ReinforcePlusPlusBaseline {
    const FORMULA: Formula = Formula::ReinforcePlusPlusBaseline;
    const SEQUENCES_ALONE: bool = false;
    type Config = ReinforcePlusPlusBaselineConfig;
    fn config(random: &mut Random) -> Self::Config {
        let singleton = random.pick(&[Singleton::Zero, Singleton::Raw, Singleton::Raw]);
        ReinforcePlusPlusBaselineConfig { singleton, whiten: whiten_config(random) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let groups = flat.groups();
        let (mut scratch, mut out) = (moments(&groups), unwritten(flat.tokens()));
        reinforce_plus_plus_baseline(&flat.batch(), &groups, &flat.outcomes, &config, &mut scratch, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let (groups, scores) = (&flat.group_ids, &flat.outcomes);
        Outcome::tokens([naive::reinforce_plus_plus_baseline(tokens(flat), groups, scores, &config)])
    }
}

pub(crate) struct Remax;
impl Case for Remax {
    const FORMULA: Formula = Formula::Remax;
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let (mut advantages, mut returns) = (unwritten(flat.tokens()), unwritten(flat.tokens()));
        let input = RemaxInput { rewards: flat.column(Column::Rewards), baselines: &flat.scores };
        remax(&flat.batch(), input, RemaxOutput { advantages: &mut advantages, returns: &mut returns })?;
        Ok(Outcome::tokens([advantages, returns]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        let (advantages, returns) = naive::remax(tokens(flat), flat.column(Column::Rewards), &flat.scores);
        Outcome::tokens([advantages, returns])
    }
}

pub(crate) struct Gdpo;
impl Case for Gdpo {
    const FORMULA: Formula = Formula::Gdpo;
    const SEQUENCES_ALONE: bool = false;
    type Config = (usize, GdpoConfig);
    fn config(random: &mut Random) -> Self::Config {
        let singleton = random.pick(&[Singleton::Zero, Singleton::Raw]);
        let group = GroupConfig { singleton, ..GroupRelative::config(random) };
        (random.below(4), GdpoConfig { group, factors: FactorPrecision::Exact, whiten: whiten_config(random) })
    }
    fn run<R: Number>(flat: &Flat<R>, (count, config): Self::Config) -> Result<Outcome<R>> {
        let groups = flat.groups();
        let (mut moments, mut scores) = (moments(&groups), unwritten(flat.rows.len()));
        let mut out = unwritten(flat.tokens());
        let input = GdpoInput { sources: &sources(flat, count).concat(), weights: &WEIGHTS[..count] };
        let scratch = GdpoScratch { moments: &mut moments, scores: &mut scores };
        gdpo(&flat.batch(), &groups, input, &config, scratch, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, (count, config): Self::Config) -> Outcome<f64> {
        let sources = sources(flat, count);
        Outcome::tokens([naive::gdpo(tokens(flat), &flat.group_ids, &sources, &WEIGHTS[..count], &config)])
    }
}

/// Log-probabilities far below the sums of squares, exact in both types: no score norm is negative.
fn unlikely<R: Number>(flat: &Flat<R>) -> Vec<R> {
    flat.column(Column::Weights).iter().map(|&weight| R::narrow(-16.0) * weight).collect()
}

pub(crate) fn optimal_input<'a, R: Number>(
    flat: &'a Flat<R>,
    old_log_probs: &'a [R],
    weighted: bool,
) -> OptimalBaselineInput<'a, R> {
    OptimalBaselineInput {
        rewards: flat.column(Column::Rewards),
        old_log_probs,
        sum_pi_squared: flat.column(Column::Weights),
        is_weights: weighted.then(|| flat.column(Column::Returns)),
    }
}

macro_rules! optimal_baseline {
    ($case:ident, $function:ident) => {
        pub(crate) struct $case;
        impl Case for $case {
            const FORMULA: Formula = Formula::$case;
            const SEQUENCES_ALONE: bool = true;
            type Config = (bool, OptimalBaselineConfig);
            fn config(random: &mut Random) -> Self::Config {
                let zero_tail = random.pick(&[ZeroTail::NoBaseline, ZeroTail::OwnReturn]);
                (random.below(3) == 0, OptimalBaselineConfig { zero_tail, epsilon: random.pick(&[1e-8, 1e-2]) })
            }
            fn run<R: Number>(flat: &Flat<R>, (weighted, config): Self::Config) -> Result<Outcome<R>> {
                let (batch, groups, old_log_probs) = (flat.batch(), flat.groups(), unlikely(flat));
                let mut columns = vec![WeightedSum::default(); optimal_baseline_columns(&batch, &groups)?];
                let mut lengths = vec![TopTwo::default(); groups.count()];
                let (mut advantages, mut returns) = (unwritten(flat.tokens()), unwritten(flat.tokens()));
                let scratch = OptimalBaselineScratch { columns: &mut columns, lengths: &mut lengths };
                let output = OptimalBaselineOutput { advantages: &mut advantages, returns: &mut returns };
                let input = optimal_input(flat, &old_log_probs, weighted);
                $function(&batch, &groups, input, &config, scratch, output)?;
                Ok(Outcome::tokens([advantages, returns]))
            }
            fn naive(flat: &Flat<f64>, (weighted, config): Self::Config) -> Outcome<f64> {
                let old_log_probs = unlikely(flat);
                let input = optimal_input(flat, &old_log_probs, weighted);
                let (advantages, returns) = naive::$function(tokens(flat), &flat.group_ids, input, &config);
                Outcome::tokens([advantages, returns])
            }
        }
    };
}
optimal_baseline!(OptimalTokenBaseline, optimal_token_baseline);
optimal_baseline!(TirOptimalTokenBaseline, tir_optimal_token_baseline);

pub(crate) struct OpdAdvantage;
impl Case for OpdAdvantage {
    const FORMULA: Formula = Formula::OpdAdvantage;
    const SEQUENCES_ALONE: bool = true;
    type Config = (bool, f64);
    fn config(random: &mut Random) -> Self::Config {
        (random.below(2) == 0, random.pick(&[1.0, 0.25, -2.0]))
    }
    fn run<R: Number>(flat: &Flat<R>, (added, coefficient): Self::Config) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        let input = OpdInput {
            teacher_log_probs: flat.column(Column::RefLogProbs),
            old_log_probs: flat.column(Column::OldLogProbs),
            advantages: added.then(|| flat.column(Column::Advantages)),
        };
        opd_advantage(&flat.batch(), input, &OpdConfig { coefficient }, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, (added, coefficient): Self::Config) -> Outcome<f64> {
        let (teacher, student) = (flat.column(Column::RefLogProbs), flat.column(Column::OldLogProbs));
        let advantages = added.then(|| flat.column(Column::Advantages));
        Outcome::tokens([naive::opd_advantage(tokens(flat), teacher, student, advantages, coefficient)])
    }
}

pub(crate) struct MinillmAdvantage;
impl Case for MinillmAdvantage {
    const FORMULA: Formula = Formula::MinillmAdvantage;
    const SEQUENCES_ALONE: bool = true;
    type Config = MinillmConfig;
    fn config(random: &mut Random) -> Self::Config {
        MinillmConfig {
            gamma: discount(random),
            from: random.pick(&[DiscountFrom::Token, DiscountFrom::Start]),
            // TRL's depends on the padding: tested apart
            length: random.pick(&[LengthNormalization::Off, LengthNormalization::Kept]),
            across: random.pick(&ACROSS),
        }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        let input = MinillmInput {
            teacher_log_probs: flat.column(Column::RefLogProbs),
            old_log_probs: flat.column(Column::OldLogProbs),
        };
        minillm_advantage(&flat.batch(), input, &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let (teacher, student) = (flat.column(Column::RefLogProbs), flat.column(Column::OldLogProbs));
        Outcome::tokens([naive::minillm_advantage(tokens(flat), teacher, student, &config)])
    }
}
