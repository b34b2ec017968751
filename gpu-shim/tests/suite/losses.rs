//! Configs of losses whose settings matter together, and configs that the core refuses.

use tokenwise::{loss::*, Batch, Error, Layout, Mask};
use tokenwise_gpu::{GpuBatch, GpuError, Input, PolicyLossColumns};

use crate::adapter::gpu;

/// Configs of losses whose settings matter together.
pub(crate) fn configs(name: &str) -> &'static [&'static str] {
    match name {
        "cispo" => &[
            r#"{"bounds": {"kind": "relative", "low": 0.5, "high": 0.3}, "log_ratio_bound": 0.5}"#,
            r#"{"bounds": {"kind": "absolute", "high": 1.5}, "log_ratio_bound": null}"#,
        ],
        "dppo_tv" | "dppo_kl" => &[r#"{"clip_low": 0.05, "clip_high": 0.3, "ratio_cap": 1.5, "log_ratio_bound": 1}"#],
        "sapo" => &[r#"{"tau_positive": 2, "tau_negative": 0.5, "log_ratio_bound": 1}"#],
        "gspo" => &[
            r#"{"clip_low": 0.1, "clip_high": 0.2}"#,
            r#"{"clip_low": 0.1, "clip_high": 0.2, "form": "token", "log_ratio_cap": 0.05}"#,
            r#"{"form": "token", "aggregate": {"mode": "token-mean"}}"#,
        ],
        "gmpo" => &[
            r#"{"clip_low": 0.1, "clip_high": 2, "divisor": "count-plus-epsilon"}"#,
            r#"{"counts": {"sequences": 20, "ranks": 2}}"#,
        ],
        "value_loss" => &[r#"{"clip": null}"#, r#"{"clip": 0.1, "factor": "whole", "divisor": "count-plus-epsilon"}"#],
        "kl_loss" => &[
            r#"{"kl": {"estimator": "k1"}, "coefficient": 0.5}"#,
            r#"{"kl": {"estimator": "k3", "bounds": "every", "gradient": "straight-through"}}"#,
        ],
        "dual_game" => &[
            r#"{"lambda": 0.1, "beta": 0.05}"#,
            r#"{"lambda": 0.3, "beta": 0.2, "gamma": 1.5, "gradient": "through", "log_ratio_bound": 1}"#,
            r#"{"lambda": 0.3, "gradient": "through", "aggregate": {"mode": "seq-mean-token-mean"}}"#,
        ],
        "opd_loss" => &[
            r#"{"route": "surrogate", "log_ratio_bound": 0.5, "max_loss": 0.5}"#,
            r#"{"route": "reinforce", "kl": {"estimator": "abs"}, "coefficient": 0.5}"#,
            r#"{"route": "supervised", "kl": {"estimator": "k3"}, "max_loss": 1}"#,
            r#"{"kl": {"estimator": "k2"}, "dual_clip": {"negative_only": 1.5}, "divisor": "count-plus-epsilon"}"#,
        ],
        "kl_importance_weighted" | "kl_importance_weighted_gradient" => &[
            r#"{"weight": "sequence"}"#,
            r#"{"weight": "sequence", "kl": {"estimator": "k2", "gradient": "straight-through"}}"#,
            r#"{"weight": "token-bounded"}"#,
            r#"{"weight": "token-finite", "kl": {"bounds": "k3-only"}}"#,
            r#"{"weight": "score-function", "kl": {"estimator": "abs"}}"#,
        ],
        _ => &[],
    }
}

/// Typed calls refuse what the core refuses, before anything is sent.
#[test]
fn refused_configs_get_the_cores_error_and_send_nothing() {
    let Some(gpu) = gpu() else { return };
    let zeros = [0.0_f32; 4];
    let input = PolicyLossColumns {
        log_probs: Input::Host(&zeros),
        old_log_probs: Input::Host(&zeros),
        advantages: Input::Host(&zeros),
        weights: None,
    };
    let core_input = PolicyLossInput::new(&zeros, &zeros, &zeros);
    let keeps = [[true; 4], [false; 4]];
    let sum = Aggregate { mode: AggregateMode::SequenceMeanTokenSumNorm { scale: -1.0 }, ..Default::default() };
    for keep in &keeps {
        let host = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(keep)).unwrap();
        let batch = GpuBatch::new(host);
        let mut recording = gpu.record();
        let mut refused = 0;
        let mut same = |case: &str, got: Option<GpuError>, core: Option<Error>| {
            assert_eq!(got, core.map(GpuError::Core), "{case}");
            refused += usize::from(core.is_some());
        };
        macro_rules! check {
            ($($name:ident($config:expr);)*) => {$(
                let config = $config;
                same(
                    stringify!($name($config)),
                    recording.$name(&batch, &input, &config).err(),
                    $name(&host, core_input, &config, &mut [0.0; 4]).err(),
                );
            )*};
        }
        check! {
            surrogate(SurrogateConfig { log_ratio_bound: Some(-1.0), ..Default::default() });
            surrogate(SurrogateConfig { aggregate: sum, ..Default::default() });
            ppo_clip(PpoConfig { clip_low: -0.1, aggregate: sum, ..Default::default() });
            ppo_clip(PpoConfig { dual_clip: DualClip::BothSigns(0.5), ..Default::default() });
            reinforce(ReinforceConfig { aggregate: sum, ..Default::default() });
            tis_loss(TisLossConfig { aggregate: sum, ..Default::default() });
            cispo(CispoConfig { bounds: CispoBounds::Absolute { high: 0.0 }, ..Default::default() });
            dppo_tv(DppoConfig { ratio_cap: f64::INFINITY, ..Default::default() });
            dppo_kl(DppoConfig { clip_low: -1.0, ..Default::default() });
            dro(DroConfig { beta: 0.0, aggregate: sum, divisor: Default::default() });
            sapo(SapoConfig { tau_negative: 0.0, ..Default::default() });
            gspo(GspoConfig { log_ratio_cap: Some(0.0), ..Default::default() });
            luspo(LuspoConfig { clip_high: -0.5, ..Default::default() });
            gmpo(GmpoConfig { clip_low: -0.5, ..Default::default() });
            gmpo(GmpoConfig { counts: Counts::Global(GlobalCounts::default()), ..Default::default() });
            vespo(VespoConfig { k_positive: 0.0, ..Default::default() });
        }
        assert_eq!(refused, 16);
        let done = pollster::block_on(recording.submit()).unwrap();
        assert_eq!((done.report().bytes_up, done.report().dispatches), (0, 0));
    }
    // an empty batch is refused where the core refuses it
    let host = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&keeps[1])).unwrap();
    let refused = gpu.record().gmpo(&GpuBatch::new(host), &input, &GmpoConfig::default()).err();
    assert_eq!(refused, Some(GpuError::Core(Error::EmptyMask)));
}
