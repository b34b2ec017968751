//! Builds `tokenwise-wasm` and the JavaScript around it.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{bail, Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::{
    install::Need,
    options::Options,
    wasm_package::package,
    workspace::{stdout_of, Workspace},
};

const TARGET: &str = "wasm32-unknown-unknown";
const SIMD128: &str = "-C target-feature=+simd128";
/// The class of the errors, which the module throws.
const GLUE: &str = include_str!("../../wasm/src/glue.js");

pub(crate) const HELP: &str = "\
cargo xtask wasm

Builds the npm package, target/wasm/package: the whole and, as tokenwise/chain, the functions from logits to a clipped loss;
each with and without simd128, chosen when it is loaded. Beside it, for the tests, each build alone for Node: target/wasm/node,
node-simd, chain and chain-simd hold tokenwise.js (an ES module), its declarations and the module. The page has its own,
see cargo xtask playground.
";

/// Which loader the generated JavaScript is for.
#[derive(Clone, Copy)]
pub(crate) enum Host {
    Node,
    Web,
    /// The web, with the address of the module left to the caller.
    Package,
}

/// How much of the package.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Full,
    /// From logits to a clipped loss, and the metrics of that.
    Chain,
}

/// Whether the module may use 128-bit vectors.
#[derive(Clone, Copy)]
pub(crate) enum Simd {
    Plain,
    Simd128,
}

pub(crate) fn wasm(workspace: &Workspace, options: Options) -> Result<()> {
    options.finish()?;
    let folder = workspace.target.join("wasm");
    for (simd, part, name) in [
        (Simd::Plain, Part::Full, "node"),
        (Simd::Simd128, Part::Full, "node-simd"),
        (Simd::Plain, Part::Chain, "chain"),
        (Simd::Simd128, Part::Chain, "chain-simd"),
    ] {
        generate(&compile_part(workspace, simd, part)?, Host::Node, &folder.join(name))?;
    }
    package(workspace, &folder.join("package"), &folder.join("node"), &folder.join("chain"))?;
    println!("{}", folder.display());
    Ok(())
}

/// Compiles the whole crate and returns the module.
pub(crate) fn compile(workspace: &Workspace, simd: Simd) -> Result<PathBuf> {
    compile_part(workspace, simd, Part::Full)
}

/// Compiles the crate, or the chain alone, and returns the module.
pub(crate) fn compile_part(workspace: &Workspace, simd: Simd, part: Part) -> Result<PathBuf> {
    if !workspace.root.join("wasm/Cargo.toml").exists() {
        bail!("there is no package tokenwise-wasm (wasm/Cargo.toml)");
    }
    Need::Target(TARGET).ensure(workspace)?;
    let (flags, folder) = match (simd, part) {
        (Simd::Plain, Part::Full) => ("", "wasm"),
        (Simd::Plain, Part::Chain) => ("", "wasm-chain"),
        (Simd::Simd128, Part::Full) => (SIMD128, "wasm-simd128"),
        (Simd::Simd128, Part::Chain) => (SIMD128, "wasm-chain-simd128"),
    };
    eprintln!("tokenwise-wasm, {folder} …");
    let mut cargo = workspace.cargo_with_flags(flags, folder);
    cargo.args(["build", "--quiet", "--package", "tokenwise-wasm", "--lib", "--profile", "wasm", "--target", TARGET]);
    if let Part::Chain = part {
        cargo.arg("--no-default-features");
    }
    stdout_of(&mut cargo)?;
    Ok(workspace.target.join("xtask").join(folder).join(TARGET).join("wasm/tokenwise_wasm.wasm"))
}

/// Writes the module and its JavaScript and declarations into a folder, which is emptied before.
pub(crate) fn generate(module: &Path, host: Host, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).typescript(true).remove_name_section(true).remove_producers_section(true);
    match host {
        Host::Node => bindgen.nodejs_module(true)?,
        // otherwise `init()` without arguments throws
        Host::Web => bindgen.web(true)?.omit_default_module_path(false),
        Host::Package => bindgen.web(true)?.omit_default_module_path(true),
    };
    bindgen.out_name("tokenwise");
    bindgen.generate(folder).with_context(|| format!("JavaScript for {}", module.display()))?;
    complete(folder).with_context(|| folder.display().to_string())?;
    let package = serde_json::json!({
        "name": "tokenwise",
        "version": env!("CARGO_PKG_VERSION"),
        "license": env!("CARGO_PKG_LICENSE"),
        "type": "module",
        "main": "tokenwise.js",
        "types": "tokenwise.d.ts",
    });
    fs::write(folder.join("package.json"), format!("{package:#}\n"))?;
    Ok(())
}

