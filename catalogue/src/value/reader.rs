//! serde's view of a [`Value`]: every refusal names the key, what was expected and what was there.

use alloc::{borrow::ToOwned, format, string::String};

use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::{ConfigError, Value};

/// A value and its key.
#[derive(Clone, Copy)]
pub(super) struct Reader<'de> {
    pub(super) value: &'de Value,
    pub(super) key: &'de str,
    /// Whether `null` would have been accepted too.
    pub(super) or_null: bool,
}

impl<'de> Reader<'de> {
    fn refused(self, expected: &str) -> ConfigError {
        let expected = if self.or_null { format!("{expected} or null") } else { expected.to_owned() };
        ConfigError::wrong_type(self.key, expected, Some(self.value))
    }

    /// Refuses an object with a key that is not among `fields`.
    fn check_keys(self, fields: &[&str]) -> Result<(), ConfigError> {
        let Value::Map(pairs) = self.value else { return Ok(()) };
        match pairs.iter().find(|(key, _)| !fields.contains(&key.as_str())) {
            Some((key, _)) => Err(ConfigError::unknown_key(key, self.key, fields)),
            None => Ok(()),
        }
    }

    /// The choice among `variants` that a text, or an object with one key, makes.
    fn choice(self, variants: &[&str]) -> Result<Choice<'de>, ConfigError> {
        match self.value {
            Value::Text(name) => Ok(Choice { name, content: None, of: self }),
            Value::Map(pairs) if pairs.len() == 1 => {
                self.check_keys(variants)?;
                Ok(Choice { name: &pairs[0].0, content: Some(&pairs[0].1), of: self })
            }
            _ => Err(self.refused(&variants.join(" | "))),
        }
    }

    fn whole(self, limit: f64, words: &str) -> Result<u64, ConfigError> {
        match *self.value {
            // comparing with the truncated number rejects fractions; NaN and negative numbers fail the range
            Value::Number(x) if (0.0..=limit).contains(&x) && x as u64 as f64 == x => Ok(x as u64),
            _ => Err(self.refused(words)),
        }
    }
}

const COUNT: (f64, &str) = (9_007_199_254_740_991.0, "a whole number from 0 to 2^53 - 1");
const INDEX: (f64, &str) = (4_294_967_295.0, "a whole number from 0 to 2^32 - 1");

macro_rules! whole_numbers {
    ($($method:ident $limit:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
            visitor.visit_u64(self.whole($limit.0, $limit.1)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = ConfigError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        let result = match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            // integers are passed only if an integer type is requested; a visitor for any number takes f64
            Value::Number(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(list) => visitor.visit_seq(List { rest: list, key: self.key }),
            Value::Map(pairs) => visitor.visit_map(Pairs { rest: pairs, current: None }),
        };
        result.map_err(|error| error.at(self.key, self.value))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match *self.value {
            Value::Number(x) => visitor.visit_f64(x),
            _ => Err(self.refused("a number")),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        self.deserialize_f64(visitor)
    }

    whole_numbers! {
        deserialize_u8 INDEX,
        deserialize_u16 INDEX,
        deserialize_u32 INDEX,
        deserialize_u64 COUNT,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match *self.value {
            Value::Bool(x) => visitor.visit_bool(x),
            _ => Err(self.refused("true or false")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(Self { or_null: true, ..self }),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.value {
            Value::List(list) => visitor.visit_seq(List { rest: list, key: self.key }),
            _ => Err(self.refused("an array")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.value {
            Value::Map(pairs) => {
                let result = visitor.visit_map(Pairs { rest: pairs, current: None });
                result.map_err(|error| error.at(self.key, self.value))
            }
            _ => Err(self.refused("an object")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        self.check_keys(fields)?;
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        let access = self.choice(variants)?;
        visitor.visit_enum(access).map_err(|error| error.at(self.key, self.value))
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 char str string bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct
        identifier ignored_any
    }
}

struct Pairs<'de> {
    rest: &'de [(String, Value)],
    current: Option<&'de (String, Value)>,
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = ConfigError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ConfigError> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
        (self.current, self.rest) = (Some(first), rest);
        seed.deserialize(de::value::BorrowedStrDeserializer::new(&first.0)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ConfigError> {
        match self.current.take() {
            Some((key, value)) => {
                seed.deserialize(Reader { value, key, or_null: false }).map_err(|error| error.at(key, value))
            }
            None => Err(de::Error::custom("a key before its value")),
        }
    }
}

struct List<'de> {
    rest: &'de [Value],
    key: &'de str,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = ConfigError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ConfigError> {
        let Some((value, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        seed.deserialize(Reader { value, key: self.key, or_null: false }).map(Some)
    }
}

/// The name of a choice, and its content.
struct Choice<'de> {
    name: &'de str,
    content: Option<&'de Value>,
    of: Reader<'de>,
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = ConfigError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ConfigError> {
        let name = seed.deserialize(de::value::BorrowedStrDeserializer::new(self.name))?;
        Ok((name, self))
    }
}

impl<'de> Choice<'de> {
    fn content(&self) -> Result<Reader<'de>, ConfigError> {
        match self.content {
            Some(value) => Ok(Reader { value, key: self.name, or_null: false }),
            None => Err(ConfigError::wrong_type(self.of.key, format!("{{ {} }}", self.name), Some(self.of.value))),
        }
    }
}

impl<'de> VariantAccess<'de> for Choice<'de> {
    type Error = ConfigError;

    fn unit_variant(self) -> Result<(), ConfigError> {
        match self.content {
            None => Ok(()),
            Some(_) => Err(ConfigError::wrong_type(self.of.key, format!("{:?}", self.name), Some(self.of.value))),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ConfigError> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ConfigError> {
        self.content()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        self.content()?.deserialize_struct("", fields, visitor)
    }
}
