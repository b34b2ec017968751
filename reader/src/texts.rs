//! The texts of tokens: lists of texts or ids, one per sequence, or a list of such lists. Read as raw JSON, because a
//! token may be a part of a UTF-8 character, which is not a valid `str`.

use std::fmt;

use serde::{
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
    Deserializer,
};
use serde_json::value::RawValue;

use crate::{feeder::Feeder, fields::Field};

/// The value of a field with the texts of tokens; anything but a list is skipped.
pub(crate) struct TextsSeed<'f, 'a> {
    pub(crate) feeder: &'f mut Feeder<'a>,
    pub(crate) field: Field,
}

impl<'de> DeserializeSeed<'de> for TextsSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextsSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    crate::object::pass_over! { visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_str(&str) }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element::<Box<RawValue>>()? {
            entries.push(entry);
        }
        add(self.feeder, self.field, &entries);
        Ok(())
    }
}

/// Adds the entries of a list: those of one sequence, or lists of them.
pub(crate) fn add(feeder: &mut Feeder<'_>, field: Field, entries: &[Box<RawValue>]) {
    let is_nested = |entry: &RawValue| entry.get().starts_with('[');
    if !entries.iter().any(|entry| is_nested(entry)) {
        feeder.texts_added(field, entries.iter().map(|entry| text(entry.get())).collect());
        return;
    }
    for entry in entries.iter().filter(|entry| is_nested(entry)) {
        let inner: Vec<&RawValue> = serde_json::from_str(entry.get()).unwrap_or_default();
        feeder.texts_added(field, inner.into_iter().map(|entry| text(entry.get())).collect());
    }
}

/// A text with its escapes resolved, a number with a prefix, an empty text for anything else.
fn text(raw: &str) -> String {
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::Deserializer::from_str(raw).deserialize_bytes(Lossy).unwrap_or_default(),
        Some(b'-' | b'0'..=b'9') => format!("#{raw}"),
        _ => String::new(),
    }
}

/// Bytes that may not be UTF-8: incomplete characters are replaced.
struct Lossy;

impl Visitor<'_> for Lossy {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn texts_are_taken_whatever_they_hold() {
        assert_eq!(text(r#""a\n\"b\"""#), "a\n\"b\"");
        assert_eq!(text(r#""\ud83d\ude00""#), "😀");
        // an incomplete character
        assert!(text(r#""x\ud800""#).starts_with('x'));
        assert_eq!(text("42"), "#42");
        assert_eq!(text("null"), "");
    }
}
