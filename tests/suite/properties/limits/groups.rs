//! Estimators without a critic, and the parts they are made of.

use tokenwise::{advantage::*, Groups, Moments};
use tokenwise_tests::{
    generate::{Column, Flat, World},
    tolerance::{assert_bits, Basis},
};

use super::advantage::{relative, run_returns};
use crate::{
    advantage::{Whiten, ACROSS},
    baselines::{OpdAdvantage, OptimalTokenBaseline, TirOptimalTokenBaseline},
    case::{assert_close, tokens, Case},
    groups::moments,
    naive::baselines as naive,
    properties::{check, skip},
};

const UNIT: GroupConfig = GroupConfig {
    scale: GroupScale::Unit,
    spread: tokenwise::Spread::Sample,
    epsilon: 1e-6,
    singleton: Singleton::Zero,
};

/// The result of a function of groups and scores for a batch.
type Run<C> = fn(&Groups<'_>, &[f64], &C, &mut [Moments], &mut [f64]) -> tokenwise::Result<()>;

fn run<C>(flat: &Flat<f64>, scores: &[f64], function: Run<C>, config: &C) -> Vec<f64> {
    let groups = flat.groups();
    let mut out = vec![f64::NAN; scores.len()];
    function(&groups, scores, config, &mut moments(&groups), &mut out).unwrap();
    out
}

#[test]
fn the_best_takes_its_lead_and_the_others_nothing() {
    check(|spec| {
        let mut flat = World::<f64>::new(spec).packed();
        flat.group_ids.fill(0);
        if flat.rows.len() < 2 {
            return skip();
        }
        let mut sorted = flat.outcomes.clone();
        sorted.sort_by(f64::total_cmp);
        let lead = sorted[sorted.len() - 1] - sorted[sorted.len() - 2];
        let config = BestOfGroupConfig { scale: GroupScale::Unit, ..Default::default() };
        let mut out = vec![f64::NAN; sorted.len()];
        let scratch = BestOfGroupScratch { moments: &mut [Moments::default(); 1], top: &mut [TopTwo::default(); 1] };
        best_of_group(&flat.groups(), &flat.outcomes, &config, scratch, &mut out).unwrap();
        assert_bits("sum", &[out.iter().sum::<f64>()], &[lead]);
        assert!(out.iter().filter(|&&advantage| advantage != 0.0).count() <= 1, "{out:?}");
    });
}

#[test]
fn answers_of_equal_length_weigh_the_same() {
    check(|spec| {
        let mut flat = World::<f64>::new(spec).padded(1, &mut tokenwise_tests::generate::Random::new(1));
        flat.keep.fill(true);
        let (groups, mut out) = (flat.groups(), vec![f64::NAN; flat.rows.len()]);
        let (mut scratch, config) = (vec![WeightedSum::default(); groups.count()], LengthWeightedConfig::default());
        length_weighted_baseline(&flat.batch(), &groups, &flat.outcomes, &config, &mut scratch, &mut out).unwrap();
        assert_close::<crate::advantage::GroupRelative>(Basis::F64, &out, &relative(&groups, &flat.outcomes, &UNIT));
    });
}

#[test]
fn centred_scores_under_other_names() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let scores = &flat.outcomes;
        let centred = relative(&flat.groups(), scores, &UNIT);
        let every_one_scored = run(&flat, scores, gpg_advantage, &GpgConfig::default());
        assert_bits("GPG with α = 1", &every_one_scored, &centred);

        let left_out = run(&flat, scores, leave_one_out, &LeaveOneOutConfig::default());
        let config = NormalizeConfig { own: Own::LeftOut, deviation: Level::Off, ..Default::default() };
        let normalized = run(&flat, scores, normalize_scores, &config);
        let size = |i: usize| flat.group_ids.iter().filter(|&&id| id == flat.group_ids[i]).count();
        let config = LeaveOneOutScaledConfig::default();
        let scaled = run(&flat, scores, leave_one_out_scaled, &config);
        for i in 0..scores.len() {
            // the two treat a lone score differently
            if size(i) > 1 {
                assert_bits("normalized", &[normalized[i]], &[left_out[i]]);
            }
            if size(i) <= 2 {
                assert_bits("of two", &[scaled[i]], &[left_out[i]]);
            }
        }
        let config = NormalizeConfig { epsilon: 1e-2, ..Default::default() };
        let group = GroupConfig { epsilon: 1e-2, scale: GroupScale::StandardDeviation, ..UNIT };
        let normalized = run(&flat, scores, normalize_scores, &config);
        assert_close::<crate::advantage::GroupRelative>(
            Basis::F64,
            &normalized,
            &relative(&flat.groups(), scores, &group),
        );
        // the batch is the only group
        let one = Groups::contiguous(std::slice::from_ref(&(scores.len() as u32))).map(|groups| {
            let batch = GroupConfig { scale: GroupScale::BatchDeviation, ..group };
            (relative(&groups, scores, &batch), relative(&groups, scores, &group))
        });
        if let Ok((batch, group)) = one {
            assert_close::<crate::advantage::GroupRelative>(Basis::F64, &batch, &group);
        }
    });
}

