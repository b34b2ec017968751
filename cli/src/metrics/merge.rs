//! Merges the metrics of several batches.

use tokenwise::{metric::Reduction, Result};

use super::sets::Entry;

/// Each metric over all batches, in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Merged(pub(crate) Vec<Line>);

/// One metric, in constant memory for any number of batches.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) key: &'static str,
    pub(crate) by: Reduction,
    count: u64,
    sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Line {
    fn new((key, value): Entry) -> Self {
        // every batch was normalised by its own counts
        Self { key, by: Reduction::of_key(key, false), count: 1, sum: value, min: value, max: value }
    }

    fn add(&mut self, value: f64) -> Result<()> {
        self.count += 1;
        self.sum = Reduction::Sum.of(&[self.sum, value])?;
        self.min = Reduction::Min.of(&[self.min, value])?;
        self.max = Reduction::Max.of(&[self.max, value])?;
        Ok(())
    }

    pub(crate) fn value(&self) -> f64 {
        match self.by {
            Reduction::Mean => self.sum / self.count as f64,
            Reduction::Sum => self.sum,
            Reduction::Min => self.min,
            Reduction::Max => self.max,
            // a rule this command does not know gives no number
            _ => f64::NAN,
        }
    }

    /// Name of the merge rule.
    pub(crate) fn rule(&self) -> &'static str {
        match self.by {
            Reduction::Mean => "mean",
            Reduction::Sum => "sum",
            Reduction::Min => "min",
            Reduction::Max => "max",
            _ => "unknown",
        }
    }
}

impl Merged {
    pub(crate) fn add(&mut self, entries: &[Entry]) -> Result<()> {
        for (index, &(key, value)) in entries.iter().enumerate() {
            // batches of a file have the same fields, so the index is nearly always right
            let known = self.0.get(index).is_some_and(|line| line.key == key).then_some(index);
            match known.or_else(|| self.0.iter().position(|line| line.key == key)) {
                Some(index) => self.0[index].add(value)?,
                None => self.0.push(Line::new((key, value))),
            }
        }
        Ok(())
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.0.iter().map(|line| (line.key, line.value())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_by_batch_is_all_at_once() {
        let values = [0.1, -3.5, 7.25, 0.3];
        for key in ["critic/score/mean", "critic/score/max", "critic/score/min", "actor/loss"] {
            let mut merged = Merged::default();
            values.iter().for_each(|value| merged.add(&[(key, *value)]).unwrap());
            let wanted = Reduction::of_key(key, false).of(&values).unwrap();
            assert!(approx::abs_diff_eq!(merged.0[0].value(), wanted, epsilon = 1e-15), "{key}");
        }
        let mut merged = Merged::default();
        [1.0, f64::NAN, 2.0].iter().for_each(|value| merged.add(&[("x/max", *value)]).unwrap());
        assert!(merged.0[0].value().is_nan());
    }
}
