//! One entry per formula of tokenwise: its name, inputs, config, outputs and returned numbers, and the call for `f32`
//! and `f64` with columns by name.
//!
//! Everything that calls formulas by name uses these entries: the golden runner, the tests that hold for every formula,
//! the fuzz target, the bindings and their declarations, the tables of the docs. Rust code whose formulas are fixed at
//! compile time uses `tokenwise` directly.
//!
//! ```
//! use tokenwise::{Batch, Layout, Mask};
//! use tokenwise_catalogue::{find, Call, Columns, Value};
//!
//! let gae = find("gae").ok_or("no such formula")?;
//! let keep = [true, true, false, true];
//! let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&keep))?;
//! let inputs = Columns::<f64>::new()
//!     .with("rewards", tokenwise_catalogue::Array::Real(vec![0.0, 0.0, f64::NAN, 1.0]))
//!     .with("values", tokenwise_catalogue::Array::Real(vec![0.5, 0.5, f64::NAN, 0.5]))
//!     .with("bootstrap", tokenwise_catalogue::Array::Real(vec![0.0]));
//! let config: Value = serde_json::from_str(r#"{ "lambda": 0.5 }"#)?;
//! let mut outputs = gae.outputs_for(Some(&batch), None, &inputs);
//! gae.call(&mut Call::new(Some(batch), None, &inputs, &config, &mut outputs))?;
//! assert_eq!(outputs.get("advantages"), Some(&tokenwise_catalogue::Array::Real(vec![0.125, 0.25, 0.0, 0.5])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports, reason = "the chain is a part of the whole"))]

extern crate alloc;

mod columns;
#[cfg(feature = "full")]
mod compound;
mod domain;
mod entry;
mod value;

mod advantage;
#[cfg(feature = "full")]
mod distill;
mod divergence;
#[cfg(feature = "full")]
mod group;
mod loss;
mod metric;
mod policy;
mod reward;
#[cfg(feature = "full")]
mod rollout;
#[cfg(feature = "full")]
mod set;
mod weight;

pub use columns::{Array, Columns, Element};
#[cfg(feature = "full")]
pub use compound::Compound;
pub use domain::Domain;
pub use entry::{Aggregates, Call, Column, Config, Entry, Kind, Number, Over, Refusal};
pub use value::{ConfigError, ConfigFault, ConfigReason, Value};

/// The entries, in the order of the stages.
const TABLES: &[&[Entry]] = &[
    policy::ENTRIES,
    divergence::ENTRIES,
    reward::ENTRIES,
    advantage::ENTRIES,
    #[cfg(feature = "full")]
    group::ENTRIES,
    #[cfg(feature = "full")]
    rollout::ENTRIES,
    weight::ENTRIES,
    loss::ENTRIES,
    #[cfg(feature = "full")]
    distill::ENTRIES,
    metric::ENTRIES,
    #[cfg(feature = "full")]
    set::ENTRIES,
];

/// All formulas, in the order of the stages.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    TABLES.iter().copied().flatten()
}

/// The formulas that are available without feature `full`: from logits to a clipped loss and its metrics.
pub fn chain() -> impl Iterator<Item = &'static Entry> {
    const TABLES: &[&[Entry]] = &[
        policy::ENTRIES,
        divergence::ENTRIES,
        reward::ENTRIES,
        advantage::ENTRIES,
        weight::ENTRIES,
        loss::ENTRIES,
        metric::ENTRIES,
    ];
    TABLES.iter().copied().flatten().filter(|entry| !entry.full)
}

/// The formula with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    // a table that the compiler sees through is compared name by name in 30 KB of code
    core::hint::black_box(TABLES).iter().copied().flatten().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "full")]
    #[test]
    fn every_loss_has_a_gradient_for_its_first_input() {
        for entry in entries() {
            let gradients: alloc::vec::Vec<_> = entry.gradients().collect();
            let loss = entry.stage == "loss" && entry.numbers.contains(&"loss");
            assert_eq!(gradients.first().is_some_and(|(input, _)| input.name == entry.inputs[0].name), loss);
            assert!(gradients.iter().all(|(input, output)| input.kind == output.kind), "{}", entry.name);
        }
        let mixed: alloc::vec::Vec<_> = find("mixed_kl_topk").unwrap().gradients().collect();
        assert_eq!(
            mixed.iter().map(|(input, _)| input.name).collect::<alloc::vec::Vec<_>>(),
            ["log_probs", "entropies"]
        );
    }

    #[test]
    fn slices_come_before_columns() {
        let inputs = Columns::<f64>::new().with("values", Array::Real(alloc::vec![0.0, 0.0]));
        let (slices, config) = ([("values", &[1.0, 2.0][..])], Value::EMPTY);
        let batch = tokenwise::Batch::new(tokenwise::Layout::padded(1, 2).unwrap(), tokenwise::Mask::new(&[true; 2]));
        let mut outputs = Columns::new();
        let mut call = Call::new(batch.ok(), None, &inputs, &config, &mut outputs).with_slices(&slices);
        find("mean").unwrap().call(&mut call).unwrap();
        assert_eq!(call.numbers, [("mean".into(), 1.5)]);
    }

    #[test]
    fn the_chain_is_what_there_is_without_feature_full() {
        let chain: alloc::vec::Vec<_> = chain().map(|entry| entry.name).collect();
        let all: alloc::vec::Vec<_> = entries().map(|entry| entry.name).collect();
        assert!(chain.contains(&"gae") && chain.iter().all(|name| all.contains(name)));
        assert_eq!(chain.len() == all.len(), cfg!(not(feature = "full")));
    }
}