#[test]
fn rare_successes_count_most() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let scores: Vec<f64> = flat.outcomes.iter().map(|&score| f64::from(u8::from(score > 0.0))).collect();
        let config = MaxRlConfig { divisor: MeanDivisor::IfPositive, ..Default::default() };
        let out = run(&flat, &scores, max_rl, &config);
        for i in 0..scores.len() {
            let group: Vec<f64> =
                (0..scores.len()).filter(|&j| flat.group_ids[j] == flat.group_ids[i]).map(|j| scores[j]).collect();
            let share = group.iter().sum::<f64>() / group.len() as f64;
            let want = match (group.len(), share > 0.0, scores[i] > 0.0) {
                (1, ..) | (_, false, _) => 0.0,
                (_, _, true) => (1.0 - share) / share,
                (_, _, false) => -1.0,
            };
            assert_close::<crate::groups::MaxRl>(Basis::F64, &[out[i]], &[want]);
        }
    });
}

/// Broadcast to the tokens and whitened; `None` with too few tokens.
fn whitened(flat: &Flat<f64>, scores: &[f64], config: &WhitenConfig) -> Option<Vec<f64>> {
    let (mut laid, mut out) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
    broadcast(&flat.batch(), scores, &mut laid).unwrap();
    whiten(&flat.batch(), &laid, config, &mut out).ok().map(|()| out)
}

#[test]
fn estimators_are_made_of_their_parts_to_the_bit() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let (batch, groups) = (flat.batch(), flat.groups());
        let config = Whiten::config(&mut tokenwise_tests::generate::Random::new(spec.seed));
        let mut out = vec![f64::NAN; flat.tokens()];

        let centred = relative(&groups, &flat.outcomes, &UNIT);
        let baseline = ReinforcePlusPlusBaselineConfig { whiten: config, ..Default::default() };
        let result =
            reinforce_plus_plus_baseline(&batch, &groups, &flat.outcomes, &baseline, &mut moments(&groups), &mut out);
        let parts = whitened(&flat, &centred, &config);
        assert_eq!(result.is_ok(), parts.is_some());
        let Some(parts) = parts else { return skip() };
        assert_bits("REINFORCE++-baseline", &out, &parts);

        let group = GroupConfig { scale: GroupScale::StandardDeviation, ..UNIT };
        let input = GdpoInput { sources: &flat.outcomes, weights: &[1.0] };
        let scratch = GdpoScratch { moments: &mut moments(&groups), scores: &mut vec![f64::NAN; flat.rows.len()] };
        let one_source = GdpoConfig { group, whiten: config, ..Default::default() };
        gdpo(&batch, &groups, input, &one_source, scratch, &mut out).unwrap();
        let parts = whitened(&flat, &relative(&groups, &flat.outcomes, &group), &config);
        assert_bits("GDPO of one source", &out, &parts.unwrap());

        for across in ACROSS {
            let input = ReturnsInput { rewards: flat.column(Column::Rewards), bootstrap: &flat.bootstrap };
            let mut returns = vec![f64::NAN; flat.tokens()];
            let output = ReinforcePlusPlusOutput { advantages: &mut out, returns: &mut returns };
            let plus = ReinforcePlusPlusConfig { gamma: 0.9, across, whiten: config };
            reinforce_plus_plus(&batch, input, &plus, output).unwrap();
            let plain = run_returns(&flat, 0.9, across);
            let mut parts = vec![f64::NAN; flat.tokens()];
            whiten(&batch, &plain, &config, &mut parts).unwrap();
            assert_bits("its returns", &returns, &plain);
            assert_bits("REINFORCE++", &out, &parts);
        }
    });
}

