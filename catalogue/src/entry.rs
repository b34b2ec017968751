//! The description of a formula: its name, inputs, config, outputs and returned numbers.

use alloc::{borrow::Cow, vec::Vec};
use core::fmt;

use serde::Deserialize;
use tokenwise::{
    loss::{Aggregate, AggregateMode},
    policy::Logit,
    Batch, Error, Groups, Real,
};

use crate::{
    columns::{Columns, Element},
    value::{ConfigError, Value},
};

/// What a formula is computed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Over {
    /// The tokens of a batch.
    Batch,
    /// The tokens of a batch whose sequences are grouped by prompt.
    BatchAndGroups,
    /// One number per sequence, grouped by prompt.
    Groups,
    /// One number per sequence.
    Sequences,
    /// The layout of a batch; its mask is not read.
    Layout,
}

/// What the entries of a column belong to, which determines their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// One per token slot.
    Token,
    /// One per sequence.
    Sequence,
    /// One per group.
    Group,
    /// One per token slot and entry of the vocabulary.
    Logit,
    /// One per token slot and entry of a top-k list.
    TopK,
    /// One per reward source and sequence.
    Source,
    /// Any number.
    List,
    /// A single number.
    Single,
}

/// An input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// The name of the field in the core's input or output struct.
    pub name: &'static str,
    /// What its entries belong to.
    pub kind: Kind,
    /// The type of its entries.
    pub element: Element,
    /// Whether a call may omit it.
    pub optional: bool,
}

impl Column {
    const fn new(name: &'static str, kind: Kind, element: Element) -> Self {
        Self { name, kind, element, optional: false }
    }

    /// The same column, but a call may omit it.
    pub(crate) const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// The same column with entries of another type than the call's.
    pub(crate) const fn of(self, element: Element) -> Self {
        Self { element, ..self }
    }
}

pub(crate) const fn token(name: &'static str) -> Column {
    Column::new(name, Kind::Token, Element::Real)
}
pub(crate) const fn sequence(name: &'static str) -> Column {
    Column::new(name, Kind::Sequence, Element::Real)
}
pub(crate) const fn logit(name: &'static str) -> Column {
    Column::new(name, Kind::Logit, Element::Real)
}
pub(crate) const fn top_k(name: &'static str) -> Column {
    Column::new(name, Kind::TopK, Element::Real)
}
pub(crate) const fn source(name: &'static str) -> Column {
    Column::new(name, Kind::Source, Element::Real)
}
pub(crate) const fn list(name: &'static str) -> Column {
    Column::new(name, Kind::List, Element::Real)
}
pub(crate) const fn number(name: &'static str) -> Column {
    Column::new(name, Kind::Single, Element::Number)
}
pub(crate) const fn text(name: &'static str) -> Column {
    Column::new(name, Kind::Single, Element::Text)
}
pub(crate) const fn size(name: &'static str) -> Column {
    Column::new(name, Kind::Single, Element::Size)
}
pub(crate) const fn group_counts(name: &'static str) -> Column {
    Column::new(name, Kind::Group, Element::Count)
}

/// The config of a formula.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The name of its type in the core.
    pub name: &'static str,
}

/// One formula.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Entry {
    /// The name of the function in the core.
    pub name: &'static str,
    /// The module of the core.
    pub stage: &'static str,
    /// What it is computed over.
    pub over: Over,
    /// Its inputs.
    pub inputs: &'static [Column],
    /// Its config, if it has one.
    pub config: Option<Config>,
    /// Its outputs.
    pub outputs: &'static [Column],
    /// The numbers it returns; a `*` at the end stands for further keys that depend on the call.
    pub numbers: &'static [&'static str],
    /// Whether it requires feature `full`.
    pub(crate) full: bool,
    pub(crate) f32: fn(&mut Call<'_, f32>) -> Result<(), Refusal>,
    pub(crate) f64: fn(&mut Call<'_, f64>) -> Result<(), Refusal>,
}

/// A call: inputs, config, and where the results are written.
pub struct Call<'a, R> {
    /// The batch, for formulas over tokens.
    pub batch: Option<Batch<'a>>,
    /// Which sequences answer the same prompt.
    pub groups: Option<Groups<'a>>,
    /// The inputs.
    pub inputs: &'a Columns<R>,
    /// The config.
    pub config: &'a Value,
    /// The outputs; [`Entry::outputs_for`] makes columns that fit.
    pub outputs: &'a mut Columns<R>,
    /// The returned numbers, by name.
    pub numbers: Vec<(Cow<'static, str>, f64)>,
    /// Inputs that are borrowed instead; see [`Self::with_slices`].
    slices: &'a [(&'static str, &'a [R])],
}

/// Why a call by name was rejected.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The core rejected it. Nothing was written.
    Core(Error),
    /// The config could not be read.
    Config(ConfigError),
    /// A required column is missing.
    Missing {
        /// Its name.
        input: &'static str,
        /// The type its entries should have.
        element: Element,
    },
    /// The call has no batch, or no groups.
    Over {
        /// Which of the two is missing.
        what: &'static str,
    },
    /// A column has entries of the wrong type.
    Element {
        /// Its name.
        column: &'static str,
        /// The type its entries should have.
        expected: Element,
        /// The type they have.
        got: Element,
    },
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(error) => error.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Missing { input, element } => write!(f, "{input}: expected {}, got nothing", element.words()),
            Self::Over { what } => write!(f, "{what}: expected one, got nothing"),
            Self::Element { column, expected, got } => {
                write!(f, "{column}: expected {}, got {}", expected.words(), got.words())
            }
        }
    }
}

