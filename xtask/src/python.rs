//! `cargo xtask python`: the Python functions of the formulas, from the catalogue's entries and the core's own doc
//! comments.

mod configs;
mod golden;

use std::{collections::BTreeSet, fmt::Write as _, fs};

use anyhow::{bail, Context as _, Result};
use tokenwise_catalogue::{entries, Column, Element, Entry, Kind, Over};

use crate::{
    declarations::{pascal_case, plain, Shape, Source},
    terminal::say,
    workspace::{run, Workspace},
};
use configs::{configs, type_of, BY_HAND_NAMES};

/// Write the Python functions of the formulas
///
/// They are in python/tokenwise_rl/_formulas.py and configs.py, and the golden cases in conformance/golden.json.gz. All
/// are committed: pip builds the package without this command. Without an option it fails if they are out of date.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write the files instead of comparing them
    #[arg(long, conflicts_with = "build")]
    write: bool,
    /// Build the extension, quickly and not optimised, and put it beside the package for its tests
    #[arg(long)]
    build: bool,
}

pub(crate) fn python(workspace: &Workspace, options: &Options) -> Result<()> {
    if options.build {
        return build(workspace);
    }
    let source = Source::read(&workspace.root.join("core/src"))?;
    let folder = workspace.root.join("python/tokenwise_rl");
    let mut stale = Vec::new();
    for (name, text) in [("_formulas.py", formulas(&source)), ("configs.py", configs(&source))] {
        let path = folder.join(name);
        if options.write {
            fs::write(&path, text).with_context(|| path.display().to_string())?;
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            stale.push(name);
        }
    }
    let (packed, cases) = (folder.join(golden::NAME), golden::text(workspace)?);
    if golden::held(&packed) != cases {
        if options.write {
            golden::write(&packed, &cases)?;
        } else {
            stale.push(golden::NAME);
        }
    }
    if !stale.is_empty() {
        bail!("python/tokenwise_rl: {} out of date, run cargo xtask python --write", stale.join(" and "));
    }
    say("the Python functions agree with the catalogue, its golden cases with tests/golden");
    Ok(())
}

