//! Metrics of one or more batches as tables.

use tokenwise::Profile;

use super::keys::Entry;
use crate::output::{aligned, number, table};

/// Whether there is anything to spread over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    One,
    Batches,
}

/// Each metric over the batches seen.
#[derive(Debug, Default)]
pub(crate) struct Tally(Vec<Line>);

#[derive(Debug)]
struct Line {
    what: &'static str,
    key: &'static str,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Line {
    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

impl Tally {
    pub(crate) fn add(&mut self, entries: &[Entry]) {
        for (index, entry) in entries.iter().enumerate() {
            // batches of a file have the same fields, so that the place is nearly always right
            let known = self.0.get(index).is_some_and(|line| line.key == entry.key).then_some(index);
            let found = known.or_else(|| self.0.iter().position(|line| line.key == entry.key));
            let index = found.unwrap_or_else(|| {
                let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
                self.0.push(Line { what: entry.what, key: entry.key, count: 0, sum: 0.0, min, max });
                self.0.len() - 1
            });
            let line = &mut self.0[index];
            line.count += 1;
            line.sum += entry.value;
            line.min = entry.value.min(line.min);
            line.max = entry.value.max(line.max);
        }
    }

    pub(crate) fn table(&self, spread: Spread) -> String {
        let mut rows = Vec::new();
        if spread == Spread::Batches {
            rows.push(["metric", "mean", "min", "max"].map(String::from).to_vec());
        }
        for line in &self.0 {
            let mut row = vec![line.key.to_string(), number(line.mean())];
            if spread == Spread::Batches {
                row.extend([number(line.min), number(line.max)]);
            }
            rows.push(row);
        }
        table(&rows)
    }
}

/// What two frameworks report of the same thing, and by how much it differs.
pub(crate) fn difference(mine: &Tally, theirs: &Tally, profile: Profile, other: Profile) -> String {
    let mut rows = vec![["", profile.name(), "", other.name(), "", ""].map(String::from).to_vec()];
    let row = |what: &str, mine: Option<&Line>, theirs: Option<&Line>| {
        let differ = match (mine.map(Line::mean), theirs.map(Line::mean)) {
            (Some(mine), Some(theirs)) if mine != theirs => format!("≠ by {}", number(theirs - mine)),
            _ => String::new(),
        };
        let cell = |line: Option<&Line>| match line {
            Some(line) => [line.key.to_string(), number(line.mean())],
            None => ["not logged".to_string(), String::new()],
        };
        let ([my_key, my_value], [their_key, their_value]) = (cell(mine), cell(theirs));
        vec![what.into(), my_key, my_value, their_key, their_value, differ]
    };
    for line in &mine.0 {
        rows.push(row(line.what, Some(line), theirs.0.iter().find(|their| their.what == line.what)));
    }
    for line in theirs.0.iter().filter(|line| mine.0.iter().all(|my| my.what != line.what)) {
        rows.push(row(line.what, None, Some(line)));
    }
    let mut text = aligned(&rows, &[0, 1, 3]);
    let mut conventions = Vec::new();
    profile.differences(other, |name, _, _| conventions.push(name));
    text += &format!("\nConventions that differ: {}\n", conventions.join(", "));
    text
}
