//! Traps between score and advantage.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use tokenwise::{
    advantage::{
        broadcast, discounted_returns, gae, group_relative, leave_one_out, leave_one_out_scaled, remax, sequence_sums,
        whiten, Across, GaeConfig, GaeInput, GaeOutput, GroupConfig, LeaveOneOutConfig, LeaveOneOutScaledConfig,
        OptimalBaselineConfig, RemaxInput, RemaxOutput, ReturnsConfig, ReturnsInput, Singleton, WhitenConfig, ZeroTail,
    },
    divergence::{kl_estimate, kl_gradient, KlConfig, KlEstimator, KlGradient, KlInput},
    policy::{entropy, LogitsInput, PolicyConfig},
    Error, Groups, Moments, Profile,
};

use super::{all_near, batch, near};

const KEEP: [bool; 5] = [true, true, false, true, true];
const REWARDS: [f64; 5] = [0.0, 0.5, 0.0, 0.0, 0.25];
const VALUES: [f64; 5] = [0.5, 0.4, 0.9, 0.3, 0.2];

/// 1. A dropped token is stepped over by verl and breaks the bootstrap elsewhere; its own advantage is 0 here, also
///    after whitening.
#[test]
fn gae_across_a_tool_call() {
    let batch = batch(1, &KEEP);
    let run = |across| {
        let (mut advantages, mut returns) = ([9.0; 5], [9.0; 5]);
        let input = GaeInput { rewards: &REWARDS, values: &VALUES, bootstrap: &[0.0] };
        let config = GaeConfig { gamma: 0.9, lambda: 0.8, across };
        gae(&batch, input, &config, GaeOutput { advantages: &mut advantages, returns: &mut returns }).unwrap();
        let mut whitened = [9.0; 5];
        whiten(&batch, &advantages, &WhitenConfig::default(), &mut whitened).unwrap();
        assert_eq!((advantages[2], whitened[2]), (0.0, 0.0));
        returns
    };
    all_near(&run(Across::StepOver), &[0.582854, 0.70952, 0.0, 0.216, 0.25]);
    all_near(&run(Across::ZeroStep), &[0.540615, 0.650854, 0.0, 0.216, 0.25]);
}

/// 2. ddof and the place of ε: two rules, and one of them cannot whiten a single token.
#[test]
fn whitening_rules() {
    let run = |values: &[f64], profile: Profile| {
        let keep = vec![true; values.len()];
        let mut out = vec![9.0; values.len()];
        whiten(&batch(1, &keep), values, &profile.whiten(), &mut out).map(|()| out)
    };
    all_near(&run(&[0.0, 2.0], Profile::Verl0_9_1).unwrap(), &[-FRAC_1_SQRT_2, FRAC_1_SQRT_2]);
    all_near(&run(&[0.0, 2.0], Profile::OpenRlhf0_11).unwrap(), &[-1.0, 1.0]);
    assert!(matches!(run(&[3.0], Profile::Verl0_9_1), Err(Error::TooFew { .. })));
    assert_eq!(run(&[3.0], Profile::OpenRlhf0_11).unwrap(), [0.0]);
}

fn grpo(scores: &[f64], ids: &[u32], config: &GroupConfig) -> Vec<f64> {
    let groups = Groups::from_ids(ids).unwrap();
    let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![9.0; scores.len()]);
    group_relative(&groups, scores, config, &mut scratch, &mut out).unwrap();
    out
}

/// 3. The ε of GRPO is another one in each framework, and NeMo's deviation leaves the sample out.
#[test]
fn grpo_epsilons() {
    let scores = [0.0, 1e-5];
    let spread = 1e-5 / SQRT_2;
    for (profile, epsilon) in [(Profile::Verl0_9_1, 1e-6), (Profile::Trl1_16, 1e-4), (Profile::OpenRlhf0_11, 1e-9)] {
        near(grpo(&scores, &[0, 0], &profile.group())[1], 5e-6 / (spread + epsilon));
    }
    let groups = Groups::contiguous(&[3]).unwrap();
    let (mut scratch, mut out) = ([Moments::default(); 1], [9.0; 3]);
    leave_one_out_scaled(&groups, &[0.0, 1.0, 5.0], &LeaveOneOutScaledConfig::default(), &mut scratch, &mut out)
        .unwrap();
    near(out[0], -3.0 / (8.0_f64.sqrt() + 1e-6));
}

/// 4. A group of one: the score, 0 or NaN.
#[test]
fn a_group_of_one() {
    let loo = |singleton| {
        let groups = Groups::contiguous(&[1]).unwrap();
        let (mut scratch, mut out) = ([Moments::default(); 1], [9.0_f64]);
        leave_one_out(&groups, &[2.0], &LeaveOneOutConfig { singleton }, &mut scratch, &mut out).unwrap();
        out[0]
    };
    near(grpo(&[2.0], &[0], &Profile::Verl0_9_1.group())[0], 1.999998);
    assert_eq!(grpo(&[2.0], &[0], &Profile::Trl1_16.group()), [0.0]);
    assert!(grpo(&[2.0], &[0], &Profile::OpenRlhf0_11.group())[0].is_nan());
    assert_eq!((loo(Singleton::Raw), loo(Singleton::Zero)), (2.0, 0.0));
    assert!(loo(Singleton::Undefined).is_nan());
}

