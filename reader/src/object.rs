//! A record as a JSON object: its numbers go directly into the columns.

use std::fmt;

use serde::{
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
    Deserializer,
};

use crate::{
    fault::{excerpt, Fault},
    feeder::{Feeder, Hasher},
    fields::{Field, Match},
    numbers::{MaskSeed, NumbersSeed},
    texts::TextsSeed,
};

/// An object that is a record, or has lists of records inside.
pub(crate) struct ObjectSeed<'f, 'a> {
    pub(crate) feeder: &'f mut Feeder<'a>,
    /// Whether a sequence ends with it.
    pub(crate) record: bool,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the fields of a rollout")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let feeder = self.feeder;
        let lists = feeder.lists;
        while let Some(key) = map.next_key_seed(KeySeed(&*feeder))? {
            let Key::Known(found) = key else {
                match key {
                    Key::Unknown(name) => feeder.ignore(&name, map.next_value_seed(IsNumber)?),
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
                continue;
            };
            feeder.begin(found);
            match found.field {
                Field::Column(column) => map.next_value_seed(NumbersSeed { feeder, column })?,
                Field::Mask => map.next_value_seed(MaskSeed { feeder })?,
                Field::Inside => map.next_value_seed(InsideSeed { feeder, list: false })?,
                Field::List => map.next_value_seed(InsideSeed { feeder, list: true })?,
                field @ (Field::Text | Field::Id) => map.next_value_seed(TextsSeed { feeder, field })?,
                Field::Prompt => {
                    let mut hasher = Hasher::default();
                    map.next_value_seed(PromptSeed { hasher: &mut hasher, inside: false })?;
                    if !hasher.is_empty() {
                        feeder.hashed(Field::Prompt, hasher).map_err(|fault| feeder.refuse(fault))?;
                    }
                }
                Field::Sequence => drop(map.next_value::<IgnoredAny>()?),
                field => map.next_value_seed(ScalarSeed { feeder, field, list: false })?,
            }
        }
        if feeder.lists != lists {
            // what stands beside a list of records is no record
            feeder.abandon();
        } else if self.record {
            feeder.end_inside()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        // a list of records; not inside another record
        let feeder = self.feeder;
        while list.next_element_seed(ObjectSeed { feeder: &mut *feeder, record: true })?.is_some() {}
        Ok(())
    }

    fn visit_bool<E: Error>(self, x: bool) -> Result<(), E> {
        Err(no_object(self.feeder, x))
    }

    fn visit_u64<E: Error>(self, x: u64) -> Result<(), E> {
        Err(no_object(self.feeder, x))
    }

    fn visit_i64<E: Error>(self, x: i64) -> Result<(), E> {
        Err(no_object(self.feeder, x))
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<(), E> {
        Err(no_object(self.feeder, x))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        Err(no_object(self.feeder, text))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Err(no_object(self.feeder, "null"))
    }
}

fn no_object<E: Error>(feeder: &mut Feeder<'_>, found: impl fmt::Display) -> E {
    feeder.refuse(Fault::NoObject { found: excerpt(&found.to_string()) })
}

enum Key {
    Known(Match),
    /// A name that is collected.
    Unknown(String),
    Other,
}

struct KeySeed<'f, 'a>(&'f Feeder<'a>);

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_, '_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(match self.0.matching(name) {
            Some(found) => Key::Known(found),
            None if self.0.collects_names() => Key::Unknown(excerpt(name)),
            None => Key::Other,
        })
    }
}

/// Skips a value; returns whether it is a number.
struct IsNumber;

impl<'de> DeserializeSeed<'de> for IsNumber {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for IsNumber {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }
}

/// The value of a field that contains more fields, or records; anything else is skipped (token ids, texts).
struct InsideSeed<'f, 'a> {
    feeder: &'f mut Feeder<'a>,
    list: bool,
}

impl<'de> DeserializeSeed<'de> for InsideSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Skips values of these types.
macro_rules! pass_over {
    ($($method:ident($type:ty)),* $(,)?) => {$(
        fn $method<E>(self, _: $type) -> Result<(), E> {
            Ok(())
        }
    )*};
}
pub(crate) use pass_over;

impl<'de> Visitor<'de> for InsideSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    pass_over! { visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_str(&str) }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        ObjectSeed { feeder: self.feeder, record: false }.visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if !self.list && self.feeder.labels() {
            return TextsSeed { feeder: self.feeder, field: Field::Text }.visit_seq(list);
        }
        if !self.list {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let (feeder, mut entered) = (self.feeder, false);
        while list.next_element_seed(EntrySeed { feeder: &mut *feeder, entered: &mut entered })?.is_some() {}
        if entered {
            feeder.leave();
        }
        Ok(())
    }
}

