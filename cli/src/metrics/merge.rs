//! Merges the metrics of several batches.

use tokenwise::{metric::Reduction, Profile, Result};

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
    fn new((key, value): Entry, profile: Profile) -> Self {
        Self { key, by: rule(profile, key), count: 1, sum: value, min: value, max: value }
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

/// How a key is merged over batches, each of which was normalised by its own counts. TRL's trainer logs the mean of
/// every metric over steps, and counts tokens; OpenRLHF takes means; a key of verl, or of ours, says by its last word
/// what it is.
fn rule(profile: Profile, key: &str) -> Reduction {
    match profile {
        Profile::Trl1_16 if key == "num_tokens" => Reduction::Sum,
        Profile::Trl1_16 | Profile::OpenRlhf0_11 => Reduction::Mean,
        _ => {
            let last = key.rsplit(['/', '_']).next().unwrap_or_default();
            match last {
                "max" => Reduction::Max,
                "min" => Reduction::Min,
                _ => Reduction::Mean,
            }
        }
    }
}

/// The rules of a framework, for users.
pub(crate) fn explained(profile: Profile) -> &'static str {
    match profile {
        Profile::Trl1_16 => "Merged as TRL's log does: the mean of every key; num_tokens by its sum.",
        Profile::OpenRlhf0_11 => "Merged by the mean of every key.",
        _ => "Merged by key: maximum of \"max\", minimum of \"min\", the mean of all others.",
    }
}

impl Merged {
    pub(crate) fn add(&mut self, entries: &[Entry], profile: Profile) -> Result<()> {
        for (index, &(key, value)) in entries.iter().enumerate() {
            // batches of a file have the same fields, so the index is nearly always right
            let known = self.0.get(index).is_some_and(|line| line.key == key).then_some(index);
            match known.or_else(|| self.0.iter().position(|line| line.key == key)) {
                Some(index) => self.0[index].add(value)?,
                None => self.0.push(Line::new((key, value), profile)),
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
        for (key, rule) in [
            ("critic/score/mean", Reduction::Mean),
            ("critic/score/max", Reduction::Max),
            ("rollout_corr/rollout_is_min", Reduction::Min),
            ("actor/loss", Reduction::Mean),
            ("rollout_corr/rollout_is_seq_max_deviation", Reduction::Mean),
        ] {
            let mut merged = Merged::default();
            values.iter().for_each(|value| merged.add(&[(key, *value)], Profile::Verl0_9_1).unwrap());
            assert!(approx::abs_diff_eq!(merged.0[0].value(), rule.of(&values).unwrap(), epsilon = 1e-15), "{key}");
        }
        let mut merged = Merged::default();
        [1.0, f64::NAN, 2.0].iter().for_each(|value| merged.add(&[("x/max", *value)], Profile::Paper).unwrap());
        assert!(merged.0[0].value().is_nan());
    }

    #[test]
    fn a_key_of_trl_is_merged_as_trl_does() {
        for key in ["completions/mean_terminated_length", "completions/max_length", "clip_ratio/low_min"] {
            assert_eq!(rule(Profile::Trl1_16, key), Reduction::Mean, "{key}");
        }
        assert_eq!(rule(Profile::Trl1_16, "num_tokens"), Reduction::Sum);
    }
}
