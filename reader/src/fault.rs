//! Errors of a file and their position. The command prints them; the page has its own text for every code.

use std::fmt;

/// The table of faults: variant, stable code, values, and message.
macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident $code:literal { $($value:ident: $type:ty),* } => $text:literal,)*) => {
        /// What is wrong with a file.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "the fields are the values of the sentence above them")]
        pub enum Fault {
            $($(#[$doc])* #[doc = concat!("“", $text, "”")] $variant { $($value: $type),* },)*
        }

        impl Fault {
            /// A stable code, for programs.
            #[must_use]
            pub const fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $code,)*
                }
            }

            /// The values in its message, by name.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(Self::$variant { $($value),* } => vec![$((stringify!($value), $value.to_string())),*],)*
                }
            }
        }

        impl fmt::Display for Fault {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant { $($value),* } => write!(f, $text),)*
                }
            }
        }
    };
}

faults! {
    Empty "empty" {} => "the file is empty",
    UnknownKind "unknownKind" {} => "unknown file format: expected .json, .jsonl, .csv, .parquet or .safetensors",
    NoRollout "noRollout" { found: String } => "no known field; found {found}. Map one with --field score=NAME",
    /// A name that was given for a field.
    NoSuchName "noSuchName" { field: String, name: String, found: String }
        => "no record has {name:?}, which was given as the name of field {field:?}; found {found}",
    /// More memory than the budget.
    Memory "memory" { what: String, needed: String, limit: String }
        => "{what} needs {needed} of memory, the limit is {limit}",
    /// The source could not be read.
    Io "io" { reason: String } => "{reason}",
    /// The sink stopped the reading.
    Stopped "stopped" {} => "stopped",

    TooManyTokens "tooManyTokens" { most: u64 } => "more than {most} tokens",
    TooManySequences "tooManySequences" { most: u64 } => "more than {most} sequences",

    /// Counted from 1 at the start of the line.
    NotText "notText" { byte: u64 } => "byte {byte} is not UTF-8 text",
    NotTextCell "notTextCell" { field: u64 } => "field {field} is not UTF-8 text",
    NoValue "noValue" { found: String } => "expected a value, got {found:?}",
    Expected "expected" { wanted: String, found: String } => "expected {wanted}, got {found:?}",
    Ends "ends" {} => "the text ends too early",
    Incomplete "incomplete" {} => "not a complete object; if the file is pretty-printed JSON, rename it .json",
    BadArchive "badArchive" { reason: String } => "cannot be decompressed: {reason}",
    Range "range" { text: String } => "number out of range: {text}",
    Control "control" {} => "control character in a text",
    Escape "escape" { text: String } => "unknown escape {text} in a text",
    Deep "deep" { most: u64 } => "nested more than {most} deep",
    NoObject "noObject" { found: String } => "expected an object with the fields of a rollout, got {found:?}",
    OpenQuote "openQuote" {} => "the quote that begins here is never closed",
    CsvWidth "csvWidth" { expected: u64, got: u64 } => "expected {expected} fields, got {got}",

    NotANumber "notANumber" { field: String, found: String } => "field {field:?}: expected a number, got {found:?}",
    NotAList "notAList" { field: String, found: String }
        => "field {field:?}: expected a list in brackets, got {found:?}",
    NotPerToken "notPerToken" { field: String, found: String }
        => "field {field:?}: expected one number per token, got {found}; the score of a sequence is \"score\"",
    NotAStep "notAStep" { found: String } => "field \"step\": expected a whole number from 0 to 2^53, got {found}",
    StepAgain "stepAgain" { step: u64 }
        => "step {step} appears again after another step; sort the file by step",
    Twice "twice" { field: String, first: String, second: String }
        => "both {first} and {second} are given; choose one with --field {field}=NAME",
    Repeated "repeated" { name: String } => "{name:?} is given twice",
    Differs "differs" { field: String, first: String, second: String }
        => "field {field:?}: expected one value, got {first} and {second}",
    NotAMask "notAMask" { found: String } => "field \"mask\": expected 0 or 1, got {found}",
    Mixed "mixed" { field: String } => "field {field:?} has lists among numbers",
    Lengths "lengths" { field: String, got: String, first: String, expected: String }
        => "field {field:?} has {got} entries, field {first:?} has {expected}",
    ScoreCount "scoreCount" { got: u64, expected: u64 } => "field \"score\" has {got} entries for {expected} sequences",
    MissingField "missingField" { field: String } => "field {field:?} is missing, but the sequences before have it",
    NewField "newField" { field: String } => "field {field:?} appears here, but not in the sequences before",
    MaskLength "maskLength" { expected: u64, got: u64 } => "field \"mask\": expected {expected} entries, got {got}",

    NotATrace "notATrace" { reason: String } => "this is not a trace of prime-rl: {reason}",
    NoTraces "noTraces" {}
        => "these are annotations of traces; the traces themselves are in stream/",

    NotParquet "notParquet" { reason: String } => "cannot read the Parquet file: {reason}",
    Codec "codec" { codec: String, column: String }
        => "column {column:?} is compressed with {codec}, which this program was built without",

    NotTensors "notTensors" { reason: String } => "not a safetensors file: {reason}",
    TensorEntry "tensorEntry" { tensor: String } => "tensor {tensor:?}: invalid header entry",
    TensorKind "tensorKind" { tensor: String, kind: String } => "tensor {tensor:?}: unsupported dtype {kind}",
    TensorCut "tensorCut" { tensor: String } => "tensor {tensor:?}: the file ends too early, or its header is wrong",
    TensorShape "tensorShape" { tensor: String, shape: String }
        => "tensor {tensor:?} has shape {shape}: expected one or two dimensions",
    TensorRows "tensorRows" { tensor: String, shape: String, sequences: u64 }
        => "tensor {tensor:?} has shape {shape}, but there are {sequences} sequences",
    TensorEmpty "tensorEmpty" { tensor: String, shape: String }
        => "tensor {tensor:?} has shape {shape}: more sequences than the file has bytes",
    TensorsOverlap "tensorsOverlap" { tensor: String, other: String }
        => "tensors {tensor:?} and {other:?} share bytes of the file",
    Offsets "offsets" {}
        => "tensor \"cu_seqlens\" must have one dimension, start at 0, hold whole numbers and never decrease",
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Io { reason: error.to_string() }
    }
}

