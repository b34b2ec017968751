//! What goes on from one call to the next: objects with memory of their own, whose classes stand in `states.js`.

use ::core::cell::RefCell;
use alloc::{boxed::Box, vec::Vec};

use tokenwise::{
    advantage::{self, RoleBaseline},
    control::{self, BudgetReport, DualGameStep},
    metric, Either,
};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{run, zeros, Call},
    config,
    error::Result,
    js,
    loss::dual_game::token_weight,
    put::{entries, known, numbers},
    read::{number, read, size},
};

/// One of the objects.
#[derive(Clone)]
enum Machine {
    Baselines(Vec<RoleBaseline>),
    Histogram(Box<metric::Histogram>),
    Moments(metric::RunningMoments),
    LinearKl(Box<control::LinearKl>),
    Budget(Box<control::EntropyBudget>),
    Game(Box<control::DualGame>),
}

/// An object behind a class of JavaScript.
#[wasm_bindgen(skip_typescript)]
pub struct State(RefCell<Machine>);

#[wasm_bindgen]
impl State {
    /// A new one; none where it was refused.
    #[wasm_bindgen(skip_typescript)]
    pub fn make(kind: u32) -> Option<State> {
        let mut made = None;
        run(false, &mut |_| {
            made = Some(made_of(kind)?);
            Ok(())
        });
        made.map(|machine| Self(RefCell::new(machine)))
    }

    /// Another one in the same state.
    #[wasm_bindgen(skip_typescript)]
    pub fn copy(&self) -> State {
        Self(self.0.clone())
    }

    /// Calls its method, in one of the two precisions.
    #[wasm_bindgen(skip_typescript)]
    pub fn run(&self, method: u32, single: bool) {
        run(single, &mut |call| called(&mut self.0.borrow_mut(), method, call));
    }

    /// Joins the counts of another histogram, which may be this one.
    #[wasm_bindgen(skip_typescript)]
    pub fn merge(&self, other: &State) {
        let other = other.0.borrow().clone();
        if let (Machine::Histogram(counts), Machine::Histogram(more)) = (&mut *self.0.borrow_mut(), &other) {
            counts.merge(more);
        }
    }
}

fn made_of(kind: u32) -> Result<Machine> {
    Ok(match kind {
        0 => {
            let baseline = RoleBaseline::new(number())?;
            let mut all: Vec<Option<RoleBaseline>> = zeros(size());
            all.fill(Some(baseline));
            Machine::Baselines(all.into_iter().flatten().collect())
        }
        1 => Machine::Histogram(Box::default()),
        2 => Machine::Moments(metric::RunningMoments::default()),
        3 => Machine::LinearKl(Box::new(control::LinearKl::new(&read())?)),
        4 => Machine::Budget(Box::new(control::EntropyBudget::new(&read())?)),
        _ => Machine::Game(Box::new(control::DualGame::new(&read())?)),
    })
}

/// What stands in the machine goes on only where a step was not refused.
fn called(machine: &mut Machine, method: u32, call: &mut Call<'_>) -> Result {
    match (machine, method) {
        (Machine::Baselines(baselines), 0) => {
            let values: Vec<f64> = baselines.iter().map(RoleBaseline::baseline).collect();
            js::doubles(&values);
        }
        (Machine::Baselines(baselines), _) => {
            let (roles, scores) = (call.words(), call.real());
            advantage::role_baseline(roles, scores, baselines, call.real())?;
        }
        (Machine::Histogram(counts), 0) => {
            let values = call.real();
            counts.add(call.batch, values)?;
        }
        (Machine::Histogram(counts), 1) => js::put(counts.count() as f64),
        (Machine::Histogram(counts), _) => js::put(counts.quantile(number())?),
        (Machine::Moments(moments), 0) => {
            let (mean, std) = moments.update::<Either>(call.real())?;
            numbers(&[mean, std]);
        }
        (Machine::Moments(moments), _) => {
            numbers(&[moments.count(), moments.mean(), moments.variance(), moments.std()]);
        }
        (Machine::LinearKl(machine), 0) => {
            let mut next = **machine;
            js::put(next.update(number())?);
            **machine = next;
        }
        (Machine::LinearKl(machine), _) => numbers(&[machine.beta(), machine.target()]),
        (Machine::Budget(machine), 0) => {
            let mut next = **machine;
            put_report(&next.update(&config::observation())?);
            **machine = next;
        }
        (Machine::Budget(machine), _) => js::put(machine.lambda()),
        (Machine::Game(game), 0) => {
            let mut next = **game;
            step(&mut next, call)?;
            **game = next;
        }
        (Machine::Game(game), _) => numbers(&[game.lambda(), game.beta()]),
    }
    Ok(())
}

fn put_report(report: &BudgetReport) {
    js::put(report.lambda);
    known(report.budget);
    known(report.budget_per_token);
    js::put(report.wh_per_token);
    known(report.usage_ratio);
    numbers(&[report.warm_up_finished, report.plateau, report.collapse].map(|flag| f64::from(u8::from(flag))));
}

fn step(game: &mut control::DualGame, call: &mut Call<'_>) -> Result {
    let (weight, ref_log_probs) = (token_weight(call), call.optional_real());
    let input = DualGameStep {
        old_log_probs: call.real(),
        ref_log_probs,
        advantages: call.real(),
        rewards: call.real(),
        weight,
        last_update: None,
    };
    let report = game.step(call.batch, input, None)?;
    numbers(&[report.lambda(), report.beta]);
    put_report(&report.budget);
    entries(report.entries());
    Ok(())
}
