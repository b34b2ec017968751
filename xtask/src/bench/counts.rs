//! Instructions per token, counted by callgrind: the same on a busy machine as on an idle one. The guards count them; here they are shown.

use anyhow::{Context, Result};

use super::{launch::Progress, records::Records};
use crate::{
    install::Need,
    workspace::{stdout_of, Workspace},
};

pub(super) fn measure(workspace: &Workspace, records: &mut Records, progress: &mut Progress) -> Result<()> {
    for need in [Need::Avx2, Need::Program("valgrind", "valgrind")] {
        need.ensure(workspace)?;
    }
    progress.show("counts");
    let mut guards = workspace.cargo();
    guards.args(["run", "--quiet", "--release", "--package", "tokenwise-guards", "--", "--json"]);
    for line in stdout_of(&mut guards)?.lines() {
        records.add("counts", serde_json::from_str(line).with_context(|| format!("the guards said {line:?}"))?);
    }
    Ok(())
}
