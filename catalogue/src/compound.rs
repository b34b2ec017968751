//! Functions of the core that run other formulas but are not a call over columns.
//!
//! A generic function is compiled in the crate that calls it, together with all it calls. Called from here, these share
//! the kernels of the entries; called from a third crate they would bring a second copy of each.

use tokenwise::{
    control::{DualGame, DualGameReport, DualGameStep},
    profile::{self, CompareConfig, CompareScratch, Conventions, Difference, ProfileInput},
    Batch, Groups, Result,
};

use crate::Number;

/// Compound functions, for `f32` and `f64`.
pub trait Compound: Number {
    /// [`tokenwise::profile::compare`]
    fn compare(
        batch: &Batch<'_>,
        groups: &Groups<'_>,
        input: ProfileInput<'_, Self>,
        conventions: [Conventions; 2],
        config: &CompareConfig<'_>,
        scratch: CompareScratch<'_, Self>,
        tell: &mut dyn FnMut(&Difference<'_>),
    ) -> Result<usize>;

    /// [`DualGame::step`], without the sums over the vocabulary.
    fn step(game: &mut DualGame, batch: &Batch<'_>, input: DualGameStep<'_, Self>) -> Result<DualGameReport>;
}

macro_rules! compound {
    ($($real:ty)*) => {$(
        impl Compound for $real {
            fn compare(
                batch: &Batch<'_>,
                groups: &Groups<'_>,
                input: ProfileInput<'_, Self>,
                conventions: [Conventions; 2],
                config: &CompareConfig<'_>,
                scratch: CompareScratch<'_, Self>,
                tell: &mut dyn FnMut(&Difference<'_>),
            ) -> Result<usize> {
                profile::compare(batch, groups, input, conventions, config, scratch, tell)
            }

            fn step(game: &mut DualGame, batch: &Batch<'_>, input: DualGameStep<'_, Self>) -> Result<DualGameReport> {
                game.step(batch, input, None)
            }
        }
    )*};
}
compound! { f32 f64 }
