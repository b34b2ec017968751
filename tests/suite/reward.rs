//! Stage 3: token rewards.

use tokenwise::{reward::*, Divisor};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    case::{by_name, tokens, Case, Outcome},
    divergence::kl_config,
    errors::domains::*,
    naive::reward as naive,
};

pub(crate) const DIVISORS: [Divisor; 2] = [Divisor::Count, Divisor::CountPlusEpsilon];

fn token_scores<R: Number>(flat: &Flat<R>) -> Array<R> {
    Array::Real(flat.column(Column::Rewards).to_vec())
}

fn lengths<R: Number>(flat: &Flat<R>) -> Vec<u32> {
    flat.lengths.clone()
}

pub(crate) struct PlaceScores;
impl Case for PlaceScores {
    const NAME: &'static str = "place_scores";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::place_scores(tokens(flat), &flat.scores)])
    }
}

pub(crate) struct ShapeRewards;
impl Case for ShapeRewards {
    const NAME: &'static str = "shape_rewards";
    const UNITS: [f64; 2] = [0.0, 0.8];
    const DOMAINS: &'static [Row] = &[any().numbers(BETA)];
    const SEQUENCES_ALONE: bool = true;
    type Config = ShapeConfig;
    fn config(random: &mut Random) -> ShapeConfig {
        ShapeConfig { beta: random.pick(&[0.0, 0.125, -0.5, 1e-3]) }
    }
    by_name!("scores": token_scores);
    fn naive(flat: &Flat<f64>, ShapeConfig { beta }: ShapeConfig) -> Outcome<f64> {
        let (scores, kl) = (flat.column(Column::Rewards), flat.column(Column::Kl));
        Outcome::tokens([naive::shape_rewards(tokens(flat), scores, kl, beta)])
    }
}

pub(crate) struct KlInReward;
impl Case for KlInReward {
    const NAME: &'static str = "kl_in_reward";
    const UNITS: [f64; 2] = [0.8, 0.8];
    const DOMAINS: &'static [Row] = &[any().numbers(BETA)];
    const SEQUENCES_ALONE: bool = true;
    type Config = KlRewardConfig;
    fn config(random: &mut Random) -> KlRewardConfig {
        let beta = random.pick(&[0.0, 0.125, 1e-3]);
        KlRewardConfig { beta, kl: kl_config(random), divisor: random.pick(&DIVISORS) }
    }
    by_name!("scores": token_scores);
    fn naive(flat: &Flat<f64>, config: KlRewardConfig) -> Outcome<f64> {
        let (old, reference) = (flat.column(Column::OldLogProbs), flat.column(Column::RefLogProbs));
        let (rewards, mean_kl) =
            naive::kl_in_reward(tokens(flat), flat.column(Column::Rewards), old, reference, &config);
        Outcome::tokens([rewards]).and([mean_kl])
    }
}

pub(crate) struct OverlongPenalty;
impl Case for OverlongPenalty {
    const NAME: &'static str = "overlong_penalty";
    const UNITS: [f64; 2] = [0.0, 0.8];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("factor", NOT_NEGATIVE)])];
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
    by_name!("lengths": lengths);
    fn naive(flat: &Flat<f64>, config: OverlongConfig) -> Outcome<f64> {
        Outcome::sequences([naive::overlong_penalty(&flat.outcomes, &flat.lengths, &config)])
    }
}

crate::case::tests! {
    place_scores: PlaceScores,
    shape_rewards: ShapeRewards {
        nan_stays_in_its_token(&[Column::Rewards, Column::Kl]);
    },
    kl_in_reward: KlInReward {
        nan_stays_in_its_token(&[Column::Rewards, Column::OldLogProbs, Column::RefLogProbs]);
        nan_stays_in_sums(&[(Column::OldLogProbs, &[0])]);
    },
    overlong_penalty: OverlongPenalty,
}
