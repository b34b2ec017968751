//! The TypeScript declarations of the formulas, from the catalogue's entries and the core's own doc comments.
//!
//! The entries say what a function reads, writes and returns; what a config holds, and every sentence, comes from the
//! source of the core. Only the classes and the few functions that are not formulas of the catalogue are declared by
//! hand.

mod source;

pub(crate) use source::{Content, Shape, Source};

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;
use syn::{GenericArgument, PathArguments, Type};
use tokenwise_catalogue::{Column, Element, Entry, Over};

use crate::wasm::has_precision;

/// Types whose JavaScript form differs from their Rust form; they are declared by hand.
const BY_HAND: [&str; 7] =
    ["Aggregate", "AggregateMode", "Counts", "GlobalCounts", "BypassConfig", "RejectionConfig", "PolicyLambda"];

/// Formulas that are not functions of the core but give a type of it, whose comment is theirs.
const OF_TYPES: [(&str, &str); 3] =
    [("analysis_sums", "Analysis"), ("co_moments", "CoMoments"), ("moments", "Moments")];

/// The declarations of some formulas, and of the inputs and configs they name.
pub(crate) fn declarations(core: &Path, entries: impl Iterator<Item = &'static Entry>) -> Result<String> {
    let source = Source::read(core)?;
    let mut page = Page { source: &source, text: String::new(), inputs: BTreeMap::new(), types: BTreeSet::new() };
    entries.for_each(|entry| page.function(entry));
    page.inputs();
    page.types();
    Ok(page.text)
}

/// The formulas as methods of `Gpu`, as an interface that is merged with the class: the functions in `f32`, each with a
/// promise of its result and a report.
pub(crate) fn methods(core: &Path, entries: impl Iterator<Item = &'static Entry>) -> Result<String> {
    let source = Source::read(core)?;
    let mut page = Page { source: &source, text: String::new(), inputs: BTreeMap::new(), types: BTreeSet::new() };
    page.text += "export interface Gpu {\n";
    for entry in entries {
        let name = camel_case(entry.name);
        let parameters = page.parameters(entry, "Float32Array").join(", ");
        let result = result(entry, "Float32Array");
        page.text += &format!("  /** {{@link {name}}} on the GPU. */\n");
        page.text += &format!("  {name}({parameters}): Promise<Answer<{result}>>;\n");
    }
    page.text += "}\n\n";
    Ok(page.text)
}

/// The declarations as they grow.
struct Page<'s> {
    source: &'s Source,
    text: String,
    /// The fields of each input, by the name of its type.
    inputs: BTreeMap<String, Vec<&'static Column>>,
    /// Types that were named and not written yet.
    types: BTreeSet<String>,
}

