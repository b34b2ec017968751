//! Stage 3: token rewards.

use tokenwise::{reward::*, Divisor, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::reward as naive,
};

use crate::{
    case::{tokens, unwritten, Case, Outcome},
    divergence::kl_config,
};

pub(crate) const DIVISORS: [Divisor; 2] = [Divisor::Count, Divisor::CountPlusEpsilon];

pub(crate) struct PlaceScores;
impl Case for PlaceScores {
    const FORMULA: Formula = Formula::PlaceScores;
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        place_scores(&flat.batch(), &flat.scores, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::place_scores(tokens(flat), &flat.scores)])
    }
}

pub(crate) struct ShapeRewards;
impl Case for ShapeRewards {
    const FORMULA: Formula = Formula::ShapeRewards;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[0.0, 0.125, -0.5, 1e-3])
    }
    fn run<R: Number>(flat: &Flat<R>, beta: f64) -> Result<Outcome<R>> {
        let mut rewards = unwritten(flat.tokens());
        let input = ShapeInput { scores: flat.column(Column::Rewards), kl: flat.column(Column::Kl) };
        shape_rewards(&flat.batch(), input, beta, &mut rewards)?;
        Ok(Outcome::tokens([rewards]))
    }
    fn naive(flat: &Flat<f64>, beta: f64) -> Outcome<f64> {
        let (scores, kl) = (flat.column(Column::Rewards), flat.column(Column::Kl));
        Outcome::tokens([naive::shape_rewards(tokens(flat), scores, kl, beta)])
    }
}

pub(crate) struct KlInReward;
impl Case for KlInReward {
    const FORMULA: Formula = Formula::KlInReward;
    const SEQUENCES_ALONE: bool = true;
    type Config = KlRewardConfig;
    fn config(random: &mut Random) -> KlRewardConfig {
        let beta = random.pick(&[0.0, 0.125, 1e-3]);
        KlRewardConfig { beta, kl: kl_config(random), divisor: random.pick(&DIVISORS) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: KlRewardConfig) -> Result<Outcome<R>> {
        let mut rewards = unwritten(flat.tokens());
        let input = KlInRewardInput {
            scores: flat.column(Column::Rewards),
            old_log_probs: flat.column(Column::OldLogProbs),
            ref_log_probs: flat.column(Column::RefLogProbs),
        };
        let mean_kl = kl_in_reward(&flat.batch(), input, &config, &mut rewards)?;
        Ok(Outcome::tokens([rewards]).and([mean_kl]))
    }
    fn naive(flat: &Flat<f64>, config: KlRewardConfig) -> Outcome<f64> {
        let (old, reference) = (flat.column(Column::OldLogProbs), flat.column(Column::RefLogProbs));
        let (rewards, mean_kl) =
            naive::kl_in_reward(tokens(flat), flat.column(Column::Rewards), old, reference, &config);
        Outcome::tokens([rewards]).and([mean_kl])
    }
}

pub(crate) struct OverlongPenalty;
impl Case for OverlongPenalty {
    const FORMULA: Formula = Formula::OverlongPenalty;
    const SEQUENCES_ALONE: bool = true;
    type Config = OverlongConfig;
    fn config(random: &mut Random) -> OverlongConfig {
        OverlongConfig {
            max_len: random.pick(&[7, 16, 30]),
            buffer: random.pick(&[1, 3, 7]),
            factor: random.pick(&[0.0, 1.0, 0.3]),
            floor: random.pick(&[OverlongFloor::Unlimited, OverlongFloor::Factor]),
        }
    }
    fn run<R: Number>(flat: &Flat<R>, config: OverlongConfig) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        overlong_penalty(OverlongInput { scores: &flat.outcomes, lengths: &flat.lengths }, &config, &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, config: OverlongConfig) -> Outcome<f64> {
        Outcome::sequences([naive::overlong_penalty(&flat.outcomes, &flat.lengths, &config)])
    }
}
