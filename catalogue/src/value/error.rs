//! Why a config was rejected.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
};
use core::fmt;

use serde::de::{self, Unexpected};

use super::Value;

/// The kind of a [`ConfigError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigFault {
    /// A value of the wrong type, or a missing value.
    Type,
    /// A key that the config does not have.
    Key,
    /// A name that is not among the choices.
    Choice,
    /// Fields that contradict each other; `expected` describes why.
    Fields,
}

impl ConfigFault {
    /// A short stable name, for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Key => "key",
            Self::Choice => "choice",
            Self::Fields => "fields",
        }
    }
}

/// Why a config was rejected.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The kind of error.
    pub fault: ConfigFault,
    /// The key at fault.
    pub parameter: String,
    /// The key of the enclosing object; for an unknown key.
    pub within: String,
    /// What was expected.
    pub expected: String,
    /// The value that was found, or `None`.
    pub got: Option<Value>,
}

impl ConfigError {
    /// A key that an object does not have.
    pub fn unknown_key(key: &str, within: &str, expected: &[&str]) -> Self {
        Self {
            fault: ConfigFault::Key,
            parameter: key.to_owned(),
            within: within.to_owned(),
            expected: expected.join(", "),
            got: Some(Value::Text(key.to_owned())),
        }
    }

    /// A name that is not among the choices, which are separated by commas.
    pub fn unknown_choice(parameter: &str, expected: &str, got: &str) -> Self {
        Self {
            fault: ConfigFault::Choice,
            parameter: parameter.to_owned(),
            within: String::new(),
            expected: expected.to_owned(),
            got: Some(Value::Text(got.to_owned())),
        }
    }

    pub(super) fn wrong_type(key: &str, expected: impl Into<String>, got: Option<&Value>) -> Self {
        Self {
            fault: ConfigFault::Type,
            parameter: key.to_owned(),
            within: String::new(),
            expected: expected.into(),
            got: got.cloned(),
        }
    }

    /// Errors created by serde have no key: the nearest enclosing one is filled in on the way up.
    pub(super) fn at(mut self, key: &str, value: &Value) -> Self {
        if self.parameter.is_empty() {
            key.clone_into(&mut self.parameter);
            if self.got.is_none() && self.fault == ConfigFault::Type {
                self.got = Some(value.clone());
            }
        }
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, within, expected, got, .. } = self;
        match (self.fault, got) {
            (ConfigFault::Fields, _) => write!(f, "{parameter}: {expected}"),
            (ConfigFault::Key, _) => write!(f, "{parameter}: not a key of {within}, which has {expected}"),
            (ConfigFault::Choice, Some(Value::Text(got))) => {
                write!(f, "{parameter}: expected one of {expected}, got {got}")
            }
            (_, Some(got)) => write!(f, "{parameter}: expected {expected}, got {got}"),
            (_, None) => write!(f, "{parameter}: expected {expected}, got nothing"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl de::Error for ConfigError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { fault: ConfigFault::Fields, ..Self::wrong_type("", message.to_string(), None) }
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::wrong_type("", expected.to_string(), None)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::wrong_type("", expected.to_string(), None)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self {
            fault: ConfigFault::Choice,
            parameter: String::new(),
            within: String::new(),
            expected: expected.join(", "),
            got: Some(Value::Text(variant.to_owned())),
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown_key(field, "config", expected)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::wrong_type(field, "a value", None)
    }
}