/// Adds what the generator does not know of: the class of the errors, and one function for every row of the module's tables.
fn complete(folder: &Path) -> Result<()> {
    let (script, types) = (folder.join("tokenwise.js"), folder.join("tokenwise.d.ts"));
    let declared = fs::read_to_string(&types)?;
    let (rows, declarations) = split_rows(&declared);
    let functions = functions(&rows)?;
    let mut text = fs::read_to_string(&script)?;
    if !text.contains(ENTRY) || functions.is_empty() {
        bail!("the module has no entry or no table");
    }
    text = text.replace(ENTRY, ENTRY.trim_start_matches("export "));
    text.push_str(GLUE);
    functions.iter().for_each(|function| text.push_str(&function.script()));
    fs::write(script, text)?;
    fs::write(types, only(&declarations, &functions))?;
    Ok(())
}

const ENTRY: &str = "export function invoke(";

/// A function of JavaScript.
struct Function {
    name: String,
    arguments: String,
    id: usize,
}

impl Function {
    fn script(&self) -> String {
        let Self { name, arguments, id } = self;
        format!("export function {name}({arguments}) {{ return invoke({id}, {arguments}); }}\n")
    }
}

/// The lines that `export!` leaves among the declarations, and the declarations without them.
fn split_rows(types: &str) -> (Vec<&str>, String) {
    let rows = types.lines().filter_map(|line| line.strip_prefix("//@ ")).collect();
    let mut declarations = String::new();
    for line in types.lines().filter(|line| !line.starts_with("//@ ")) {
        declarations.push_str(line);
        declarations.push('\n');
    }
    (rows, declarations)
}

/// `table name, nameF64 (arguments)`: the rows of a table come in their order.
fn functions(rows: &[&str]) -> Result<Vec<Function>> {
    let (mut all, mut next) = (Vec::new(), HashMap::new());
    for row in rows {
        let parts = row.split_once(' ').and_then(|(table, rest)| Some((table, rest.split_once(" (")?)));
        let (table, (names, arguments)) = parts.with_context(|| format!("no row of a table: {row}"))?;
        let index: &mut usize = next.entry(table).or_default();
        for (double, name) in names.split(", ").enumerate() {
            all.push(Function {
                name: name.into(),
                arguments: arguments.trim_end_matches(')').into(),
                id: table.parse::<usize>()? << 8 | *index << 1 | double,
            });
        }
        *index += 1;
    }
    Ok(all)
}

/// The declarations without those of functions that this module has not, and without their comments.
fn only(declarations: &str, functions: &[Function]) -> String {
    let (mut out, mut comment, mut skipping) = (String::new(), String::new(), false);
    for line in declarations.split_inclusive('\n') {
        if skipping {
            skipping = !line.trim_end().ends_with(';');
            continue;
        }
        let name = line.strip_prefix("export function ").and_then(|rest| rest.split(['(', '<']).next());
        if let Some(name) = name.filter(|name| !functions.iter().any(|function| function.name == *name)) {
            // what the generator itself declares stays
            if name != "initSync" {
                comment.clear();
                skipping = !line.trim_end().ends_with(';');
                continue;
            }
        }
        let inside = line.starts_with("/**") || (!comment.is_empty() && !comment.ends_with("*/\n"));
        if inside {
            comment.push_str(line);
        } else {
            out.push_str(&comment);
            comment.clear();
            out.push_str(line);
        }
    }
    out + &comment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_numbered_within_their_table() {
        let (rows, rest) =
            split_rows("//@ 0 exp, expF64 (x)\nexport type A = 1;\n//@ 0 keys (a, b)\n//@ 2 mean, meanF64 (batch)\n");
        assert_eq!(rest, "export type A = 1;\n");
        let all = functions(&rows).unwrap();
        let found: Vec<_> = all.iter().map(|f| (f.name.as_str(), f.id)).collect();
        assert_eq!(found, [("exp", 0), ("expF64", 1), ("keys", 2), ("mean", 512), ("meanF64", 513)]);
        assert_eq!(all[2].script(), "export function keys(a, b) { return invoke(2, a, b); }\n");
    }

    #[test]
    fn declarations_of_missing_functions_go_with_their_comments() {
        let all = functions(&["0 exp (x)"]).unwrap();
        let text = "/** A. */\nexport function exp(x: number): number;\n/**\n * B.\n */\nexport function gone(\n  x: number,\n): number;\n/** C. */\nexport type C = 1;\n";
        assert_eq!(
            only(text, &all),
            "/** A. */\nexport function exp(x: number): number;\n/** C. */\nexport type C = 1;\n"
        );
    }
}
