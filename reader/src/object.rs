//! A record as a JSON object: its numbers go directly into the columns.

use std::fmt;

use serde::{
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
    Deserialize, Deserializer,
};
use serde_json::Value;

use crate::{
    fault::{excerpt, Fault},
    feeder::Feeder,
    fields::Field,
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
        while let Some(key) = map.next_key_seed(KeySeed(&*feeder))? {
            match key {
                Key::Unknown(None) => {
                    map.next_value::<IgnoredAny>()?;
                }
                Key::Unknown(Some(name)) => {
                    if map.next_value_seed(IsNumber)? {
                        feeder.pass_over(&name);
                    }
                }
                Key::Known(Field::Column(column)) => map.next_value_seed(NumbersSeed { feeder, column })?,
                Key::Known(Field::Mask) => map.next_value_seed(MaskSeed { feeder })?,
                Key::Known(Field::Inside) => map.next_value_seed(InsideSeed { feeder, list: false })?,
                Key::Known(Field::List) => map.next_value_seed(InsideSeed { feeder, list: true })?,
                Key::Known(field @ (Field::Text | Field::Id)) => map.next_value_seed(TextsSeed { feeder, field })?,
                Key::Known(field) => map.next_value_seed(ScalarSeed { feeder, field })?,
            }
        }
        if self.record {
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
    Known(Field),
    /// With its name, if requested.
    Unknown(Option<String>),
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
        Ok(match self.0.find(name) {
            Some(field) => Key::Known(field),
            None => Key::Unknown(self.0.labels().then(|| name.to_string())),
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

/// A field with one entry per sequence.
struct ScalarSeed<'f, 'a> {
    feeder: &'f mut Feeder<'a>,
    field: Field,
}

impl<'de> DeserializeSeed<'de> for ScalarSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let value = Value::deserialize(deserializer)?;
        scalar(self.feeder, self.field, &value).map_err(|fault| self.feeder.refuse(fault))
    }
}

/// Reads the value of a field with one entry per sequence.
pub(crate) fn scalar(feeder: &mut Feeder<'_>, field: Field, value: &Value) -> Result<(), Fault> {
    let wrong = || Fault::NotANumber { field: field.name().into(), found: excerpt(&value.to_string()) };
    match (field, value) {
        (_, Value::Null) => {}
        (Field::Prompt, Value::String(text)) => feeder.text(field, text),
        // a conversation
        (Field::Prompt, other) => feeder.text(field, &other.to_string()),
        (Field::Group, Value::String(text)) => feeder.text(field, text),
        (_, Value::Array(list)) => {
            for entry in list {
                match (field, entry) {
                    (Field::Group, Value::String(text)) => feeder.text(field, text),
                    _ => feeder.listed(field, single(entry).ok_or_else(wrong)?),
                }
            }
        }
        _ => feeder.scalar(field, single(value).ok_or_else(wrong)?),
    }
    Ok(())
}

fn single(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(f64::NAN),
        Value::Bool(yes) => Some(f64::from(u8::from(*yes))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => crate::numbers::from_text(text),
        _ => None,
    }
}
