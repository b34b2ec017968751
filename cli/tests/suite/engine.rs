//! `tokenwise metrics --engine`.

#[cfg(feature = "gpu-shim")]
use crate::metrics::metrics;

use crate::command::{fixture, Folder};

/// Without the feature the message names it.
#[cfg(not(feature = "gpu-shim"))]
#[test]
fn a_build_without_the_engine_says_which_feature_it_lacks() {
    let folder = Folder::new("engine");
    let file = fixture("rollouts.jsonl");
    folder.run(&["metrics", &file, "--engine", "gpu"]).refused(2, &["--engine gpu", "--features gpu-shim"]);
    let plain = folder.run(&["metrics", &file, "--json"]).done();
    for engine in ["cpu", "auto"] {
        assert_eq!(folder.run(&["metrics", &file, "--json", "--engine", engine]).done().out, plain.out);
    }
}

/// The losses are the core's within f32, and stderr says who computed them.
#[cfg(feature = "gpu-shim")]
#[test]
fn the_gpu_computes_the_losses_and_says_so() {
    let folder = Folder::new("engine");
    let file = fixture("rollouts.jsonl");
    let run = folder.run(&["metrics", &file, "--engine", "gpu", "--json"]);
    if run.code == 2 && run.err.contains("no GPU adapter") {
        assert!(!std::env::var("CI").is_ok_and(|ci| ci == "true"), "CI must have an adapter: {}", run.err);
        eprintln!("SKIPPED, the engine was not tested: {}", run.err);
        return;
    }
    let run = run.done();
    for words in ["engine: GPU ", "engine: ppo_clip on the GPU, 1 call, ", " bytes up, ", "everything else on the core"]
    {
        assert!(run.err.contains(words), "{words:?} is missing: {}", run.err);
    }
    let (gpu, core) = (metrics(&folder, &file, &["--engine", "gpu"]), metrics(&folder, &file, &["--engine", "cpu"]));
    let core = core[0]["metrics"].as_object().unwrap();
    assert!(core.contains_key("actor/pg_loss"));
    for (key, wanted) in core {
        let (got, wanted) = (gpu[0]["metrics"][key].as_f64().unwrap(), wanted.as_f64().unwrap());
        assert!((got - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()), "{key}: {got}, {wanted}");
    }
    // a software adapter, or a file this small, is left to the core
    let run = folder.run(&["metrics", &file, "--engine", "auto"]).done();
    assert!(run.err.contains("engine: ppo_clip on the core, 1 call: "), "{}", run.err);
    let quiet = folder.run(&["metrics", &file]).done();
    assert!(!quiet.err.contains("engine"), "{}", quiet.err);
}
