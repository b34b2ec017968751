//! Where two formulas meet: the limits that the docs promise.

mod advantage;
mod distill;
mod dual_game;
mod groups;
mod loss;
mod metric;
mod policy_losses;
mod returns;
mod rollout;
mod weights;
