//! The JavaScript of `tokenwise-wasm`: what the generator wrote, what stands in `wasm/src/js`, and one function and one row for
//! every line that the module's tables leave among the declarations.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use anyhow::{bail, Context, Result};
use tokenwise::{profile::Convention, Profile};

/// For every module.
const GLUE: [&str; 4] = [
    include_str!("../../wasm/src/js/error.js"),
    include_str!("../../wasm/src/js/call.js"),
    include_str!("../../wasm/src/js/read.js"),
    include_str!("../../wasm/src/js/batch.js"),
];
/// For the whole package.
const WHOLE: [&str; 2] = [include_str!("../../wasm/src/js/whole.js"), include_str!("../../wasm/src/js/states.js")];

/// What the generator exports for us alone.
const ENTRY: &str = "export function invoke(";
const STATE: &str = "export class State ";
const OURS: [&str; 2] = [ENTRY, STATE];

/// Adds what the generator does not know of to a folder that it wrote.
pub(crate) fn complete(folder: &Path) -> Result<()> {
    let (script, types) = (folder.join("tokenwise.js"), folder.join("tokenwise.d.ts"));
    let declared = fs::read_to_string(&types)?;
    let (lines, declarations) = split_lines(&declared);
    let tables = Tables::read(&lines)?;
    let mut text = fs::read_to_string(&script)?;
    if !text.contains(ENTRY) || tables.rows.is_empty() {
        bail!("the module has no entry or no table");
    }
    let whole = text.contains(STATE);
    for ours in OURS {
        text = text.replace(ours, ours.trim_start_matches("export "));
    }
    let mut glue = GLUE.concat();
    if whole {
        glue += &conventions();
        glue += &WHOLE.concat();
    }
    text += &glue;
    text += &tables.script(&glue, &declarations);
    let text = lean(&text);
    fs::write(script, &text)?;
    fs::write(types, only(&declarations, &text))?;
    Ok(())
}

/// The script without comments and indents, which a page would load for nothing. A comment has lines of its own.
fn lean(script: &str) -> String {
    let comment = |line: &str| line.starts_with("//") || line.starts_with("/**") || line.starts_with('*');
    let lines = script.lines().map(str::trim_start).filter(|line| !line.is_empty() && *line != "/*" && !comment(line));
    lines.fold(String::new(), |all, line| all + line + "\n")
}

/// What is for us among the declarations, between `/*@` and `@*/`, and the declarations without it.
fn split_lines(types: &str) -> (Vec<&str>, String) {
    let (mut lines, mut declarations) = (Vec::new(), String::new());
    for (index, part) in types.split("/*@").enumerate() {
        match part.split_once("@*/\n").filter(|_| index > 0) {
            Some((line, rest)) => {
                lines.push(line.trim());
                declarations.push_str(rest);
            }
            None => declarations.push_str(part),
        }
    }
    (lines, declarations)
}

/// What the lines say.
#[derive(Default)]
struct Tables {
    /// By the number of their table and their place there.
    rows: BTreeMap<(usize, usize), Row>,
    /// The names of enums, the fields of configs, the variants of enums with numbers.
    definitions: [BTreeMap<String, String>; 3],
}

const DEFINITIONS: [&str; 3] = ["choice", "config", "tagged"];
const DEFINED: [&str; 3] = ["choices", "configs", "tagged"];

/// A function of the module: its names in JavaScript, one for each precision, and its arguments and results.
struct Row {
    names: Vec<String>,
    text: String,
}

impl Tables {
    fn read(lines: &[&str]) -> Result<Self> {
        let (mut tables, mut next) = (Self::default(), HashMap::new());
        for line in lines {
            let parts = line.split_once(' ').and_then(|(what, rest)| Some((what, rest.split_once(' ')?)));
            let (what, (name, rest)) = parts.with_context(|| format!("not a line of a table: {line}"))?;
            if what == "row" {
                let index: &mut usize = next.entry(name).or_default();
                tables.rows.insert((name.parse()?, *index), Row::read(rest)?);
                *index += 1;
                continue;
            }
            let kind = DEFINITIONS.iter().position(|known| *known == what);
            let kind = kind.with_context(|| format!("not a line of a table: {line}"))?;
            // the fields of a variant come with a blank after each
            let text = rest.replace(" }", "}").replace(' ', ",");
            tables.definitions[kind].insert(name.into(), camel_case(text.trim_start_matches([',', '|'])));
        }
        Ok(tables)
    }

    /// The rows, the definitions that they or the glue name, and the functions; those that are not declared are for the glue.
    fn script(&self, glue: &str, declarations: &str) -> String {
        let mut known = self.rows.values().fold(glue.to_owned(), |all, row| all + "\n" + &row.text);
        let mut kept: [BTreeMap<&str, &str>; 3] = Default::default();
        loop {
            let before = known.len();
            for (kept, all) in kept.iter_mut().zip(&self.definitions) {
                for (name, text) in all {
                    if !kept.contains_key(name.as_str()) && has_word(&known, name) {
                        kept.insert(name, text);
                        known = known + "\n" + text;
                    }
                }
            }
            if known.len() == before {
                break;
            }
        }
        let mut script = String::new();
        for (name, kept) in DEFINED.iter().zip(kept) {
            script += &format!("const {name} = {};\n", serde_json::json!(kept));
        }
        for row in self.rows.values() {
            for (index, name) in row.names.iter().enumerate() {
                let declared = declarations.contains(&format!("export function {name}("));
                let text = if index == 0 { serde_json::json!(row.text).to_string() } else { String::new() };
                script += &format!("{}const {name} = entry({text});\n", if declared { "export " } else { "" });
            }
        }
        script
    }
}

