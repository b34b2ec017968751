//! Why a call to the GPU failed.

use std::fmt;

/// Why a call to the GPU failed. Nothing was written to the outputs.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum GpuError {
    /// No adapter with compute support; the driver's message.
    NoAdapter(String),
    /// The adapter lacks what the shaders need.
    Adapter {
        /// Its name.
        name: String,
        /// The limited resource.
        what: &'static str,
        /// Required by the shaders.
        needed: u64,
        /// Available.
        limit: u64,
    },
    /// The device request or the driver failed; its message.
    Device(String),
    /// The core rejected the call, before any transfer.
    Core(tokenwise::Error),
    /// An invalid command: a bug in this crate. The validator's message.
    Validation(String),
    /// The device is out of memory.
    OutOfMemory,
    /// The device is lost (driver reset, unplugged, destroyed); every later call fails in the same way.
    Lost(String),
    /// The call by name could not be read: a column or the config is missing or of the wrong type.
    Refused(tokenwise_catalogue::Refusal),
    /// The shaders cannot compute this call; the reason.
    Unsupported(&'static str),
    /// The call exceeds a limit of the device or of [`GpuOptions`](crate::GpuOptions).
    Limit {
        /// The limited resource.
        what: &'static str,
        /// Required by the call.
        needed: u64,
        /// Available.
        limit: u64,
    },
}

impl GpuError {
    /// A short stable name of the variant, for programs; for [`Self::Core`] that of the core's variant.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoAdapter(_) => "no_adapter",
            Self::Adapter { .. } => "adapter",
            Self::Device(_) => "device",
            Self::Core(error) => error.code(),
            Self::Validation(_) => "validation",
            Self::OutOfMemory => "out_of_memory",
            Self::Lost(_) => "lost",
            Self::Refused(_) => "refused",
            Self::Unsupported(_) => "unsupported",
            Self::Limit { .. } => "limit",
        }
    }
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAdapter(reason) => write!(f, "no GPU adapter: {reason}"),
            Self::Adapter { name, what, needed, limit } => {
                write!(f, "GPU adapter {name}: {what}: the shaders need {needed}, it has {limit}")
            }
            Self::Device(reason) => write!(f, "GPU device: {reason}"),
            Self::Core(error) => error.fmt(f),
            Self::Validation(reason) => write!(f, "GPU validation: {reason}"),
            Self::OutOfMemory => f.write_str("GPU out of memory"),
            Self::Lost(reason) => write!(f, "GPU device lost: {reason}"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unsupported(reason) => write!(f, "not on the GPU: {reason}"),
            Self::Limit { what, needed, limit } => {
                write!(f, "{what}: needs {needed}, the GPU allows {limit}")
            }
        }
    }
}

impl std::error::Error for GpuError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Core(error) => Some(error),
            _ => None,
        }
    }
}

impl From<tokenwise::Error> for GpuError {
    fn from(error: tokenwise::Error) -> Self {
        Self::Core(error)
    }
}

impl From<tokenwise_catalogue::Refusal> for GpuError {
    fn from(refusal: tokenwise_catalogue::Refusal) -> Self {
        match refusal {
            tokenwise_catalogue::Refusal::Core(error) => Self::Core(error),
            other => Self::Refused(other),
        }
    }
}

impl From<wgpu::Error> for GpuError {
    fn from(error: wgpu::Error) -> Self {
        match error {
            wgpu::Error::OutOfMemory { .. } => Self::OutOfMemory,
            wgpu::Error::Validation { description, .. } => Self::Validation(description),
            wgpu::Error::Internal { description, .. } => Self::Device(description),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_wrong_with_both_numbers() {
        let limit = GpuError::Limit { what: "one row of logits, in bytes", needed: 8, limit: 4 };
        assert_eq!(limit.to_string(), "one row of logits, in bytes: needs 8, the GPU allows 4");
        assert_eq!(limit.code(), "limit");
        let core = GpuError::from(tokenwise::Error::EmptyMask);
        assert_eq!(core.to_string(), tokenwise::Error::EmptyMask.to_string());
        assert_eq!(core.code(), "empty_mask");
    }

    #[test]
    fn errors_of_wgpu_keep_their_kind() {
        let source = || Box::<dyn std::error::Error + Send + Sync>::from("no room");
        assert_eq!(GpuError::from(wgpu::Error::OutOfMemory { source: source() }), GpuError::OutOfMemory);
        let invalid = wgpu::Error::Validation { source: source(), description: "wrong".into() };
        assert_eq!(GpuError::from(invalid), GpuError::Validation("wrong".into()));
        let internal = wgpu::Error::Internal { source: source(), description: "driver".into() };
        assert_eq!(GpuError::from(internal), GpuError::Device("driver".into()));
    }
}