fn build(workspace: &Workspace) -> Result<()> {
    let target = workspace.target.join("xtask/python-build");
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--locked", "--features", "pyo3/extension-module"]);
    run(cargo.current_dir(workspace.root.join("python")).env("CARGO_TARGET_DIR", &target))?;
    let (from, to) = (target.join("debug/lib_native.so"), workspace.root.join("python/tokenwise_rl/_native.abi3.so"));
    fs::copy(&from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

/// Letters of a line.
const WIDTH: usize = 120;

const GENERATED: &str = "# Written by `cargo xtask python --write` from the catalogue; changes here are lost.\n";

/// Configs that are one of several rules: one argument instead of one per field.
fn is_rule(source: &Source, name: &str) -> bool {
    !BY_HAND_NAMES.contains(&name) && matches!(source.shapes.get(name), Some(Shape::Choice(_) | Shape::Nullable(_)))
}

fn formulas(source: &Source) -> String {
    let mut page = String::from(GENERATED);
    page += "\"\"\"Every formula of the catalogue.\"\"\"\n\nfrom __future__ import annotations\n\n";
    page += "from typing import TYPE_CHECKING, NamedTuple\n\nfrom ._native import call as _call\n\n";
    page += "if TYPE_CHECKING:\n    from collections.abc import Mapping, Sequence\n    from typing import Any\n\n";
    page += "    from typing_extensions import Unpack\n\n    from . import configs\n";
    page += "    from ._types import Array, Groups\n\n__all__ = [\n";
    for entry in entries() {
        let _ = writeln!(page, "    \"{}\",", entry.name);
        if let Some(result) = result_class(entry) {
            let _ = writeln!(page, "    \"{result}\",");
        }
    }
    page += "]\n";
    for entry in entries() {
        function(&mut page, source, entry);
    }
    page
}

/// The arguments of a function that are columns: the outer name of those that are parts of one.
fn arguments(entry: &'static Entry) -> Vec<(&'static str, Vec<&'static Column>)> {
    let mut arguments: Vec<(&str, Vec<&Column>)> = Vec::new();
    for column in entry.inputs {
        let outer = column.name.split('.').next().unwrap_or(column.name);
        if matches!(column.name, "vocab" | "k" | "width") || outer == "raw_layout" {
            continue;
        }
        match arguments.iter_mut().find(|(known, _)| *known == outer) {
            Some((_, columns)) => columns.push(column),
            None => arguments.push((outer, vec![column])),
        }
    }
    arguments
}

fn takes_groups(entry: &Entry) -> Option<bool> {
    match entry.over {
        Over::Groups | Over::BatchAndGroups => Some(true),
        _ if matches!(entry.name, "trl_metrics" | "openrlhf_metrics") => Some(false),
        _ => entry.inputs.iter().any(|column| column.name == "group_tokens").then_some(false),
    }
}

fn function(page: &mut String, source: &Source, entry: &'static Entry) {
    if let Some(class) = result_class(entry) {
        let _ =
            write!(page, "\n\nclass {class}(NamedTuple):\n    \"\"\"The result of :func:`{}`.\"\"\"\n\n", entry.name);
        for (name, ty) in result_fields(entry) {
            let _ = writeln!(page, "    {name}: {ty}");
        }
    }
    let arguments = arguments(entry);
    let batch = matches!(entry.over, Over::Batch | Over::BatchAndGroups | Over::Layout);
    let required = |columns: &[&Column]| columns.iter().any(|column| !column.optional && column.name != "bootstrap");
    let _ = write!(page, "\n\ndef {}(\n    *,\n", entry.name);
    for (name, columns) in arguments.iter().filter(|(_, columns)| required(columns)) {
        let _ = writeln!(page, "    {name}: {},", argument_type(columns));
    }
    if takes_groups(entry) == Some(true) {
        *page += "    groups: Groups,\n";
    }
    let rule = entry.config.filter(|config| is_rule(source, config.name));
    for (name, columns) in arguments.iter().filter(|(_, columns)| !required(columns)) {
        let _ = writeln!(page, "    {name}: {} | None = None,", argument_type(columns));
    }
    if entry.name == "shift" {
        *page += "    raw_cu_seqlens: Array | None = None,\n";
    }
    if takes_groups(entry) == Some(false) {
        *page += "    groups: Groups | None = None,\n";
    }
    if entry.over == Over::Layout {
        *page += "    cu_seqlens: Array | None = None,\n";
    } else if batch {
        *page += "    mask: Array | None = None,\n    cu_seqlens: Array | None = None,\n";
    }
    if rule.is_some() {
        let config = rule.map_or("", |config| config.name);
        let default = if source.defaults.contains(config) { " | None = None" } else { "" };
        let _ = writeln!(page, "    rule: configs.{config}{default},");
    } else if let Some(config) = entry.config {
        let config = resolved(source, config.name);
        if collides(source, &config, &arguments) {
            let _ = writeln!(page, "    config: configs.{config} | None = None,");
        } else {
            let _ = writeln!(page, "    **config: Unpack[configs.{config}],");
        }
    }
    let _ = writeln!(page, ") -> {}:", result_type(entry));
    docstring(page, "    ", &document(source, entry));
    // what the native module returns has no type
    let ignored = if result_type(entry) == "Array" { "" } else { "  # type: ignore[no-any-return]" };
    let _ = writeln!(page, "    return _call({ignored}");
    let _ = writeln!(page, "        \"{}\",", entry.name);
    let mut pairs: Vec<String> = arguments.iter().map(|(name, _)| format!("\"{name}\": {name}")).collect();
    if entry.name == "shift" {
        pairs.push("\"raw_cu_seqlens\": raw_cu_seqlens".into());
    }
    let line = format!("        {{{}}},", pairs.join(", "));
    match line.len() > WIDTH {
        false => *page += &(line + "\n"),
        true => {
            let _ = writeln!(page, "        {{\n            {},\n        }},", pairs.join(",\n            "));
        }
    }
    let config = match (rule, entry.config) {
        (Some(_), _) => "rule",
        (None, Some(_)) => "config",
        (None, None) => "None",
    };
    let mask = if batch && entry.over != Over::Layout { "mask" } else { "None" };
    let (offsets, groups) =
        (if batch { "cu_seqlens" } else { "None" }, takes_groups(entry).map_or("None", |_| "groups"));
    let class = result_class(entry).unwrap_or_else(|| "None".into());
    let _ = write!(
        page,
        "        {config},\n        {mask},\n        {offsets},\n        {groups},\n        {class},\n    )\n"
    );
}

/// The struct behind another name of a config.
fn resolved(source: &Source, name: &str) -> String {
    match source.shapes.get(name) {
        Some(Shape::Alias(ty)) => resolved(source, &type_of(ty, &mut BTreeSet::new())),
        _ => name.to_owned(),
    }
}

/// Whether a setting has the name of an input; then all settings are one argument.
fn collides(source: &Source, config: &str, arguments: &[(&str, Vec<&Column>)]) -> bool {
    match source.shapes.get(config) {
        Some(Shape::Struct(fields)) => fields.iter().any(|field| arguments.iter().any(|(name, _)| *name == field.name)),
        _ => false,
    }
}

fn argument_type(columns: &[&Column]) -> &'static str {
    match columns {
        [column] if !column.name.contains('.') => match (column.kind, column.element) {
            (_, Element::Size) => "int",
            (_, Element::Number) => "float",
            (_, Element::Text) => "str",
            (Kind::List, _) => "Array | Sequence[float]",
            _ => "Array",
        },
        _ => "Mapping[str, Any] | object",
    }
}

/// The class of a result with several parts.
fn result_class(entry: &Entry) -> Option<String> {
    match (entry.numbers, entry.outputs) {
        ([], [_]) | ([_], []) => None,
        _ => Some(format!("{}Result", pascal_case(entry.name))),
    }
}

fn result_fields(entry: &Entry) -> Vec<(String, &'static str)> {
    let mut fields: Vec<(String, &'static str)> = Vec::new();
    for name in entry.numbers {
        let (outer, inner) = name.split_once('.').unwrap_or((name, ""));
        if fields.iter().all(|(known, _)| known != outer) {
            let ty = match (inner, outer) {
                ("", _) => "float",
                (_, "overlap") => "dict[str, float] | None",
                _ => "dict[str, float]",
            };
            fields.push((outer.to_owned(), ty));
        }
    }
    // a named tuple has methods `count` and `index`
    for (name, _) in &mut fields {
        if matches!(name.as_str(), "count" | "index") {
            name.push('_');
        }
    }
    fields.extend(entry.outputs.iter().map(|output| (output.name.to_owned(), "Array")));
    fields
}

fn result_type(entry: &Entry) -> String {
    match (entry.numbers, entry.outputs) {
        ([], [_]) => "Array".into(),
        (["*"], []) => "dict[str, float]".into(),
        ([_], []) => "float".into(),
        _ => result_class(entry).unwrap_or_default(),
    }
}

fn document(source: &Source, entry: &'static Entry) -> String {
    let known = source.functions.get(entry.name).map(|function| function.doc.as_str());
    let of_type = || match entry.name {
        "analysis_sums" => source.docs.get("Analysis"),
        "co_moments" => source.docs.get("CoMoments"),
        "moments" => source.docs.get("Moments"),
        _ => None,
    };
    let mut text = plain(known.or_else(|| of_type().map(String::as_str)).unwrap_or(entry.name));
    let input = source.functions.get(entry.name).and_then(|function| function.input.clone());
    let lines: Vec<String> = arguments(entry)
        .iter()
        .filter_map(|(name, columns)| {
            let doc = input.as_ref().and_then(|input| source.field_doc(input, name)).map(plain).unwrap_or_default();
            let shape = columns.first().map_or("", |column| shape(column));
            let doc = doc.lines().collect::<Vec<_>>().join(" ");
            let text = [shape, doc.as_str()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
            (!text.is_empty()).then(|| format!("``{name}``: {text}"))
        })
        .collect();
    if !lines.is_empty() {
        let _ = write!(text, "\n\n{}", lines.join("\n\n"));
    }
    if let Some(config) = entry.config {
        let of = if is_rule(source, config.name) { "``rule`` is" } else { "Settings are" };
        let _ = write!(text, "\n\n{of} those of ``configs.{}``.", config.name);
    }
    text
}

const fn shape(column: &Column) -> &'static str {
    match column.kind {
        Kind::Token => "``[batch, length]``, or ``[tokens]`` with ``cu_seqlens``",
        Kind::Sequence => "``[batch]``",
        Kind::Logit => "``[batch, length, vocabulary]``",
        Kind::TopK => "``[batch, length, k]``",
        Kind::Source => "``[sources, batch]``",
        Kind::Group => "``[groups]``",
        _ => "",
    }
}

fn docstring(page: &mut String, indent: &str, text: &str) {
    let text = text.replace('\\', "\\\\").replace("\"\"\"", "'''");
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.chars().count() + word.chars().count() + 1 > 112 {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        lines.push(line);
    }
    match lines.as_slice() {
        [line] if line.chars().count() < 104 => {
            let _ = writeln!(page, "{indent}\"\"\"{line}\"\"\"");
        }
        [first, rest @ ..] => {
            let _ = writeln!(page, "{indent}\"\"\"{first}");
            for line in rest {
                let _ = writeln!(page, "{}", format!("{indent}{line}").trim_end());
            }
            let _ = writeln!(page, "{indent}\"\"\"");
        }
        [] => (),
    }
}
