//! The settings of the formulas as Python types, from the core's configs and enums.

use std::{collections::BTreeSet, fmt::Write as _};

use syn::{GenericArgument, PathArguments, Type};
use tokenwise_catalogue::entries;

use super::{docstring, GENERATED, WIDTH};
use crate::declarations::{plain, Content, Shape, Source};

/// Types whose Python form is not that of their Rust definition.
const BY_HAND: &str = r#"class GlobalCounts(TypedDict, total=False):
    """Counts over all micro-batches and ranks of a step."""

    #: Kept tokens.
    tokens: int
    #: Sequences.
    sequences: int
    #: Prompts.
    prompts: int
    #: The result is multiplied by this; default 1.
    ranks: int


#: Whose tokens and sequences the denominators count: ``None`` for those of the batch at hand.
Counts: TypeAlias = "GlobalCounts | None"


class Aggregate(TypedDict, total=False):
    """How the losses of the tokens become one number; default the mean over all kept tokens."""

    #: ``prompt-mean`` needs the argument ``groups``, and ``group_tokens`` over several micro-batches.
    mode: Literal[
        "token-mean",
        "token-sum",
        "seq-mean-token-sum",
        "seq-mean-token-mean",
        "seq-mean-token-sum-norm",
        "prompt-mean",
    ]
    #: The constant length of ``seq-mean-token-sum-norm`` (Dr. GRPO).
    scale: float
    #: Whose tokens and sequences the denominators count; default those of the batch at hand.
    counts: GlobalCounts | None
    #: Whether a sequence without kept tokens counts; default ``excluded``.
    empty_rows: Literal["excluded", "counted"]
    #: What ``seq-mean-token-mean`` divides each sequence by; default ``count``.
    divisor: Divisor


class RejectionConfig(TypedDict, total=False):
    """The conventions of ``rollout_rejection``."""

    #: All must be met; none keeps everything.
    criteria: list[Criterion]
    #: What a mean over a sequence divides by; default ``count``.
    divisor: Divisor


class BypassConfig(TypedDict, total=False):
    """How ``bypass_loss`` corrects for the sampler."""

    #: The importance weights; default none.
    weights: RolloutConfig
    #: Default none is rejected.
    rejection: RejectionConfig
    #: Default ``ppo-clip``.
    form: Literal["ppo-clip", "reinforce"]
    #: The config of that loss.
    policy: PpoConfig
    #: What the means of the mismatch divide by; default ``count``.
    divisor: Divisor


#: λ of the policy's estimate: fixed, or by length, ``1 − 1 / (α · length)``.
PolicyLambda: TypeAlias = "float | dict[str, float]"

"#;

/// Their names.
pub(super) const BY_HAND_NAMES: [&str; 7] =
    ["Aggregate", "AggregateMode", "Counts", "GlobalCounts", "BypassConfig", "RejectionConfig", "PolicyLambda"];
/// The types that those by hand name.
const NAMED_BY_HAND: [&str; 4] = ["Divisor", "Criterion", "RolloutConfig", "PpoConfig"];

/// The text of configs.py.
pub(super) fn configs(source: &Source) -> String {
    let mut page = String::from(GENERATED);
    page += "\"\"\"The settings of the formulas, as types: what each keyword argument may be.\"\"\"\n\n";
    page += "from __future__ import annotations\n\nfrom typing import TYPE_CHECKING, Literal, TypedDict\n\n";
    page += "if TYPE_CHECKING:\n    from typing_extensions import Required, TypeAlias\n\n\n";
    page += BY_HAND;
    let mut wanted: BTreeSet<String> = NAMED_BY_HAND.iter().map(|name| (*name).to_owned()).collect();
    wanted.extend(entries().filter_map(|entry| entry.config).map(|config| config.name.to_owned()));
    let mut written: BTreeSet<String> = BY_HAND_NAMES.iter().map(|name| (*name).to_owned()).collect();
    let (mut structs, mut aliases) = (String::new(), String::new());
    while let Some(name) = wanted.pop_first() {
        if !written.insert(name.clone()) {
            continue;
        }
        let Some(shape) = source.shapes.get(&name) else { continue };
        let doc = source.docs.get(&name).map(|doc| plain(doc)).unwrap_or_default();
        match shape {
            Shape::Struct(fields) => {
                let total = !source.defaults.contains(&name);
                let _ = write!(structs, "\nclass {name}(TypedDict, total=False):\n");
                docstring(&mut structs, "    ", &doc);
                structs.push('\n');
                for field in fields {
                    for line in plain(&field.doc).lines() {
                        let _ = writeln!(structs, "    #: {line}");
                    }
                    let mut ty = type_of(&field.ty, &mut wanted);
                    if total && !field.optional {
                        ty = format!("Required[{ty}]");
                    }
                    let reserved = if matches!(field.name.as_str(), "lambda" | "from" | "in") { "_" } else { "" };
                    let _ = writeln!(structs, "    {}{reserved}: {ty}", field.name);
                }
                structs.push('\n');
            }
            Shape::Choice(variants) => {
                let names: Vec<String> = variants
                    .iter()
                    .filter(|variant| matches!(variant.content, Content::Nothing))
                    .map(|variant| format!("\"{}\"", variant.spelling))
                    .collect();
                let mut parts = Vec::new();
                if !names.is_empty() {
                    parts.push(format!("Literal[{}]", names.join(", ")));
                }
                if names.len() < variants.len() {
                    parts.push("dict[str, object]".into());
                }
                alias(&mut aliases, &name, &doc, &parts.join(" | "));
            }
            Shape::Nullable(value) => {
                let value = type_of(value, &mut wanted);
                alias(&mut aliases, &name, &doc, &format!("{value} | None"));
            }
            Shape::Alias(other) => {
                let other = type_of(other, &mut wanted);
                alias(&mut aliases, &name, &doc, &other);
            }
        }
    }
    page + &structs + "\n" + &aliases
}

fn alias(page: &mut String, name: &str, doc: &str, ty: &str) {
    for line in doc.lines() {
        let _ = writeln!(page, "{}", format!("#: {line}").trim_end());
    }
    let line = format!("{name}: TypeAlias = \"{}\"\n\n", ty.replace('"', "'"));
    match ty.strip_prefix("Literal[").and_then(|ty| ty.strip_suffix(']')).filter(|_| line.len() > WIDTH) {
        None => *page += &line,
        Some(words) => {
            let _ = write!(page, "{name}: TypeAlias = Literal[\n    {},\n]\n\n", words.replace(", ", ",\n    "));
        }
    }
}

/// A type of a config in Python; those of the core are remembered to be written.
pub(super) fn type_of(ty: &Type, wanted: &mut BTreeSet<String>) -> String {
    let Type::Path(path) = ty else { return "object".into() };
    let Some(last) = path.path.segments.last() else { return "object".into() };
    let argument = || match &last.arguments {
        PathArguments::AngleBracketed(list) => list.args.iter().find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty.clone()),
            _ => None,
        }),
        _ => None,
    };
    match last.ident.to_string().as_str() {
        "f64" | "f32" => "float".into(),
        "usize" | "u64" | "u32" => "int".into(),
        "bool" => "bool".into(),
        "Option" => format!("{} | None", argument().map_or_else(|| "object".into(), |ty| type_of(&ty, wanted))),
        name => {
            wanted.insert(name.to_owned());
            name.to_owned()
        }
    }
}
