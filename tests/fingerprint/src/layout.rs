//! The shift of raw model outputs.

use tokenwise::Layout;

use crate::{
    cases::{Case, Out},
    hash::Value,
};

/// All slots but the last as the predictions of all but the first.
pub(crate) fn shift<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let positions = case.batch.tokens();
    let responses = positions.saturating_sub(1);
    let result = Layout::padded(1, responses).and_then(|layout| {
        let raw_layout = Layout::padded(1, positions)?;
        tokenwise::shift(&layout, &raw_layout, case.values, 1, &mut out.a[..responses])
    });
    out.record(result);
}
