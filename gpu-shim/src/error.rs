//! Why a call to the GPU failed.

use std::fmt;

/// Why a call to the GPU failed. Nothing was written to the outputs.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum GpuError {
    /// The machine has no adapter that can compute; the driver's words.
    NoAdapter(String),
    /// The adapter refused a device, or the driver failed; its words.
    Device(String),
    /// The core refused the call, before anything reached the GPU.
    Core(tokenwise::Error),
    /// A command was not valid: a mistake in this crate. The validator's words.
    Validation(String),
    /// The device has no memory left.
    OutOfMemory,
    /// The device is gone (driver reset, unplugged, destroyed); every later call fails in the same way.
    Lost(String),
    /// The call needs more than the device, or [`GpuOptions`](crate::GpuOptions), allows.
    Limit {
        /// What there is too little of.
        what: &'static str,
        /// What the call needs.
        needed: u64,
        /// What there is.
        limit: u64,
    },
}

impl GpuError {
    /// A short stable name of the variant, for programs; of the core's own variant where it refused.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoAdapter(_) => "no_adapter",
            Self::Device(_) => "device",
            Self::Core(error) => error.code(),
            Self::Validation(_) => "validation",
            Self::OutOfMemory => "out_of_memory",
            Self::Lost(_) => "lost",
            Self::Limit { .. } => "limit",
        }
    }
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAdapter(reason) => write!(f, "no GPU adapter: {reason}"),
            Self::Device(reason) => write!(f, "GPU device: {reason}"),
            Self::Core(error) => error.fmt(f),
            Self::Validation(reason) => write!(f, "GPU validation: {reason}"),
            Self::OutOfMemory => f.write_str("GPU out of memory"),
            Self::Lost(reason) => write!(f, "GPU device lost: {reason}"),
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
}
