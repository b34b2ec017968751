use tokenwise::{advantage::*, divergence::KlConfig, reward::*, Groups, Moments, Spread};
use tokenwise_tests::{
    generate::{Column, Flat, Number, Random, World},
    tolerance::{assert_bits, Basis},
};

use crate::case::assert_close;
use crate::properties::{check, skip};

pub(super) fn run_gae<R: Number>(flat: &Flat<R>, gamma: f64, lambda: f64, across: Across) -> (Vec<R>, Vec<R>) {
    let (mut advantages, mut returns) = (vec![R::nan(); flat.tokens()], vec![R::nan(); flat.tokens()]);
    let (rewards, values) = (flat.column(Column::Rewards), flat.column(Column::Values));
    let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
    let config = GaeConfig { gamma, lambda, across };
    gae(&flat.batch(), GaeInput { rewards, values, bootstrap: &flat.bootstrap }, &config, output).unwrap();
    (advantages, returns)
}

pub(super) fn run_returns<R: Number>(flat: &Flat<R>, gamma: f64, across: Across) -> Vec<R> {
    let mut out = vec![R::nan(); flat.tokens()];
    let input = ReturnsInput { rewards: flat.column(Column::Rewards), bootstrap: &flat.bootstrap };
    discounted_returns(&flat.batch(), input, &ReturnsConfig { gamma, across }, &mut out).unwrap();
    out
}

/// A number for each kept token, 0 for the others.
pub(super) fn of_kept<R: Number>(flat: &Flat<R>, token: impl Fn(usize) -> R) -> Vec<R> {
    (0..flat.tokens()).map(|slot| if flat.keep[slot] { token(slot) } else { R::zero() }).collect()
}

#[test]
fn gae_at_lambda_one_is_the_return_less_the_value() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let gamma = Random::new(spec.seed).pick(&[0.5, 0.9, 1.0]);
        // a dropped step of value 0 enters both as nothing
        for across in [Across::StepOver, Across::ZeroStep] {
            let (advantages, returns) = run_gae(&flat, gamma, 1.0, across);
            let (mut plain, mut ahead) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
            let (rewards, values) = (flat.column(Column::Rewards), flat.column(Column::Values));
            let input = GaeInput { rewards, values, bootstrap: &flat.bootstrap };
            let output = GaeOutput { advantages: &mut plain, returns: &mut ahead };
            monte_carlo_advantage(&flat.batch(), input, &ReturnsConfig { gamma, across }, output).unwrap();
            assert_close::<crate::advantage::Gae>(Basis::F64, &advantages, &plain);
            assert_close::<crate::advantage::Gae>(Basis::F64, &returns, &ahead);
            assert_bits("its returns", &ahead, &run_returns(&flat, gamma, across));
        }
    });
}

#[test]
fn gae_at_lambda_zero_is_the_td_error() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let (advantages, _) = run_gae(&flat, 0.75, 0.0, Across::StepOver);
        let mut errors = vec![0.0; flat.tokens()];
        for (row, &bootstrap) in flat.rows.iter().zip(&flat.bootstrap) {
            let mut next = bootstrap;
            for slot in row.clone().rev().filter(|&slot| flat.keep[slot]) {
                let value = flat.column(Column::Values)[slot];
                errors[slot] = flat.column(Column::Rewards)[slot] + 0.75 * next - value;
                next = value;
            }
        }
        assert_bits("TD error", &advantages, &errors);
    });
}

#[test]
fn without_discount_only_the_token_itself_counts() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let (rewards, values) = (flat.column(Column::Rewards), flat.column(Column::Values));
        let (advantages, _) = run_gae(&flat, 0.0, 0.0, Across::StepOver);
        assert_bits("r − V", &advantages, &of_kept(&flat, |slot| rewards[slot] - values[slot]));
        assert_bits("r", &run_returns(&flat, 0.0, Across::ZeroStep), &of_kept(&flat, |slot| rewards[slot]));
    });
}

