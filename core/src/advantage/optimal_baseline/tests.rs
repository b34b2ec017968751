use super::{super::fixture::*, *};
use crate::{Groups, Layout, Mask};

#[rustfmt::skip]
const IS_WEIGHTS: [f64; 20] = [
    1.0, 0.9, 1.1, 0.8, f64::NAN,
    1.2, 1.0, f64::NAN, 0.5, 1.0,
    1.0, 1.0, f64::NAN, f64::NAN, f64::NAN,
    0.6, 1.3, 1.0, 0.9, 1.1,
];

fn run(ids: &[u32], tir: bool, is_weights: Option<&[f64]>, zero_tail: ZeroTail) -> [f64; 20] {
    let groups = Groups::from_ids(ids).unwrap();
    let (mut columns, mut lengths) = ([WeightedSum::default(); 20], [TopTwo::default(); 4]);
    let (mut advantages, mut returns) = ([9.0; 20], [9.0; 20]);
    let input = OptimalBaselineInput {
        rewards: &REWARDS,
        old_log_probs: &OLD_LOG_PROBS,
        sum_pi_squared: &SUM_PI_SQUARED,
        is_weights,
    };
    let n = groups.count();
    let scratch = OptimalBaselineScratch { columns: &mut columns[..n * 5], lengths: &mut lengths[..n] };
    let output = OptimalBaselineOutput { advantages: &mut advantages, returns: &mut returns };
    let config = OptimalBaselineConfig { zero_tail, ..Default::default() };
    let call = if tir { tir_optimal_token_baseline } else { optimal_token_baseline };
    call(&batch(), &groups, input, &config, scratch, output).unwrap();
    advantages
}

#[test]
fn optimal_token_baseline_of_verl_0_9_1() {
    #[rustfmt::skip]
    assert_close(&run(&PAIRS, false, None, ZeroTail::NoBaseline), &[
        0.07300946322583646, 0.1379361787615916, 1.094429213921444e-08, 0.39253066637861744, 0.0,
        -0.17699053677416354, -0.11206382123840841, 0.0, -0.35746933362138256, 1.2273369542903367e-09,
        -0.5578712210093286, -1.4697086071225185, 0.0, 0.0, 0.0,
        2.4421287789906714, 1.5302913928774815, 2.0, 2.0, 2.0,
    ]);
    let own = run(&PAIRS, false, None, ZeroTail::OwnReturn);
    assert_close(&own[17..], &[1.41398548425542e-08, 1.4164478256972757e-08, 1.2866856025084417e-08]);
    #[rustfmt::skip]
    assert_close(&run(&[0, 1, 0, 0], false, Some(&IS_WEIGHTS), ZeroTail::NoBaseline), &[
        1.2840273813277538, 0.2016803166750325, -0.6692340589778096, -0.6053151660358582, 0.0,
        0.75, 0.75, 0.0, 0.25, 0.25,
        -0.715972618672246, -1.7983196833249675, 0.0, 0.0, 0.0,
        2.284027381327754, 1.2016803166750325, 0.33076594102219037, 0.3946848339641418, 2.0,
    ]);
}

#[test]
fn tir_optimal_token_baseline_of_verl_0_9_1() {
    #[rustfmt::skip]
    assert_close(&run(&PAIRS, true, Some(&IS_WEIGHTS), ZeroTail::NoBaseline), &[
        0.09316254482720188, 0.14912200880829385, 0.4456780687516829, 0.46749449278998767, 0.0,
        -0.15683745517279812, -0.10087799119170615, 0.0, -0.3043219312483171, -0.28250550721001233,
        -0.22796424767996148, -1.7041043629286323, 0.0, 0.0, 0.0,
        2.7720357523200385, 1.2958956370713677, 2.0, 2.0, 2.0,
    ]);
    #[rustfmt::skip]
    assert_close(&run(&[0, 0, 1, 2], true, None, ZeroTail::OwnReturn), &[
        0.07300946322583646, 0.1379361787615916, 0.460088760005537, 0.455013485464426, 0.0,
        -0.17699053677416354, -0.11206382123840841, 0.0, -0.289911239994463, -0.294986514535574,
        -1.0, -1.0, 0.0, 0.0, 0.0,
        2.0, 2.0, 2.0, 2.0, 2.0,
    ]);
}

#[test]
fn a_scratch_of_another_shape_is_refused() {
    let groups = Groups::from_ids(&PAIRS).unwrap();
    let (mut advantages, mut returns) = ([9.0; 20], [9.0; 20]);
    let input = OptimalBaselineInput::new(&REWARDS, &OLD_LOG_PROBS, &SUM_PI_SQUARED);
    let scratch =
        OptimalBaselineScratch { columns: &mut [WeightedSum::default(); 9], lengths: &mut [TopTwo::default(); 2] };
    let output = OptimalBaselineOutput { advantages: &mut advantages, returns: &mut returns };
    let error = optimal_token_baseline(&batch(), &groups, input, &Default::default(), scratch, output).unwrap_err();
    assert_eq!(error, crate::Error::Length { what: "columns", expected: 10, got: 9 });
    assert_eq!((advantages, returns), ([9.0; 20], [9.0; 20]));
}

#[test]
fn answers_of_the_same_length_have_a_baseline_to_their_end() {
    // both have one kept token, in the second slot
    let batch = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&[false, true, false, true])).unwrap();
    let groups = Groups::from_ids(&[0, 0]).unwrap();
    let input = OptimalBaselineInput {
        rewards: &[f64::NAN, 1.0, f64::NAN, 3.0],
        old_log_probs: &[f64::NAN, -1.0, f64::NAN, -1.0],
        sum_pi_squared: &[f64::NAN, 0.5, f64::NAN, 0.5],
        is_weights: None,
    };
    let (mut advantages, mut returns) = ([9.0; 4], [9.0; 4]);
    let scratch =
        OptimalBaselineScratch { columns: &mut [WeightedSum::default(); 2], lengths: &mut [TopTwo::default(); 1] };
    let output = OptimalBaselineOutput { advantages: &mut advantages, returns: &mut returns };
    optimal_token_baseline(&batch, &groups, input, &Default::default(), scratch, output).unwrap();
    assert!(approx::abs_diff_eq!(advantages[..], [0.0, -1.0, 0.0, 1.0][..], epsilon = 1e-6), "{advantages:?}");
}
