//! Instructions per token, counted by callgrind. Counts do not depend on the load of the machine.

use anyhow::{bail, Context, Result};
use serde_json::Value;
use tokenwise_guards::KERNELS;

use super::{launch::Progress, records::Records};
use crate::{
    tiers::{count, COUNT_NEEDS},
    workspace::{stdout_of, Workspace},
};

pub(super) fn measure(workspace: &Workspace, records: &mut Records, progress: &mut Progress) -> Result<()> {
    COUNT_NEEDS.iter().try_for_each(|need| need.ensure(workspace))?;
    progress.show("counts");
    let printed = stdout_of(count(workspace).args(["--", "--output-format=json"]))?;
    let summaries = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
    let counts: Vec<(String, f64)> = summaries.map(|summary| read(&summary?)).collect::<Result<_>>()?;
    for kernel in &KERNELS {
        let Some((_, count)) = counts.iter().find(|(name, _)| name == kernel.name) else {
            bail!("{} was not counted", kernel.name);
        };
        let each = count / kernel.slots as f64;
        let record = serde_json::json!({ "kernel": kernel.name, "instructions": each, "limit": kernel.limit });
        records.add("counts", record);
    }
    Ok(())
}

/// The name of a kernel and its instructions, from the summary that gungraun prints for one benchmark.
fn read(summary: &Value) -> Result<(String, f64)> {
    let name = summary["id"].as_str().context("a benchmark without a name")?;
    // besides the new value there is the old one of an earlier run
    let values = &summary["profiles"][0]["data"]["total"]["metrics"]["Ir"]["values"];
    let count = values["new"].as_f64();
    Ok((name.to_owned(), count.with_context(|| format!("no count of {name}"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_with_and_without_an_earlier_run() {
        let summary = |values: &str| {
            let text = r#"{"id":"gae_f32","profiles":[{"data":{"total":{"metrics":{"Ir":{"values":VALUES}}}}}]}"#;
            read(&serde_json::from_str(&text.replace("VALUES", values)).unwrap())
        };
        assert_eq!(summary(r#"{"new":103246}"#).unwrap(), ("gae_f32".to_owned(), 103_246.0));
        assert_eq!(summary(r#"{"new":7,"old":8}"#).unwrap().1, 7.0);
        assert!(summary("{}").is_err());
    }
}
