//! Where the frameworks differ, as a table: written from the profiles themselves, so that it cannot be wrong about them.

use std::{collections::BTreeMap, fmt::Write};

use tokenwise::Profile;

/// The page `docs/profiles.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Where the frameworks differ\n\n\
         Written by `cargo run -p tokenwise-tests --bin profiles`; a test holds it to the code. Each row is one field of a config that\n\
         `tokenwise::Profile` gives; fields on which all four agree are left out.\n\n",
    );
    let _ = writeln!(page, "| config | field | {} |", Profile::ALL.map(Profile::name).join(" | "));
    page.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for (config, values) in configs() {
        let fields = values.map(|value| fields(&value));
        for (index, (field, _)) in fields[0].iter().enumerate() {
            let cells: Vec<&str> =
                fields.iter().map(|fields| fields.get(index).map_or("", |(_, value)| value.as_str())).collect();
            if cells.iter().any(|cell| *cell != cells[0]) {
                let cells: Vec<String> = cells.iter().map(|cell| format!("`{cell}`")).collect();
                let _ = writeln!(page, "| {config} | {field} | {} |", cells.join(" | "));
            }
        }
    }
    page
}

/// The configs that differ anywhere, each as every profile has it.
fn configs() -> BTreeMap<&'static str, [String; 4]> {
    let mut configs: BTreeMap<&'static str, [String; 4]> = BTreeMap::new();
    for (index, profile) in Profile::ALL.into_iter().enumerate() {
        Profile::Paper.differences(profile, |name, paper, other| {
            // what has not been told differs from the paper's nowhere
            let values = configs.entry(name).or_insert_with(|| [(); 4].map(|()| format!("{paper:?}")));
            values[index] = format!("{other:?}");
        });
    }
    configs
}

/// The fields of a struct's debug text, or the whole text of anything else.
fn fields(text: &str) -> Vec<(String, String)> {
    let Some((_, body)) = text.split_once(" { ") else {
        return vec![(String::new(), text.to_owned())];
    };
    let body = body.strip_suffix(" }").unwrap_or(body);
    let (mut fields, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, sign) in body.char_indices() {
        match sign {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                fields.push(&body[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    fields.push(&body[start..]);
    let named = fields.into_iter().map(|field| field.trim().split_once(": ").unwrap_or((field.trim(), "")));
    named
        .flat_map(|(name, value)| match value {
            // configs within configs; the fields of an enum's variants stay with it
            nested if nested.starts_with("Aggregate {") || nested.starts_with("KlConfig {") => {
                self::fields(nested).into_iter().map(|(inner, value)| (format!("{name}.{inner}"), value)).collect()
            }
            plain => vec![(name.to_owned(), plain.to_owned())],
        })
        .collect()
}
