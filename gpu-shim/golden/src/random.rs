//! Calls with pseudo-random numbers, the same on every run.

use tokenwise::{loss::group_tokens, Batch, Groups, Layout, Mask};
use tokenwise_catalogue::{find, Array, Columns, Element, Entry, Kind, Value};
use tokenwise_gpu::coverage;
use tokenwise_tests::golden::RecordedCall;

use crate::wide;

/// Entries of a row of logits.
const VOCAB: usize = 13;
const ROWS: usize = 6;
const WIDTH: usize = 11;

/// A generator.
pub struct Random(u64);

impl Random {
    /// Its numbers follow from the seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    /// In `[−1, 1)`.
    pub fn signed(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }

    /// Roughly normal, with standard deviation 1.
    pub fn normal(&mut self) -> f32 {
        self.signed() + self.signed() + self.signed()
    }

    /// `count` numbers with standard deviation `scale`.
    pub fn normals(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| self.normal() * scale).collect()
    }

    /// True in `percent` of the cases.
    pub fn mask(&mut self, count: usize, percent: usize) -> Vec<bool> {
        (0..count).map(|_| self.below(100) < percent).collect()
    }
}

/// A config that the formula accepts: the default one, unless a field is required.
pub fn first_config(name: &str) -> &'static str {
    match name {
        "dro" => r#"{"beta": 0.7}"#,
        "kl_mask" => r#"{"tau": 0.5}"#,
        "last_k_credit" => r#"{"k": 3}"#,
        // without a criterion nothing is read
        "rollout_rejection" | "rollout_rejection_metrics" => {
            r#"{"criteria": [{"option": "seq-sum-k3", "upper": 40}, {"option": "token-k1"}]}"#
        }
        "variance_proxy" => r#"{"gradient_norm": 0.1}"#,
        _ => "{}",
    }
}

/// Random inputs; log-probabilities are negative, weights positive.
///
/// # Errors
///
/// The core's, if the groups do not fit the batch.
pub fn inputs(
    random: &mut Random,
    entry: &Entry,
    batch: &Batch<'_>,
    groups: &Groups<'_>,
) -> tokenwise::Result<Columns<f32>> {
    let mut inputs = Columns::<f32>::new();
    for column in entry.inputs.iter().filter(|column| column.element == Element::Size) {
        inputs.set(column.name, VOCAB);
    }
    for column in entry.inputs {
        let sources = if column.kind == Kind::Source { 2 } else { 1 };
        let len = sources * entry.length(column.kind, Some(batch), Some(groups), &inputs);
        match column.element {
            Element::Real => {
                let numbers = (0..len).map(|_| match column.name {
                    name if name.ends_with("log_probs") => -random.normal().abs() - 0.01,
                    "weights" => random.normal().abs() + 0.01,
                    _ => random.normal(),
                });
                inputs.set(column.name, Array::Real(numbers.collect()));
            }
            Element::Index => inputs.set(column.name, (0..len).map(|_| random.below(VOCAB) as u32).collect::<Vec<_>>()),
            Element::Count => {
                let mut counts = vec![0; len];
                group_tokens(batch, groups, &mut counts)?;
                inputs.set(column.name, counts);
            }
            Element::Double => inputs.set(column.name, Array::Double(vec![0.75, -0.5])),
            Element::Flag => inputs.set(column.name, random.mask(len, 50)),
            // the choice for which every column is read
            Element::Text => inputs.set(column.name, Array::Text("structural".into())),
            _ => {}
        }
    }
    Ok(inputs)
}

/// One call of every covered formula, also of those without a golden case.
///
/// # Errors
///
/// A call that cannot be made.
pub fn calls() -> Result<Vec<RecordedCall>, String> {
    let mut random = Random::new(40);
    let covered = coverage::table().filter(|(_, why)| why.is_none()).filter_map(|(name, _)| find(name));
    let call = |entry: &'static Entry| {
        let words = |error: tokenwise::Error| error.to_string();
        let keep = random.mask(ROWS * WIDTH, 70);
        let ids: Vec<u32> = (0..ROWS as u32).map(|sequence| sequence / 2).collect();
        let batch = Batch::new(Layout::padded(ROWS, WIDTH).map_err(words)?, Mask::new(&keep)).map_err(words)?;
        let groups = Groups::from_ids(&ids).map_err(words)?;
        let inputs = wide(&inputs(&mut random, entry, &batch, &groups).map_err(words)?)?;
        let config: Value = serde_json::from_str(first_config(entry.name)).map_err(|error| error.to_string())?;
        Ok(RecordedCall { name: entry.name, rows: ROWS, keep, groups: Some(ids), inputs, config })
    };
    covered.map(call).collect()
}
