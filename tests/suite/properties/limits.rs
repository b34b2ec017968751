//! Where two formulas coincide: the limits stated in the docs.

mod advantage;
mod distill;
mod dual_game;
mod groups;
mod loss;
mod metric;
pub(crate) mod policy_losses;
mod returns;
mod rollout;
mod weights;
