//! The metrics of every step: as a table, as CSV, and as curves.

use tokenwise_reader::Budget;
use unicode_width::UnicodeWidthStr;

use super::sets::Entry;
use crate::{
    args::Metrics,
    failure::{Failure, Result},
    output::{cell, number, table, table_width, COLUMNS},
    plot::{Curve, Figure, Panel},
    rollout::Rollouts,
};

/// Metrics that are shown if none are asked for: those that fit beside each other.
const SHOWN: usize = 4;
/// Panels of a picture.
const PANELS: usize = 12;

/// One row per batch.
pub(super) struct Steps<'o> {
    options: &'o Metrics,
    memory: Budget,
    keys: Vec<&'static str>,
    rows: Vec<(Option<u64>, Vec<f64>)>,
    bytes: u64,
}

impl<'o> Steps<'o> {
    pub(super) fn new(options: &'o Metrics, memory: Budget) -> Self {
        Self { options, memory, keys: Vec::new(), rows: Vec::new(), bytes: 0 }
    }

    /// Adds a batch, if the rows are asked for.
    pub(super) fn add(&mut self, rollouts: &Rollouts, entries: &[Entry]) -> Result<()> {
        if !(self.options.csv || self.options.steps || self.options.plot.is_some()) {
            return Ok(());
        }
        for (key, _) in entries {
            if !self.keys.contains(key) {
                self.keys.push(key);
            }
        }
        let value = |key: &&'static str| entries.iter().find(|(name, _)| name == key).map_or(f64::NAN, |entry| entry.1);
        let row: Vec<f64> = self.keys.iter().map(value).collect();
        self.bytes += 8 * row.len() as u64 + 48;
        self.memory.check("the metrics of all steps", self.bytes).map_err(|fault| Failure::usage(fault.to_string()))?;
        self.rows.push((rollouts.rows.first().and_then(|row| row.step), row));
        Ok(())
    }

    fn at(&self, row: usize, key: usize) -> f64 {
        self.rows[row].1.get(key).copied().unwrap_or(f64::NAN)
    }

    fn step(&self, row: usize) -> String {
        self.rows[row].0.map_or_else(|| format!("batch {}", row + 1), |step| step.to_string())
    }

    /// A value that a batch does not have is empty.
    pub(super) fn csv(&self) -> String {
        let mut text = format!("step,{}\n", self.keys.join(","));
        for row in 0..self.rows.len() {
            text += &self.step(row);
            for key in 0..self.keys.len() {
                let x = self.at(row, key);
                text += &if x.is_nan() { ",".to_string() } else { format!(",{x}") };
            }
            text.push('\n');
        }
        text
    }

    pub(super) fn table(&self) -> String {
        let columns: Vec<Vec<String>> = (0..self.keys.len()).map(|key| self.column(key)).collect();
        let mut steps = vec!["step".to_string()];
        steps.extend((0..self.rows.len()).map(|row| self.step(row)));
        let width = |column: &[String]| column.iter().map(|cell| cell.width()).max().unwrap_or(0);
        // the columns that fit beside each other; those that were asked for continue below
        let (mut text, mut shown) = (String::new(), 0);
        while shown < columns.len() && (shown == 0 || !self.options.keys.is_empty()) {
            let mut widths = vec![width(&steps)];
            let most = if self.options.keys.is_empty() { SHOWN } else { columns.len() };
            let fits = columns[shown..].iter().take(most).take_while(|column| {
                widths.push(width(column));
                widths.len() == 2 || table_width(&widths) <= COLUMNS
            });
            let end = shown + fits.count();
            let rows: Vec<Vec<String>> = (0..steps.len())
                .map(|row| {
                    let cells = columns[shown..end].iter().map(|column| column[row].clone());
                    [steps[row].clone()].into_iter().chain(cells).collect()
                })
                .collect();
            text += if shown > 0 { "\n" } else { "" };
            text += &table(&rows);
            shown = end;
        }
        if shown < self.keys.len() {
            text += &format!("{} more metrics: choose with --keys, or print all with --csv\n", self.keys.len() - shown);
        }
        text
    }

    /// The name of a metric and its values.
    fn column(&self, key: usize) -> Vec<String> {
        let values = (0..self.rows.len()).map(|row| number(self.at(row, key)));
        [cell(self.keys[key], 60)].into_iter().chain(values).collect()
    }

    /// One line for a step that is complete.
    pub(super) fn follow(&self, rollouts: &Rollouts, entries: &[Entry]) -> String {
        let step = rollouts.rows.first().and_then(|row| row.step);
        let step = step.map_or_else(|| "batch".to_string(), |step| format!("step {step}"));
        let shown: Vec<String> = entries
            .iter()
            .take(SHOWN.max(self.options.keys.len()))
            .map(|(key, x)| format!("{key} {}", number(*x)))
            .collect();
        format!("{step}  {}\n", shown.join("  "))
    }

    pub(super) fn figure(&self) -> Figure {
        let panel = |key: usize| {
            let step = |row: usize| self.rows[row].0.map_or(row as f64 + 1.0, |step| step as f64);
            let points = (0..self.rows.len()).map(|row| (step(row), self.at(row, key)));
            let points: Vec<(f64, f64)> = points.filter(|(_, value)| value.is_finite()).collect();
            let curve = Curve { points, ..Curve::default() };
            Panel { title: self.keys[key].into(), y_label: String::new(), curves: vec![curve] }
        };
        let panels: Vec<Panel> = (0..self.keys.len().min(PANELS)).map(panel).collect();
        Figure { panels, bars: Vec::new(), width: 720.0, shape: 0.32 }
    }
}
