//! Why a config was rejected.

use alloc::{
    borrow::ToOwned,
    boxed::Box,
    string::{String, ToString},
};
use core::{fmt, ops::Deref};

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

/// Why a config was rejected: a [`ConfigReason`] behind a pointer, as in `serde_json::Error`. Code that serde derives
/// moves the error at every step, and there are as many such functions as configs.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError(Box<ConfigReason>);

/// The parts of a [`ConfigError`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConfigReason {
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

impl Deref for ConfigError {
    type Target = ConfigReason;

    fn deref(&self) -> &ConfigReason {
        &self.0
    }
}

impl ConfigError {
    fn new(fault: ConfigFault, parameter: &str, expected: String, got: Option<Value>) -> Self {
        let (parameter, within) = (parameter.to_owned(), String::new());
        Self(Box::new(ConfigReason { fault, parameter, within, expected, got }))
    }

    /// A key that an object does not have.
    pub fn unknown_key(key: &str, within: &str, expected: &[&str]) -> Self {
        let mut error = Self::new(ConfigFault::Key, key, expected.join(", "), Some(Value::Text(key.to_owned())));
        within.clone_into(&mut error.0.within);
        error
    }

    /// A name that is not among the choices, which are separated by commas.
    pub fn unknown_choice(parameter: &str, expected: &str, got: &str) -> Self {
        Self::new(ConfigFault::Choice, parameter, expected.to_owned(), Some(Value::Text(got.to_owned())))
    }

    pub(super) fn wrong_type(key: &str, expected: impl Into<String>, got: Option<&Value>) -> Self {
        Self::new(ConfigFault::Type, key, expected.into(), got.cloned())
    }

    /// Errors created by serde have no key: the nearest enclosing one is filled in on the way up.
    pub(super) fn at(mut self, key: &str, value: &Value) -> Self {
        let reason = &mut *self.0;
        if reason.parameter.is_empty() {
            key.clone_into(&mut reason.parameter);
            if reason.got.is_none() && reason.fault == ConfigFault::Type {
                reason.got = Some(value.clone());
            }
        }
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfigReason { fault, parameter, within, expected, got } = &**self;
        match (fault, got) {
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
        Self::new(ConfigFault::Fields, "", message.to_string(), None)
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::wrong_type("", expected.to_string(), None)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::wrong_type("", expected.to_string(), None)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown_choice("", &expected.join(", "), variant)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown_key(field, "config", expected)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::wrong_type(field, "a value", None)
    }
}
