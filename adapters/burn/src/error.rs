//! Why a call was refused.

use std::fmt;

use burn::tensor::{DType, TensorReadError};
use tokenwise_catalogue::{ConfigError, Element, Refusal};

/// Why a call was refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The core refused it.
    Core(tokenwise::Error),
    /// The config could not be read.
    Config(ConfigError),
    /// An input, the batch or the groups are missing, or an input is of the wrong kind.
    Call(Box<Refusal>),
    /// A tensor could not be read.
    Read(TensorReadError),
    /// There is no formula of this name.
    Formula {
        /// The name.
        name: String,
    },
    /// The formula is not a loss.
    NotALoss {
        /// The name.
        name: &'static str,
    },
    /// The formula has no input of this name.
    Input {
        /// The formula.
        formula: &'static str,
        /// The name.
        name: String,
    },
    /// An input is not what the formula reads.
    Kind {
        /// The input.
        input: &'static str,
        /// What it reads.
        expected: Element,
        /// What there was.
        got: &'static str,
    },
    /// A tensor has another type than expected.
    DType {
        /// The input.
        input: &'static str,
        /// The expected type, or several in words.
        expected: &'static str,
        /// The type of the tensor.
        got: DType,
    },
    /// A tensor has another shape than expected.
    Shape {
        /// The input or output.
        what: String,
        /// The expected number of dimensions or the expected sizes, in words.
        expected: String,
        /// The sizes of the tensor.
        got: Vec<usize>,
    },
    /// An entry cannot be an index or a count.
    Entry {
        /// The input.
        input: &'static str,
        /// Its index in the flattened tensor.
        index: usize,
        /// The entry.
        got: i64,
    },
    /// The formula returned no output or number of this name and kind.
    Output {
        /// The name.
        name: String,
    },
    /// The loss does not depend on a tensor that requires a gradient.
    NotTracked,
    /// A tensor is on another device than the one that computes.
    #[cfg(feature = "wgpu")]
    Device {
        /// The input.
        input: String,
        /// The device that computes.
        expected: String,
        /// The device of the tensor.
        got: String,
    },
    /// burn did not give the buffer of a tensor.
    #[cfg(feature = "wgpu")]
    Buffer {
        /// The input or output.
        input: String,
        /// Why.
        reason: String,
    },
    /// burn did not initialize its device.
    #[cfg(feature = "wgpu")]
    Init(burn::tensor::wgpu::WgpuInitError),
    /// tokenwise-gpu refused or the device failed.
    #[cfg(feature = "wgpu")]
    Gpu(tokenwise_gpu::GpuError),
}

/// The result of every function.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(error) => error.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Call(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
            Self::Formula { name } => write!(f, "{name}: no formula has this name"),
            Self::NotALoss { name } => write!(f, "{name}: not a loss"),
            Self::Input { formula, name } => write!(f, "{name}: not an input of {formula}"),
            Self::Kind { input, expected, got } => write!(f, "{input}: expected {}, got {got}", expected.words()),
            Self::DType { input, expected, got } => write!(f, "{input}: expected {expected}, got {got:?}"),
            Self::Shape { what, expected, got } => write!(f, "{what}: expected {expected}, got {got:?}"),
            Self::Entry { input, index, got } => write!(f, "{input}[{index}]: expected 0 or more, got {got}"),
            Self::Output { name } => write!(f, "{name}: the formula returned nothing of this name and kind"),
            Self::NotTracked => f.write_str("the loss depends on no tensor that requires a gradient"),
            #[cfg(feature = "wgpu")]
            Self::Device { input, expected, got } => write!(f, "{input}: expected a tensor on {expected}, got {got}"),
            #[cfg(feature = "wgpu")]
            Self::Buffer { input, reason } => write!(f, "{input}: no buffer of the tensor: {reason}"),
            #[cfg(feature = "wgpu")]
            Self::Init(error) => write!(f, "burn did not initialize its wgpu device: {error}"),
            #[cfg(feature = "wgpu")]
            Self::Gpu(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Core(error) => Some(error),
            Self::Config(error) => Some(error),
            Self::Call(error) => Some(error.as_ref()),
            Self::Read(error) => Some(error),
            #[cfg(feature = "wgpu")]
            Self::Gpu(error) => Some(error),
            _ => None,
        }
    }
}

impl From<tokenwise::Error> for Error {
    fn from(error: tokenwise::Error) -> Self {
        Self::Core(error)
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<Refusal> for Error {
    fn from(error: Refusal) -> Self {
        match error {
            Refusal::Core(error) => Self::Core(error),
            Refusal::Config(error) => Self::Config(error),
            other => Self::Call(other.into()),
        }
    }
}

impl From<TensorReadError> for Error {
    fn from(error: TensorReadError) -> Self {
        Self::Read(error)
    }
}

#[cfg(feature = "wgpu")]
impl From<tokenwise_gpu::GpuError> for Error {
    fn from(error: tokenwise_gpu::GpuError) -> Self {
        match error {
            tokenwise_gpu::GpuError::Core(error) => Self::Core(error),
            tokenwise_gpu::GpuError::Refused(refusal) => refusal.into(),
            other => Self::Gpu(other),
        }
    }
}

#[cfg(feature = "wgpu")]
impl From<burn::tensor::wgpu::WgpuInitError> for Error {
    fn from(error: burn::tensor::wgpu::WgpuInitError) -> Self {
        Self::Init(error)
    }
}
