//! Lists the configs of the core for the tests of their spelling.
#![allow(clippy::unwrap_used, reason = "a build fails by panicking")]

use std::{env, fs, path::Path};

/// Adds the public structs `…Config` with a default in the sources below a folder.
fn find(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut derived = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("pub struct ") {
                let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                let written = [' ', '<'].iter().any(|end| text.contains(&format!("impl Default for {name}{end}")));
                if name.ends_with("Config") && (derived || written) {
                    found.push(name.to_owned());
                }
            }
            let attribute = line.starts_with("#[") || line.starts_with("///");
            derived = attribute && (derived || line.starts_with("#[derive(") && line.contains("Default"));
        }
    }
}

fn main() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
    println!("cargo:rerun-if-changed={}", core.display());
    let mut found = Vec::new();
    find(&core, &mut found);
    found.sort();
    let list = format!(
        "macro_rules! found {{\n    ($check:ident, $($more:ident),*) => {{ configs! {{ $check: {}, $($more),* }} }};\n}}\n",
        found.join(", ")
    );
    fs::write(Path::new(&env::var_os("OUT_DIR").unwrap()).join("configs.rs"), list).unwrap();
}
