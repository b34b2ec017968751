//! Instructions per token, counted by callgrind: the same on a busy machine as on an idle one.

use std::process::Command;

use anyhow::{Context, Result};

use super::{launch::Progress, native, records::Records};
use crate::{
    install::Need,
    workspace::{shown, Workspace},
};

pub(super) const ITEMS: [&str; 12] = [
    "gae",
    "grpo",
    "ppo",
    "analysis",
    "returns",
    "kl",
    "whiten",
    "step",
    "logits-f32",
    "logits-bf16",
    "logits-gradient-f32",
    "logits-gradient-bf16",
];

pub(super) fn measure(workspace: &Workspace, records: &mut Records, progress: &mut Progress) -> Result<()> {
    Need::Program("valgrind", "valgrind").ensure(workspace)?;
    progress.show("building");
    let native = native::Native { workspace, only: None };
    for (build, name) in [(native::Build::Dispatch, "dispatch"), (native::Build::Baseline, "baseline")] {
        let program = native.program(build)?.with_file_name("counts");
        for item in ITEMS {
            progress.show(&format!("counts: {item}, {name}"));
            let count = |times: &str| {
                let mut valgrind = workspace.command("valgrind");
                valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&program).args([item, times]);
                collected(&mut valgrind)
            };
            // what is outside of the formula is in both
            let ((tokens, once), (_, thrice)) = (count("1")?, count("3")?);
            let per_token = (thrice - once) / 2.0 / tokens;
            records.add("counts", serde_json::json!({ "item": item, "build": name, "instructions": per_token }));
        }
    }
    Ok(())
}

/// What the program printed (its tokens), and how many instructions it took.
fn collected(valgrind: &mut Command) -> Result<(f64, f64)> {
    let output = valgrind.output().with_context(|| format!("cannot run `{}`", shown(valgrind)))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let count = complaint.lines().find_map(|line| line.split("Collected :").nth(1)).map(str::trim);
    let count = count.with_context(|| format!("`{}` counted nothing\n{complaint}", shown(valgrind)))?;
    Ok((String::from_utf8(output.stdout)?.trim().parse()?, count.parse()?))
}