impl Row {
    /// `,name,nameF64 (arguments) (results)`
    fn read(row: &str) -> Result<Self> {
        let row: String = camel_case(row).split_whitespace().collect();
        let parts = row.strip_suffix(')').and_then(|row| row.split_once('('));
        let parts = parts.and_then(|(names, rest)| Some((names, rest.split_once(")(")?)));
        let (names, (arguments, results)) = parts.with_context(|| format!("not a row: {row}"))?;
        let names = names.trim_start_matches(',').split(',').map(Into::into).collect();
        Ok(Self { names, text: format!("{arguments}>{results}") })
    }
}

fn has_export(script: &str, kind: &str, name: &str) -> bool {
    let start = format!("export {kind} {name}");
    script.lines().any(|line| line.strip_prefix(&start).is_some_and(|rest| rest.starts_with(['(', ' '])))
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|found| found == word)
}

fn camel_case(text: &str) -> String {
    let (mut out, mut upper) = (String::new(), false);
    for c in text.chars() {
        match c {
            '_' => upper = true,
            _ if std::mem::take(&mut upper) => out.extend(c.to_uppercase()),
            _ => out.push(c),
        }
    }
    out
}

/// The conventions of every profile as text: numbers and names that never change need no code in the module.
fn conventions() -> String {
    let names: Vec<_> = Convention::ALL.iter().map(|convention| convention.name()).collect();
    let profiles: Vec<_> = Profile::ALL.iter().map(|profile| profile.name()).collect();
    let of = |profile: Profile| {
        let conventions = profile.conventions();
        Convention::ALL.iter().map(|&convention| format!("{:?}", conventions.of(convention))).collect()
    };
    let values: HashMap<_, Vec<String>> = Profile::ALL.iter().map(|&profile| (profile.name(), of(profile))).collect();
    let (names, profiles, values) = (serde_json::json!(names), serde_json::json!(profiles), serde_json::json!(values));
    format!(
        "const conventionNames = {names};\nconst profileNames = {profiles};\nconst profileConventions = {values};\n"
    )
}

/// The declarations without those of functions that this script has not, and without their comments.
fn only(declarations: &str, script: &str) -> String {
    let (mut out, mut comment, mut skipping) = (String::new(), String::new(), false);
    for line in declarations.split_inclusive('\n') {
        if skipping {
            skipping = !line.trim_end().ends_with(';');
            continue;
        }
        let name = line.strip_prefix("export function ").and_then(|rest| rest.split(['(', '<']).next());
        let exported = |name: &&str| ["function", "const"].iter().any(|kind| has_export(script, kind, name));
        if let Some(name) = name.filter(|name| !exported(name)) {
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
        let types = "/*@ row 0 ,exp,expF64 (x : number) () @*/\nexport type A = 1;\n/*@ row 0 ,keys (a, log_b { c_d ?\n}) (* ) @*/\n\
                     /*@ row 2 ,mean,meanF64 (batch : batch) (: T) @*/\n";
        let (lines, rest) = split_lines(types);
        assert_eq!(rest, "export type A = 1;\n");
        let tables = Tables::read(&lines).unwrap();
        let found: Vec<_> = tables.rows.iter().map(|(place, row)| (*place, row.names.join(" "))).collect();
        assert_eq!(found, [((0, 0), "exp expF64".into()), ((0, 1), "keys".into()), ((2, 0), "mean meanF64".into())]);
        let script =
            tables.script("", "export function exp(x: number): number;\nexport function expF64(x: number): number;");
        let functions: Vec<_> = script.lines().filter(|line| line.contains("entry(")).take(3).collect();
        let expected = [
            r#"export const exp = entry("x:number>");"#,
            "export const expF64 = entry();",
            r#"const keys = entry("a,logB{cD?}>*");"#,
        ];
        assert_eq!(functions, expected);
    }

    #[test]
    fn comments_are_not_loaded() {
        let script = "/* @ts-self-types=\"a.d.ts\" */\n/**\n * a\n */\n\n  // b\n  const c = 1;\n/*\n * d\n */\n";
        assert_eq!(lean(script), "/* @ts-self-types=\"a.d.ts\" */\nconst c = 1;\n");
    }

    #[test]
    fn definitions_come_with_what_names_them() {
        let lines = [
            "choice A |x-y|z",
            "config B ,first_field?:A",
            "tagged C ,one{low:number high:number },two{}",
            "config D ,e?:E",
        ];
        let tables = Tables::read(&lines).unwrap();
        let script = tables.script("config:B other:C", "");
        assert!(script.contains(r#"const choices = {"A":"x-y|z"};"#));
        assert!(script.contains(r#"const configs = {"B":"firstField?:A"};"#));
        assert!(script.contains(r#"const tagged = {"C":"one{low:number,high:number},two{}"};"#));
    }

    #[test]
    fn declarations_of_missing_functions_go_with_their_comments() {
        let text = "/** A. */\nexport function exp(x: number): number;\n/**\n * B.\n */\nexport function gone(\n  x: number,\n): number;\n/** C. */\nexport type C = 1;\n";
        assert_eq!(
            only(text, "export const exp = entry();"),
            "/** A. */\nexport function exp(x: number): number;\n/** C. */\nexport type C = 1;\n"
        );
    }
}
