//! The numbers of a config and what they may be, and how many kept tokens a formula needs: each case has a row of them.

use tokenwise::Error;

pub(crate) use super::{Domain, ABOVE_1, AT_LEAST_1, CAP, FINITE, NOT_NEGATIVE, POSITIVE, UNIT};
use super::{INF, NAN};

/// A number of a config, or, behind a `@`, of the inputs.
pub(crate) struct Field {
    pub(crate) path: &'static str,
    /// Its name in errors.
    pub(crate) what: &'static str,
    pub(crate) domain: &'static Domain,
}

pub(crate) struct Row {
    /// The rest of the config, as JSON.
    pub(crate) base: &'static str,
    pub(crate) numbers: &'static [Field],
    /// The result for a batch without kept tokens.
    pub(crate) all_dropped: Option<Error>,
    /// The result for a batch with one.
    pub(crate) one_kept: Option<Error>,
}

pub(crate) const NEGATIVE: &Domain =
    &Domain { must_be: "negative", good: &[-1e-3, -INF, -10.0], bad: &[0.0, -0.0, 1.0, NAN, INF] };
pub(crate) const AT_MOST_1: &Domain =
    &Domain { must_be: "finite and at most 1", good: &[1.0, 0.0, -2.0, 0.5], bad: &[1.000_1, NAN, INF, -INF] };
pub(crate) const NOT_POSITIVE: &Domain =
    &Domain { must_be: "finite and not positive", good: &[0.0, -0.0, -1.0], bad: &[1e-300, NAN, INF, -INF] };
pub(crate) const NOT_BELOW_LOW: &Domain =
    &Domain { must_be: "not below low", good: &[0.0, INF, 20.0], bad: &[-1.0, NAN, -INF] };
/// `upper` is 5; below 1 there would be candidates.
pub(crate) const AT_MOST_UPPER: &Domain =
    &Domain { must_be: "at most upper", good: &[1.0, 5.0], bad: &[5.000_001, NAN, INF] };
pub(crate) const NOT_BELOW_LOWER: &Domain =
    &Domain { must_be: "positive and not below lower", good: &[INF, 3.0], bad: &[1.0, 0.0, -1.0, NAN, -INF] };
/// Not above the other bound of a veto.
pub(crate) const SMALL: &Domain =
    &Domain { must_be: "finite and not negative", good: &[0.0, 1e-4], bad: &[-1e-9, NAN, INF, -INF] };
pub(crate) const FROM_LOWER: &Domain =
    &Domain { must_be: "not below lower", good: &[INF, 2.0], bad: &[-1.0, NAN, -INF] };
pub(crate) const FINITE_NOT_BELOW: &Domain =
    &Domain { must_be: "finite and not below lower", good: &[1e9, 2e9], bad: &[0.0, NAN, INF, -INF] };

pub(crate) const EMPTY: Option<Error> = Some(Error::EmptyMask);

pub(crate) const fn too_few(what: &'static str, got: usize) -> Option<Error> {
    Some(Error::TooFew { what, needed: 2, got })
}

impl Row {
    pub(crate) const fn with(self, base: &'static str) -> Self {
        Self { base, ..self }
    }

    pub(crate) const fn numbers(self, numbers: &'static [Field]) -> Self {
        Self { numbers, ..self }
    }
}

/// A formula that takes any mask.
pub(crate) const fn any() -> Row {
    Row { base: "{}", numbers: &[], all_dropped: None, one_kept: None }
}

/// A formula that needs a kept token.
pub(crate) const fn needs_one() -> Row {
    Row { all_dropped: EMPTY, ..any() }
}

/// A formula that needs two, to have a variance.
pub(crate) const fn whitens() -> Row {
    Row { all_dropped: EMPTY, one_kept: too_few("variance", 1), ..any() }
}

/// A number that the error names by its key.
pub(crate) const fn key(what: &'static str, domain: &'static Domain) -> Field {
    Field { path: what, what, domain }
}

/// A number further inside.
pub(crate) const fn inside(path: &'static str, what: &'static str, domain: &'static Domain) -> Field {
    Field { path, what, domain }
}

pub(crate) const TEMPERATURE: &[Field] = &[key("temperature", POSITIVE)];
pub(crate) const BETA: &[Field] = &[key("beta", FINITE)];
pub(crate) const GAMMA: &[Field] = &[key("gamma", UNIT)];
pub(crate) const GAMMA_LAMBDA: &[Field] = &[key("gamma", UNIT), key("lambda", UNIT)];
pub(crate) const EPSILON: &[Field] = &[key("epsilon", NOT_NEGATIVE)];
pub(crate) const CLIP: &[Field] = &[key("clip_low", NOT_NEGATIVE), key("clip_high", NOT_NEGATIVE)];
pub(crate) const LOG_RATIO_BOUND: Field = key("log_ratio_bound", POSITIVE);
pub(crate) const CLAMP: &str = r#"{ "bound": { "kind": "clamp" } }"#;
pub(crate) const CLAMPED: &[Field] = &[
    inside("bound.lower", "lower", NOT_NEGATIVE),
    inside("bound.upper", "upper", NOT_BELOW_LOWER),
    key("log_bound", POSITIVE),
];
pub(crate) const DPPO: &[Field] =
    &[key("clip_low", NOT_NEGATIVE), key("clip_high", NOT_NEGATIVE), key("ratio_cap", POSITIVE), LOG_RATIO_BOUND];
pub(crate) const ONE_CRITERION: &str = r#"{ "criteria": [{}] }"#;
