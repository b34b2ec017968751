//! Every formula, in both types, against the textbook in `f64`.

use tokenwise_tests::{
    generate::{Number, Random, Spec, World},
    tolerance::{units, Basis, SLACK},
};

use crate::case::{assert_close, Case};

/// Batches of all sizes, among them none, one token, and rows longer than a block of sums.
fn specs() -> impl Iterator<Item = Spec> {
    let long = [(1, 1023), (1, 1024), (1, 1025), (2, 1100)];
    let small =
        (0..10).flat_map(|sequences| [0, 1, 2, 7, 8, 9, 15, 16, 17, 33, 70].map(|longest| (sequences, longest)));
    long.into_iter().chain(small).enumerate().map(|(index, (sequences, longest))| Spec {
        seed: 1000 + index as u64,
        sequences,
        longest,
    })
}

pub(crate) fn holds<C: Case, R: Number>() {
    let basis = Basis::of::<R>();
    let mut worst = 0.0_f64;
    let mut refused = 0;
    for spec in specs() {
        let config = C::config(&mut Random::new(spec.seed));
        let flat = World::<R>::new(spec).packed();
        let Ok(got) = C::run(&flat, config) else {
            refused += 1;
            continue;
        };
        let (got, want) = (got.widen(), C::naive(&flat.widen(), config).widen());
        assert_close::<C>(basis, &got, &want);
        worst = got.iter().zip(&want).fold(worst, |worst, (&got, &want)| worst.max(units(basis, got, want)));
    }
    assert!(refused < 40, "{refused} batches were refused");
    let allowed = C::UNITS[basis as usize];
    assert!(allowed <= SLACK * worst, "{} {basis:?}: {allowed} units allowed, {worst} were the worst", C::NAME);
}
