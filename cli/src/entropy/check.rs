//! `tokenwise entropy check`: compares the entropy kernel with known values; needs neither files nor a GPU.

use tokenwise::{
    policy::{entropy, LogitsInput, PolicyConfig},
    Batch, Layout, Mask,
};

use crate::{
    failure::{Failure, Result},
    output::{number, print, table},
};

/// The vocabulary of Qwen3.
const VOCABULARY: usize = 151_936;

/// Exact to f64: ln 151936, and the others computed with 40 digits.
const LN_VOCABULARY: f64 = 11.931_214_658_529_285;
const THREE: f64 = 0.832_395_581_839_938_8;
const LARGE: f64 = 0.662_847_318_579_179_4;

/// Well above the rounding errors of a vocabulary in f64.
const TOLERANCE: f64 = 1e-12;

/// Whether a value differs.
pub(super) fn run() -> Result<bool> {
    let mut one_hot = vec![f64::NEG_INFINITY; VOCABULARY];
    one_hot[7] = 3.0;
    let none = f64::NEG_INFINITY;
    let cases = [
        ("uniform over 151936", vec![0.25; VOCABULARY], LN_VOCABULARY),
        ("one token certain", one_hot, 0.0),
        ("logits 0 1 2", vec![0.0, 1.0, 2.0], THREE),
        ("logits 0 1 2, two tokens forbidden", vec![none, 0.0, 1.0, none, 2.0], THREE),
        ("logits 1000 999.5 0", vec![1000.0, 999.5, 0.0], LARGE),
    ];
    let mut rows = vec![["distribution", "entropy wanted", "entropy got", ""].map(String::from).to_vec()];
    let mut wrong = false;
    for (name, logits, wanted) in cases {
        let got = of(&logits).map_err(|error| Failure::usage(error.to_string()))?;
        // NaN differs too
        let good = (got - wanted).abs() <= TOLERANCE;
        wrong |= !good;
        rows.push(vec![name.into(), number(wanted), number(got), if good { "ok" } else { "WRONG" }.into()]);
    }
    print(&table(&rows))?;
    Ok(wrong)
}

fn of(logits: &[f64]) -> tokenwise::Result<f64> {
    let batch = Batch::new(Layout::padded(1, 1)?, Mask::new(&[true]))?;
    let mut out = [f64::NAN];
    entropy(&batch, LogitsInput { logits, vocab: logits.len() }, &PolicyConfig::default(), &mut out)?;
    Ok(out[0])
}
