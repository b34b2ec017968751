//! Metrics as tables.

use tokenwise::Profile;

use super::{merge::Merged, names::Compared};
use crate::output::{aligned, number, table};

/// The metrics of one batch, or of several with merge rule and range.
pub(crate) fn metrics(merged: &Merged, batches: u64) -> String {
    if batches < 2 {
        let rows: Vec<_> = merged.entries().iter().map(|(key, value)| vec![key.to_string(), number(*value)]).collect();
        return table(&rows);
    }
    let mut rows = vec![["metric", "merged", "by", "lowest", "highest"].map(String::from).to_vec()];
    rows.extend(merged.0.iter().map(|line| {
        vec![line.key.into(), number(line.value()), line.rule().into(), number(line.min), number(line.max)]
    }));
    aligned(&rows, &[0, 2])
}

/// The metrics of two frameworks: which differ, and which only one of them logs.
pub(crate) fn keys(merged: [&Merged; 2], profiles: [Profile; 2]) -> String {
    let [mine, theirs] = merged.map(Merged::entries);
    let found = Compared::of([&mine, &theirs], profiles);
    let names = profiles.map(Profile::name);
    let mut rows = vec![[names[0], "", names[1], "", "apart by"].map(String::from).to_vec()];
    rows.extend(
        found
            .differ
            .iter()
            .map(|[(a, x), (b, y)]| vec![a.to_string(), number(*x), b.to_string(), number(*y), number((x - y).abs())]),
    );
    let mut text = match (found.differ.len(), found.agree) {
        (0, 0) => "No metric is logged by both.\n".into(),
        (0, agree) => format!("All {agree} metrics that both log have the same value.\n"),
        (_, 0) => format!("Metrics that differ:\n\n{}", aligned(&rows, &[0, 2])),
        (_, agree) => {
            format!("Metrics that differ (both log {agree} more, with the same values):\n\n{}", aligned(&rows, &[0, 2]))
        }
    };
    let values = [&mine, &theirs];
    for side in 0..2 {
        if found.only[side].is_empty() || profiles[0] == profiles[1] {
            continue;
        }
        text += &format!("\nLogged by {}, not by {}:\n\n", names[side], names[1 - side]);
        let only = values[side].iter().filter(|(key, _)| found.only[side].contains(key));
        let rows: Vec<_> = only.map(|(key, value)| vec![key.to_string(), number(*value)]).collect();
        text += &table(&rows);
    }
    text
}