/// One entry of a list: a record if it is an object.
struct EntrySeed<'f, 'a, 'e> {
    feeder: &'f mut Feeder<'a>,
    entered: &'e mut bool,
}

impl<'de> DeserializeSeed<'de> for EntrySeed<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EntrySeed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    pass_over! { visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_str(&str) }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        if !*self.entered {
            self.feeder.enter();
            *self.entered = true;
        }
        ObjectSeed { feeder: self.feeder, record: true }.visit_map(map)
    }
}

/// A field with one entry per sequence: a number, or a list with one for each.
struct ScalarSeed<'f, 'a> {
    feeder: &'f mut Feeder<'a>,
    field: Field,
    /// Whether it is an entry of a list.
    list: bool,
}

impl ScalarSeed<'_, '_> {
    fn wrong<E: Error>(self, found: &str) -> E {
        let (field, found) = (self.field.name().into(), excerpt(found));
        self.feeder.refuse(Fault::NotANumber { field, found })
    }
}

impl<'de> DeserializeSeed<'de> for ScalarSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ScalarSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number in field {:?}", self.field.name())
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<(), E> {
        let Self { feeder, field, list } = self;
        let done = if list { feeder.listed(field, x) } else { feeder.scalar(field, x) };
        done.map_err(|fault| feeder.refuse(fault))
    }

    fn visit_u64<E: Error>(self, x: u64) -> Result<(), E> {
        self.visit_f64(x as f64)
    }

    fn visit_i64<E: Error>(self, x: i64) -> Result<(), E> {
        self.visit_f64(x as f64)
    }

    fn visit_bool<E: Error>(self, x: bool) -> Result<(), E> {
        self.visit_f64(f64::from(u8::from(x)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if self.field == Field::Group {
            let feeder = self.feeder;
            return feeder.text(Field::Group, text).map_err(|fault| feeder.refuse(fault));
        }
        match crate::numbers::from_text(text) {
            Some(x) => self.visit_f64(x),
            None => Err(self.wrong(text)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        match self.list {
            true => self.visit_f64(f64::NAN),
            false => Ok(()),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(self.wrong("{"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self { feeder, field, list } = self;
        if list {
            return Err(Self { feeder, field, list }.wrong("["));
        }
        while entries.next_element_seed(ScalarSeed { feeder: &mut *feeder, field, list: true })?.is_some() {}
        Ok(())
    }
}

/// A prompt: a text, or a conversation, which is hashed as it is written.
struct PromptSeed<'h> {
    hasher: &'h mut Hasher,
    /// Whether it is part of a conversation.
    inside: bool,
}

impl<'de> DeserializeSeed<'de> for PromptSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PromptSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a prompt")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if !self.inside {
            self.hasher.add(text);
            return Ok(());
        }
        self.hasher.add("\"");
        self.hasher.add(text);
        self.hasher.add("\"");
        Ok(())
    }

    fn visit_bool<E>(self, x: bool) -> Result<(), E> {
        self.hasher.add(if x { "true" } else { "false" });
        Ok(())
    }

    fn visit_u64<E>(self, x: u64) -> Result<(), E> {
        self.hasher.add(&x.to_string());
        Ok(())
    }

    fn visit_i64<E>(self, x: i64) -> Result<(), E> {
        self.hasher.add(&x.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, x: f64) -> Result<(), E> {
        self.hasher.add(&x.to_string());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        if self.inside {
            self.hasher.add("null");
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.hasher.add("[");
        let mut first = true;
        while list.next_element_seed(Part { hasher: &mut *self.hasher, separator: !first, key: false })?.is_some() {
            first = false;
        }
        self.hasher.add("]");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.hasher.add("{");
        let mut first = true;
        while map.next_key_seed(Part { hasher: &mut *self.hasher, separator: !first, key: true })?.is_some() {
            first = false;
            map.next_value_seed(PromptSeed { hasher: &mut *self.hasher, inside: true })?;
        }
        self.hasher.add("}");
        Ok(())
    }
}

/// An entry or key of a conversation with what stands around it.
struct Part<'h> {
    hasher: &'h mut Hasher,
    separator: bool,
    key: bool,
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.separator {
            self.hasher.add(",");
        }
        PromptSeed { hasher: &mut *self.hasher, inside: true }.deserialize(deserializer)?;
        if self.key {
            self.hasher.add(":");
        }
        Ok(())
    }
}