/// Where in a file, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line of a text.
    pub line: Option<u64>,
    /// Byte of the line.
    pub column: Option<u64>,
    /// Record of a JSON document.
    pub record: Option<u64>,
    /// Row of a table or tensor.
    pub row: Option<u64>,
}

impl Place {
    pub(crate) fn line(line: u64) -> Self {
        Self { line: Some(line), ..Self::default() }
    }

    pub(crate) fn row(row: u64) -> Self {
        Self { row: Some(row), ..Self::default() }
    }

    pub(crate) fn record(record: u64) -> Self {
        Self { record: Some(record), ..Self::default() }
    }

    /// Its numbers, by name.
    #[must_use]
    pub fn numbers(&self) -> Vec<(&'static str, u64)> {
        let all = [("line", self.line), ("column", self.column), ("record", self.record), ("row", self.row)];
        all.into_iter().filter_map(|(name, number)| Some((name, number?))).collect()
    }
}

/// Why a file was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The position; empty if the whole file is concerned.
    pub place: Place,
    /// What.
    pub fault: Box<Fault>,
}

impl Fault {
    pub(crate) fn at(self, place: Place) -> Error {
        Error { place, fault: Box::new(self) }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        fault.at(Place::default())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Fault::from(error).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.place.numbers();
        for (index, (name, number)) in numbers.iter().enumerate() {
            let separator = if index + 1 == numbers.len() { ": " } else { ", " };
            write!(f, "{name} {number}{separator}")?;
        }
        self.fault.fmt(f)
    }
}

impl std::error::Error for Error {}

/// Names for a message: `a, b, …`.
pub(crate) fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    match names.len() {
        0 => "no names".into(),
        count => {
            let more = if count > MOST { ", …" } else { "" };
            format!("{}{more}", names[..count.min(MOST)].join(", "))
        }
    }
}

/// An excerpt of a file, short enough for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
