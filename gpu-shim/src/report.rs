//! What a computation cost, and who did it.

use std::{fmt, time::Duration};

use crate::{coverage::NoKernel, error::GpuError};

/// Where a call ran.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// The GPU, within [`tolerance`](crate::tolerance).
    Gpu,
    /// The core, with its bits, and the reason.
    Core(Reason),
}

/// Why the core computed.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// There is no device.
    NoGpu(GpuError),
    /// The batch is below [`Thresholds`](crate::Thresholds).
    Small {
        /// Work of the batch, in the unit of the threshold.
        work: u64,
        /// The threshold.
        threshold: u64,
    },
    /// The device failed: lost, out of memory, or a limit exceeded.
    Failed(GpuError),
    /// The formula has no kernel; see [`coverage`](crate::coverage).
    NoKernel(NoKernel),
    /// A kept number is not finite, or a result exceeds the range of `f32` arithmetic: drivers disagree there.
    Special,
}

impl Reason {
    /// A short stable name, for programs: `too_small`, `not_finite`, that of the error
    /// ([`GpuError::code`]), or why there is no kernel ([`NoKernel::code`]).
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoGpu(error) | Self::Failed(error) => error.code(),
            Self::Small { .. } => "too_small",
            Self::NoKernel(why) => why.code,
            Self::Special => "not_finite",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGpu(error) | Self::Failed(error) => error.fmt(f),
            Self::Small { work, threshold } => {
                write!(f, "too small for the GPU: {work}, which pays from {threshold} on")
            }
            Self::NoKernel(reason) => write!(f, "not on the GPU: {reason}"),
            Self::Special => f.write_str("a number is not finite or exceeds the range of f32"),
        }
    }
}

/// What a computation cost, and who did it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Who computed.
    pub ran: Ran,
    /// Time on the host from the start of the recording to the last result; not measured in the browser.
    pub host: Option<Duration>,
    /// Time on the device, where it has timestamps.
    pub device: Option<Duration>,
    /// Bytes sent to the device, parameters included.
    pub bytes_up: u64,
    /// Bytes read back.
    pub bytes_down: u64,
    /// Dispatches.
    pub dispatches: u32,
    /// Whether a kernel met a kept number that is not finite, or left the range of `f32`. Where the core would give NaN
    /// for a token, the column has NaN; an infinite input counts as the largest finite number.
    pub special: bool,
}

impl Report {
    /// The GPU computed; nothing is counted yet.
    pub(crate) const fn gpu() -> Self {
        Self { ran: Ran::Gpu, host: None, device: None, bytes_up: 0, bytes_down: 0, dispatches: 0, special: false }
    }

    /// Adds the cost of a further submission, except the time on the host.
    pub(crate) fn add(&mut self, other: &Self) {
        self.device = match (self.device, other.device) {
            (Some(device), Some(more)) => Some(device + more),
            (device, more) => device.or(more),
        };
        self.bytes_up += other.bytes_up;
        self.bytes_down += other.bytes_down;
        self.dispatches += other.dispatches;
        self.special |= other.special;
    }

    /// The core computed, in this time on the host.
    pub const fn core(reason: Reason, host: Option<Duration>) -> Self {
        Self { ran: Ran::Core(reason), host, device: None, bytes_up: 0, bytes_down: 0, dispatches: 0, special: false }
    }
}

/// Measures time on the host. `std` has no clock on `wasm32-unknown-unknown`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(#[cfg(not(target_arch = "wasm32"))] std::time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(
            #[cfg(not(target_arch = "wasm32"))]
            std::time::Instant::now(),
        )
    }

    pub(crate) fn elapsed(self) -> Option<Duration> {
        #[cfg(not(target_arch = "wasm32"))]
        return Some(self.0.elapsed());
        #[cfg(target_arch = "wasm32")]
        None
    }
}
