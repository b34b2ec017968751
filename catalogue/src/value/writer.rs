//! A config of the core as a [`Value`]: the opposite direction of [`Reader`](super::reader::Reader).

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use core::fmt;

use serde::{
    de,
    ser::{self, Serialize, Serializer},
};

use super::{ConfigError, Value};

/// Writes whatever serde hands it.
pub(super) struct Writer;

/// Whole numbers above this have no exact `f64`.
const LIMIT: u64 = 1 << 53;

impl ser::Error for ConfigError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        de::Error::custom(message)
    }
}

fn whole(magnitude: u64, number: f64) -> Result<Value, ConfigError> {
    if magnitude < LIMIT {
        Ok(Value::Number(number))
    } else {
        Err(ConfigError::wrong_type("", "a whole number below 2^53", Some(&Value::Number(number))))
    }
}

/// The only key of a choice that has a content.
fn choice(name: &str, content: Value) -> Value {
    Value::Map([(name.to_owned(), content)].into())
}

impl Serializer for Writer {
    type Ok = Value;
    type Error = ConfigError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Keys;
    type SerializeStruct = Keys;
    type SerializeStructVariant = Keys;

    fn serialize_bool(self, value: bool) -> Result<Value, ConfigError> {
        Ok(Value::Bool(value))
    }
    fn serialize_i8(self, value: i8) -> Result<Value, ConfigError> {
        Ok(Value::Number(value.into()))
    }
    fn serialize_i16(self, value: i16) -> Result<Value, ConfigError> {
        Ok(Value::Number(value.into()))
    }
    fn serialize_i32(self, value: i32) -> Result<Value, ConfigError> {
        Ok(Value::Number(value.into()))
    }
    fn serialize_i64(self, value: i64) -> Result<Value, ConfigError> {
        whole(value.unsigned_abs(), value as f64)
    }
    fn serialize_u8(self, value: u8) -> Result<Value, ConfigError> {
        Ok(Value::Number(value.into()))
    }
    fn serialize_u16(self, value: u16) -> Result<Value, ConfigError> {
        Ok(Value::Number(value.into()))
    }
    fn serialize_u32(self, value: u32) -> Result<Value, ConfigError> {
        Ok(Value::Number(value.into()))
    }
    fn serialize_u64(self, value: u64) -> Result<Value, ConfigError> {
        whole(value, value as f64)
    }
    fn serialize_f32(self, value: f32) -> Result<Value, ConfigError> {
        Ok(Value::Number(value.into()))
    }
    fn serialize_f64(self, value: f64) -> Result<Value, ConfigError> {
        Ok(Value::Number(value))
    }
    fn serialize_char(self, value: char) -> Result<Value, ConfigError> {
        Ok(Value::Text(value.into()))
    }
    fn serialize_str(self, value: &str) -> Result<Value, ConfigError> {
        Ok(Value::Text(value.to_owned()))
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<Value, ConfigError> {
        Ok(Value::List(value.iter().map(|&byte| Value::Number(byte.into())).collect()))
    }
    fn serialize_none(self) -> Result<Value, ConfigError> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, ConfigError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, ConfigError> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, ConfigError> {
        Ok(Value::EMPTY)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<Value, ConfigError> {
        Ok(Value::Text(name.to_owned()))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Value, ConfigError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<Value, ConfigError> {
        Ok(choice(name, value.serialize(self)?))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Items, ConfigError> {
        Ok(Items::default())
    }
    fn serialize_tuple(self, _: usize) -> Result<Items, ConfigError> {
        Ok(Items::default())
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items, ConfigError> {
        Ok(Items::default())
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Items, ConfigError> {
        Ok(Items { within: Some(name), ..Items::default() })
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Keys, ConfigError> {
        Ok(Keys::default())
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Keys, ConfigError> {
        Ok(Keys::default())
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Keys, ConfigError> {
        Ok(Keys { within: Some(name), ..Keys::default() })
    }
}

/// A list that is being written.
#[derive(Default)]
pub(super) struct Items {
    items: Vec<Value>,
    within: Option<&'static str>,
}

impl Items {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ConfigError> {
        self.items.push(value.serialize(Writer)?);
        Ok(())
    }

    fn done(self) -> Value {
        let list = Value::List(self.items);
        match self.within {
            Some(name) => choice(name, list),
            None => list,
        }
    }
}

/// An object that is being written.
#[derive(Default)]
pub(super) struct Keys {
    pairs: Vec<(String, Value)>,
    key: String,
    within: Option<&'static str>,
}

impl Keys {
    fn push<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), ConfigError> {
        let value = value.serialize(Writer).map_err(|error| error.at(key, &Value::Null))?;
        self.pairs.push((key.to_owned(), value));
        Ok(())
    }

    fn done(self) -> Value {
        let map = Value::Map(self.pairs);
        match self.within {
            Some(name) => choice(name, map),
            None => map,
        }
    }
}

macro_rules! lists {
    ($($of:ident $method:ident,)*) => {$(
        impl ser::$of for Items {
            type Ok = Value;
            type Error = ConfigError;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ConfigError> {
                self.push(value)
            }
            fn end(self) -> Result<Value, ConfigError> {
                Ok(self.done())
            }
        }
    )*};
}
lists! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

macro_rules! structs {
    ($($of:ident)*) => {$(
        impl ser::$of for Keys {
            type Ok = Value;
            type Error = ConfigError;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), ConfigError> {
                self.push(key, value)
            }
            fn end(self) -> Result<Value, ConfigError> {
                Ok(self.done())
            }
        }
    )*};
}
structs! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Keys {
    type Ok = Value;
    type Error = ConfigError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ConfigError> {
        match key.serialize(Writer)? {
            Value::Text(key) => {
                self.key = key;
                Ok(())
            }
            other => Err(ConfigError::wrong_type("", "the name of a key", Some(&other))),
        }
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ConfigError> {
        let key = core::mem::take(&mut self.key);
        self.push(&key, value)
    }
    fn end(self) -> Result<Value, ConfigError> {
        Ok(self.done())
    }
}
