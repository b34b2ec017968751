//! Stage 4: other recursions along a sequence, and the signal of a teacher.

use tokenwise::{advantage::*, Batch};

use crate::{
    advantages::across,
    reader::{tokens, Reader, UNTOUCHED},
};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let (rewards, values, log_probs, old_log_probs, bootstrap) =
        (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.numbers(sequences));
    let (rewards, values, log_probs, old_log_probs, bootstrap) =
        (&rewards[..], &values[..], &log_probs[..], &old_log_probs[..], &bootstrap[..]);
    let len = reader.len(n);
    let (gamma, lambda, across) = (reader.share(), reader.share(), across(reader));
    let (share, alpha) = (reader.share(), reader.number());
    let lambda_policy = reader.pick(&[PolicyLambda::Fixed(share), PolicyLambda::LengthAdaptive { alpha }]);
    let config = GaeDecoupledConfig { gamma, lambda_value: lambda, lambda_policy, across };
    tokens(batch, len, 1, |advantages| {
        let output = GaeOutput { advantages, returns: &mut vec![UNTOUCHED; n] };
        gae_decoupled(batch, GaeInput { rewards, values, bootstrap }, &config, output)
    });
    let input = TdInput { rewards, values, bootstrap };
    tokens(batch, len, 1, |out| td_lambda(batch, input, &TdLambdaConfig { gamma, lambda, across }, out));
    let config = NStepConfig { n: usize::from(reader.byte() % 6), gamma, lambda, across };
    tokens(batch, len, 1, |out| n_step_returns(batch, input, &config, out));
    tokens(batch, len, 1, |out| upgo(batch, input, out));

    let [rho_bar, c_bar, rho_bar_pg] = core::array::from_fn(|_| reader.share() * 2.0);
    let config = VtraceConfig { gamma, lambda, rho_bar, c_bar, rho_bar_pg, alpha: share };
    tokens(batch, len, 1, |targets| {
        let input = VtraceInput { rewards, values, bootstrap, log_probs, old_log_probs };
        vtrace(batch, input, &config, VtraceOutput { targets, advantages: &mut vec![UNTOUCHED; n] })
    });
    let coefficient = reader.pick(&[
        TraceCoefficient::Importance,
        TraceCoefficient::Lambda,
        TraceCoefficient::TreeBackup,
        TraceCoefficient::Retrace,
    ]);
    let action_values = reader.numbers(n);
    let input = RetraceInput { rewards, values, action_values: &action_values, bootstrap, log_probs, old_log_probs };
    tokens(batch, len, 1, |out| retrace(batch, input, &RetraceConfig { gamma, lambda, coefficient }, out));
    let variant = reader.pick(&[PufferVariant::V3, PufferVariant::V4]);
    let input = PufferInput { rewards, values, bootstrap, ratios: &action_values };
    let config = PufferConfig { gamma, lambda, rho_bar, c_bar, variant };
    tokens(batch, len, 1, |out| puffer_advantage(batch, input, &config, out));
    tokens(batch, len, 1, |advantages| {
        let output = RemaxOutput { advantages, returns: &mut vec![UNTOUCHED; n] };
        remax(batch, RemaxInput { rewards, baselines: bootstrap }, output)
    });

    let advantages = reader.pick(&[None, Some(values)]);
    let input = OpdInput { teacher_log_probs: log_probs, old_log_probs, advantages };
    tokens(batch, len, 1, |out| opd_advantage(batch, input, &OpdConfig { coefficient: alpha }, out));
    let config = MinillmConfig {
        gamma,
        from: reader.pick(&[DiscountFrom::Token, DiscountFrom::Start]),
        length: reader.pick(&[
            LengthNormalization::Off,
            LengthNormalization::Kept,
            LengthNormalization::KeptAndPadding,
        ]),
        across,
    };
    let input = MinillmInput { teacher_log_probs: log_probs, old_log_probs };
    tokens(batch, len, 1, |out| minillm_advantage(batch, input, &config, out));
}