impl core::error::Error for Refusal {}

/// The types that a formula can be called with: `f32` and `f64`.
pub trait Number: Real + Logit<Compute = Self> {
    #[doc(hidden)]
    fn function(entry: &Entry) -> fn(&mut Call<'_, Self>) -> Result<(), Refusal>;
}

impl Number for f32 {
    fn function(entry: &Entry) -> fn(&mut Call<'_, Self>) -> Result<(), Refusal> {
        entry.f32
    }
}

impl Number for f64 {
    fn function(entry: &Entry) -> fn(&mut Call<'_, Self>) -> Result<(), Refusal> {
        entry.f64
    }
}

impl Entry {
    /// Runs the formula. If the call is rejected, nothing was written.
    pub fn call<R: Number>(&self, call: &mut Call<'_, R>) -> Result<(), Refusal> {
        R::function(self)(call)
    }

    /// The gradients that a loss writes: each output with the input it belongs to. Empty if the formula is not a loss.
    ///
    /// `grad` belongs to the first input and `grad_x` to input `x`; the weights of `aggregate` are its gradient.
    pub fn gradients(&self) -> impl Iterator<Item = (&'static Column, &'static Column)> {
        let (entry, loss) = (*self, self.stage == "loss" && self.numbers.contains(&"loss"));
        self.outputs.iter().filter(move |_| loss).filter_map(move |output| {
            let input = match output.name {
                "grad" => entry.inputs.first(),
                "weights" if entry.name == "aggregate" => entry.inputs.first(),
                name => {
                    let of = name.strip_prefix("grad_")?;
                    entry.inputs.iter().find(|input| input.name == of)
                }
            };
            Some((input?, output))
        })
    }

    /// Outputs of the right lengths for the given batch, groups and inputs, all zero.
    pub fn outputs_for<R: Number>(
        &self,
        batch: Option<&Batch<'_>>,
        groups: Option<&Groups<'_>>,
        inputs: &Columns<R>,
    ) -> Columns<R> {
        let mut outputs = Columns::new();
        for column in self.outputs {
            outputs.set(column.name, column.element.zeros(self.length(column.kind, batch, groups, inputs)));
        }
        outputs
    }

    /// How many entries a column of this kind has. Products that overflow saturate to a size that no slice can have.
    pub fn length<R: Number>(
        &self,
        kind: Kind,
        batch: Option<&Batch<'_>>,
        groups: Option<&Groups<'_>>,
        inputs: &Columns<R>,
    ) -> usize {
        let tokens = batch.map_or(0, Batch::tokens);
        let times = |name| tokens.saturating_mul(inputs.size(name).unwrap_or(0));
        match kind {
            Kind::Token => tokens,
            Kind::Sequence | Kind::Source => match (batch, groups) {
                (Some(batch), _) => batch.sequences(),
                (None, Some(groups)) => groups.sequences(),
                (None, None) => {
                    self.inputs.first().and_then(|first| inputs.get(first.name)).map_or(0, |first| first.len())
                }
            },
            Kind::Group => groups.map_or(0, Groups::count),
            Kind::Logit => times("vocab"),
            Kind::TopK => times("k"),
            Kind::List => inputs.size("draws").unwrap_or(0),
            Kind::Single => 1,
        }
    }
}

impl<'a, R: Number> Call<'a, R> {
    /// The batch.
    pub fn batch(&self) -> Result<Batch<'a>, Refusal> {
        self.batch.ok_or(Refusal::Over { what: "batch" })
    }

