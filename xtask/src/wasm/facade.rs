//! `tokenwise.js` and its declarations: one function per formula of the catalogue and precision, beside what stands in
//! `wasm/js` and `wasm/types`.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use tokenwise_catalogue::{Column, Element, Entry, Over};

use super::build::{Host, Part};
use crate::declarations::{camel_case, declarations, methods};

/// For every package.
const SCRIPTS: [(&str, &str); 4] = [
    ("error.js", include_str!("../../../wasm/js/error.js")),
    ("objects.js", include_str!("../../../wasm/js/objects.js")),
    ("formula.js", include_str!("../../../wasm/js/formula.js")),
    ("chain.js", include_str!("../../../wasm/js/chain.js")),
];
const WHOLE: (&str, &str) = ("whole.js", include_str!("../../../wasm/js/whole.js"));
const GPU: (&str, &str) = ("gpu.js", include_str!("../../../wasm/js/gpu.js"));
/// For Node.
const MEMORY: (&str, &str) = ("memory.js", include_str!("../../../wasm/js/memory.js"));

/// The classes, and the functions that are not formulas of the catalogue.
const TYPES: [&str; 3] = [
    include_str!("../../../wasm/types/chain.ts"),
    include_str!("../../../wasm/types/whole.ts"),
    include_str!("../../../wasm/types/gpu.ts"),
];

/// The formulas of a package.
fn entries(part: Part) -> Vec<&'static Entry> {
    match part {
        Part::Full | Part::Gpu => tokenwise_catalogue::entries().collect(),
        Part::Chain => tokenwise_catalogue::chain().collect(),
    }
}

/// Writes the facade into a folder with the bindings.
pub(super) fn write(core: &Path, part: Part, host: Host, folder: &Path) -> Result<()> {
    let more: &[_] = match part {
        Part::Full => &[WHOLE],
        Part::Chain => &[],
        Part::Gpu => &[WHOLE, GPU],
    };
    let memory = if let Host::Web = host { None } else { Some(&MEMORY) };
    for (name, text) in SCRIPTS.iter().chain(more).chain(memory) {
        fs::write(folder.join(name), text)?;
    }
    fs::write(folder.join("tokenwise.js"), script(part, host))?;
    let types = match part {
        Part::Full => TYPES[..2].concat(),
        Part::Chain => TYPES[0].to_owned(),
        Part::Gpu => TYPES.concat(),
    };
    let mut formulas = declarations(core, entries(part).into_iter()).context("declarations")?;
    if let Part::Gpu = part {
        formulas += &methods(core, entries(part).into_iter())?;
    }
    let init = if let Host::Web = host { INIT } else { "" };
    fs::write(folder.join("tokenwise.d.ts"), types + &formulas + init)?;
    Ok(())
}

/// For hosts that load the module when they are told to.
const INIT: &str = "\
/** Loads the module; to be awaited before the first call. */
export default function init(module?: { module_or_path: URL | string | Response | BufferSource }): Promise<unknown>;
";

/// The exports of a package.
fn script(part: Part, host: Host) -> String {
    let mut script =
        String::from("import { alone, overBatch } from \"./formula.js\";\n\nexport * from \"./chain.js\";\n");
    if !matches!(part, Part::Chain) {
        script += "export * from \"./whole.js\";\n";
    }
    if let Part::Gpu = part {
        script += "import { formula } from \"./gpu.js\";\nexport { Gpu } from \"./gpu.js\";\n";
    }
    script += match host {
        Host::Node => "import \"./memory.js\";\n",
        Host::Web | Host::Package => "export { default, initSync } from \"./bindings.js\";\n",
    };
    script.push('\n');
    for entry in entries(part) {
        let name = camel_case(entry.name);
        let kind = if matches!(entry.over, Over::Batch | Over::BatchAndGroups) { "overBatch" } else { "alone" };
        script += &format!("export const {name} = {kind}(\"{}\", false);\n", entry.name);
        if has_precision(entry) {
            script += &format!("export const {name}F64 = {kind}(\"{}\", true);\n", entry.name);
        }
        if let Part::Gpu = part {
            script += &format!("formula(\"{name}\", \"{}\", {});\n", entry.name, kind == "overBatch");
        }
    }
    script
}

/// Whether a formula reads or writes numbers of the call's type; those of ids and counts alone have one name.
pub(crate) fn has_precision(entry: &Entry) -> bool {
    let real = |column: &Column| column.element == Element::Real;
    entry.inputs.iter().any(real) || entry.outputs.iter().any(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_have_a_name_for_each_precision_they_have() {
        let script = script(Part::Full, Host::Node);
        for line in [
            "export const gae = overBatch(\"gae\", false);",
            "export const gaeF64 = overBatch(\"gae\", true);",
            "export const pfPpoIndices = alone(\"pf_ppo_indices\", false);",
            "export const groupTokens = overBatch(\"group_tokens\", false);",
        ] {
            assert!(script.lines().any(|found| found == line), "{line}");
        }
        assert!(!script.contains("groupTokensF64") && !script.contains("pfPpoIndicesF64"));
    }

    #[test]
    fn every_formula_is_a_method_of_the_gpu() {
        let script = script(Part::Gpu, Host::Web);
        assert_eq!(script.lines().filter(|line| line.starts_with("formula(")).count(), entries(Part::Gpu).len());
        assert!(script.contains("formula(\"ppoClip\", \"ppo_clip\", true);"));
        assert!(script.contains("formula(\"groupRelative\", \"group_relative\", false);"));
    }

    #[test]
    fn the_chain_is_a_part() {
        let (whole, chain) = (script(Part::Full, Host::Node), script(Part::Chain, Host::Node));
        let functions =
            |script: &str| script.lines().filter(|line| line.contains(" = ")).map(str::to_owned).collect::<Vec<_>>();
        assert!(functions(&chain).iter().all(|line| whole.contains(line)));
        assert!(functions(&chain).len() < functions(&whole).len() / 2);
    }
}
