//! How configs are serialized with the feature `serde`. The rules are in the documentation of the crate.

pub(crate) mod aggregate;
pub(crate) mod bypass;
pub(crate) mod control;

use core::fmt;

use serde::{
    de::{value::MapAccessDeserializer, Error, IntoDeserializer, MapAccess, Visitor},
    Deserialize, Deserializer, Serialize, Serializer,
};

/// A field that may be infinite, for `#[serde(with)]`. JSON has no such numbers; they are the strings `"inf"`, `"-inf"`
/// and `"nan"`.
pub(crate) mod number {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        let name = match *number {
            finite if finite.is_finite() => return serializer.serialize_f64(finite),
            nan if nan.is_nan() => "nan",
            infinite if infinite > 0.0 => "inf",
            _ => "-inf",
        };
        if serializer.is_human_readable() {
            serializer.serialize_str(name)
        } else {
            serializer.serialize_f64(*number)
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(Number)
        } else {
            deserializer.deserialize_f64(Number)
        }
    }

    struct Number;

    impl Visitor<'_> for Number {
        type Value = f64;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a number, \"inf\", \"-inf\" or \"nan\"")
        }

        fn visit_f64<E>(self, number: f64) -> Result<f64, E> {
            Ok(number)
        }

        fn visit_i64<E>(self, number: i64) -> Result<f64, E> {
            Ok(number as f64)
        }

        fn visit_u64<E>(self, number: u64) -> Result<f64, E> {
            Ok(number as f64)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
            match text {
                "inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                "nan" => Ok(f64::NAN),
                _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
            }
        }
    }
}

/// A number in a variant; an `f64` may be infinite.
pub(crate) struct Entry<T>(pub(crate) T);

impl Serialize for Entry<f64> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        number::serialize(&self.0, serializer)
    }
}

impl Serialize for Entry<u64> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry<f64> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Entry<u64> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self)
    }
}

/// `Some` for a field that is present, even as `null`; with `#[serde(default, deserialize_with)]`, `None` means that it
/// is absent.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A number or a name, or an object. serde's untagged enums would need an allocator.
pub(crate) enum Either<A, B> {
    Plain(A),
    Object(B),
}

impl<A: Serialize, B: Serialize> Serialize for Either<A, B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(plain) => plain.serialize(serializer),
            Self::Object(object) => object.serialize(serializer),
        }
    }
}

impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Deserialize<'de> for Either<A, B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<A, B>(core::marker::PhantomData<(A, B)>);

        impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Visitor<'de> for Any<A, B> {
            type Value = Either<A, B>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number, a name or an object")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                A::deserialize(number.into_deserializer()).map(Either::Plain)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                A::deserialize(number.into_deserializer()).map(Either::Plain)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                A::deserialize(number.into_deserializer()).map(Either::Plain)
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                A::deserialize(name.into_deserializer()).map(Either::Plain)
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
                B::deserialize(MapAccessDeserializer::new(map)).map(Either::Object)
            }
        }

        deserializer.deserialize_any(Any(core::marker::PhantomData))
    }
}

/// A config nested in another one: its missing fields come from the default of the outer config, not from its own
/// default.
pub(crate) trait Over: Sized {
    /// The given fields, with `usual` for the missing ones.
    fn over<'de, D: Deserializer<'de>>(usual: Self, deserializer: D) -> Result<Self, D::Error>;
}

/// Implements [`Over`] for a struct; all its fields must be listed.
macro_rules! over {
    ($type:ident { $($field:ident: $kind:ty),+ $(,)? }) => {
        impl crate::spelling::Over for $type {
            fn over<'de, D>(usual: Self, deserializer: D) -> core::result::Result<Self, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                #[derive(serde::Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Given {
                    $(#[serde(default, deserialize_with = "crate::spelling::given")] $field: Option<$kind>,)+
                }
                let given: Given = serde::Deserialize::deserialize(deserializer)?;
                Ok(Self { $($field: given.$field.unwrap_or(usual.$field)),+ })
            }
        }
    };
}

/// Defines functions for `#[serde(deserialize_with)]` that read a nested config over the default of the outer one.
macro_rules! over_default {
    ($($name:ident: $config:ident.$field:ident as $type:ty),+ $(,)?) => {$(
        fn $name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> core::result::Result<$type, D::Error> {
            crate::spelling::Over::over(<$config>::default().$field, deserializer)
        }
    )+};
}

/// An enum with a value or none: serialized as the value or `null`.
macro_rules! nullable {
    ($type:ident { $none:ident, $some:ident($value:ty) }) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
                match self {
                    Self::$none => serializer.serialize_none(),
                    Self::$some(value) => serializer.serialize_some(value),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
                let value: Option<$value> = serde::Deserialize::deserialize(deserializer)?;
                Ok(value.map_or(Self::$none, Self::$some))
            }
        }
    };
}

/// An enum whose variants have numbers: an object with these numbers and the name of the variant as `kind`. The fields
/// of all variants are listed first, since serde's own tagged enums need an allocator; `{ … }` is both the pattern and
/// the expression of a variant.
macro_rules! tagged {
    (
        $type:ident { $($all:ident: $kind:ty),+ }
        $($name:literal $variant:ident($($field:ident),*) = { $($value:tt)+ })+
    ) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                match *self {$(
                    $($value)+ => {
                        let fields: &[&str] = &["kind", $(stringify!($field)),*];
                        let mut object = serializer.serialize_struct(stringify!($type), fields.len())?;
                        object.serialize_field("kind", $name)?;
                        $(object.serialize_field(stringify!($field), &crate::spelling::Entry($field))?;)*
                        object.end()
                    }
                )+}
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
                use serde::de::Error;

                #[derive(Clone, Copy, serde::Deserialize)]
                enum Kind {
                    $(#[serde(rename = $name)] $variant,)+
                }

                #[derive(serde::Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Given {
                    kind: Kind,
                    $(#[serde(default, deserialize_with = "crate::spelling::given")]
                    $all: Option<crate::spelling::Entry<$kind>>,)+
                }

                let mut given = Given::deserialize(deserializer)?;
                let value = match given.kind {
                    $(Kind::$variant => {
                        $(let missing = || D::Error::missing_field(stringify!($field));
                        let $field = given.$field.take().ok_or_else(missing)?.0;)*
                        $($value)+
                    })+
                };
                $(if given.$all.is_some() {
                    return Err(D::Error::custom(concat!("`", stringify!($all), "` does not belong to this kind")));
                })+
                Ok(value)
            }
        }
    };
}

pub(crate) use {nullable, over, over_default, tagged};