/// 10. Who bounds k3, and that the bound takes the gradient with it. 11. A `+` changes the gradient only.
#[test]
fn bounds_and_straight_through_of_kl() {
    let one = |u: f64, config: KlConfig| {
        let batch = batch(1, &[true]);
        let input = KlInput { log_probs: &[0.0], ref_log_probs: &[u] };
        let (mut kl, mut grad) = ([9.0], [9.0]);
        kl_estimate(&batch, input, &config, &mut kl).unwrap();
        kl_gradient(&batch, input, &config, &mut grad).unwrap();
        (kl[0], grad[0])
    };
    let k3 = |profile: Profile| KlConfig { estimator: KlEstimator::K3, ..profile.kl() };
    let (value, slope) = one(2.5, k3(Profile::Verl0_9_1));
    near(value, 8.682494);
    near(slope, -11.182494);
    assert_eq!(one(2.7, k3(Profile::Verl0_9_1)), (10.0, 0.0));
    near(one(2.7, k3(Profile::Trl1_16)).0, 11.179732);
    assert_eq!(one(-20.0, Profile::OpenRlhf0_11.kl()), (10.0, 0.0));
    assert_eq!(one(-20.0, Profile::Verl0_9_1.kl()), (20.0, 1.0));
    let straight = KlConfig { gradient: KlGradient::StraightThrough, ..k3(Profile::Verl0_9_1) };
    assert_eq!(one(2.7, straight), (10.0, -2.7));
}

/// 18. Returns: credit is carried across a dropped token without decay, or with it; a reward on it never counts.
#[test]
fn returns_across_a_tool_call() {
    let run = |across| {
        let mut out = [9.0; 3];
        let input = ReturnsInput { rewards: &[0.0, 7.0, 1.0], bootstrap: &[0.0] };
        let config = ReturnsConfig { gamma: 0.5, across };
        discounted_returns(&batch(1, &[true, false, true]), input, &config, &mut out).unwrap();
        out
    };
    assert_eq!(run(Across::StepOver), [0.5, 0.0, 1.0]);
    assert_eq!(run(Across::ZeroStep), [0.25, 0.0, 1.0]);
}

/// 19. verl's group estimators count a reward on a dropped slot, its recursions do not: here the caller says which
///     batch sums.
#[test]
fn a_reward_on_a_dropped_slot() {
    let rewards = [0.0, 1.0, 0.0, 0.0];
    let sums = |keep: &[bool; 4]| {
        let mut sums = [9.0; 2];
        sequence_sums(&batch(2, keep), &rewards, &mut sums).unwrap();
        sums
    };
    let keep = [true, false, true, true];
    assert_eq!(sums(&keep), [0.0, 0.0]);
    assert_eq!(sums(&[true; 4]), [1.0, 0.0]);
    let scores = grpo(&sums(&[true; 4]), &[0, 0], &Profile::Verl0_9_1.group());
    let mut advantages = [9.0; 4];
    broadcast(&batch(2, &keep), &scores, &mut advantages).unwrap();
    all_near(&advantages, &[FRAC_1_SQRT_2, 0.0, -FRAC_1_SQRT_2, -FRAC_1_SQRT_2]);
}

/// 20. Entropy is that of the scaled logits unless asked otherwise, and a logit of −inf is not NaN.
#[test]
fn entropy_of_scaled_logits() {
    let of = |logits: &[f64; 2], temperature| {
        let mut out = [9.0];
        entropy(&batch(1, &[true]), LogitsInput { logits, vocab: 2 }, &PolicyConfig { temperature }, &mut out).unwrap();
        out[0]
    };
    assert!(of(&[0.0, 3.0], 2.0) > of(&[0.0, 3.0], 1.0));
    assert_eq!(of(&[0.0, f64::NEG_INFINITY], 1.0), 0.0);
}

/// ReMax leaves nothing on dropped slots, and the tail of the longest answer has no baseline by default.
#[test]
fn remax_and_zero_tail() {
    let (mut advantages, mut returns) = ([9.0; 3], [9.0; 3]);
    let input = RemaxInput { rewards: &[0.5, 0.0, 0.25], baselines: &[0.5] };
    let output = RemaxOutput { advantages: &mut advantages, returns: &mut returns };
    remax(&batch(1, &[true, false, true]), input, output).unwrap();
    assert_eq!(advantages, [0.25, 0.0, -0.25]);
    assert_eq!(OptimalBaselineConfig::default().zero_tail, ZeroTail::NoBaseline);
}