#[test]
fn without_a_baseline_there_is_the_return() {
    check(|spec| {
        let mut flat = World::<f32>::new(spec).packed();
        flat.bootstrap.fill(0.0);
        let returns = run_returns(&flat, 1.0, Across::StepOver);
        let (mut advantages, mut same) = (vec![f32::NAN; flat.tokens()], vec![f32::NAN; flat.tokens()]);
        let input = RemaxInput { rewards: flat.column(Column::Rewards), baselines: &flat.bootstrap };
        remax(&flat.batch(), input, RemaxOutput { advantages: &mut advantages, returns: &mut same }).unwrap();
        assert_bits("ReMax, b = 0", &advantages, &returns);
        assert_bits("its returns", &same, &returns);

        let config = (spec.seed % 2 == 0, OptimalBaselineConfig::default());
        // nothing dropped, no sequence without tokens: slots are kept tokens
        let mut full = World::<f32>::new(spec).padded(1, &mut tokenwise_tests::generate::Random::new(2));
        full.keep.fill(true);
        for column in &mut full.columns {
            column.fill(0.5);
        }
        let slots = OptimalTokenBaseline::run(&full, config).unwrap();
        let kept = TirOptimalTokenBaseline::run(&full, config).unwrap();
        assert_bits("slots and kept tokens", &slots.tokens.concat(), &kept.tokens.concat());
        // every sequence the only one of its prompt
        flat.group_ids = (0..flat.rows.len() as u32).collect();
        for alone in [OptimalTokenBaseline::run(&flat, config), TirOptimalTokenBaseline::run(&flat, config)] {
            assert_bits("alone", &alone.unwrap().tokens[0], &returns);
        }
    });
}

#[test]
fn a_role_that_never_learns_compares_with_nothing() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let mut baselines = vec![RoleBaseline::new(1.0).unwrap(); flat.groups().count()];
        let mut out = vec![f32::NAN; flat.rows.len()];
        role_baseline(RoleInput { roles: &flat.group_ids, scores: &flat.outcomes }, &mut baselines, &mut out).unwrap();
        assert_bits("d = 1", &out, &flat.outcomes);
    });
}

#[test]
fn what_the_teacher_says_of_a_token_and_of_what_follows() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let (teacher_log_probs, old_log_probs) = (flat.column(Column::RefLogProbs), flat.column(Column::OldLogProbs));
        let input = MinillmInput { teacher_log_probs, old_log_probs };
        let run = |config: MinillmConfig| {
            let mut out = vec![f64::NAN; flat.tokens()];
            minillm_advantage(&flat.batch(), input, &config, &mut out).unwrap();
            out
        };
        let token = OpdAdvantage::run(&flat, (false, 1.0)).unwrap().tokens.concat();
        assert_bits("γ = 0", &run(MinillmConfig { gamma: 0.0, ..Default::default() }), &token);
        // TRL's, where dropped slots count a little
        for across in ACROSS {
            let (from, length) = (DiscountFrom::Start, LengthNormalization::KeptAndPadding);
            let config = MinillmConfig { gamma: 0.9375, from, length, across };
            let want = naive::minillm_advantage(tokens(&flat), teacher_log_probs, old_log_probs, &config);
            assert_close::<crate::baselines::MinillmAdvantage>(Basis::F64, &run(config), &want);
        }
    });
}
