//! Lists of numbers, read straight into a column: one list a sequence, or a list of lists for several.

use std::fmt;

use serde::{
    de::{DeserializeSeed, Error, SeqAccess, Visitor},
    Deserializer,
};

use super::{
    feeder::Feeder,
    fields::{Column, Field},
};

/// The numbers of a column.
pub(super) struct NumbersSeed<'f, 'a> {
    pub(super) feeder: &'f mut Feeder<'a>,
    pub(super) column: Column,
}

impl<'de> DeserializeSeed<'de> for NumbersSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NumbersSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of numbers in field {:?}", self.column.name())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let name = self.column.name();
        let (mut length, mut rows) = (0, 0);
        while let Some(row) =
            list.next_element_seed(Entry { out: self.feeder.numbers(self.column), name, nested: true })?
        {
            match row {
                None => length += 1,
                Some(row) => {
                    rows += 1;
                    self.feeder.row_added(self.column, row);
                }
            }
        }
        match (rows, length) {
            (0, length) => self.feeder.row_added(self.column, length),
            (_, 0) => {}
            _ => return Err(A::Error::custom(format!("field {name:?} has lists among numbers"))),
        }
        Ok(())
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<(), E> {
        self.feeder.scalar(Field::Column(self.column), x);
        Ok(())
    }

    fn visit_u64<E: Error>(self, x: u64) -> Result<(), E> {
        self.visit_f64(x as f64)
    }

    fn visit_i64<E: Error>(self, x: i64) -> Result<(), E> {
        self.visit_f64(x as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let x = from_text(text).ok_or_else(|| E::invalid_type(serde::de::Unexpected::Str(text), &self))?;
        self.visit_f64(x)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// One number, or a row of them: then its length is returned.
struct Entry<'f> {
    out: &'f mut Vec<f64>,
    name: &'static str,
    nested: bool,
}

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = Option<usize>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entry<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number in field {:?}", self.name)
    }

    #[inline]
    fn visit_f64<E: Error>(self, x: f64) -> Result<Self::Value, E> {
        self.out.push(x);
        Ok(None)
    }

    #[inline]
    fn visit_u64<E: Error>(self, x: u64) -> Result<Self::Value, E> {
        self.visit_f64(x as f64)
    }

    #[inline]
    fn visit_i64<E: Error>(self, x: i64) -> Result<Self::Value, E> {
        self.visit_f64(x as f64)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        self.visit_f64(f64::NAN)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let x = from_text(text).ok_or_else(|| E::invalid_type(serde::de::Unexpected::Str(text), &self))?;
        self.visit_f64(x)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        if !self.nested {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        }
        let before = self.out.len();
        while list.next_element_seed(Entry { out: &mut *self.out, name: self.name, nested: false })?.is_some() {}
        Ok(Some(self.out.len() - before))
    }
}

/// The mask: 0 and 1, or false and true.
pub(super) struct MaskSeed<'f, 'a> {
    pub(super) feeder: &'f mut Feeder<'a>,
}

impl<'de> DeserializeSeed<'de> for MaskSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MaskSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of 0 and 1 in field {:?}", Field::Mask.name())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let (mut length, mut rows) = (0, 0);
        while let Some(row) = list.next_element_seed(Keep { out: self.feeder.mask(), nested: true })? {
            match row {
                None => length += 1,
                Some(row) => {
                    rows += 1;
                    self.feeder.mask_added(row);
                }
            }
        }
        match (rows, length) {
            (0, length) => self.feeder.mask_added(length),
            (_, 0) => {}
            _ => return Err(A::Error::custom("field \"mask\" has lists among numbers")),
        }
        Ok(())
    }
}

struct Keep<'f> {
    out: &'f mut Vec<bool>,
    nested: bool,
}

impl<'de> DeserializeSeed<'de> for Keep<'_> {
    type Value = Option<usize>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keep<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0 or 1 in field {:?}", Field::Mask.name())
    }

    #[inline]
    fn visit_bool<E>(self, keep: bool) -> Result<Self::Value, E> {
        self.out.push(keep);
        Ok(None)
    }

    #[inline]
    fn visit_u64<E: Error>(self, x: u64) -> Result<Self::Value, E> {
        match x {
            0 | 1 => self.visit_bool(x == 1),
            _ => Err(E::invalid_value(serde::de::Unexpected::Unsigned(x), &self)),
        }
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<Self::Value, E> {
        if x == 0.0 || x == 1.0 {
            return self.visit_bool(x == 1.0);
        }
        Err(E::invalid_value(serde::de::Unexpected::Float(x), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        if !self.nested {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        }
        let before = self.out.len();
        while list.next_element_seed(Keep { out: &mut *self.out, nested: false })?.is_some() {}
        Ok(Some(self.out.len() - before))
    }
}

/// The numbers JSON has no words for, as other programs write them.
pub(super) fn from_text(text: &str) -> Option<f64> {
    match text {
        "NaN" | "nan" | "null" | "None" => Some(f64::NAN),
        "Infinity" | "inf" | "+inf" => Some(f64::INFINITY),
        "-Infinity" | "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}
