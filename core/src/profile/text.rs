//! Conventions as text, for a host that writes numbers itself: the code that writes them is longer than any formula.

use core::fmt::{self, Debug, Write};

use super::{conventions::Empty, Convention, Conventions, Difference, DualClipSigns, ScoreSlots};
use crate::{
    advantage::{Across, DiscountFrom, EpsilonPlace, FactorPrecision, LengthNormalization, Singleton},
    divergence::{KlBounds, KlEstimator},
    loss::{AggregateMode, CispoBounds, EmptyRows, GspoForm, ReportedKl},
    reward::OverlongFloor,
    rollout::{LogBound, RolloutLevel, Unscored, WeightBound},
    statistics::{Divisor, Spread},
};

/// Takes the parts of a text in order.
pub trait Writer {
    /// Words.
    fn text(&mut self, part: &str);
    /// A number, to be written as `{:?}` does.
    fn number(&mut self, number: f64);
}

impl Conventions {
    /// Writes the value of one convention, as [`Self::of`] is written by `{:?}`.
    #[doc(hidden)]
    pub fn write(&self, convention: Convention, to: &mut dyn Writer) {
        self.written(convention).write(to);
    }
}

impl<'a> Difference<'a> {
    /// As [`Self::causes`], with the conventions of both sides in place of their values.
    #[doc(hidden)]
    pub fn cause_names(&self) -> (impl Iterator<Item = Convention>, &'a [Conventions; 2]) {
        (self.named(), self.conventions)
    }
}

/// What is written the same way as by [`Debug`].
pub(super) trait Written {
    fn write(&self, to: &mut dyn Writer);
}

impl Written for f64 {
    fn write(&self, to: &mut dyn Writer) {
        to.number(*self);
    }
}

/// Numbers between what comes before, between and after them.
#[cfg_attr(compact, inline(never))]
fn numbers(to: &mut dyn Writer, words: &[&str], numbers: &[f64]) {
    for (index, word) in words.iter().enumerate() {
        to.text(word);
        numbers.get(index).into_iter().for_each(|&number| to.number(number));
    }
}

impl Written for Option<f64> {
    fn write(&self, to: &mut dyn Writer) {
        match *self {
            Some(number) => numbers(to, &["Some(", ")"], &[number]),
            None => to.text("None"),
        }
    }
}

impl Written for [f64; 2] {
    fn write(&self, to: &mut dyn Writer) {
        numbers(to, &["[", ", ", "]"], self);
    }
}

impl Written for CispoBounds {
    fn write(&self, to: &mut dyn Writer) {
        match *self {
            Self::Relative { low, high } => numbers(to, &["Relative { low: ", ", high: ", " }"], &[low, high]),
            Self::Absolute { high } => numbers(to, &["Absolute { high: ", " }"], &[high]),
        }
    }
}

impl Written for WeightBound {
    fn write(&self, to: &mut dyn Writer) {
        match *self {
            Self::Unbounded => to.text("Unbounded"),
            Self::Truncate { upper } => numbers(to, &["Truncate { upper: ", " }"], &[upper]),
            Self::Zero { lower, upper } => numbers(to, &["Zero { lower: ", ", upper: ", " }"], &[lower, upper]),
            Self::Clamp { lower, upper } => numbers(to, &["Clamp { lower: ", ", upper: ", " }"], &[lower, upper]),
        }
    }
}

impl Written for LogBound {
    fn write(&self, to: &mut dyn Writer) {
        match *self {
            Self::Unbounded => to.text("Unbounded"),
            Self::At(bound) => numbers(to, &["At(", ")"], &[bound]),
        }
    }
}

impl Written for AggregateMode<'_> {
    fn write(&self, to: &mut dyn Writer) {
        to.text(match *self {
            Self::TokenMean => "TokenMean",
            Self::TokenSum => "TokenSum",
            Self::SequenceMeanTokenSum => "SequenceMeanTokenSum",
            Self::SequenceMeanTokenMean => "SequenceMeanTokenMean",
            // no framework does so by default, and no host can change it
            Self::PromptMean { .. } => "PromptMean { .. }",
            Self::SequenceMeanTokenSumNorm { scale } => {
                return numbers(to, &["SequenceMeanTokenSumNorm { scale: ", " }"], &[scale]);
            }
        });
    }
}

struct Words<'a>(&'a mut dyn Writer);

impl Write for Words<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.text(part);
        Ok(())
    }
}

/// A name without numbers.
#[cfg_attr(compact, inline(never))]
fn name(value: &dyn Debug, to: &mut dyn Writer) {
    // nothing here fails
    _ = write!(Words(to), "{value:?}");
}

macro_rules! names {
    ($($type:ty),* $(,)?) => {$(
        impl Written for $type {
            fn write(&self, to: &mut dyn Writer) {
                name(self, to);
            }
        }
    )*};
}

names! {
    Across, DiscountFrom, Divisor, DualClipSigns, Empty, EmptyRows, EpsilonPlace, FactorPrecision, GspoForm, KlBounds,
    KlEstimator, LengthNormalization, OverlongFloor, ReportedKl, RolloutLevel, ScoreSlots, Singleton, Spread, Unscored,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    struct Plain(String);

    impl Writer for Plain {
        fn text(&mut self, part: &str) {
            self.0.push_str(part);
        }
        fn number(&mut self, number: f64) {
            self.0.push_str(&format!("{number:?}"));
        }
    }

    fn assert_same(conventions: &Conventions) {
        for &convention in Convention::ALL {
            let mut written = Plain(String::new());
            conventions.write(convention, &mut written);
            assert_eq!(written.0, format!("{:?}", conventions.of(convention)));
        }
    }

    #[test]
    fn conventions_are_written_as_they_are_debugged() {
        Profile::ALL.into_iter().for_each(|profile| assert_same(&profile.conventions()));
        for gspo_mode in [
            AggregateMode::TokenSum,
            AggregateMode::SequenceMeanTokenSum,
            AggregateMode::SequenceMeanTokenSumNorm { scale: 4.0 },
        ] {
            assert_same(&Conventions { gspo_mode, ..Default::default() });
        }
        for rollout_bound in [WeightBound::Unbounded, WeightBound::Clamp { lower: 0.25, upper: 1e-9 }] {
            assert_same(&Conventions { rollout_bound, ..Default::default() });
        }
    }
}