impl Page<'_> {
    fn function(&mut self, entry: &'static Entry) {
        let name = camel_case(entry.name);
        let known = self.source.functions.get(entry.name);
        let of_type = OF_TYPES.iter().find(|(formula, _)| *formula == entry.name);
        let of_type = of_type.and_then(|(_, name)| self.source.docs.get(*name)).map_or("", String::as_str);
        self.comment("", known.map_or(of_type, |function| &function.doc));
        let precisions = [("", "Float32Array"), ("F64", "Float64Array")];
        for (suffix, array) in &precisions[..if has_precision(entry) { 2 } else { 1 }] {
            if *suffix == "F64" {
                self.text += &format!("/** {{@link {name}}} in f64. */\n");
            }
            let mut parameters = self.parameters(entry, array);
            if let Some(into) = into(entry, array) {
                parameters.push(format!("into?: {into}"));
            }
            let (parameters, result) = (parameters.join(", "), result(entry, array));
            self.text += &format!("export function {name}{suffix}({parameters}): {result};\n");
        }
        self.text += "\n";
    }

    /// The parameters of a formula, but for the arrays of the caller's that results are written into.
    fn parameters(&mut self, entry: &'static Entry, array: &str) -> Vec<String> {
        let known = self.source.functions.get(entry.name);
        let mut parameters: Vec<String> = match entry.over {
            Over::Batch => vec!["batch: Batch".into()],
            Over::BatchAndGroups => vec!["batch: Batch".into(), "groups: Groups".into()],
            Over::Groups => vec!["groups: Groups".into()],
            Over::Layout => vec!["layout: RawLayout".into()],
            _ => vec![],
        };
        match columns(entry).as_slice() {
            [] => (),
            [column] => parameters.push(format!("{}: {}", camel_case(column.name), array_type(column, array))),
            all => {
                let own = || format!("{}Input", pascal_case(entry.name));
                let input = known.and_then(|known| known.input.clone()).unwrap_or_else(own);
                parameters.push(format!("input: {input}<{array}>"));
                self.inputs.entry(input).or_insert_with(|| all.to_vec());
            }
        }
        if let Some(config) = entry.config {
            let optional = if self.source.defaults.contains(config.name) { "?" } else { "" };
            parameters.push(format!("config{optional}: {}", config.name));
            self.types.insert(config.name.to_owned());
        }
        parameters
    }

    /// A doc comment; links to Rust items become plain names.
    fn comment(&mut self, indent: &str, doc: &str) {
        let doc = plain(doc);
        match doc.lines().collect::<Vec<_>>().as_slice() {
            [] => (),
            [line] => self.text += &format!("{indent}/** {line} */\n"),
            lines => {
                self.text += &format!("{indent}/**\n");
                lines.iter().for_each(|line| self.text += &format!("{indent} * {line}\n"));
                self.text += &format!("{indent} */\n");
            }
        }
    }

    fn inputs(&mut self) {
        for (name, columns) in std::mem::take(&mut self.inputs) {
            self.comment("", self.source.docs.get(&name).map_or("", String::as_str));
            self.text += &format!("export interface {name}<A> {{\n");
            let mut records: Vec<(&str, Vec<&Column>)> = Vec::new();
            for column in columns {
                let record = column.name.split_once('.').map_or(column.name, |(record, _)| record);
                match records.iter_mut().find(|(known, _)| *known == record) {
                    Some((_, fields)) => fields.push(column),
                    None => records.push((record, vec![column])),
                }
            }
            for (record, columns) in records {
                self.comment("  ", self.source.field_doc(&name, record).unwrap_or(""));
                let optional = if columns.iter().all(|column| column.optional) { "?" } else { "" };
                let ty = match columns.as_slice() {
                    _ if record == "raw_layout" => "RawLayout".into(),
                    [column] if column.name == record => array_type(column, "A"),
                    fields => {
                        let fields = fields.iter().map(|column| {
                            let field = column.name.split_once('.').map_or(column.name, |(_, field)| field);
                            let mark = if column.optional && optional.is_empty() { "?" } else { "" };
                            format!("{}{mark}: {}", camel_case(field), array_type(column, "A"))
                        });
                        // the rewards of TRL are grouped, and their sources have names
                        let more = if record == "rewards" { "groups: Groups; names: string[]; " } else { "" };
                        format!("{{ {more}{} }}", fields.collect::<Vec<_>>().join("; "))
                    }
                };
                let optional = if record == "raw_layout" { "" } else { optional };
                self.text += &format!("  {}{optional}: {ty};\n", camel_case(record));
            }
            if name == "OpenRlhfInput" {
                self.text += "  /** Which sequences answer the same prompt. */\n  groups?: Groups;\n";
            }
            self.text += "}\n\n";
        }
    }

    fn types(&mut self) {
        let mut written: BTreeSet<String> = BY_HAND.iter().map(|name| (*name).to_owned()).collect();
        while let Some(name) = self.types.pop_first() {
            if !written.insert(name.clone()) {
                continue;
            }
            let Some(shape) = self.source.shapes.get(&name) else { continue };
            self.comment("", self.source.docs.get(&name).map_or("", String::as_str));
            match shape {
                Shape::Struct(fields) => {
                    self.text += &format!("export interface {name} {{\n");
                    let default = self.source.defaults.contains(&name);
                    for field in fields {
                        let optional = if default || field.optional { "?" } else { "" };
                        self.comment("  ", &field.doc);
                        let ty = self.type_of(&field.ty);
                        self.text += &format!("  {}{optional}: {ty};\n", camel_case(&field.name));
                    }
                    self.text += "}\n\n";
                }
                Shape::Choice(variants) => {
                    let variants = variants.iter().map(|variant| match &variant.content {
                        Content::Nothing => format!("\"{}\"", variant.spelling),
                        Content::One(ty) => {
                            format!("{{ {}: {} }}", camel_case(&variant.spelling), self.type_of(ty))
                        }
                        Content::Tagged(fields) => {
                            let fields = fields.iter().map(|field| format!("; {}: number", camel_case(field)));
                            format!("{{ kind: \"{}\"{} }}", variant.spelling, fields.collect::<String>())
                        }
                    });
                    let variants = variants.collect::<Vec<_>>().join(" | ");
                    self.text += &format!("export type {name} = {variants};\n\n");
                }
                Shape::Nullable(value) => {
                    let value = self.type_of(value);
                    self.text += &format!("export type {name} = {value} | null;\n\n");
                }
                Shape::Alias(other) => {
                    let other = self.type_of(other);
                    self.text += &format!("export type {name} = {other};\n\n");
                }
            }
        }
    }

    /// A type of a config in TypeScript; those of the core are remembered to be written.
    fn type_of(&mut self, ty: &Type) -> String {
        let Type::Path(path) = ty else { return "unknown".into() };
        let Some(last) = path.path.segments.last() else { return "unknown".into() };
        let argument = || match &last.arguments {
            PathArguments::AngleBracketed(list) => list.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty.clone()),
                _ => None,
            }),
            _ => None,
        };
        match last.ident.to_string().as_str() {
            "f64" | "f32" | "usize" | "u64" | "u32" => "number".into(),
            "bool" => "boolean".into(),
            "Option" => format!("{} | null", argument().map_or_else(|| "unknown".into(), |ty| self.type_of(&ty))),
            name => {
                self.types.insert(name.to_owned());
                name.to_owned()
            }
        }
    }
}

