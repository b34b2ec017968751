//! The list of calls; each file of formulas adds its own.

use serde_json::{json, Value};

use super::{distill, rows, sequence, token, Case, Given, Mode, Tensor};

/// The calls so far.
pub(super) struct List<T>(pub(super) Vec<Case<T>>);

impl<T: Tensor> List<T> {
    /// A loss with an aggregation, which is written into its config.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        plain: fn(&Given<'_, T>) -> T,
        mode: Mode,
        with: &'static [&'static str],
        mut config: Value,
    ) {
        let how = json!({ "mode": mode.name() });
        if name == "aggregate" {
            config = how;
        } else if name == "bypass_loss" {
            config["policy"] = json!({ "aggregate": how });
        } else {
            config["aggregate"] = how;
        }
        self.0.push(Case { name, config, with, weight: None, mode, plain });
    }

    /// A loss whose aggregation is part of its formula.
    pub(super) fn fixed(
        &mut self,
        name: &'static str,
        plain: fn(&Given<'_, T>) -> T,
        mode: Mode,
        with: &'static [&'static str],
        config: Value,
    ) {
        self.0.push(Case { name, config, with, weight: None, mode, plain });
    }
}

pub(super) const WEIGHTS: &[&str] = &["weights"];
pub(super) const GROUPED: &[&str] = &["group_tokens"];

/// All cases.
pub(crate) fn cases<T: Tensor>() -> Vec<Case<T>> {
    let mut list = List(Vec::new());
    token::cases(&mut list);
    sequence::cases(&mut list);
    distill::cases(&mut list);
    rows::cases(&mut list);
    list.0
}