    /// The groups.
    pub fn groups(&self) -> Result<Groups<'a>, Refusal> {
        self.groups.ok_or(Refusal::Over { what: "groups" })
    }

    /// The config.
    pub fn config<C: Deserialize<'a>>(&self) -> Result<C, Refusal> {
        Ok(self.config.read("config")?)
    }

    /// A config that is one of several rules; without a config, the default rule.
    pub fn rule<C: Deserialize<'a> + Default>(&self) -> Result<C, Refusal> {
        if *self.config == Value::EMPTY {
            Ok(C::default())
        } else {
            self.config()
        }
    }

    /// The config of a loss. Prompts are data, not config: they come from the call.
    pub fn loss_config<C: Deserialize<'a> + Aggregates<'a>>(&self) -> Result<C, Refusal> {
        let mut config: C = self.config()?;
        self.bind(config.aggregate())?;
        Ok(config)
    }

    /// Sets the groups and counts of an aggregation by prompt.
    pub fn bind(&self, aggregate: &mut Aggregate<'a>) -> Result<(), Refusal> {
        if let AggregateMode::PromptMean { groups, tokens } = &mut aggregate.mode {
            *groups = self.groups()?;
            *tokens = self.inputs.count("group_tokens")?;
        }
        Ok(())
    }

    /// A required input of numbers.
    pub fn real(&self, name: &'static str) -> Result<&'a [R], Refusal> {
        match self.slice(name) {
            Some(slice) => Ok(slice),
            None => self.inputs.real(name),
        }
    }

    /// An input of numbers that a call may omit.
    pub fn optional(&self, name: &'static str) -> Result<Option<&'a [R]>, Refusal> {
        match self.slice(name) {
            Some(slice) => Ok(Some(slice)),
            None => self.inputs.optional_real(name),
        }
    }

    fn slice(&self, name: &str) -> Option<&'a [R]> {
        self.slices.iter().find(|(known, _)| *known == name).map(|(_, slice)| *slice)
    }

    /// Adds numbers to the results, by name.
    pub fn give<const N: usize>(&mut self, numbers: [(&'static str, f64); N]) {
        self.numbers.extend(numbers.map(|(name, number)| (Cow::Borrowed(name), number)));
    }

    /// Adds a number to the results, if there is one.
    pub fn give_some(&mut self, name: &'static str, number: Option<f64>) {
        self.numbers.extend(number.map(|number| (Cow::Borrowed(name), number)));
    }
}

/// A config with an aggregation of token losses.
pub trait Aggregates<'a> {
    /// The aggregation.
    fn aggregate(&mut self) -> &mut Aggregate<'a>;
}

impl<'a, R: Number> Call<'a, R> {
    /// A call without results yet.
    pub fn new(
        batch: Option<Batch<'a>>,
        groups: Option<Groups<'a>>,
        inputs: &'a Columns<R>,
        config: &'a Value,
        outputs: &'a mut Columns<R>,
    ) -> Self {
        Self { batch, groups, inputs, config, outputs, numbers: Vec::new(), slices: &[] }
    }

    /// The same call with inputs of numbers that are read where they are, without a copy; they come before columns of
    /// the same name. Sizes, and columns that determine the length of an output, belong in `inputs`.
    #[must_use]
    pub fn with_slices(self, slices: &'a [(&'static str, &'a [R])]) -> Self {
        Self { slices, ..self }
    }
}

/// Defines the entries of a module: a table and, for every formula, the generic function behind its two function
/// pointers.
///
/// ```text
/// stage: name(over; inputs) Config? -> (outputs) [numbers] |call| { body }
/// ```
macro_rules! formulas {
    ($stage:literal: $(
        $(#[cfg(feature = $full:literal)])?
        $name:ident($over:ident; $($input:expr),*) $($config:ident)?
            -> ($($output:expr),*) [$($number:literal),*] |$call:ident| $body:block
    )*) => {
        /// The entries of this module.
        pub(crate) const ENTRIES: &[$crate::Entry] = &[$(
            $(#[cfg(feature = $full)])?
            $crate::Entry {
                name: stringify!($name),
                stage: $stage,
                over: $crate::Over::$over,
                inputs: &[$($input),*],
                config: $crate::entry::config!($($config)?),
                outputs: &[$($output),*],
                numbers: &[$($number),*],
                full: $crate::entry::marked!($($full)?),
                f32: $name::<f32>,
                f64: $name::<f64>,
            },
        )*];
        $(
            $(#[cfg(feature = $full)])?
            fn $name<R: $crate::Number>($call: &mut $crate::Call<'_, R>) -> Result<(), $crate::Refusal> $body
        )*
    };
}
pub(crate) use formulas;

/// The config of an entry, if it has one.
macro_rules! config {
    () => {
        None
    };
    ($config:ident) => {
        Some($crate::Config { name: stringify!($config) })
    };
}
pub(crate) use config;

/// Whether an argument is present.
macro_rules! marked {
    () => {
        false
    };
    ($mark:literal) => {
        true
    };
}
pub(crate) use marked;
