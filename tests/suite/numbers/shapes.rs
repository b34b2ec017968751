//! Batches of no sequences, no tokens, one of each, and rows that end at the edges of lanes and blocks.

use tokenwise::Error;
use tokenwise_tests::generate::{Number, Random, Spec, World};

use crate::{
    case::Case,
    properties::{padded_is_packed, poison_changes_no_bit},
};

/// A batch is too small only for formulas that need one or two tokens.
fn small_batches<C: Case, R: Number>() {
    for (sequences, longest) in [(0, 0), (0, 9), (1, 0), (3, 0), (1, 1), (4, 1), (1, 16)] {
        for seed in 0..12 {
            let world = World::<R>::new(Spec { seed, sequences, longest });
            let mut random = Random::new(seed);
            let config = C::config(&mut random);
            for mut flat in [world.packed(), world.padded(0, &mut random), world.padded(3, &mut random)] {
                if seed % 4 == 0 {
                    flat.keep.fill(false);
                }
                let kept = flat.batch().kept();
                match C::run(&flat, config) {
                    Ok(outcome) => {
                        let written = outcome.tokens.iter().all(|slice| slice.len() % flat.tokens().max(1) == 0);
                        assert!(written && outcome.sequences.iter().all(|slice| slice.len() == sequences));
                    }
                    Err(Error::EmptyMask) => assert_eq!(kept, 0),
                    // a prompt with one sample
                    Err(Error::TooFew { what: "groups", got: 1, .. }) => {}
                    Err(Error::TooFew { got, .. }) => assert!(got == kept && kept < 2),
                    Err(error) => panic!("{}: {error}", C::NAME),
                }
            }
        }
    }
}

fn edges<C: Case, R: Number>() {
    for longest in [15, 16, 17, 31, 32, 33, 1023, 1024, 1025, 2049] {
        for seed in 0..2 {
            let spec = Spec { seed: seed + longest as u64, sequences: 2, longest };
            padded_is_packed::<C, R>(spec);
            poison_changes_no_bit::<C, R>(spec);
        }
    }
}

pub(crate) fn any_shape_will_do<C: Case>() {
    small_batches::<C, f32>();
    small_batches::<C, f64>();
    edges::<C, f32>();
}
