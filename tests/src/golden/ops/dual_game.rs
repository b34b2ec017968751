//! The dual game, with given weights or weights of its own.

use tokenwise::{
    loss::{AggregateMode, DualGameConfig},
    weight::{StructuralConfig, TrieConfig},
};
use tokenwise_catalogue::Number;

use super::policy_loss::loss;
use crate::golden::{
    case::Failure,
    step::{Names, Run, Step},
};

pub(super) fn dual_game<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    let (case, c) = (run.case, &run.case.conventions);
    if case.text("weight", "plain")? == "structural" && !case.has_input("structural") {
        structural(run)?;
    }
    let clip = case.number("clip", Some(0.2))?;
    let config = DualGameConfig {
        clip_low: clip,
        clip_high: clip,
        aggregate: c.aggregate(AggregateMode::TokenMean),
        divisor: c.divisor,
        ..Default::default()
    };
    run.step(loss(case, case.op, config)?)?;
    run.step(Step::new("token_weights", &[])?)
}

/// The weights computed from the complexity of the case.
fn structural<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    const TRIE: Names = &[("out", "complexity"), ("value", "branch_value"), ("spread", "branch_spread")];
    const WEIGHTS: Names = &[("weights", "structural"), ("surprisal", "alpha"), ("drift", "structural_beta")];
    let case = run.case;
    match case.text("complexity", "advantage-jump")? {
        _ if case.has_input("complexity") => (),
        "trie" => {
            let step = Step::new("trie_complexity", TRIE)?.config(case, TrieConfig::default())?;
            run.step(if case.flag("exact_prefix", false)? { step.set("prefix", "same")? } else { step })?;
        }
        "advantage-jump" => run.step(Step::new("advantage_jump", &[("out", "complexity")])?)?,
        other => return Err(Failure::Unfit(format!("complexity: unknown value \"{other}\""))),
    }
    let step = Step::new("structural_weights", WEIGHTS)?.config(case, StructuralConfig::default())?;
    let step = step.set("complexity", case.number("c", Some(1.0))?)?;
    run.step(if case.flag("per_sequence", false)? { step.set("scope", "sequence")? } else { step })
}