/// The inputs of a call; the prompts of an aggregation are given with its config.
fn columns(entry: &'static Entry) -> Vec<&'static Column> {
    entry.inputs.iter().filter(|column| column.name != "group_tokens").collect()
}

fn array_type(column: &Column, real: &str) -> String {
    match column.element {
        Element::Real => real.into(),
        Element::Double => "Float64Array".into(),
        Element::Index | Element::Count => "Uint32Array".into(),
        Element::Flag => "Uint8Array".into(),
        Element::Text => "string".into(),
        _ => "number".into(),
    }
}

/// The caller's arrays that outputs are written into: one as it is, several in an object, each of which may be left
/// out.
fn into(entry: &Entry, array: &str) -> Option<String> {
    match (entry.outputs, entry.numbers) {
        ([], _) => None,
        ([output], []) => Some(array_type(output, array)),
        (outputs, _) => {
            let field = |output: &Column| format!("{}?: {}", camel_case(output.name), array_type(output, array));
            Some(format!("{{ {} }}", outputs.iter().map(field).collect::<Vec<_>>().join("; ")))
        }
    }
}

/// A single result is itself, several are an object; records have a dot in their names.
fn result(entry: &Entry, array: &str) -> String {
    match (entry.outputs, entry.numbers) {
        ([output], []) => return array_type(output, array),
        ([], ["*"]) => return "Record<string, number>".into(),
        ([], [_]) => return "number".into(),
        _ => (),
    }
    let mut fields: Vec<(String, Vec<String>)> = Vec::new();
    for name in entry.numbers {
        let (record, field) = name.split_once('.').unwrap_or((name, ""));
        match fields.iter_mut().find(|(known, _)| known == record) {
            Some((_, of)) => of.push(field.to_owned()),
            None => fields.push((record.to_owned(), vec![field.to_owned()])),
        }
    }
    let numbers = fields.into_iter().map(|(name, of)| match of.as_slice() {
        [field] if field.is_empty() => format!("{}: number", camel_case(&name)),
        [field] if field == "*" => format!("{}: Record<string, number>", camel_case(&name)),
        of => {
            let of = of.iter().map(|field| format!("{}: number", camel_case(field))).collect::<Vec<_>>();
            // the record that a call may have no numbers for
            let null = if name == "overlap" { " | null" } else { "" };
            format!("{}: {{ {} }}{null}", camel_case(&name), of.join("; "))
        }
    });
    let outputs =
        entry.outputs.iter().map(|output| format!("{}: {}", camel_case(output.name), array_type(output, array)));
    format!("{{ {} }}", numbers.chain(outputs).collect::<Vec<_>>().join("; "))
}

/// Without links to Rust items: only the name in a link stays.
pub(crate) fn plain(doc: &str) -> String {
    let mut out = String::new();
    let mut rest = doc;
    while let Some((before, after)) = rest.split_once("[`") {
        out += before;
        let Some((name, after)) = after.split_once("`]") else {
            out += "[`";
            rest = after;
            continue;
        };
        let path = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        out += &format!("`{}`", name.rsplit("::").next().unwrap_or(name));
        rest = path.map_or(after, |(_, after)| after);
    }
    (out + rest).replace("*/", "* /")
}

/// `log_probs` as `logProbs`.
pub(crate) fn camel_case(name: &str) -> String {
    let (mut out, mut upper) = (String::new(), false);
    for c in name.chars() {
        match c {
            '_' | '-' => upper = true,
            _ if std::mem::take(&mut upper) => out.extend(c.to_uppercase()),
            _ => out.push(c),
        }
    }
    out
}

pub(crate) fn pascal_case(name: &str) -> String {
    let name = camel_case(name);
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_formula_is_declared_in_both_precisions() {
        let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
        let text = declarations(&core, tokenwise_catalogue::entries()).unwrap();
        for entry in tokenwise_catalogue::entries() {
            let name = camel_case(entry.name);
            assert!(text.contains(&format!("export function {name}(")), "{name}");
            assert_eq!(text.contains(&format!("export function {name}F64(")), has_precision(entry), "{name}F64");
        }
        assert!(!text.contains("unknown"), "a type of a config has no TypeScript form");
    }

    #[test]
    fn configs_keep_their_docs_and_spelling() {
        let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
        let text = declarations(&core, tokenwise_catalogue::entries()).unwrap();
        assert!(text.contains("export type DualClip = \"off\" | { negativeOnly: number } | { bothSigns: number };"));
        assert!(text.contains("export type Across = \"step-over\" | \"zero-step\";"));
        assert!(text.contains("  clipLow?: number;\n"));
        assert!(text.contains(concat!(
            "export function gae(batch: Batch, input: GaeInput<Float32Array>, config?: GaeConfig, ",
            "into?: { advantages?: Float32Array; returns?: Float32Array }): ",
            "{ advantages: Float32Array; returns: Float32Array };",
        )));
    }

    #[test]
    fn rust_links_become_names() {
        assert_eq!(plain("See [`gae`](super::gae) and [`Across::StepOver`]."), "See `gae` and `StepOver`.");
    }
}
