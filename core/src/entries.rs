//! The entries of a report: keys with their numbers.

/// The entries whose number is known, in order.
pub(crate) fn known(
    entries: impl IntoIterator<Item = (&'static str, Option<f64>)>,
) -> impl Iterator<Item = (&'static str, f64)> {
    entries.into_iter().filter_map(|(key, value)| value.map(|value| (key, value)))
}