#[test]
fn undiscounted_returns_begin_with_the_sum() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let returns = run_returns(&flat, 1.0, Across::StepOver);
        assert_bits("dropped steps cost nothing", &run_returns(&flat, 1.0, Across::ZeroStep), &returns);
        let mut sums = vec![f64::NAN; flat.rows.len()];
        sequence_sums(&flat.batch(), flat.column(Column::Rewards), &mut sums).unwrap();
        for (i, row) in flat.rows.iter().enumerate() {
            if let Some(first) = row.clone().find(|&slot| flat.keep[slot]) {
                let want = sums[i] + flat.bootstrap[i];
                assert_close::<crate::advantage::SequenceSums>(Basis::F64, &[returns[first]], &[want]);
            }
        }
    });
}

#[test]
fn credit_on_the_last_token_is_its_score() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let batch = flat.batch();
        let (mut placed, mut last, mut all) =
            (vec![f32::NAN; flat.tokens()], vec![f32::NAN; flat.tokens()], vec![f32::NAN; flat.tokens()]);
        place_scores(&batch, &flat.scores, &mut placed).unwrap();
        last_k_credit(&batch, &flat.scores, &LastKConfig { k: 1 }, &mut last).unwrap();
        assert_bits("k = 1", &last, &placed);
        last_k_credit(&batch, &flat.scores, &LastKConfig { k: flat.tokens().max(1) }, &mut last).unwrap();
        uniform_credit(&batch, &flat.scores, &mut all).unwrap();
        assert_bits("k = n", &last, &all);
        // placing and summing are inverse
        let mut scores = vec![f32::NAN; flat.rows.len()];
        sequence_sums(&batch, &placed, &mut scores).unwrap();
        let kept = |i: usize| flat.keep[flat.rows[i].clone()].contains(&true);
        let want: Vec<f32> = (0..scores.len()).map(|i| if kept(i) { flat.scores[i] } else { 0.0 }).collect();
        assert_bits("sum of the placed", &scores, &want);
        // so are broadcasting and summing
        broadcast(&batch, &flat.scores, &mut all).unwrap();
        assert_bits("broadcast", &last_of_each(&flat, &all), &last_of_each(&flat, &placed));
    });
}

fn last_of_each(flat: &Flat<f32>, values: &[f32]) -> Vec<f32> {
    let last = flat.rows.iter().filter_map(|row| row.clone().rev().find(|&slot| flat.keep[slot]));
    last.map(|slot| values[slot]).collect()
}

#[test]
fn equal_weights_share_equally() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let weights = vec![Random::new(spec.seed).between(0.1, 5.0); flat.tokens()];
        let (mut by_weight, mut equal) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
        attention_credit(&flat.batch(), AttentionInput { scores: &flat.scores, weights: &weights }, &mut by_weight)
            .unwrap();
        uniform_credit(&flat.batch(), &flat.scores, &mut equal).unwrap();
        assert_close::<crate::advantage::AttentionCredit>(Basis::F64, &by_weight, &equal);
    });
}

#[test]
fn without_a_price_rewards_are_scores() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let (scores, kl) = (flat.column(Column::Rewards), flat.column(Column::Kl));
        let mut rewards = vec![f32::NAN; flat.tokens()];
        shape_rewards(&flat.batch(), ShapeInput { scores, kl }, &ShapeConfig { beta: 0.0 }, &mut rewards).unwrap();
        assert_bits("β = 0", &rewards, &of_kept(&flat, |slot| scores[slot]));
        let input = KlInRewardInput {
            scores,
            old_log_probs: flat.column(Column::OldLogProbs),
            ref_log_probs: flat.column(Column::RefLogProbs),
        };
        let config = KlRewardConfig { beta: 0.0, kl: KlConfig::default(), ..Default::default() };
        if kl_in_reward(&flat.batch(), input, &config, &mut rewards).is_ok() {
            assert_bits("β = 0", &rewards, &of_kept(&flat, |slot| scores[slot]));
        }
    });
}

pub(super) fn relative(groups: &Groups<'_>, scores: &[f64], config: &GroupConfig) -> Vec<f64> {
    let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![f64::NAN; scores.len()]);
    group_relative(groups, scores, config, &mut scratch, &mut out).unwrap();
    out
}

