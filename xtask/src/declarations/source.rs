//! What the declarations need to know of the core: its public types, functions and doc comments, parsed from its
//! source.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use quote::ToTokens as _;
use syn::{Attribute, Expr, Fields, FnArg, Item, Lit, Meta, Type, Visibility};

pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) ty: Type,
    /// Whether serde reads a struct without it.
    pub(crate) optional: bool,
}

pub(crate) struct Variant {
    pub(crate) spelling: String,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    Nothing,
    /// `{ name: content }`.
    One(Type),
    /// `{ kind: "name", … }`, all numbers.
    Tagged(Vec<String>),
}

pub(crate) enum Shape {
    Struct(Vec<Field>),
    Choice(Vec<Variant>),
    /// The value or `null`.
    Nullable(Type),
    /// Another name.
    Alias(Type),
}

pub(crate) struct Function {
    pub(crate) doc: String,
    /// The type of the parameter `input`, where it is a struct.
    pub(crate) input: Option<String>,
}

/// What the declarations need to know of the core's source.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) docs: BTreeMap<String, String>,
    pub(crate) shapes: BTreeMap<String, Shape>,
    pub(crate) functions: BTreeMap<String, Function>,
    /// The types with a `Default`: their fields may be left out.
    pub(crate) defaults: BTreeSet<String>,
}

impl Source {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    files.push(path);
                }
            }
        }
        files.sort();
        let mut source = Self::default();
        for file in files {
            let parsed = syn::parse_file(&fs::read_to_string(&file)?).with_context(|| file.display().to_string())?;
            // the macros that spell an enum come after it and replace what is known of its variants
            parsed.items.iter().for_each(|item| source.item(item));
        }
        Ok(source)
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Struct(item) if public(&item.vis) => {
                let name = item.ident.to_string();
                if derives_default(&item.attrs) {
                    self.defaults.insert(name.clone());
                }
                self.docs.insert(name.clone(), doc(&item.attrs));
                let fields = item.fields.iter().filter_map(|field| {
                    let name = field.ident.as_ref()?.to_string();
                    let optional = field.attrs.iter().any(|attribute| {
                        let text = attribute.to_token_stream().to_string();
                        text.contains("serde") && text.contains("default")
                    });
                    Some(Field { name, doc: doc(&field.attrs), ty: field.ty.clone(), optional })
                });
                self.shapes.insert(name, Shape::Struct(fields.collect()));
            }
            Item::Type(item) if public(&item.vis) => {
                self.docs.insert(item.ident.to_string(), doc(&item.attrs));
                self.shapes.insert(item.ident.to_string(), Shape::Alias((*item.ty).clone()));
            }
            Item::Enum(item) if public(&item.vis) => {
                if derives_default(&item.attrs) {
                    self.defaults.insert(item.ident.to_string());
                }
                self.docs.insert(item.ident.to_string(), doc(&item.attrs));
                let rule = serde_text(&item.attrs, "rename_all").unwrap_or_else(|| "kebab-case".into());
                let variants = item.variants.iter().map(|variant| {
                    let name = variant.ident.to_string();
                    let spelling = serde_text(&variant.attrs, "rename").unwrap_or_else(|| respell(&name, &rule));
                    let content = match &variant.fields {
                        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                            Content::One(fields.unnamed[0].ty.clone())
                        }
                        _ => Content::Nothing,
                    };
                    Variant { spelling, content }
                });
                self.shapes.insert(item.ident.to_string(), Shape::Choice(variants.collect()));
            }
            Item::Fn(item) if public(&item.vis) => {
                let input = item.sig.inputs.iter().find_map(|argument| match argument {
                    FnArg::Typed(typed) if typed.pat.to_token_stream().to_string() == "input" => path_name(&typed.ty),
                    _ => None,
                });
                self.functions.insert(item.sig.ident.to_string(), Function { doc: doc(&item.attrs), input });
            }
            Item::Impl(item) => {
                let of_default = item.trait_.as_ref().is_some_and(|(_, path, _)| path.is_ident("Default"));
                self.defaults.extend(path_name(&item.self_ty).filter(|_| of_default));
            }
            Item::Macro(item) => {
                let name = item.mac.path.segments.last().map(|segment| segment.ident.to_string());
                match name.as_deref() {
                    Some("tagged") => self.tagged(&item.mac.tokens.to_string()),
                    Some("nullable") => self.nullable(&item.mac.tokens.to_string()),
                    _ => (),
                }
            }
            _ => (),
        }
    }

    /// `Type { field : f64 , … } "name" Variant (field , …) = { … } …`
    fn tagged(&mut self, tokens: &str) {
        let Some((name, rest)) = tokens.split_once('{') else { return };
        let variants = rest.split('"').skip(1).collect::<Vec<_>>();
        let variants = variants.chunks(2).filter_map(|pair| {
            let [spelling, after] = pair else { return None };
            let (_, fields) = after.split_once('(')?;
            let (fields, _) = fields.split_once(')')?;
            let fields = fields.split(',').map(|field| field.trim().to_owned()).filter(|field| !field.is_empty());
            Some(Variant { spelling: (*spelling).to_owned(), content: Content::Tagged(fields.collect()) })
        });
        self.shapes.insert(name.trim().to_owned(), Shape::Choice(variants.collect()));
    }

    /// `Type { None , Some (Value) }`
    fn nullable(&mut self, tokens: &str) {
        let value = tokens.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
        let value = value.and_then(|(value, _)| syn::parse_str(value).ok());
        if let (Some((name, _)), Some(value)) = (tokens.split_once('{'), value) {
            self.shapes.insert(name.trim().to_owned(), Shape::Nullable(value));
        }
    }

    /// The doc comment of a field, also of a struct inside the struct.
    pub(crate) fn field_doc(&self, of: &str, name: &str) -> Option<&str> {
        let Some(Shape::Struct(fields)) = self.shapes.get(of) else { return None };
        let own = fields.iter().find(|field| field.name == name).map(|field| field.doc.as_str());
        own.or_else(|| {
            let nested = fields.iter().filter_map(|field| path_name(&field.ty));
            nested.into_iter().filter(|nested| nested != of).find_map(|nested| self.field_doc(&nested, name))
        })
    }
}

/// The first paragraph of a doc comment, and of a formula its first line.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> = lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned()).collect();
    let first = lines.iter().take_while(|line| !line.is_empty()).cloned().collect::<Vec<_>>().join("\n");
    let formula = lines.iter().skip_while(|line| *line != "```text").nth(1);
    match formula {
        Some(formula) => format!("{first}\n\n`{}`", formula.trim()),
        None => first,
    }
}

/// Private types may have the name of a public one.
fn public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn derives_default(attributes: &[Attribute]) -> bool {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    derives.into_iter().any(|attribute| attribute.to_token_stream().to_string().contains("Default"))
}

/// The value of `key = "…"` inside `serde(…)`, also behind `cfg_attr`.
fn serde_text(attributes: &[Attribute], key: &str) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let text = attribute.to_token_stream().to_string();
        let (_, after) = text.split_once(&format!("{key} = \""))?;
        Some(after.split_once('"')?.0.to_owned())
    })
}

/// The last name of a path, behind references.
fn path_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Reference(reference) => path_name(&reference.elem),
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// `SeqMeanTokenSum` as kebab-case or snake_case.
fn respell(name: &str, rule: &str) -> String {
    let separator = if rule == "snake_case" { '_' } else { '-' };
    let mut out = String::new();
    for (index, c) in name.chars().enumerate() {
        if c.is_uppercase() && index > 0 {
            out.push(separator);
        }
        out.extend(c.to_lowercase());
    }
    out
}
