//! The values that fill dropped slots: none of them may reach a result.

use crate::generate::{Flat, Number, Random};

/// A number that no formula should read: NaN, infinite, subnormal, huge, or merely wrong.
pub fn garbage<R: Number>(random: &mut Random) -> R {
    match random.below(8) {
        0 | 1 => R::nan(),
        2 => R::infinity(),
        3 => R::neg_infinity(),
        4 => R::LARGEST,
        5 => R::SUBNORMAL,
        6 => R::narrow(-0.0),
        _ => R::narrow(random.between(-1e9, 1e9)),
    }
}

/// Overwrites everything that belongs to dropped slots, and the scores and bootstraps of sequences without kept tokens.
pub fn poison<R: Number>(flat: &mut Flat<R>, random: &mut Random) {
    for slot in 0..flat.tokens() {
        if flat.keep[slot] {
            continue;
        }
        flat.ids[slot] = random.pick(&[u32::MAX, flat.vocab as u32, 0]);
        for column in &mut flat.columns {
            let width = column.len() / flat.keep.len();
            for value in &mut column[slot * width..(slot + 1) * width] {
                *value = garbage(random);
            }
        }
    }
    for (sequence, row) in flat.rows.iter().enumerate() {
        if !flat.keep[row.clone()].contains(&true) {
            flat.scores[sequence] = garbage(random);
            flat.bootstrap[sequence] = garbage(random);
        }
    }
}
