//! Lists of numbers, read directly into a column: one list per sequence, or a list of lists for several.

use std::fmt;

use serde::{
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
    Deserializer,
};

use crate::{
    fault::{excerpt, Fault},
    feeder::Feeder,
    fields::{Column, Field},
};

/// The numbers of a column.
pub(crate) struct NumbersSeed<'f, 'a> {
    pub(crate) feeder: &'f mut Feeder<'a>,
    pub(crate) column: Column,
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
        let (mut length, mut rows) = (0, 0);
        while let Some(row) =
            list.next_element_seed(Entry { feeder: &mut *self.feeder, column: self.column, nested: true })?
        {
            match row {
                None => length += 1,
                Some(row) => {
                    rows += 1;
                    self.feeder.row_added(self.column, row).map_err(|fault| self.feeder.refuse(fault))?;
                }
            }
        }
        match (rows, length) {
            (0, length) => {
                self.feeder.row_added(self.column, length).map_err(|fault| self.feeder.refuse(fault))?;
            }
            (_, 0) => {}
            _ => return Err(self.feeder.refuse(Fault::Mixed { field: self.column.name().into() })),
        }
        Ok(())
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<(), E> {
        self.feeder.scalar(Field::Column(self.column), x).map_err(|fault| self.feeder.refuse(fault))
    }

    fn visit_u64<E: Error>(self, x: u64) -> Result<(), E> {
        self.visit_f64(x as f64)
    }

    fn visit_i64<E: Error>(self, x: i64) -> Result<(), E> {
        self.visit_f64(x as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match from_text(text) {
            Some(x) => self.visit_f64(x),
            None => Err(not_a_number(self.feeder, self.column, text)),
        }
    }

    fn visit_bool<E: Error>(self, x: bool) -> Result<(), E> {
        Err(not_a_number(self.feeder, self.column, &x.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(not_a_number(self.feeder, self.column, "{"))
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

fn not_a_number<E: Error>(feeder: &mut Feeder<'_>, column: Column, found: &str) -> E {
    feeder.refuse(Fault::NotANumber { field: column.name().into(), found: excerpt(found) })
}

/// One number, or a row of them, whose length is returned.
struct Entry<'f, 'a> {
    feeder: &'f mut Feeder<'a>,
    column: Column,
    nested: bool,
}

impl<'de> DeserializeSeed<'de> for Entry<'_, '_> {
    type Value = Option<usize>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entry<'_, '_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number in field {:?}", self.column.name())
    }

    #[inline]
    fn visit_f64<E: Error>(self, x: f64) -> Result<Self::Value, E> {
        match self.feeder.push(self.column, x) {
            Ok(()) => Ok(None),
            Err(fault) => Err(self.feeder.refuse(fault)),
        }
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
        match from_text(text) {
            Some(x) => self.visit_f64(x),
            None => Err(not_a_number(self.feeder, self.column, text)),
        }
    }

    fn visit_bool<E: Error>(self, x: bool) -> Result<Self::Value, E> {
        Err(not_a_number(self.feeder, self.column, &x.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(not_a_number(self.feeder, self.column, "{"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Self { feeder, column, nested } = self;
        if !nested {
            return Err(not_a_number(feeder, column, "["));
        }
        let before = feeder.numbers(column).len();
        while list.next_element_seed(Entry { feeder: &mut *feeder, column, nested: false })?.is_some() {}
        Ok(Some(feeder.numbers(column).len() - before))
    }
}

/// The mask: 0 and 1, or false and true.
pub(crate) struct MaskSeed<'f, 'a> {
    pub(crate) feeder: &'f mut Feeder<'a>,
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

    fn visit_bool<E: Error>(self, x: bool) -> Result<(), E> {
        Err(not_a_mask(self.feeder, x))
    }

    fn visit_u64<E: Error>(self, x: u64) -> Result<(), E> {
        Err(not_a_mask(self.feeder, x))
    }

    fn visit_i64<E: Error>(self, x: i64) -> Result<(), E> {
        Err(not_a_mask(self.feeder, x))
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<(), E> {
        Err(not_a_mask(self.feeder, x))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        Err(not_a_mask(self.feeder, text))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(not_a_mask(self.feeder, "{"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let (mut length, mut rows) = (0, 0);
        while let Some(row) = list.next_element_seed(Keep { feeder: &mut *self.feeder, nested: true })? {
            match row {
                None => length += 1,
                Some(row) => {
                    rows += 1;
                    self.feeder.mask_added(row).map_err(|fault| self.feeder.refuse(fault))?;
                }
            }
        }
        match (rows, length) {
            (0, length) => self.feeder.mask_added(length).map_err(|fault| self.feeder.refuse(fault))?,
            (_, 0) => {}
            _ => return Err(self.feeder.refuse(Fault::Mixed { field: Field::Mask.name().into() })),
        }
        Ok(())
    }
}

struct Keep<'f, 'a> {
    feeder: &'f mut Feeder<'a>,
    nested: bool,
}

fn not_a_mask<E: Error>(feeder: &mut Feeder<'_>, found: impl fmt::Display) -> E {
    feeder.refuse(Fault::NotAMask { found: excerpt(&found.to_string()) })
}

impl<'de> DeserializeSeed<'de> for Keep<'_, '_> {
    type Value = Option<usize>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keep<'_, '_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0 or 1 in field {:?}", Field::Mask.name())
    }

    #[inline]
    fn visit_bool<E: Error>(self, keep: bool) -> Result<Self::Value, E> {
        match self.feeder.push_mask(keep) {
            Ok(()) => Ok(None),
            Err(fault) => Err(self.feeder.refuse(fault)),
        }
    }

    #[inline]
    fn visit_u64<E: Error>(self, x: u64) -> Result<Self::Value, E> {
        match x {
            0 | 1 => self.visit_bool(x == 1),
            _ => Err(not_a_mask(self.feeder, x)),
        }
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<Self::Value, E> {
        if x == 0.0 || x == 1.0 {
            return self.visit_bool(x == 1.0);
        }
        Err(not_a_mask(self.feeder, x))
    }

    fn visit_i64<E: Error>(self, x: i64) -> Result<Self::Value, E> {
        Err(not_a_mask(self.feeder, x))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Err(not_a_mask(self.feeder, "null"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(not_a_mask(self.feeder, text))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(not_a_mask(self.feeder, "{"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Self { feeder, nested } = self;
        if !nested {
            return Err(not_a_mask(feeder, "["));
        }
        let before = feeder.mask().len();
        while list.next_element_seed(Keep { feeder: &mut *feeder, nested: false })?.is_some() {}
        Ok(Some(feeder.mask().len() - before))
    }
}

/// Numbers that JSON cannot represent, as other programs write them.
pub(crate) fn from_text(text: &str) -> Option<f64> {
    match text {
        "NaN" | "nan" | "null" | "None" => Some(f64::NAN),
        "Infinity" | "inf" | "+inf" => Some(f64::INFINITY),
        "-Infinity" | "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}
