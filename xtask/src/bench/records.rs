//! Measurements: JSON objects as the measuring programs print them, with the name of the run.

use anyhow::{Context, Result};
use serde_json::Value;

/// Everything measured so far.
#[derive(Default)]
pub(super) struct Records(Vec<Value>);

impl Records {
    /// Adds a printed record.
    pub(super) fn add_line(&mut self, run: &str, line: &str) -> Result<()> {
        let record = serde_json::from_str(line).with_context(|| format!("not a record: {line}"))?;
        self.add(run, record);
        Ok(())
    }

    pub(super) fn add(&mut self, run: &str, mut record: Value) {
        record["run"] = run.into();
        self.0.push(record);
    }

    /// One record per line.
    pub(super) fn lines(&self) -> String {
        self.0.iter().fold(String::new(), |text, record| text + &record.to_string() + "\n")
    }

    /// The records of a run.
    pub(super) fn of<'a, 'b>(&'a self, run: &'b str) -> impl Iterator<Item = &'a Value> + use<'a, 'b> {
        self.0.iter().filter(move |record| record["run"] == run)
    }

    /// The record of one implementation, item and shape.
    pub(super) fn find(&self, run: &str, item: &str, shape: &str, who: &str) -> Option<&Value> {
        self.of(run).find(|record| record["item"] == item && record["shape"] == shape && record["who"] == who)
    }

    /// Its median milliseconds.
    pub(super) fn ms(&self, run: &str, item: &str, shape: &str, who: &str) -> Option<f64> {
        self.find(run, item, shape, who)?["ms"].as_f64()
    }

    /// How many times longer `who` took than this library.
    pub(super) fn ratio(&self, run: &str, item: &str, shape: &str, who: &str) -> Option<f64> {
        Some(self.ms(run, item, shape, who)? / self.ms(run, item, shape, "ours")?)
    }

    /// The fingerprint of the results.
    pub(super) fn fingerprint(&self, run: &str, item: &str, shape: &str) -> Option<&str> {
        let mut records = self.of(run).filter(|record| record["item"] == item && record["shape"] == shape);
        records.find_map(|record| record["fingerprint"].as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_by_what_they_are_about() {
        let mut records = Records::default();
        for (who, ms) in [("ours", "2.0"), ("verl", "9.0")] {
            let line = format!(r#"{{"item":"gae","shape":"2×2","who":"{who}","ms":{ms}}}"#);
            records.add_line("one", &line).unwrap();
        }
        assert_eq!(records.ratio("one", "gae", "2×2", "verl"), Some(4.5));
        assert_eq!(records.ratio("two", "gae", "2×2", "verl"), None);
        assert!(records.add_line("one", "noise").is_err());
        assert_eq!(records.lines().lines().count(), 2);
    }
}
