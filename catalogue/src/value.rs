//! The text form of a config, and reading a config out of it.
//!
//! A config arrives as JSON, as a JavaScript object or as a Python dict. All of them become a [`Value`], from which
//! serde reads the config; if a value does not fit, the error names the key, the expected value and the value that was
//! found.

mod error;
mod reader;
mod writer;

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use core::fmt;

use serde::{
    de::{Deserializer, MapAccess, SeqAccess, Visitor},
    Deserialize, Serialize,
};

pub use error::{ConfigError, ConfigFault, ConfigReason};
use reader::Reader;
use writer::Writer;

/// A config, or a part of one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing: an optional number that is not set.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number. Whole numbers are exact up to 2^53.
    Number(f64),
    /// The name of a choice.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// Keys in snake_case and their values.
    Map(Vec<(String, Self)>),
}

impl Value {
    /// No key set: every field keeps its default.
    pub const EMPTY: Self = Self::Map(Vec::new());

    /// Reads a config; `what` names it in errors. Not inlined: otherwise every formula has a copy per precision.
    #[inline(never)]
    pub fn read<'de, T: Deserialize<'de>>(&'de self, what: &'de str) -> Result<T, ConfigError> {
        let reader = Reader { value: self, key: what, or_null: false };
        T::deserialize(reader).map_err(|error| error.at(what, self))
    }

    /// The text form of a config of the core, of `serde_json::json!`, or of anything else that is an object; `()` and
    /// `None` set no key. An infinite number stays infinite, unlike in JSON.
    ///
    /// ```
    /// use tokenwise::loss::PpoConfig;
    /// use tokenwise_catalogue::Value;
    ///
    /// let config = PpoConfig { clip_high: f64::INFINITY, ..Default::default() };
    /// let value = Value::of(&config)?;
    /// assert_eq!(value.get("clip_high"), Some(&Value::Number(f64::INFINITY)));
    /// assert_eq!(value.read::<PpoConfig<'_>>("config")?, config);
    /// # Ok::<(), tokenwise_catalogue::ConfigError>(())
    /// ```
    pub fn of(config: &(impl Serialize + ?Sized)) -> Result<Self, ConfigError> {
        match config.serialize(Writer)? {
            Self::Null => Ok(Self::EMPTY),
            value => Ok(value),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value of a key, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match self {
            Self::Map(pairs) => pairs.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Takes a key out of a map.
    pub fn take(&mut self, key: &str) -> Option<Self> {
        match self {
            Self::Map(pairs) => {
                let place = pairs.iter().position(|(name, _)| name == key)?;
                Some(pairs.remove(place).1)
            }
            _ => None,
        }
    }

    /// Sets a key, in a map.
    pub fn set(&mut self, key: &str, value: Self) {
        if let Self::Map(pairs) = self {
            pairs.retain(|(name, _)| name != key);
            pairs.push((key.to_owned(), value));
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::List(_) => f.write_str("a list"),
            Self::Map(_) => f.write_str("an object"),
        }
    }
}

/// Reads a [`Value`] from any self-describing serde format, such as JSON.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a config")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Number(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(Value::Number(value as f64))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Number(value as f64))
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(Value::Text(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
                let mut all = Vec::new();
                while let Some(value) = list.next_element()? {
                    all.push(value);
                }
                Ok(Value::List(all))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut all = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    all.push(pair);
                }
                Ok(Value::Map(all))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
