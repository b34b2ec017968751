//! The texts of tokens: lists of texts or ids, one per sequence, or a list of such lists. Read as raw JSON, because a
//! token may be a part of a UTF-8 character, which is not a valid `str`.

use std::fmt;

use serde::{
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
    Deserializer,
};
use serde_json::value::RawValue;

use crate::{fault::Fault, feeder::Feeder, fields::Field};

/// Texts in one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextList {
    text: String,
    ends: Vec<usize>,
}

impl TextList {
    /// So many empty texts.
    pub(crate) fn empty(count: usize) -> Self {
        Self { text: String::new(), ends: vec![0; count] }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.text.get(start..*end).unwrap_or_default())
    }

    pub(crate) fn append(&mut self, other: &Self) {
        let before = self.text.len();
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.iter().map(|end| before + end));
    }

    /// The first `len` texts and the number of those after them, if these are all padding.
    pub(crate) fn without_padding(&self, len: usize, is_padding: impl Fn(&str) -> bool) -> Option<(Self, u32)> {
        let padding = self.len().checked_sub(len)?;
        if !self.iter().skip(len).all(is_padding) {
            return None;
        }
        let ends = self.ends.get(..len)?.to_vec();
        let text = self.text.get(..ends.last().copied().unwrap_or(0))?.to_owned();
        Some((Self { text, ends }, u32::try_from(padding).ok()?))
    }

    pub(crate) fn drop_first(&mut self, count: usize) {
        let start = count.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
        self.text.drain(..start);
        self.ends.drain(..count.min(self.ends.len()));
        for end in &mut self.ends {
            *end -= start;
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.text.capacity() + 8 * self.ends.capacity()) as u64
    }
}

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
        let Self { feeder, field } = self;
        let mut texts = Texts::default();
        while let Some(entry) = list.next_element::<Box<RawValue>>()? {
            texts.add(feeder, field, entry.get()).map_err(|fault| feeder.refuse(fault))?;
        }
        texts.finish(feeder, field).map_err(|fault| feeder.refuse(fault))
    }
}

/// The entries of a list: those of one sequence, or lists of them.
#[derive(Default)]
pub(crate) struct Texts {
    flat: TextList,
    nested: bool,
}

impl Texts {
    /// Adds an entry as it stands in the file.
    pub(crate) fn add(&mut self, feeder: &mut Feeder<'_>, field: Field, entry: &str) -> Result<(), Fault> {
        if !entry.starts_with('[') {
            feeder.check_buffer("the texts of tokens", self.flat.bytes() + entry.len() as u64)?;
            self.flat.push(&text(entry));
            return Ok(());
        }
        self.nested = true;
        // an entry of a list takes two characters at least, a slice two words
        feeder.check_buffer("the texts of tokens", 9 * entry.len() as u64)?;
        let inner: Vec<&RawValue> = serde_json::from_str(entry).unwrap_or_default();
        let mut texts = TextList::default();
        for entry in inner {
            texts.push(&text(entry.get()));
        }
        feeder.texts_added(field, texts)
    }

    pub(crate) fn finish(self, feeder: &mut Feeder<'_>, field: Field) -> Result<(), Fault> {
        if self.nested {
            return Ok(());
        }
        feeder.texts_added(field, self.flat)
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
    use super::*;

    #[test]
    fn texts_are_taken_whatever_they_hold() {
        assert_eq!(text(r#""a\n\"b\"""#), "a\n\"b\"");
        assert_eq!(text(r#""\ud83d\ude00""#), "😀");
        // an incomplete character
        assert!(text(r#""x\ud800""#).starts_with('x'));
        assert_eq!(text("42"), "#42");
        assert_eq!(text("null"), "");
    }

    #[test]
    fn a_list_is_cut_and_joined() {
        let mut list = TextList::empty(1);
        ["a", "bc"].iter().for_each(|text| list.push(text));
        let mut other = TextList::default();
        other.push("d");
        list.append(&other);
        list.drop_first(2);
        assert_eq!(list.iter().collect::<Vec<_>>(), ["bc", "d"]);
        list.drop_first(2);
        assert_eq!((list.len(), list.iter().count()), (0, 0));
    }
}