#[test]
fn groups_compare_their_members() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let (groups, scores) = (flat.groups(), &flat.outcomes);
        let size = |i: usize| flat.group_ids.iter().filter(|&&id| id == flat.group_ids[i]).count() as f64;
        let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![f64::NAN; scores.len()]);
        leave_one_out(&groups, scores, &LeaveOneOutConfig::default(), &mut scratch, &mut out).unwrap();
        for group in 0..groups.count() {
            let members: Vec<f64> = groups.ids().zip(&out).filter(|(id, _)| *id == group).map(|(_, &a)| a).collect();
            let mean = members.iter().sum::<f64>() / members.len().max(1) as f64;
            assert_close::<crate::advantage::LeaveOneOut>(Basis::F64, &[mean], &[0.0]);
        }
        // not divided by the spread (Dr. GRPO), both differ by K / (K − 1) only
        let unit = relative(&groups, scores, &GroupConfig { scale: GroupScale::Unit, ..Default::default() });
        let scaled: Vec<f64> = (0..unit.len()).map(|i| unit[i] * size(i) / (size(i) - 1.0).max(1.0)).collect();
        assert_close::<crate::advantage::LeaveOneOut>(Basis::F64, &out, &scaled);
        // a shift of all scores changes nothing
        let shifted: Vec<f64> = scores.iter().map(|score| score + 2.0).collect();
        let config = GroupConfig { epsilon: 1e-2, ..Default::default() };
        let (plain, moved) = (relative(&groups, scores, &config), relative(&groups, &shifted, &config));
        for (plain, moved) in plain.iter().zip(&moved) {
            // the shift itself rounds by 2⁻⁵², and the division may enlarge that a hundredfold
            approx::assert_abs_diff_eq!(plain, moved, epsilon = 400.0 * f64::EPSILON);
        }
    });
}

#[test]
fn sizes_and_ids_name_the_same_groups() {
    let scores = [1.0, -0.5, 0.25, 4.0, 3.5, -2.0];
    let by_size = relative(&Groups::contiguous(&[3, 1, 2]).unwrap(), &scores, &GroupConfig::default());
    let by_id = relative(&Groups::from_ids(&[2, 2, 2, 0, 1, 1]).unwrap(), &scores, &GroupConfig::default());
    assert_bits("sizes and ids", &by_size, &by_id);
}

#[test]
fn whitened_values_have_mean_0_and_variance_1() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        if flat.batch().kept() < 2 {
            return skip();
        }
        for spread in [Spread::Population, Spread::Sample] {
            let mut out = vec![f64::NAN; flat.tokens()];
            let config = WhitenConfig { spread, epsilon: 0.0, ..Default::default() };
            whiten(&flat.batch(), flat.column(Column::Advantages), &config, &mut out).unwrap();
            let moments = Moments::of(&flat.batch(), &out).unwrap();
            let variance = moments.variance(spread, Default::default()).unwrap();
            // close values are divided by a small deviation, which enlarges their rounding errors
            let before = Moments::of(&flat.batch(), flat.column(Column::Advantages)).unwrap();
            let shrink = before.variance(spread, Default::default()).unwrap().sqrt().min(1.0);
            let errors = [moments.mean * shrink, (variance - 1.0) * shrink];
            assert_close::<crate::advantage::Whiten>(Basis::F64, &errors, &[0.0, 0.0]);
            // with the mean kept, the spread alone changes
            let config = WhitenConfig { center: Center::KeepMean, ..config };
            whiten(&flat.batch(), flat.column(Column::Advantages), &config, &mut out).unwrap();
            let after = Moments::of(&flat.batch(), &out).unwrap().mean;
            assert_close::<crate::advantage::Whiten>(Basis::F64, &[after * shrink], &[before.mean * shrink]);
        }
    });
}

#[test]
fn short_responses_are_not_penalised() {
    let mut out = [f32::NAN; 3];
    let config = OverlongConfig { max_len: 10, buffer: 4, factor: 2.0, floor: OverlongFloor::Unlimited };
    let scores = [0.1, -0.3, 0.7];
    overlong_penalty(OverlongInput { scores: &scores, lengths: &[0, 5, 6] }, &config, &mut out).unwrap();
    assert_bits("short", &out, &scores);
}
