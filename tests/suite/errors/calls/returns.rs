//! Returns and advantages with a critic.

use tokenwise::advantage::{self, *};

use crate::errors::{Call, Ended, AT_LEAST_1, CAP, POSITIVE, SEQUENCES, TOKENS, UNIT};

/// Rewards, values, and what comes after them.
fn critic(call: &mut Call) -> [Vec<f64>; 3] {
    [call.input("rewards", TOKENS), call.input("values", TOKENS), call.input("bootstrap", SEQUENCES)]
}

pub(super) fn td_lambda(call: &mut Call) -> Ended {
    let [rewards, values, bootstrap] = critic(call);
    let mut out = call.output("out", TOKENS);
    let (gamma, lambda) = (call.number("gamma", UNIT), call.number("lambda", UNIT));
    let input = TdInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    let config = TdLambdaConfig { gamma, lambda, ..Default::default() };
    Ended::new(advantage::td_lambda(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn n_step_returns(call: &mut Call) -> Ended {
    let [rewards, values, bootstrap] = critic(call);
    let mut out = call.output("out", TOKENS);
    let (gamma, lambda) = (call.number("gamma", UNIT), call.number("lambda", UNIT));
    let input = TdInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    let config = NStepConfig { n: call.number("n", AT_LEAST_1) as usize, gamma, lambda, ..Default::default() };
    Ended::new(advantage::n_step_returns(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn upgo(call: &mut Call) -> Ended {
    let [rewards, values, bootstrap] = critic(call);
    let mut out = call.output("out", TOKENS);
    let input = TdInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    Ended::new(advantage::upgo(&call.batch(), input, &mut out)).with(&out)
}

pub(super) fn vtrace(call: &mut Call) -> Ended {
    let [rewards, values, bootstrap] = critic(call);
    let (new, old) = (call.input("log_probs", TOKENS), call.input("old_log_probs", TOKENS));
    let (mut targets, mut advantages) = (call.output("targets", TOKENS), call.output("advantages", TOKENS));
    let config = VtraceConfig {
        gamma: call.number("gamma", UNIT),
        lambda: call.number("lambda", UNIT),
        alpha: call.number("alpha", UNIT),
        rho_bar: call.number("rho_bar", CAP),
        c_bar: call.number("c_bar", CAP),
        rho_bar_pg: call.number("rho_bar_pg", CAP),
    };
    let input =
        VtraceInput { rewards: &rewards, values: &values, bootstrap: &bootstrap, log_probs: &new, old_log_probs: &old };
    let output = VtraceOutput { targets: &mut targets, advantages: &mut advantages };
    Ended::new(advantage::vtrace(&call.batch(), input, &config, output)).with(&targets).with(&advantages)
}

pub(super) fn puffer_advantage(call: &mut Call) -> Ended {
    let [rewards, values, bootstrap] = critic(call);
    let (ratios, mut out) = (call.input("ratios", TOKENS), call.output("out", TOKENS));
    let config = PufferConfig {
        gamma: call.number("gamma", UNIT),
        lambda: call.number("lambda", UNIT),
        rho_bar: call.number("rho_bar", CAP),
        c_bar: call.number("c_bar", CAP),
        ..Default::default()
    };
    let input = PufferInput { rewards: &rewards, values: &values, bootstrap: &bootstrap, ratios: &ratios };
    Ended::new(advantage::puffer_advantage(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn retrace(call: &mut Call) -> Ended {
    let [rewards, values, bootstrap] = critic(call);
    let action_values = call.input("action_values", TOKENS);
    let (new, old) = (call.input("log_probs", TOKENS), call.input("old_log_probs", TOKENS));
    let mut out = call.output("out", TOKENS);
    let (gamma, lambda) = (call.number("gamma", UNIT), call.number("lambda", UNIT));
    let input = RetraceInput {
        rewards: &rewards,
        values: &values,
        action_values: &action_values,
        bootstrap: &bootstrap,
        log_probs: &new,
        old_log_probs: &old,
    };
    let config = RetraceConfig { gamma, lambda, ..Default::default() };
    Ended::new(advantage::retrace(&call.batch(), input, &config, &mut out)).with(&out)
}

fn decoupled(call: &mut Call, policy: fn(&mut Call) -> PolicyLambda) -> Ended {
    let [rewards, values, bootstrap] = critic(call);
    let (mut advantages, mut returns) = (call.output("advantages", TOKENS), call.output("returns", TOKENS));
    let (gamma, lambda_value) = (call.number("gamma", UNIT), call.number("lambda_value", UNIT));
    let config = GaeDecoupledConfig { gamma, lambda_value, lambda_policy: policy(call), ..Default::default() };
    let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
    let result = advantage::gae_decoupled(&call.batch(), input, &config, output);
    Ended::new(result).with(&advantages).with(&returns)
}

pub(super) fn gae_decoupled(call: &mut Call) -> Ended {
    decoupled(call, |call| PolicyLambda::Fixed(call.number("lambda_policy", UNIT)))
}

pub(super) fn gae_length_adaptive(call: &mut Call) -> Ended {
    decoupled(call, |call| PolicyLambda::LengthAdaptive { alpha: call.number("alpha", POSITIVE) })
}
