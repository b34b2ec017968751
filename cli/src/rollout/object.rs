//! A record as a JSON object: its numbers go straight into the columns.

use std::fmt;

use serde::{
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
    Deserialize, Deserializer,
};
use serde_json::Value;

use super::{
    feeder::Feeder,
    fields::{Field, Names},
    numbers::{MaskSeed, NumbersSeed},
};

/// An object that is a record, or has lists of records inside.
pub(super) struct ObjectSeed<'f, 'a> {
    pub(super) feeder: &'f mut Feeder<'a>,
    pub(super) names: &'f Names,
    /// Whether a sequence ends with it.
    pub(super) record: bool,
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
        let (feeder, names) = (self.feeder, self.names);
        while let Some(field) = map.next_key_seed(KeySeed(names))? {
            match field {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(Field::Column(column)) => map.next_value_seed(NumbersSeed { feeder, column })?,
                Some(Field::Mask) => map.next_value_seed(MaskSeed { feeder })?,
                Some(Field::Inside) => map.next_value_seed(InsideSeed { feeder, names, list: false })?,
                Some(Field::List) => map.next_value_seed(InsideSeed { feeder, names, list: true })?,
                Some(field) => map.next_value_seed(ScalarSeed { feeder, field })?,
            }
        }
        if self.record {
            feeder.end().map_err(A::Error::custom)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        // a list of records; not inside another record
        let (feeder, names) = (self.feeder, self.names);
        while list.next_element_seed(ObjectSeed { feeder: &mut *feeder, names, record: true })?.is_some() {}
        Ok(())
    }
}

struct KeySeed<'f>(&'f Names);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Option<Field>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Option<Field>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(name))
    }
}

/// The value of a field that holds more fields, or records; anything else is passed over (token ids, texts).
struct InsideSeed<'f, 'a> {
    feeder: &'f mut Feeder<'a>,
    names: &'f Names,
    list: bool,
}

impl<'de> DeserializeSeed<'de> for InsideSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! pass_over {
    ($($method:ident($type:ty)),* $(,)?) => {$(
        fn $method<E>(self, _: $type) -> Result<(), E> {
            Ok(())
        }
    )*};
}

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
        ObjectSeed { feeder: self.feeder, names: self.names, record: false }.visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if !self.list {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let (feeder, names, mut entered) = (self.feeder, self.names, false);
        while list.next_element_seed(EntrySeed { feeder: &mut *feeder, names, entered: &mut entered })?.is_some() {}
        if entered {
            feeder.leave();
        }
        Ok(())
    }
}

/// One entry of a list: a record if it is an object.
struct EntrySeed<'f, 'a, 'e> {
    feeder: &'f mut Feeder<'a>,
    names: &'f Names,
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
        ObjectSeed { feeder: self.feeder, names: self.names, record: true }.visit_map(map)
    }
}

/// A field with one entry a sequence.
struct ScalarSeed<'f, 'a> {
    feeder: &'f mut Feeder<'a>,
    field: Field,
}

impl<'de> DeserializeSeed<'de> for ScalarSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let value = Value::deserialize(deserializer)?;
        scalar(self.feeder, self.field, &value).map_err(D::Error::custom)
    }
}

/// Takes the value of a field with one entry a sequence.
pub(super) fn scalar(feeder: &mut Feeder<'_>, field: Field, value: &Value) -> Result<(), String> {
    let wrong = || format!("field {:?}: expected a number, got {value}", field.name());
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
        Value::String(text) => super::numbers::from_text(text),
        _ => None,
    }
}
